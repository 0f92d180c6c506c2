"""The types of a corpus: the mapping file, a document, the manifest, the labels. No behavior beyond validation."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dataset_builder.schema import CrisisCategory
from helmbench_common.errors import RefusedError

DATE = r"^\d{4}-\d\d-\d\d$"
MOST = 10**9  # upper bound on every count
Role = Literal["user", "assistant", "system"]
# Every row has these columns, so a kept field can't use their names.
COLUMNS = ("id", "source", "source_id", "language", "licence", "redistributable", "characters", "text", "messages")
STRATA = ("source", "language", "licence", "length")
Words = Annotated[list[str], BeforeValidator(lambda v: [v] if isinstance(v, str) else v)]


class CorpusError(RefusedError):
    """Problems that the user can fix, one per line: `path:line: what is wrong; what was expected`."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fields(_Model):
    """The fields of a source's rows: `text`, or `turns`, or `text` with `conversation`.

    `turns`: a list of {role, content}, or of texts that alternate, the user's first. `conversation`: consecutive rows
    with the same value are the turns of one conversation. `keep`: further fields, copied as text.

    `reply`: what a system answered; empty where it said nothing. `system`: who replied. `family`: rows with the same
    value are one observation in every interval. `row`: the row's number in the set, where it isn't the row's place.
    `by`: the criterion, or the category whose protocol rates the reply. `group`: a subgroup with figures of its own.
    `labels`: people's labels, by person, or one field that maps persons to labels; `models`: models' labels;
    `settled`: the label that the people agreed on. `severity`: a whole number from 0 to 10, kept as `severity`.
    """

    text: str | None = None
    turns: str | None = None
    conversation: str | None = None
    role: str = "role"
    content: str = "content"
    id: str | None = None
    language: str | None = None
    licence: str | None = None
    keep: Words = []
    reply: str | None = None
    system: str | None = None
    family: str | None = None
    row: str | None = None
    country: str | None = None
    by: str | None = None
    group: str | None = None
    labels: dict[str, str] | str = {}
    models: dict[str, str] | str = {}
    settled: str | None = None
    severity: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Fields:
        if (self.text is None) == (self.turns is None):
            raise ValueError(
                "expected either `text` (a message, or with `conversation` a turn) or `turns` (a list), not both or "
                "neither"
            )
        if self.conversation and self.turns:
            raise ValueError("`conversation` groups rows of `text`; with `turns` each row is a whole conversation")
        if taken := sorted({*self.keep} & {*COLUMNS}):
            raise ValueError(f"`keep` names {taken}, which every row of a corpus has; rename them in the source")
        if "severity" in self.keep and self.severity not in (None, "severity"):
            raise ValueError(f"`keep` names severity, and `severity` names '{self.severity}'; expected one of them")
        return self

    @property
    def kept(self) -> list[str]:
        """The names of the further columns."""
        return list(dict.fromkeys([*self.keep, *(["severity"] if self.severity else [])]))


class Source(_Model):
    """A file (`path`: .jsonl or .csv, also .gz, relative to the mapping file), a dataset (`hub`: an id or folder), or
    the rows of a `query`: one SELECT that DuckDB runs over the files of the mapping file's folder.

    `repository`: where the files come from; `revision`: its commit. `forum`: people posted there, so that nothing of it
    may be passed on, whatever its license says. `values`: the source's word for a label → ours.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_\-]*$")
    path: str | None = None
    query: str | None = None
    hub: str | None = None
    config: str | None = None
    split: str = "train"
    repository: str | None = Field(default=None, max_length=300)
    revision: str | None = None
    date: str | None = Field(default=None, pattern=DATE)
    forum: bool = False
    licence: str | None = None
    language: str | None = None
    country: str | None = Field(default=None, pattern=r"^[A-Z]{2}$")
    fields: Fields
    values: dict[str, str] = {}
    roles: dict[Role, Words] = {
        "user": ["user", "human"],
        "assistant": ["assistant", "gpt", "model", "bot"],
        "system": ["system"],
    }

    @model_validator(mode="after")
    def _one_place(self) -> Source:
        if [self.path, self.query, self.hub].count(None) != 2:
            raise ValueError("expected one of `path` (a file), `query` (SQL over files) and `hub` (a dataset)")
        return self


class Limits(_Model):
    """What is kept, and what a near-copy is. Letters and characters are those of the user's words, without masks."""

    languages: Words = []
    language_confidence: float = Field(default=0.9, ge=0, le=1)
    min_letters: int = Field(default=5, ge=0, le=MOST)
    max_characters: int = Field(default=20_000, ge=1, le=MOST)
    max_messages: int = Field(default=40, ge=1, le=MOST)
    long_conversations: Literal["cut", "drop"] = "cut"
    near_jaccard: float = Field(default=0.8, ge=0.5, le=1)
    near_min_characters: int = Field(default=40, ge=0, le=MOST)


class Samples(_Model):
    """Two disjoint samples, stratified by `by`; `equal` takes the same number from each stratum as far as possible."""

    validation: int = Field(ge=0, le=MOST)
    test: int = Field(ge=0, le=MOST)
    seed: int = Field(ge=-(2**63), lt=2**64)
    by: Words = ["source"]
    allocation: Literal["proportional", "equal"] = "proportional"


class Question(_Model):
    """A question of the set's authors, put to a judge in their sense: a title, what each label means, the labels."""

    title: str
    text: str
    labels: Words = ["FAIL", "PASS"]


class Asks(_Model):
    """What a judge is asked about each row, and how people's labels are read.

    `by`: the criterion, or the category whose protocol rates replies; null where the rows say it. `labels`: people's
    scale, lowest first, where it isn't the question's; `numbers`: its labels are numbers, and people's common label is
    their mean. `reads`: a judge's label → people's. `coarse`: people's labels → fewer, for a second figure.
    """

    kind: Literal["criterion", "rating", "category", "refusal"]
    by: str | None = None
    question: Question | None = None
    labels: Words = []
    numbers: bool = False
    reads: dict[str, str] = {}
    coarse: dict[str, str] = {}
    notes: Words = []

    @model_validator(mode="after")
    def _question_of_a_criterion(self) -> Asks:
        if self.question and self.kind != "criterion":
            raise ValueError("`question` needs the kind `criterion`")
        return self


class Recipe(_Model):
    """A mapping file: where other people's rows are and what they mean. `date` is the data's, never today's.

    `asks`: for `helmbench read` and `validate`. `repository`, `commit`: where a published set is fetched; what it
    must hold is in a file of sha256sums beside the mapping. `about`, `license`, `may`: what it is, its terms, and what
    they allow.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_\-]*$")
    date: str = Field(pattern=DATE)
    about: str = ""
    license: str = ""
    may: Literal["ask", "show", "share"] = "ask"
    repository: str | None = None
    commit: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")
    sources: list[Source] = Field(min_length=1)
    asks: Asks | None = None
    limits: Limits = Limits()
    samples: Samples | None = None

    @model_validator(mode="after")
    def _names_fit(self) -> Recipe:
        names = [s.name for s in self.sources]
        if len({*names}) < len(names):
            raise ValueError(f"source names are {names}; expected each once")
        if self.samples and (unknown := sorted({*self.samples.by} - {*STRATA, *self.kept})):
            raise ValueError(
                f"samples.by names {unknown}; expected {', '.join(STRATA)}, or a field that a source keeps"
            )
        return self

    @property
    def labelled(self) -> list[Source]:
        """The sources with people's labels."""
        return [s for s in self.sources if s.fields.labels or s.fields.settled]

    @property
    def kept(self) -> list[str]:
        """The names of all kept fields, sorted; null in rows from sources without them."""
        return sorted({k for s in self.sources for k in s.fields.kept})


class Turn(NamedTuple):
    role: Role
    text: str


Votes = tuple[tuple[str, CrisisCategory | None], ...]


class Document(NamedTuple):
    """One message or conversation. `line`: its line in the source, or its row if it has no lines, from 1.

    `forum`: it was posted on a forum. `people`, `models`: the label that each gave it, null for none; `settled`: the
    one that the people agreed on.
    """

    source: str
    line: int
    turns: tuple[Turn, ...]
    source_id: str | None = None
    language: str | None = None
    licence: str | None = None
    kept: tuple[tuple[str, str | None], ...] = ()
    forum: bool = False
    people: Votes = ()
    models: Votes = ()
    settled: CrisisCategory | None = None

    @property
    def said(self) -> str:
        """The user's text."""
        return "\n".join(t.text for t in self.turns if t.role == "user")


Step = Literal["read", "conversation", "length", "language", "exact_duplicate", "near_duplicate"]
STEPS: tuple[Step, ...] = get_args(Step)


class Dropped(NamedTuple):
    """Why a document is not in the corpus. `duplicate_of` and `jaccard` are set only for copies."""

    source: str
    line: int
    step: Step
    reason: str
    duplicate_of: str | None = None
    jaccard: float | None = None


class SourceSummary(_Model):
    """A source as it was read. `sha256`: of the file, of a query and the files that it names, or of the rows. `query`:
    the sha256 of its text; `files`: the sha256 of each file.
    """

    name: str
    place: str
    repository: str | None = None
    revision: str | None
    date: str | None
    sha256: str
    query: str | None = None
    files: dict[str, str] = {}
    licences: list[str]
    redistributable: bool
    why: str
    read: int
    kept: int


class CorpusManifest(_Model):
    """`MANIFEST.json`. `corpus_hash` covers every row, in order, but not the tools or the day of the build."""

    name: Literal["helmbench-corpus"]
    corpus: str
    date: str
    corpus_hash: str
    recipe_sha256: str
    redistributable: bool
    rows: int
    samples: dict[str, int]
    sources: list[SourceSummary]
    dropped: dict[str, dict[str, int]]
    changed: dict[str, int]
    limits: Limits
    sampling: Samples | None
    tools: dict[str, str]
    files: dict[str, str]


Part = Literal["corpus", "validation", "test"]


class MessageLabel(_Model):
    """A line of `labels.jsonl`, which `helmbench agreement` reads too. `label` is null without a majority.

    `votes`: each rater's answers, in order; null for one that couldn't be read. `models`: where people labeled, the
    labels that the source has of models; they decide nothing.
    """

    id: str
    label: CrisisCategory | None
    rater: str
    votes: dict[str, list[CrisisCategory | None]]
    models: dict[str, list[CrisisCategory | None]] = {}


class RepeatAgreement(_Model):
    """How often repeats of one model, or several models, give a message the same label; and Fleiss' κ with its 95 %
    interval.

    `n`: messages with two or more labels. `reason`: why there is no κ or no interval.
    """

    raw: float | None
    kappa: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None


class LabelsManifest(_Model):
    """`labels.json`, written last: what was labeled, by whom, with which question.

    `by`: whose labels count. `people`: their names in the mapping file; `models`: those asked, or where people labeled,
    those whose labels the source has. `offered`: the categories to choose from; `taxonomy_hash` covers their texts,
    `prompt_hash` the question; null for people's labels, which the source brings. `self_agreement`: of each model's
    repeats; `between`: of several models. `labels_sha256`: of `labels.jsonl`.
    """

    name: Literal["helmbench-labels"]
    corpus: str
    corpus_hash: str
    part: Part
    messages: int
    by: Literal["models", "people"] = "models"
    people: list[str] = []
    models: list[str]
    repeats: int
    offered: list[CrisisCategory]
    taxonomy_hash: str | None
    prompt_hash: str | None
    counts: dict[CrisisCategory, int]
    unlabelled: int
    self_agreement: dict[str, RepeatAgreement]
    between: RepeatAgreement | None
    labels_sha256: str
