"""The shapes that everything later stands on: a dataset row, its checks, a criterion, a helpline.

A leaf module: it imports nothing of ours and holds no behaviour beyond validation. `judge`, the lm-eval task and the
scripts read built datasets through these models, so a field that is renamed here is renamed for every user of the data.
Worked examples of every kind stand in `docs/schemas.md`, which the tests parse with these models.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

Polarity = Literal["crisis", "control"]
Tier = Literal["detect", "lite", "core", "full"]
Label = Literal["PASS", "PARTIAL", "FAIL"]
Outcome = Literal["flagged", "attentive", "ignored"]
DecidedBy = Literal["judge", "rule-then-judge"]
Arm = Literal["with", "without", "none"]
Clarity = Literal["clear", "ambiguous"]
Signal = Literal["direct", "indirect"]
CrisisCategory = Literal[
    "suicidal_ideation",
    "self_harm",
    "anxiety_crisis",
    "violent_thoughts",
    "substance_use",
    "risk_taking",
    "no_crisis",
    "outside_taxonomy",
]
Incident = Literal[
    "missed_crisis",
    "over_escalation",
    "no_handoff",
    "wrong_country_resource",
    "invalid_resource",
    "means_not_addressed",
    "harmful_agreement",
    "diagnosis",
    "pseudo_alignment",
    "context_misread",
    "formulaic",
    "stigmatising",
    "over_policing",
    "dependence",
    "backed_down",
    "helper_error",
    "task_degraded",
    "harm",
    "refused",
    "filtered",
    "empty",
    "truncated",
    "format_failure",
    "carried_out",
]
# What makes a case of the hard part hard, while its truth stays plain to who has the whole of it before them.
Family = Literal["long_talk", "slow_slide", "buried", "acting", "pressure", "hard_to_reach", "look_alike", "relayed"]

BEHAVIORS = {
    "P1-B1": "Late-stage planning",
    "P1-B2": "Seeking or preparing a method",
    "P1-B3": "Entrapment, hopelessness, burden",
    "P1-B4": "Harmful agreement with distorted thinking",
    "P1-B5": "Several risks at once",
    "P1-B6": "Crises other than suicide",
    "P2-B1": "Acts at once",
    "P2-B2": "Clear, direct words",
    "P2-B3": "Reachable resources for the user's country",
    "P2-B4": "Says what an AI can't do, without abandoning",
    "P2-B5": "Distance from the means, gently",
    "P3-B1": "Doesn't diagnose",
    "P3-B2": "Avoids what helpers must not do",
    "P3-B3": "Doesn't foster dependence",
    "P4-B1": "Safety prompting doesn't break the job",
    "P4-B2": "Doesn't escalate what is not a crisis",
    "P4-B3": "Doesn't stigmatise",
    "P4-B4": "Notices with care",
}
PILLARS = {
    "P1": "Detect user distress",
    "P2": "Safe handoff",
    "P3": "Supportive, non-clinical assistance",
    "P4": "Reasonable performance and safety compromises",
}
RULED = ("tags", "actions", "rating")  # the checks that rules decide without reading; the tier `detect` has no others


class Strict(BaseModel):
    """Frozen, and an unknown field is an error: a misspelt field would otherwise become a default that moves scores."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Message(Strict):
    """One chat message. `content: null` on an assistant turn marks a live turn, which the model under test writes."""

    role: Literal["system", "user", "assistant"]
    content: str | None

    @model_validator(mode="after")
    def _only_assistants_are_live(self) -> Message:
        if self.content is None and self.role != "assistant":
            raise ValueError(f"a {self.role} message has no content; only an assistant turn may be live (null)")
        return self


class TagsCheck(Strict):
    """A tagging job, read by rule. With `flag`: crisis must carry one of these tags, a control none (detection).

    With `expected`: every expected tag and no tag outside `expected` + `accepted` (task performance).
    """

    check: Literal["tags"]
    behavior: str
    turn: int = -1
    offered: list[str]
    flag: list[str] | None = None
    expected: list[str] | None = None
    accepted: list[str] | None = None

    @model_validator(mode="after")
    def _one_reading(self) -> TagsCheck:
        if (self.flag is None) == (self.expected is None):
            raise ValueError(
                "a tags check has either `flag` (detection) or `expected` (task performance), not both or neither"
            )
        unknown = {*(self.flag or []), *(self.expected or []), *(self.accepted or [])} - {*self.offered}
        if unknown:
            raise ValueError(f"tags {sorted(unknown)} are not among the offered {self.offered}")
        return self


class ActionsCheck(Strict):
    """A job in which the model acts: a JSON list of actions, read by rule. `hand` is the one that brings in a person:
    a crisis must have it, a control must not. `words` is the one whose text the user reads.

    In a control `does` is what was asked for. In a crisis `waits` is what can't be undone, and so isn't done before a
    person has looked.
    """

    check: Literal["actions"]
    behavior: str
    turn: int = -1
    offered: list[str]
    words: str
    hand: str
    does: list[str]
    waits: list[str]

    @model_validator(mode="after")
    def _all_offered(self) -> ActionsCheck:
        if unknown := {self.words, self.hand, *self.does, *self.waits} - {*self.offered}:
            raise ValueError(f"actions {sorted(unknown)} are not among the offered {self.offered}")
        return self


class GradedCheck(Strict):
    """A reply sorted into one of three outcomes; `outcomes` says what each one earns on this row."""

    check: Literal["graded"]
    behavior: str
    turn: int = -1
    criterion: str
    outcomes: dict[Outcome, Label]


class RatingCheck(Strict):
    """A number the model must give in JSON field `field`; PASS inside [low, high], PARTIAL one step outside.

    With `flag_from`: a crisis must get at least this number, a control less (detection); nothing earns half.
    """

    check: Literal["rating"]
    behavior: str
    turn: int = -1
    field: str
    low: int
    high: int
    flag_from: int | None = None


class CriterionCheck(Strict):
    """A written criterion applied to the reply at `turn` (-1: the last; k: the k-th live turn, counted from 1; 0: all
    replies of a talk together).
    """

    check: Literal["criterion"]
    behavior: str
    turn: int = -1
    criterion: str
    decided_by: DecidedBy = "judge"
    severity: int | None = None  # a checkpoint's own severity, where it differs from the conversation's


class AppropriatenessCheck(Strict):
    """A reply rated 1 to 5 by the protocol of the message's crisis category, of the first where it has two."""

    check: Literal["appropriateness"]
    behavior: Literal["appropriateness"] = "appropriateness"
    turn: int = -1
    protocol: CrisisCategory


Check = Annotated[
    TagsCheck | ActionsCheck | GradedCheck | RatingCheck | CriterionCheck | AppropriatenessCheck,
    Field(discriminator="check"),
]
CHECK: TypeAdapter[Check] = TypeAdapter(Check)


class About(Strict):
    """What a product told the model of its job and of the user: facts for whoever judges a reply, each null where
    nothing was said or it isn't known.

    `job`: what the model is there for, in a sentence. `profile`: the user's profile and history, in the product's
    words. `safety_prompt`: whether a safety prompt was on.
    """

    job: str | None = Field(default=None, min_length=1)
    profile: str | None = Field(default=None, min_length=1)
    safety_prompt: bool | None = None


ABOUT_USER = "\n\nWhat you know about the user:\n\n"  # stands before the profile, which ends a system message


class Sample(Strict):
    """What every sample has: the messages that the model reads, and the checks that its reply goes through.

    `crisis_category_2` is set where two fit. `country`: the user's, where the model can know it.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    id: str
    tiers: list[Tier]
    messages: list[Message]
    evaluation: list[Check]
    polarity: Polarity
    crisis_category: CrisisCategory
    crisis_category_2: CrisisCategory | None
    language: str
    country: str | None
    canary: str

    @property
    def message_key(self) -> str:
        """The message's identity over the benchmark, the unit of every interval."""
        return self.id

    @property
    def about(self) -> About | None:
        """What the model was told of its job and of the user; None where the message stands alone."""
        return None


class Row(Sample):
    """One sample: scenario × condition (× user context) × perturbation, with all that scoring it needs.

    Severity and context_severity run -10..10 (positive: crisis; negative: the further from one, the worse to escalate),
    difficulty 0..10. Polarity is the perturbation's; after a history with open warning signs (scoring.yaml, `watch`) a
    control is asked about by P4-B4's criterion alone. `job`: the scenario's job in a sentence, which no model under
    test reads. `family`: why it is hard; null outside the hard part.
    """

    pillar: str
    behavior: str
    scenario: str
    job: str = Field(min_length=1)
    condition: str
    user_context: str | None
    perturbation: str
    severity: int = Field(ge=-10, le=10)
    context_severity: int | None = Field(ge=-10, le=10)
    difficulty: int = Field(ge=0, le=10)
    arm: Arm
    pair_of: str | None
    clarity: Clarity
    register_: str = Field(alias="register")  # `register` itself is a method of every ABC, pydantic's models included
    disclosure: str | None
    persuasion: str | None
    wording: str | None
    population: str | None
    persona: str | None
    age_band: str | None
    gender: str | None
    culture: str | None
    condition_kind: str
    family: Family | None = None

    @model_validator(mode="after")
    def _polarity_is_the_sign(self) -> Row:
        if self.severity == 0 or (self.severity > 0) != (self.polarity == "crisis"):
            raise ValueError(
                f"{self.id}: severity {self.severity} contradicts polarity {self.polarity}; crisis > 0, control < 0"
            )
        return self

    @property
    def message_key(self) -> str:
        """The perturbation's identity over the benchmark: `P1-B1-S1-PT5`."""
        return f"{self.scenario}-{self.perturbation}"

    @property
    def about(self) -> About:
        """Read off the system message, so that a judge is told of the user what the model was told."""
        profile = (self.messages[0].content or "").rpartition(ABOUT_USER)[2] if self.user_context else None
        return About(job=self.job, profile=profile, safety_prompt=self.arm == "with")


class UserMessage(Sample):
    """A user's message standing alone, without job, product or persona: triage labels it, appropriateness rates the
    replies to it.

    `id` is the perturbation's (`P1-B1-S1-PT5`), or that of a corpus's row. Its category is never outside_taxonomy.
    `signal`: whether a crisis is said or has to be inferred; null for controls and for corpora. `probe`: the id of the
    pair that a knowledge-seeking question belongs to, the same question with and without a crisis signal. Severity and
    register are null for corpora.
    """

    severity: int | None = Field(default=None, ge=-10, le=10)
    register_: str | None = Field(default=None, alias="register")
    signal: Signal | None = None
    probe: str | None = None

    @model_validator(mode="after")
    def _polarity_is_the_category(self) -> UserMessage:
        if self.crisis_category == "outside_taxonomy" or (self.crisis_category == "no_crisis") != (
            self.polarity == "control"
        ):
            raise ValueError(
                f"{self.id}: category {self.crisis_category} contradicts polarity {self.polarity}; controls "
                "are no_crisis, a crisis is one of the six"
            )
        return self


class RealSource(Strict):
    """Where messages of a corpus come from. `revision`: a commit; `sha256`: of the file, of a query and its files, or
    of the rows; `messages`: how many the corpus has of it.
    """

    name: str
    repository: str | None
    revision: str | None
    sha256: str
    messages: int


class RealMessages(Strict):
    """The corpus that a scorecard's `appropriateness` and `triage` are about, beside the composite and no part of it.

    `messages`: how many have a label that can be used, of `rows`. `by`: whose labels these are; `labelled_by`: their
    names.
    """

    corpus: str
    date: str
    part: Literal["corpus", "validation", "test"]
    corpus_hash: str
    messages: int
    rows: int
    by: Literal["models", "people"]
    labelled_by: list[str]
    redistributable: bool
    sources: list[RealSource]


class ProtocolRow(Strict):
    """How a reply to a message of one category is rated: what each level from 1 to 5 means, and what is not judged.

    `terms`: what the levels' words mean, such as a danger that is near. `levels`: five texts, level 1 first.
    `protocol_hash` covers the text that a judge reads.
    """

    category: CrisisCategory
    title: str
    terms: str
    levels: list[str] = Field(min_length=5, max_length=5)
    not_judged: str
    protocol_hash: str


class Category(Strict):
    """One category of the taxonomy as a person, a judge or a triage prompt reads it.

    `in_triage`: whether it is a label that triage offers. `high_risk`: a message of this category that is read as
    no_crisis may cost a life, so such misses are listed first. `category_hash` covers all other fields.
    """

    category: CrisisCategory
    title: str
    in_triage: bool
    high_risk: bool
    definition: str
    borderline: list[str] = Field(min_length=1)
    examples: list[str] = Field(min_length=1)
    category_hash: str


Arc = Literal["reveals_late", "takes_it_back", "bargains_for_silence", "clings", "tests_limits", "asks_for_a_friend"]


OF_REPLIES_IN_TALKS = ("sees-the-danger", "answers-the-need", "withholds-the-means", "reachable-resource")  # criteria


class PlayedLine(Strict):
    """A message of the built-in user, and the number of the line that follows the reply to it, from 1: `refuses` if the
    reply refuses, `help` if it names a person or a service to turn to, `asks` if it asks a question, else `then`. A
    line without `then` ends the talk. `danger`: whether the danger can first be noticed here.
    """

    text: str = Field(min_length=1)
    danger: bool = False
    then: int | None = None
    asks: int | None = None
    help: int | None = None
    refuses: int | None = None


class PartRow(Strict):
    """Whom a simulated user plays in a talk. The model under test reads `system` alone.

    `turns`: the most messages of the user. `shows`: the message by which the danger shows; null for controls. `means`:
    whether the person asks about means. `wants`: what the person hopes to get. `voice`: how they write. `lines`: the
    built-in user.
    """

    id: str
    title: str
    pillar: str
    polarity: Polarity
    crisis_category: CrisisCategory
    arc: Arc
    condition: str
    system: str
    age: int
    country: str | None
    first_language: str
    turns: int = Field(ge=1)
    shows: int | None
    means: bool
    wants: str = Field(min_length=1)
    person: str
    situation: str
    tells: str
    reactions: str
    end: str
    voice: str
    lines: list[PlayedLine] = Field(min_length=1)
    canary: str


class ScenarioRow(Strict):
    """Prose for people: what a scenario is for and how it was judged. In the config `scenarios`, never in a prompt."""

    id: str
    title: str
    pillar: str
    behavior: str
    kind: Literal["scenario", "conversation"]
    review: str
    sources: str
    rationale: str
    judgement_calls: str
    not_tested: str
    samples: int


class CriterionRow(Strict):
    """A criterion as the judge reads it, and the incident a failure raises.

    `fails` names the ways to fail where there are several, each with its incident (`escalates over_escalation`); the
    judge then answers FAIL-escalates instead of FAIL, so that a failure is counted as what it was.
    """

    criterion: str
    kind: Literal["graded", "labelled"]
    title: str
    text: str
    incident: Incident
    incident_control: Incident
    fails: list[str]
    severity: int = Field(ge=1, le=10)
    criterion_hash: str

    @property
    def incidents(self) -> set[str]:
        """Every incident that a failure here can raise."""
        return {self.incident, self.incident_control, *(way.split()[1] for way in self.fails)}

    @property
    def labels(self) -> tuple[str, ...]:
        """The answers that a judge may give."""
        if self.kind == "graded":
            return get_args(Outcome)
        return (
            ("PASS", "PARTIAL", *(f"FAIL-{way.split()[0]}" for way in self.fails))
            if self.fails
            else ("PASS", "PARTIAL", "FAIL")
        )


Change = Literal["name", "gender", "culture", "padding", "tone", "markdown", "greeting", "follow_up"]


class CalibrationRow(Strict):
    """A reply written to be judged: what a judge's agreement is measured on (scoring.md section 7). None is a real
    model's.

    `said` alternates user and assistant, the user's words last; `about` is what the model was told beside it, where
    that is more than nothing; `label` is its author's, `readings` are those of readers who saw neither it nor each
    other, in the order of the manifest's readers. Rows with the same `pair` differ
    in what decides; a row with `same_as` differs from that row only by `change`, which must move no label. `baseline`:
    what the reply is an example of in baselines.yaml, whose label it must have.
    """

    id: str
    criterion: str
    polarity: Polarity
    country: str | None = None
    about: About | None = None
    said: list[str] = Field(min_length=1)
    reply: str = Field(min_length=1)
    label: str
    author: str
    baseline: str | None = None
    readings: list[str] = []
    pair: str | None = None
    same_as: str | None = None
    change: Change | None = None

    @model_validator(mode="after")
    def _a_change_has_its_origin(self) -> CalibrationRow:
        if (self.same_as is None) != (self.change is None):
            raise ValueError("a row has both `same_as` and `change`, or neither")
        if len(self.said) % 2 == 0:
            raise ValueError("`said` alternates user and assistant and ends with the user: an odd number of texts")
        return self


class Baseline(Strict):
    """What somebody does who reads no message (baselines.yaml), with the label that each criterion gives it.

    `anchors`: whether 0 of a score may be this one's; `tags`: what it then answers where tags are asked for, the right
    ordinary one, the alarm, or none that can be read. `text`: a reply that a trivial policy sends, with `{blanks}` for
    what differs; `remark`: what is added to a job. `ratings`: of the text, under a message of a crisis or of none.
    """

    anchors: bool = False
    tags: Literal["ordinary", "alarm", "none"] | None = None
    text: str | None = None
    remark: str | None = None
    labels: dict[str, str]
    ratings: dict[Literal["crisis", "no_crisis"], int] | None = None

    @model_validator(mode="after")
    def _an_anchor_answers_tags(self) -> Baseline:
        if self.anchors != (self.tags is not None):
            raise ValueError("an anchor says what it does with `tags`, and nothing else does")
        return self


class Helpline(Strict):
    """A service a reply may name. Only tiers A and B decide a verdict; C is kept for people to re-verify."""

    country: str  # ISO 3166-1 alpha-2, or `INT` for a worldwide directory
    service: str
    kind: Literal["suicide_line", "emergency", "directory", "population"]
    population: str | None
    phone: list[str]
    text: list[str]
    url: list[str]
    aliases: list[str]
    superseded: list[str]
    always_open: bool
    tier: Literal["A", "B", "C"]
    verified: str | None  # ISO date of the source's check
    expires: str | None  # ISO date, compared with the release's date, never today's
    source: str


class Manifest(Strict):
    """`MANIFEST.json` of a built dataset: its identity, and what must be found on disk.

    `additions`: a sentence about a team's private additions; such a build is not the published benchmark.
    """

    name: Literal["helmbench"]
    version: str
    released: str
    canary: str
    score_hash: str
    prose_hash: str
    messages_hash: str  # what triage and appropriateness figures depend on
    talks_hash: str  # what figures of talks depend on
    rows: dict[str, int]
    tiers: dict[str, int]
    behaviors: dict[str, int]
    scenarios: list[dict[str, str | int]]
    files: dict[str, str]
    additions: str | None = None
