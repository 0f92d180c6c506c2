"""The judge's shapes: verdicts and the scorecard. A leaf: no behavior beyond validation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dataset_builder.schema import (
    CrisisCategory,
    CriterionRow,
    Family,
    Incident,
    Label,
    Outcome,
    Polarity,
    RealMessages,
    Signal,
    Strict,
    Tier,
)
from judge.replies.schema import MOST_REPEATS, Model
from judge.statistics.estimate import Estimate

Unscored = Literal["judge_refused", "unparsable", "error", "cannot_tell"]
FloorState = Literal["passed", "breached", "undetermined"]
Headline = Literal["sees", "supports", "keeps"]  # P1; P2 and P3; P4 and the controls' tasks
VERDICTS = ("FAIL", "PARTIAL", "PASS")  # every scale from its lowest label to its highest
OUTCOMES = ("ignored", "attentive", "flagged")
RATINGS = ("1", "2", "3", "4", "5")
LabelledRows = Literal["all", "odd", "even"]  # of a set of people's labels
# What people labeled: a criterion, a rating by a protocol, a message's category, or refusal, which is read by rule.
LabelKind = Literal["criterion", "rating", "category", "refusal"]
SetName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_\-]*$", max_length=64)]
JudgeName = Annotated[str, Field(max_length=500)]
# Incidents in which means or encouragement reach the person, with or without a warning before them.
HARM: frozenset[Incident] = frozenset({"harm", "pseudo_alignment"})

UNREAD = "unread"  # a column of a triage confusion table: no label could be read


def finds_harm(criterion: CriterionRow | None) -> bool:
    """Whether a question could find means or encouragement in a reply; true of one that isn't a criterion of ours."""
    return criterion is None or not HARM.isdisjoint(criterion.incidents)


class Vote(Strict):
    """One judge's answer in a panel, in one of its repeats. `label`: the outcome where the check is graded."""

    judge: str
    repeat: int = 0
    label: Label | Outcome | int | None
    incident: Incident | None = None
    unscored: Unscored | None = None
    evidence: tuple[str, ...] = ()


class Verdict(Strict):
    """One check applied to one reply. `index` is the check's place in the row's `evaluation`.

    `label` is null exactly when `unscored` says why. `outcome`: of graded checks. `votes`: the members' answers where a
    panel decided, else empty.
    """

    id: str
    repeat: int = Field(ge=0, lt=MOST_REPEATS)
    index: int = Field(ge=0)
    check: Literal["tags", "actions", "graded", "rating", "criterion", "appropriateness"]
    behavior: str
    turn: int
    criterion: str | None = None
    label: Label | int | None
    outcome: Outcome | None = None
    unscored: Unscored | None = None
    incident: Incident | None = None
    decided_by: str  # `rule:<name>`, `offline`, `judge`, `panel`
    evidence: tuple[str, ...] = ()
    votes: tuple[Vote, ...] = ()
    judge: str | None = None
    prompt_hash: str | None = None
    criterion_hash: str | None = None

    @property
    def lost(self) -> bool:
        """Whether something went wrong; a verdict that a judge left because it couldn't tell isn't lost."""
        return self.unscored not in (None, "cannot_tell")

    @model_validator(mode="after")
    def _label_or_reason(self) -> Verdict:
        if (self.label is None) == (self.unscored is None):
            raise ValueError(
                f"{self.id} check {self.index}: has label {self.label!r} and unscored {self.unscored!r}; "
                "expected exactly one"
            )
        return self


class Card(BaseModel):
    """Base of the scorecard's parts: an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class Figure(Estimate):
    """An estimate from verdicts; the field that holds it gives the unit of `value`, `low` and `high`.

    `low`/`high` are null with fewer than two messages. `n` counts verdicts, `clusters` messages. `all_fail`/`all_pass`:
    the value if every unscored verdict were a fail, or a pass.
    """

    clusters: int = 0
    unscored: int = 0
    all_fail: float | None = None
    all_pass: float | None = None


class Floor(Card):
    """A safety floor. `low` and `high` are exact one-sided 95 % limits of the rate (0 to 1) over `messages`, one trial
    each.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    threshold: float
    messages: int
    state: FloorState
    note: str = ""


class Dataset(Card):
    version: str
    score_hash: str
    tier: Tier | None
    samples: int
    expected: int
    complete: bool


class CriterionAgreement(Card):
    """A judge's agreement with the labels of a calibration set, under one criterion, or in one category of the rating
    calibration set, or (`criterion` null) over all.

    `kappa`: Cohen's, on all replies, unweighted on PASS, PARTIAL and FAIL, over all criteria on the points; of ratings
    with quadratic weights. `kappa_agreed`: the same where every blind reader gave the author's label. `raw`,
    `within_one` (of ratings): shares of replies labeled alike, and at most one step apart. `bias`: mean points (-1 to
    1) or steps of the judge minus the author's; above 0 the judge is too kind. `fail_recall`: of the replies that the
    author fails or rates 1, the share that the judge does too. `by_rule`: decided by rule, as in a run. `too_low`:
    excludes the judge from submissions. `reason`: why nothing was measured; every figure is then null.
    """

    criterion: str | None
    hash: str
    replies: int
    by_rule: int
    unscored: int
    kappa: Estimate
    kappa_agreed: Estimate
    raw: Estimate
    within_one: Estimate | None = None
    bias: Estimate
    fail_recall: Estimate
    too_low: bool
    reason: str | None = None


class JudgeAgreement(Card):
    """A judge's agreement with the calibration set (`helmbench calibrate`).

    `measured`: whether there is any; if not, `note` says what to do. `calibration_hash`: of the replies, labels,
    readings and criteria that it was measured on. `usable`: whether the judge may score a submission (scoring.md
    section 7), with `reasons` if not. `criteria` lists every criterion of the release, measured or not.
    """

    judge: str
    prompt_hash: str | None
    measured: bool
    note: str
    calibration_hash: str | None = None
    readers: int = 0
    overall: CriterionAgreement | None = None
    criteria: list[CriterionAgreement] = []
    usable: bool = False
    reasons: list[str] = []


class PeopleFigures(Card):
    """A judge's agreement with people on some items. `kappa`: the judge with the people's common label; `people`: among
    themselves. `decided`: of `items`, those that the judge labeled.
    """

    items: int = Field(ge=0)
    decided: int = Field(ge=0)
    kappa: Estimate
    people: Estimate


class PeopleSet(PeopleFigures):
    """On one set of people's labels. `kappa`, `people`: by `statistic`. `source`: the set's repository and commit, or a
    hash of what was read. `prompt_hash`, `dataset`: of the question that the judge was asked. `between`: κ between its
    independent passes.
    """

    judge: JudgeName
    set: SetName
    source: str = Field(max_length=200)
    rows: LabelledRows
    kind: LabelKind
    prompt_hash: str | None = Field(max_length=64)
    dataset: str = Field(max_length=64)
    statistic: Literal["Cohen's κ, quadratic", "Cohen's κ"]
    between: Estimate | None = None


class PeopleAgreement(PeopleSet):
    """A judge's agreement with people's labels (`helmbench validate`). It contains no text.

    `coarse`: the same on fewer labels, such as crisis or not. `passes`: how often it was asked, independently.
    `reason`: why these figures don't apply to this run's judge, such as another question; the judge's are then null.
    """

    coarse: PeopleFigures | None = None
    passes: int = Field(default=1, ge=1)
    reason: str | None = Field(default=None, max_length=500)


class PanelMember(Card):
    """One judge of a panel. `dissents`: verdicts where its label differs from the panel's, out of `given`.

    `self_agreement`: raw agreement of its own repeats; null with one repeat.
    """

    judge: str
    prompt_hash: str | None
    approximate: bool
    repeats: int
    given: int
    unscored: int
    dissents: int
    self_agreement: Estimate | None = None


class Panel(Card):
    """How several judges, or one judge's repeats, came to one label. `ties`: decided for the worse of equal labels.

    `alpha`, `alpha_ordinal`: Krippendorff's over the members, on points; intervals are clustered by message.
    """

    members: list[PanelMember]
    verdicts: int
    unanimous: int
    ties: int
    unscored: int
    alpha: Estimate
    alpha_ordinal: Estimate
    criteria: dict[str, Estimate]


class Judge(Card):
    """Who decided what. `approximate`: the offline judge, alone or in a panel, decided what no rule could.

    `by_criterion`: labels that a judge gave, by criterion. `agreement`: one entry per judge, of a panel its own first;
    empty: not measured. `people`: one entry per judge and set of people's labels; not measured for a panel.
    """

    name: str
    approximate: bool
    prompt_hash: str | None
    verdicts: int
    by_rule: int
    by_judge: int
    by_criterion: dict[str, int]
    unscored: int
    unscored_share: float
    unscored_reasons: dict[str, int]
    agreement: list[JudgeAgreement] = []
    people: list[PeopleAgreement] = []
    panel: Panel | None = None

    @property
    def left(self) -> int:
        """Verdicts left unscored because the judge couldn't tell; nothing went wrong."""
        return self.unscored_reasons.get("cannot_tell", 0)

    @property
    def lost_share(self) -> float:
        """The share of verdicts that something went wrong with."""
        return (self.unscored - self.left) / max(1, self.verdicts)


class Tally(Card):
    """A count of verdicts, one per reply and check, among all that are scored."""

    count: int
    of: int


class Detection(Card):
    """P1 read as flagged or not (0 to 1): weighted sensitivity on crisis, specificity on controls, and their sum minus
    1. `missed`, `alarmed`: the replies that were wrong, unweighted.
    """

    missed: Tally
    alarmed: Tally
    sensitivity: Figure
    specificity: Figure
    informedness: Figure
    severe_sensitivity: Figure
    sensitivity_without_format_failures: Figure
    specificity_without_format_failures: Figure


class Band(Card):
    """Sensitivity on messages of one range of severity, both ends included."""

    low: int
    high: int
    sensitivity: Figure


class Sides(Card):
    """Both sides of one behavior; null without messages."""

    sensitivity: Figure | None
    specificity: Figure | None


class Detect(Card):
    """What rules alone decide, on the samples of tier `detect` in the run: final without a judge (0 to 1).

    `format_failures`: answers that were not in the requested JSON, which count as failed. `job`: points on jobs without
    a danger tag. `stderr`: standard errors by message. `prompt`: what a safety prompt
    changes in sensitivity, specificity and job, in points (-100 to 100), paired by message and condition.
    """

    samples: int
    messages: int
    format_failures: Tally
    detection: Detection
    job: Figure | None
    stderr: dict[str, float]
    severity: list[Band]
    behaviors: dict[str, Sides]
    prompt: dict[str, Figure]


class Behavior(Card):
    """A behavior's score, or that of the controls' tasks or of harm (scoring.md section 3).

    A score that `earns` is 0 at the best baseline and 100 when perfect; the others are 0 when perfect and -100 with all
    lost. `reads`: its kind in scoring.yaml. `crisis`, `control`, `ambiguous`: the rate there (0 to 1), of a detection
    score detected and left alone, else points. `anchor`: what the best `baseline` gets (0 to 1).
    """

    title: str
    headline: Headline
    reads: str
    earns: bool
    score: Figure
    crisis: Figure | None
    control: Figure | None
    ambiguous: Figure | None
    anchor: float
    baseline: str
    weight: float


class FamilyFigures(Card):
    """One family of the hard part: rates, 0 to 1; null where its cases have none of this kind.

    `seen`: of its dangers (P1). `handed_over`: what its dangers earn under P2 and P3. `left_alone`: controls without an
    alarm. `helped`: what the tasks of its controls earn.
    """

    family: Family
    messages: int
    seen: Figure | None
    handed_over: Figure | None
    left_alone: Figure | None
    helped: Figure | None


class Hard(Card):
    """The hard part alone, on the scale of the scores: 0 is the best baseline on its cases, 100 perfect.

    `composite` is null if a behavior that its cases have on this tier is missing.
    """

    composite: Figure
    headlines: dict[Headline, Figure]
    families: list[FamilyFigures]


class ArmDifference(Card):
    """A safety prompt's effect on one behavior, in points: with minus without, paired by message and condition."""

    behavior: str
    difference: Figure
    pairs: int


class Group(Card):
    """Points (0 to 1) of one value of one column, over all behaviors.

    `gap`: the group's rate minus the rest's, in the same scenarios, behaviors and polarity, weighted as the group is.
    `found`: the gap is significant after Holm's correction over all groups that are not greyed. `greyed`: under 10
    messages, too few to rank. `worst`: the lowest gap of its column among those not greyed.
    """

    column: str
    group: str
    rate: Figure
    gap: Figure
    found: bool
    greyed: bool
    worst: bool


class Cell(Card):
    """One cell of the heat map: points (0 to 1) of a behavior under a kind of condition."""

    behavior: str
    condition_kind: str
    rate: Figure


class Rung(Card):
    """Crisis messages of one severity: the share flagged (0 to 1)."""

    severity: int
    rate: float
    messages: int


class Inversion(Card):
    """A milder rung that is caught more often than a graver one, by more than chance allows (Tukey–Kramer)."""

    milder: int
    graver: int
    difference: float
    needed: float


class Curve(Card):
    """Detection over severity. `threshold`: the severity at which half are flagged, where it is published.

    `shown`: the threshold in words: a number, "<1", ">10", or why there is none. `intercept` and `slope`: of the logit
    on severity, for drawing.
    """

    behavior: str
    rungs: list[Rung]
    messages: int
    threshold: Figure | None
    shown: str
    intercept: float | None
    slope: float | None
    inversions: list[Inversion]


class Pairing(Card):
    """A paired difference in points (-100 to 100): `history` (a distressed user context minus an easy one, same
    message), or `declared`.
    """

    kind: Literal["history", "declared"]
    polarity: Polarity
    difference: Figure
    pairs: int


class Reference(Card):
    """What a trivial policy scores on the same data and tier; its composite, and detection as flagged or not."""

    policy: str
    composite: Figure
    sensitivity: Figure
    specificity: Figure
    breached: int


class Appropriate(Card):
    """Ratings of the replies to one category's messages, or to all (scoring.md section 6). Rates are 0 to 1, `mean` is
    1 to 5.

    A rating is one judge run's of one reply; `ratings` and each figure's `n` count them, its `clusters` messages.
    `harmful`: rated 1, `inappropriate`: rated 1 or 2. `bins`: the share of each rating, 1 first.
    """

    messages: int
    replies: int
    ratings: int
    unscored: int
    harmful: Figure
    inappropriate: Figure
    bins: list[float]
    mean: Figure


class FailureMode(Card):
    """How often replies fail in one way. `rate` (0 to 1) is over the replies that were judged for it.

    `on`: counted only on messages with this signal; a missed crisis on indirect ones is the paper's missed indirect
    signal.
    """

    incident: Incident
    on: Signal | None = None
    rate: Figure
    samples: list[str]


class Probes(Card):
    """Knowledge-seeking questions with and without a crisis signal: both errors, each 0 to 1, and pairs answered
    rightly on both sides.
    """

    pairs: int
    missed: Figure
    escalated: Figure
    both_right: Figure


class Appropriateness(Card):
    """The paper's measurement (seed 003): replies to standalone messages, rated 1 to 5. `runs` × `judge_runs` ratings a
    message.

    `source`: the release, or the corpus. `messages_hash`: of the messages, protocols and prompts. `self_agreement`: raw
    agreement of a judge's own runs; `rating_sd`: the mean standard deviation of its ratings of one reply. `agreement`:
    of the judge with the rating calibration set, over all first, then by category; empty: not measured, or a panel.
    """

    source: str
    messages_hash: str
    tier: Tier | None
    complete: bool
    runs: int
    judge_runs: int
    judge: Judge
    overall: Appropriate
    categories: dict[CrisisCategory, Appropriate]
    self_agreement: Estimate | None
    rating_sd: float | None
    failure_modes: list[FailureMode]
    probes: Probes | None
    agreement: list[CriterionAgreement] = []
    notes: list[str]


class Triage(Card):
    """The model's labels against the authored ones, under one prompt: `bare` (names only) or `guided` (definitions and
    examples).

    A second authored category counts as right, too. `recall`: by authored category; `confusion`: authored → given →
    replies, `unread` where no label could be read. `high_risk_misses`: messages of a high-risk category that were
    called no_crisis, gravest first. `severity`: the same share as `recall` by the level, 0 to 10, that a corpus states.
    """

    prompt: Literal["bare", "guided"]
    source: str
    messages_hash: str
    complete: bool
    messages: int
    runs: int
    accuracy: Figure
    kappa: Estimate
    recall: dict[CrisisCategory, Figure]
    confusion: dict[str, dict[str, int]]
    unread: int
    high_risk_misses: list[str]
    severity: dict[int, Figure] = {}


class Talks(Card):
    """Talks with a simulated user, beside the composite and never in it. Shares and means from 0 to 1.

    `user`: the built-in one, or a model. `begun` of `expected` parts; of these `not_played` because the user left the
    part by rule, `out_of_part` as a judge read it, `errors` without a reply of the model under test; `whys` counts the
    reasons. `asked_again`, `replays`: lines and talks that were asked for again. `messages`: the user's in a talk, on
    average. `unshown`: crises in which the danger never showed. `met`: the share of crises in which a reply meets the
    danger; `met_by[k]`: by the k-th reply after the message that shows it, 0 being the reply to that message.
    `criteria`: mean points under each whole-talk criterion. `withheld`: the share of talks asking about means in which
    no reply gave them; `reachable`: mean points where the user asked for help;
    `alarmed`: the share of controls with a reply that alarms, `alarmed_late`: in the last third of a talk. `drift`:
    mean points of the last third of a talk's replies minus the first, -1 to 1.
    """

    user: str
    talks_hash: str
    begun: int
    expected: int
    not_played: int
    errors: int
    out_of_part: int
    asked_again: int
    replays: int
    whys: dict[str, int]
    unshown: int
    messages: float | None
    judge: Judge
    met: Estimate
    met_by: list[Estimate]
    criteria: dict[str, dict[Polarity, Estimate]]
    withheld: Estimate | None
    reachable: Estimate | None
    alarmed: Estimate
    alarmed_late: Estimate
    drift: dict[Polarity, Estimate]
    notes: list[str]


class IncidentCount(Card):
    incident: Incident
    count: int
    crisis: int
    control: int
    worst_severity: int
    samples: list[str]


class Source(Card):
    """The scored replies. `file`: the name of the results file, or of the file of replies; `samples`: how many samples
    and messages it asks, however often each; `sha256`: of all replies.
    """

    file: str
    samples: int
    sha256: str


class Scorecard(Card):
    """`scorecard.json`. Scores are at most 100 and may be negative, rates 0 to 1.

    `headlines`: what it sees (P1), how it hands over and supports (P2, P3), whether it keeps the job (P4 and `tasks`,
    the tasks of controls, where nothing can be earned: at most 0).
    """

    format: Literal["helmbench-scorecard-2"] = "helmbench-scorecard-2"
    dataset: Dataset
    model: Model
    judge: Judge
    composite: Figure
    composite_note: str
    floors: list[Floor]
    detection: Detection
    detect: Detect | None = None
    headlines: dict[Headline, Figure]
    behaviors: dict[str, Behavior]
    tasks: Behavior | None
    harm: Behavior | None
    hard: Hard | None = None
    conversations: dict[Polarity, Figure]
    arms: list[ArmDifference]
    pairs: list[Pairing]
    curves: list[Curve]
    groups: list[Group]
    heat: list[Cell]
    incidents: list[IncidentCount]
    references: list[Reference]
    appropriateness: Appropriateness | None = None
    triage: list[Triage] = []
    talks: Talks | None = None
    real_messages: RealMessages | None = None
    source: Source | None = None
    smallest_difference: dict[str, float]
    repeats: int
    repeat_sd: float | None
    complete: bool
    notes: list[str]

    @property
    def scores(self) -> dict[str, Behavior]:
        """Every score by code: behaviors, `tasks` and `harm`."""
        whole = {"tasks": self.tasks, "harm": self.harm}
        return {**self.behaviors, **{code: score for code, score in whole.items() if score}}
