"""The shapes of a submission: `submission.json`, a line of `responses.jsonl.gz`, and the result of verifying it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from dataset_builder.schema import Strict, Tier
from judge.replies.schema import Reply
from judge.schema import Figure, Floor, Headline, JudgeAgreement, PeopleAgreement, Scorecard, Verdict

# The files of a submission. The answers and calibrations are there only if a language model judged.
SUBMISSION, VERDICTS, SUMS = "submission.json", "verdicts.jsonl", "SHA256SUMS"
RESPONSES, ANSWERS, CALIBRATIONS = "responses.jsonl.gz", "answers.jsonl.gz", "calibrations.jsonl.gz"
FORMAT: Literal["helmbench-submission-2"] = "helmbench-submission-2"
JUDGES = 16  # members of a panel
PEOPLE_SETS = 24  # sets of human labels per judge, halves counted separately
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,95}")
NAMED = "letters, digits, '.', '_' and '-', at most 96, beginning with a letter or digit"
# Of a judge, as its server calls it, and of a revision.
LONG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-/:]{0,199}")
LONG_NAMED = "ASCII letters, digits, '.', '_', '-', '/' and ':', at most 200, beginning with a letter or digit"
# What nothing in a submission proves. SECURITY.md and the board list it in these words.
UNPROVEN = (
    "generation settings such as temperature, and the arguments of the runner",
    "the backend, the versions of the runner and the task, and the commit",
    "the finish reasons, and which failed requests were sent again",
    "the name of the judge, and of the models that answered as it",
    "the name, revision, family and access of the model, and the submitter's relation to its developer",
    "the day of submission, from 2026 to today",
    "a chat template's own words, up to 12 letters",
)
State = Literal["verified", "demo", "refused"]


def _plain(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError(f"expected {NAMED}")
    return value


def _long(value: str) -> str:
    if not LONG_NAME.fullmatch(value):
        raise ValueError(f"expected {LONG_NAMED}")
    return value


PlainName = Annotated[str, AfterValidator(_plain)]
LongName = Annotated[str, AfterValidator(_long)]


class Contact(Strict):
    """Who is responsible for the submission: a name, and an email or web address."""

    name: str = Field(min_length=1, max_length=200)
    address: str = Field(max_length=300, pattern=r"^([^\s@<>\"]+@[^\s@<>\"]+\.[^\s@<>\"]+|https?://[^\s<>\"]+)$")


class Subject(Strict):
    """The model under test. `revision`: a commit or dated snapshot; null only if the provider gives none.

    `relation`: of the submitter to the model's developer. `family`: such as `llama`, if the name doesn't show it.
    """

    organization: PlainName
    name: PlainName
    revision: LongName | None
    access: Literal["open_weights", "api", "private"]
    relation: Literal["developer", "paid_by_developer", "independent"]
    family: PlainName | None = None


class Pinned(Strict):
    """The dataset that was run: a release and tier, and the commit of the code."""

    version: str
    score_hash: str
    tier: Tier
    samples: int = Field(ge=1)
    commit: str | None = Field(pattern=r"^[0-9a-f]{7,40}$")


class ChatTemplate(Strict):
    """How messages became text: rendering a sample's messages with it gives the request.

    `variables`: special tokens and arguments. `days`: what `strftime_now` may return, the days of the run.
    """

    text: str = Field(max_length=200_000)
    variables: dict[str, str | bool | int | float | None] = Field(default={})
    days: list[date] = Field(default=[], max_length=16)


class Generation(Strict):
    """How the replies were made. `system_prompt_sha256`: always null; a run with its own system prompt isn't accepted.
    `lm_eval`, `inspect`: the version of the runner; the other is null. `template`: null if the requests are the JSON of
    the messages.
    """

    backend: str
    arguments: dict[str, str | int | float | bool | None]
    generation_kwargs: dict[str, str | int | float | bool | list[str] | None]
    system_prompt_sha256: str | None
    lm_eval: str | None = None
    inspect: str | None = None
    task_version: str
    template: ChatTemplate | None = None
    repeats: int = Field(ge=1, le=100)

    @model_validator(mode="after")
    def _one_runner(self) -> Generation:
        if (self.lm_eval is None) == (self.inspect is None):
            raise ValueError("expected the version of one runner, in lm_eval or in inspect")
        return self

    @property
    def runner(self) -> tuple[str, str]:
        """The runner's name and version."""
        return ("lm-eval", self.lm_eval) if self.lm_eval else ("Inspect", str(self.inspect))


class SubmittedJudge(Strict):
    """Who judged: the name that was asked for, the models that answered, the prompt's hash and the measured agreement.

    `agreement`: one entry for one judge; for a panel its own first, then each member's. `people`: agreement with human
    labels, which is declared because the labels aren't part of a submission. `repeats`: how often each question was
    asked.
    """

    name: str
    prompt_hash: str | None
    answered_as: list[str]
    agreement: list[JudgeAgreement] = Field(min_length=1, max_length=JUDGES + 1)
    people: list[PeopleAgreement] = Field(default=[], max_length=JUDGES * PEOPLE_SETS)
    repeats: int = Field(default=1, ge=1, le=100)


class Declaration(Strict):
    """Whether the model, or anything it was made from, was trained on this benchmark, as far as the submitter knows."""

    trained_on_benchmark: Literal["no", "yes", "unknown"]
    note: str = Field(default="", max_length=2000)


class Scores(Strict):
    """The main figures of the scorecard, all of which are recomputed. `tasks`, `harm`: scores over all behaviors."""

    composite: Figure
    headlines: dict[Headline, Figure]
    behaviors: dict[str, Figure]
    tasks: Figure | None
    harm: Figure | None
    sensitivity: Figure
    specificity: Figure
    floors: list[Floor]


class Submission(Strict):
    """`submission.json`: everything public about a run except its verdicts."""

    format: Literal["helmbench-submission-2"] = FORMAT
    submitted: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    contact: Contact
    model: Subject
    dataset: Pinned
    generation: Generation
    judge: SubmittedJudge
    declaration: Declaration
    scores: Scores

    @field_validator("submitted")
    @classmethod
    def _a_day(cls, value: str) -> str:
        date.fromisoformat(value)  # the pattern accepts 2026-02-31
        return value


class Response(Strict):
    """A line of `responses.jsonl.gz`: one sample in one repeat.

    `requests`: each prompt as the runner logged it, one per live turn: for an API the JSON of the messages, otherwise
    text. `prompt_sha256`: hash of the first. `turns`, `finish`: as in `judge.replies.schema.Reply`.
    """

    id: str
    repeat: int = Field(ge=0)
    prompt_sha256: str
    requests: tuple[str, ...]
    turns: tuple[str, ...]
    finish: tuple[str | None, ...] = ()

    def reply(self) -> Reply:
        return Reply(id=self.id, repeat=self.repeat, turns=self.turns, finish=self.finish)


class Answer(Strict):
    """A line of `answers.jsonl.gz`: a language model's answer to one question, as `judge.llm.batch` reads it."""

    id: str | None
    custom_id: str
    response: dict[str, Any] | None
    error: dict[str, Any] | None


@dataclass(frozen=True)
class Problem:
    """A reason to refuse, or (as a flag) something that a reader of the board should know. `kind`: a stable word such
    as `edited_prompt`; `where`: file, line or field.
    """

    kind: str
    where: str
    message: str


@dataclass(frozen=True)
class Verified:
    """The result of verifying. What couldn't be read or recomputed is None or empty.

    `scorecard` and `verdicts` are recomputed. `demo`: the offline judge decided what rules couldn't.
    """

    path: str
    state: State
    problems: list[Problem]
    flags: list[Problem]
    submission: Submission | None = None
    scorecard: Scorecard | None = None
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    replies: list[Reply] = field(default_factory=list[Reply])
