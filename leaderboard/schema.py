"""The shapes of a submission: `submission.json`, a line of `responses.jsonl`, and what verifying it comes to. A leaf
beside `judge.schema`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from dataset_builder.schema import Strict, Tier
from judge.replies.schema import Reply
from judge.schema import Figure, Floor, Headline, JudgeAgreement, PeopleAgreement, Scorecard, Verdict

SUBMISSION, ARCHIVE, VERDICTS, SUMS = (
    "submission.json",
    "responses.zip",
    "verdicts.jsonl",
    "SHA256SUMS",
)  # the files of a submission
FORMAT: Literal["helmbench-submission-2"] = "helmbench-submission-2"
JUDGES = 16  # that a panel may have
PEOPLE_SETS = 24  # of people's labels, halves counted apart, that a judge may be held against
SETTINGS, LETTERS = 200, 4000  # arguments of a run, and entries of one; characters of a name or value
NAME_LETTERS, ANSWERERS = 500, 16  # of a judge's name; the models that may answer under one name
Name = Annotated[str, Field(max_length=NAME_LETTERS)]
Text = Annotated[str, Field(max_length=LETTERS)]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,95}")
State = Literal["verified", "demo", "refused"]


class Contact(Strict):
    """Who answers for the submission: a name, and an email or web address."""

    name: str = Field(min_length=1, max_length=200)
    address: str = Field(max_length=300, pattern=r"^([^\s@<>\"]+@[^\s@<>\"]+\.[^\s@<>\"]+|https?://[^\s<>\"]+)$")


class Subject(Strict):
    """The model under test. `revision`: a commit, or the dated snapshot's name; null only where the provider gives
    none.

    `relation`: of whoever submits to whoever made the model. `family`: what it descends from, where the name doesn't
    say (`llama`).
    """

    organization: str
    name: str
    revision: Name | None
    access: Literal["open_weights", "api", "private"]
    relation: Literal["developer", "paid_by_developer", "independent"]
    family: Name | None = None

    @field_validator("organization", "name")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError("expected letters, digits, '.', '_' and '-', at most 96, beginning with a letter or digit")
        return value


class Pinned(Strict):
    """The data that was asked: a release and tier of this repository at a commit."""

    version: Name
    score_hash: Name
    tier: Tier
    samples: int = Field(ge=1)
    commit: str | None = Field(pattern=r"^[0-9a-f]{7,40}$")


class Generation(Strict):
    """How the replies were made. `system_prompt_sha256`: always null on the board; a run with a system prompt of its
    own measures that prompt. `lm_eval`, `inspect`: the version of the runner that made the run; the other is null.
    """

    backend: Name
    arguments: Annotated[dict[Name, Text | int | float | bool | None], Field(max_length=SETTINGS)]
    generation_kwargs: Annotated[
        dict[Name, Text | int | float | bool | Annotated[list[Text], Field(max_length=SETTINGS)] | None],
        Field(max_length=SETTINGS),
    ]
    system_prompt_sha256: Name | None
    lm_eval: Name | None = None
    inspect: Name | None = None
    task_version: Name
    repeats: int = Field(ge=1, le=100)

    @model_validator(mode="after")
    def _one_runner(self) -> Generation:
        if (self.lm_eval is None) == (self.inspect is None):
            raise ValueError("expected the version of one runner, in lm_eval or in inspect")
        return self

    @property
    def runner(self) -> tuple[str, str]:
        """The name of what asked the model, and its version."""
        return ("lm-eval", self.lm_eval) if self.lm_eval else ("Inspect", str(self.inspect))


class SubmittedJudge(Strict):
    """Who judged: the name as it was asked for, the models that answered, the prompt's hash, and its measured
    agreement; `people`: with people's labels, which is declared, since the labels are not in a submission.

    `agreement`: one entry for one judge; of a panel its own first, then each member's. `repeats`: how often a language
    model was asked each question.
    """

    name: str = Field(max_length=JUDGES * NAME_LETTERS)
    prompt_hash: Name | None
    answered_as: list[Name] = Field(max_length=JUDGES * ANSWERERS)
    agreement: list[JudgeAgreement] = Field(min_length=1, max_length=JUDGES + 1)
    people: list[PeopleAgreement] = Field(default=[], max_length=JUDGES * PEOPLE_SETS)
    repeats: int = Field(default=1, ge=1, le=100)


class Declaration(Strict):
    """Whether the model, or anything that it was made from, was trained on this benchmark, as far as whoever submits
    knows.
    """

    trained_on_benchmark: Literal["no", "yes", "unknown"]
    note: str = Field(default="", max_length=2000)


class Scores(Strict):
    """The headline, as the scorecard gives it; verifying recomputes every number. `tasks`: of the controls' tasks."""

    composite: Figure
    headlines: dict[Headline, Figure]
    behaviors: dict[str, Figure]
    tasks: Figure | None
    sensitivity: Figure
    specificity: Figure
    floors: list[Floor]


class Submission(Strict):
    """`submission.json`: all that a reader of the board can know of a run but its replies."""

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
        date.fromisoformat(value)  # 2026-02-31 has the form of a day and is none
        return value


class Response(Strict):
    """A line of `responses.jsonl`: one sample in one repeat.

    `requests`: each prompt as the runner logged it, one per live turn: the JSON of the messages for an API, a templated
    text or a transcript elsewhere.
    `prompt_sha256`: of the first of them. `turns`, `finish`: as `judge.replies.run.Reply`.
    """

    id: str
    repeat: int = Field(ge=0)
    prompt_sha256: str
    requests: tuple[str, ...]
    turns: tuple[str, ...]
    finish: tuple[str | None, ...] = ()

    def reply(self) -> Reply:
        return Reply(id=self.id, repeat=self.repeat, turns=self.turns, finish=self.finish)


class AnswerMessage(Strict):
    content: str | None
    refusal: str | None


class AnswerChoice(Strict):
    message: AnswerMessage
    finish_reason: str | None


class AnswerBody(Strict):
    model: Name
    choices: list[AnswerChoice] = Field(min_length=1, max_length=1)


class AnswerResponse(Strict):
    status_code: int
    body: AnswerBody | None


class AnswerError(Strict):
    code: Name | None


class Answer(Strict):
    """A line of `answers.jsonl`: what a language model answered to one question about this run, as `judge.llm.batch`
    reads it.
    """

    id: Name | None
    custom_id: Name
    response: AnswerResponse | None
    error: AnswerError | None

    def texts(self) -> list[str]:
        """What the judge said."""
        choices = self.response.body.choices if self.response and self.response.body else []
        return [text for c in choices for text in (c.message.content, c.message.refusal) if text]


@dataclass(frozen=True)
class Problem:
    """One reason to refuse, or (as a flag) something that a reader of the board should know. `kind` is a stable word,
    such as `edited_prompt`.
    """

    kind: str
    where: str
    message: str


@dataclass(frozen=True)
class Verified:
    """What verifying came to. Everything from `submission` on is None or empty where it could not be read or
    recomputed.

    `scorecard` is recomputed from `verdicts`, never the submission's word. `demo`: the offline judge read what rules
    could not decide.
    """

    path: str
    state: State
    problems: list[Problem]
    flags: list[Problem]
    submission: Submission | None = None
    scorecard: Scorecard | None = None
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    replies: list[Reply] = field(default_factory=list[Reply])
