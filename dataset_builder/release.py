"""A built dataset on disk: its identity, its hashes, and how to read it back with every hash verified.

All packages read releases through this module, so that one place decides whether a folder is complete and unedited.
Parquet is read directly: the `datasets` cache ignores content changes and could serve old rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import ValidationError

from dataset_builder import prompts
from dataset_builder.prompts import FIELDS, Prompts
from dataset_builder.schema import (
    RULED,
    Baseline,
    CalibrationRow,
    Category,
    CrisisCategory,
    CriterionRow,
    Helpline,
    Manifest,
    PartRow,
    ProtocolRow,
    RealMessages,
    Row,
    Tier,
    UserMessage,
)
from helmbench_common.errors import HelmbenchError
from helmbench_common.formats import parquet_file, yaml_file
from helmbench_common.formats.refused import FormatError
from helmbench_common.hashing import file_digest

CONFIGS = (
    *(f"pillar{n}" for n in range(1, 5)),
    *("conversations", "all", "scenarios", "criteria", "calibration", "helplines"),
    *("messages", "protocols", "taxonomy", "rating_calibration"),
    *("parts", "talk_criteria"),
)
AUTHORED = ("scoring.yaml", "baselines.yaml")  # copied as written
HASHES = ("score_hash", "prose_hash", "messages_hash")  # in a manifest
DATASET = "HELMBENCH_DATASET"  # environment variable for the dataset folder
SPEAKERS = {"user": "User", "assistant": "Assistant"}
RELEASE = "release"  # the source of the release's own messages
LIVE = "[the model under test replies]"  # a live turn
REPOSITORY = Path(__file__).resolve().parents[1]


class ReleaseError(HelmbenchError):
    """A dataset folder that is missing, incomplete or edited; the message names the file and the fix."""


def parquet_path(config: str) -> str:
    return f"data/{config}/test-00000-of-00001.parquet"


def prompt_path(name: str) -> str:
    return f"prompts/{name}.md"


def plain_text(messages: list[dict[str, Any]]) -> str:
    """The column `text` of a sample, for people who read rows in a table: the user's message, or each turn of a
    conversation prefixed by its speaker, without the system message. It repeats `messages`, so no hash covers it.
    """
    turns = [m for m in messages if m["role"] in SPEAKERS]
    if len(turns) == 1:
        return str(turns[0]["content"])
    return "\n\n".join(f"{SPEAKERS[m['role']]}: {LIVE if m['content'] is None else m['content']}" for m in turns)


def find(explicit: str | Path | None = None) -> Path:
    """The dataset folder: `explicit`, else $HELMBENCH_DATASET, else ./helmbench, else the build in this checkout.

    Raises:
        ReleaseError: MANIFEST.json doesn't exist.
    """
    named = explicit or os.environ.get(DATASET)
    # An installed package isn't in a checkout.
    last = [REPOSITORY / "helmbench"] if (REPOSITORY / "pyproject.toml").is_file() else []
    candidates = [Path(named)] if named else [Path("helmbench"), *last]
    for folder in candidates:
        if (folder / "MANIFEST.json").is_file():
            return folder.resolve()
    where = " or ".join(str(c) for c in candidates)
    raise ReleaseError(
        f"{where}: no dataset found (MANIFEST.json is missing); run `helmbench build`, pass --dataset or set "
        "HELMBENCH_DATASET"
    )


class OwnMessages(NamedTuple):
    """A corpus's messages, which replace a release's (`dataset_builder.corpora.labelled`), and their source, in words
    and in figures.
    """

    source: str
    messages: dict[str, UserMessage]
    messages_hash: str
    about: RealMessages


@dataclass(frozen=True)
class Release:
    """A verified build. Rows are read once, on first use. `own`: messages that replace the release's."""

    path: Path
    manifest: Manifest
    own: OwnMessages | None = None

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Every sample by id."""
        path = parquet_path("all")
        return dict(_rows(self.path / path, self.manifest.files[path]))

    def of(self, tier: Tier | None) -> Release:
        """The release as a run of this tier is judged and scored: for `detect`, with the checks that rules decide."""
        return self._detect if tier == "detect" else self

    @cached_property
    def _detect(self) -> Release:
        view = replace(self)
        view.__dict__["rows"] = {i: ruled(r) for i, r in self.rows.items() if "detect" in r.tiers}  # a cached property
        return view

    @cached_property
    def criteria(self) -> dict[str, CriterionRow]:
        return {r["criterion"]: CriterionRow.model_validate(r) for r in self.records("criteria")}

    @cached_property
    def helplines(self) -> list[Helpline]:
        return [Helpline.model_validate(r) for r in self.records("helplines")]

    @cached_property
    def calibration(self) -> list[CalibrationRow]:
        return [CalibrationRow.model_validate(r) for r in self.records("calibration")]

    @cached_property
    def messages(self) -> dict[str, UserMessage]:
        """Every stand-alone message by id."""
        if self.own:
            return self.own.messages
        return {record["id"]: UserMessage.model_validate(prune(record)) for record in self.records("messages")}

    @property
    def messages_source(self) -> str:
        """The source of `messages`: the release, or a corpus."""
        return self.own.source if self.own else RELEASE

    @property
    def messages_hash(self) -> str:
        """The hash that figures on these messages depend on."""
        return self.own.messages_hash if self.own else self.manifest.messages_hash

    @cached_property
    def protocols(self) -> dict[CrisisCategory, ProtocolRow]:
        return {p.category: p for p in map(ProtocolRow.model_validate, self.records("protocols"))}

    @cached_property
    def taxonomy(self) -> dict[CrisisCategory, Category]:
        """Every category by name, in schema order."""
        return {c.category: c for c in map(Category.model_validate, self.records("taxonomy"))}

    @cached_property
    def rating_calibration(self) -> list[CalibrationRow]:
        """Replies written to be rated; `criterion` is the category, `label` the rating."""
        return [CalibrationRow.model_validate(r) for r in self.records("rating_calibration")]

    @cached_property
    def parts(self) -> dict[str, PartRow]:
        """Every part of a simulated user by id."""
        return {r["id"]: PartRow.model_validate(r) for r in self.records("parts")}

    @cached_property
    def talk_criteria(self) -> dict[str, CriterionRow]:
        """The criteria that are asked about a whole talk."""
        return {r["criterion"]: CriterionRow.model_validate(r) for r in self.records("talk_criteria")}

    def criterion(self, name: str) -> CriterionRow:
        """A criterion of replies or of talks."""
        return self.criteria.get(name) or self.talk_criteria[name]

    @cached_property
    def scoring(self) -> dict[str, Any]:
        return self._authored("scoring.yaml")

    @cached_property
    def baselines(self) -> dict[str, Baseline]:
        """Replies that don't depend on the message, by name."""
        values = self._authored("baselines.yaml")
        return {name: Baseline.model_validate(value) for name, value in values.items()}

    def _authored(self, name: str) -> dict[str, Any]:
        try:
            values: dict[str, Any] = yaml_file.load(self.path / name, "a file of a built dataset").value
        except FormatError as error:
            raise ReleaseError(f"{error}; build again") from None
        return values

    @cached_property
    def prompts(self) -> Prompts:
        """The prompts for judges and for labeling models.

        Raises:
            ReleaseError: this installation has other prompts, so its judge is for another release.
        """
        own, _ = prompts.read(self.path / "prompts")
        installed = prompts.installed()
        if name := prompts.differing(own, installed):
            what = f"the prompt '{name}' differs from this installation's ({own.hash(name)} and {installed.hash(name)})"
            expected = "judge with the helmbench that built this dataset, or build again"
            raise ReleaseError(f"{self.path / prompt_path(name)}: {what}; {expected}")
        return own

    def table(self, config: str) -> pa.Table:
        """The rows of a config in the form that is hashed: without `text`.

        Raises:
            ReleaseError: a row's `text` differs from its messages.
        """
        return _table(self.path / parquet_path(config))

    def records(self, config: str) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = self.table(config).to_pylist()
        return records


def open_release(folder: str | Path | None = None) -> Release:
    """The release in `folder` (see `find`), after checking every file's hash against the manifest.

    Raises:
        ReleaseError: missing, incomplete or edited files, or an invalid manifest.
    """
    path = find(folder)
    try:
        manifest = Manifest.model_validate_json((path / "MANIFEST.json").read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise ReleaseError(f"{path / 'MANIFEST.json'}: {where}: {first['msg']}; build again") from None
    needed = [*map(parquet_path, CONFIGS), *map(prompt_path, FIELDS), *AUTHORED]
    if unlisted := [name for name in needed if name not in manifest.files]:
        raise ReleaseError(f"{path / 'MANIFEST.json'}: does not list {unlisted[0]}; build again")
    for name, expected in manifest.files.items():
        file = path / name
        if not file.is_file():
            raise ReleaseError(f"{file}: missing, though MANIFEST.json lists it; run `helmbench build`")
        if (found := file_digest(file)) != expected:
            what = f"sha256 is {found[:12]}…, but MANIFEST.json lists {expected[:12]}…"
            raise ReleaseError(f"{file}: {what}; the file was edited or is incomplete; build the dataset again")
    return Release(path, manifest)


def ruled(row: Row) -> Row:
    """A row with only the checks that rules decide."""
    return row.model_copy(update={"evaluation": [c for c in row.evaluation if c.check in RULED]})


@lru_cache(maxsize=2)
def _rows(path: Path, _sha256: str) -> dict[str, Row]:
    """Every row in a file by id, cached by the file's hash for processes that open a release several times."""
    records: list[dict[str, Any]] = _table(path).to_pylist()
    return {record["id"]: Row.model_validate(prune(record)) for record in records}


def _table(path: Path) -> pa.Table:
    try:
        table = parquet_file.table(path, "the rows of a built dataset")
    except FormatError as error:
        raise ReleaseError(f"{error}; build again") from None
    if not {"text", "messages"} <= {*table.column_names}:
        return table
    for identity, text, messages in zip(*(table[c].to_pylist() for c in ("id", "text", "messages")), strict=True):
        if text != plain_text(messages):
            raise ReleaseError(f"{path}: {identity}: `text` differs from `messages`; build again")
    return table.drop_columns("text")


def prune(value: Any) -> Any:
    """A parquet sample in the form its model accepts: without `text`, and checks without other kinds' null columns."""
    checks = [{k: v for k, v in check.items() if v is not None} for check in value["evaluation"]]
    for check in checks:
        if not any((check.get("outcomes") or {}).values()):
            check.pop("outcomes", None)
    return {k: v for k, v in value.items() if k != "text"} | {"evaluation": checks}
