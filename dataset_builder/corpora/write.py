"""Rows → parquet, samples, the list of what was dropped, README.md and MANIFEST.json. Same rows, same bytes."""

from __future__ import annotations

import hashlib
import platform
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from dataset_builder.corpora.read import Loaded
from dataset_builder.corpora.schema import CorpusManifest, Dropped, SourceSummary
from helmbench_common.formats import json_file
from helmbench_common.formats.refused import FormatError
from helmbench_common.hashing import file_digest

GROUP = 10_000  # rows of a parquet file's group
TOOLS = ("rensa", "py3langid", "phonenumbers", "pyarrow", "helmbench")
CORPUS, VALIDATION, TEST, DROPPED = (
    "data/corpus.parquet",
    "data/validation.parquet",
    "data/test.parquet",
    "dropped.parquet",
)
CARD = """---
{front}---
# {m.corpus}, {m.date}

{passing}

Messages of people, some of them in distress. Email addresses, phone numbers, handles, web addresses that name a user, \
card and
account numbers were masked by pattern. **Names and whatever else takes reading to recognise were not**: treat it as \
personal data.
It may hold what people wrote about harming themselves or others. Not for training.

{m.rows} rows, sha256 {m.corpus_hash}. Made by `helmbench corpus`; `mapping.yaml` says how,
`MANIFEST.json` holds every figure, `dropped.parquet` names each document that was left out, and why.

| source | from | revision or date | licence | may be passed on | read | kept |
|---|---|---|---|---|---|---|
{sources}

| dropped at | because | documents |
|---|---|---|
{dropped}

Changed: {changed}.
"""
DROPPED_COLUMNS = pa.schema(
    [
        (name, pa.int64() if name == "line" else pa.float64() if name == "jaccard" else pa.string())
        for name in Dropped._fields
    ]
)


class Finished(NamedTuple):
    """What is known of a corpus before its rows are written. `samples`: the ids of validation and test."""

    loaded: Loaded
    sources: list[SourceSummary]
    dropped: dict[str, dict[str, int]]
    changed: dict[str, int]
    samples: tuple[set[str], set[str]]


class Piece(NamedTuple):
    """Rows that follow each other, as a table and as their canonical lines, which the corpus's hash is of."""

    table: pa.Table
    lines: bytes


def is_corpus(folder: Path) -> bool:
    """Whether a folder may be replaced: it is empty, or a manifest of ours is in it."""
    try:
        return folder.is_dir() and (
            not any(folder.iterdir())
            or json_file.load(folder / "MANIFEST.json", "a corpus's manifest").get("name") == "helmbench-corpus"
        )
    except (OSError, FormatError):
        return False


def row_schema(kept: Iterable[str]) -> pa.Schema:
    """The columns of a corpus: its own, then the kept fields."""
    own: dict[str, pa.DataType] = {name: pa.string() for name in ("id", "source", "source_id", "language", "licence")}
    own |= {"redistributable": pa.bool_(), "characters": pa.int64(), "text": pa.string()}
    own |= {"messages": pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))}
    return pa.schema([*own.items(), *((name, pa.string()) for name in kept)])


def dropped_table(dropped: Iterable[Dropped]) -> pa.Table:
    return pa.Table.from_pylist([d._asdict() for d in dropped], schema=DROPPED_COLUMNS)


def write_folder(
    out: Path, finished: Finished, rows: Iterable[Piece], dropped: Iterable[pa.Table], tell: Callable[[int], None]
) -> CorpusManifest:
    """Writes everything into `out` and returns the manifest that now stands there.

    How `rows` and `dropped` are cut into pieces and tables shows in no byte.
    """
    columns = row_schema(finished.loaded.recipe.kept)
    (out / "data").mkdir()
    corpus_hash, count, drawn = _write_rows(out, rows, columns, finished.samples, tell)
    files = [CORPUS, DROPPED, "README.md", "mapping.yaml"]
    if finished.loaded.recipe.samples:
        for name, own in zip((VALIDATION, TEST), drawn, strict=True):
            pq.write_table(own, out / name, compression="zstd")
        files += [VALIDATION, TEST]
    with pq.ParquetWriter(out / DROPPED, DROPPED_COLUMNS, compression="zstd") as writer:
        for group in _groups(dropped):
            writer.write_table(group)
    (out / "mapping.yaml").write_bytes(finished.loaded.path.read_bytes())
    if not all(s.redistributable for s in finished.sources):
        (out / ".gitignore").write_text("# Not redistributable, see README.md\n*\n", encoding="utf-8")
        files.append(".gitignore")
    manifest = _manifest(finished, corpus_hash, count, (len(drawn[0]), len(drawn[1])))
    (out / "README.md").write_text(_card(manifest), encoding="utf-8")
    manifest = manifest.model_copy(update={"files": {name: file_digest(out / name) for name in sorted(files)}})
    (out / "MANIFEST.json").write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


def _manifest(finished: Finished, corpus_hash: str, rows: int, drawn: tuple[int, int]) -> CorpusManifest:
    """All but the hashes of the files."""
    recipe = finished.loaded.recipe
    return CorpusManifest(
        name="helmbench-corpus",
        corpus=recipe.name,
        date=recipe.date,
        corpus_hash=corpus_hash,
        recipe_sha256=finished.loaded.sha256,
        redistributable=all(s.redistributable for s in finished.sources),
        rows=rows,
        samples={"validation": drawn[0], "test": drawn[1]} if recipe.samples else {},
        sources=finished.sources,
        dropped=finished.dropped,
        changed=finished.changed,
        limits=recipe.limits,
        sampling=recipe.samples,
        tools={name: version(name) for name in TOOLS}
        | {"python": platform.python_version(), "unicode": unicodedata.unidata_version},
        files={},
    )


def _write_rows(
    out: Path,
    rows: Iterable[Piece],
    columns: pa.Schema,
    samples: tuple[set[str], set[str]],
    tell: Callable[[int], None],
) -> tuple[str, int, tuple[pa.Table, pa.Table]]:
    """The rows' sha256 and number, and those of the two samples."""
    hasher, count = hashlib.sha256(), 0
    ids = [pa.array(sorted(own), pa.string()) for own in samples]
    drawn: list[list[pa.Table]] = [[columns.empty_table()] for _ in ids]

    def hashed() -> Iterator[pa.Table]:
        for piece in rows:
            hasher.update(piece.lines)
            yield piece.table

    with pq.ParquetWriter(out / CORPUS, columns, compression="zstd") as writer:
        for group in _groups(hashed()):
            for own, found in zip(ids, drawn, strict=True):
                found.append(group.filter(pc.is_in(group["id"], own)))
            writer.write_table(group)
            tell(count := count + group.num_rows)
    validation, test = (pa.concat_tables(found).combine_chunks() for found in drawn)
    return hasher.hexdigest(), count, (validation, test)


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of `GROUP`, the last one shorter."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        while sum(t.num_rows for t in waiting) >= GROUP:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, GROUP).combine_chunks()
            waiting = [whole.slice(GROUP)]
    if any(t.num_rows for t in waiting):
        yield pa.concat_tables(waiting).combine_chunks()


def _in_cell(text: str) -> str:
    """A licence's name as a source's rows state it, which ends no cell and opens no tag."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _card(manifest: CorpusManifest) -> str:
    """What a reader of the folder must know first: whether it may be passed on, and that masks don't find names."""
    configs: list[dict[str, Any]] = [
        {"config_name": "corpus", "default": True, "data_files": [{"split": "corpus", "path": CORPUS}]}
    ]
    if manifest.samples:
        samples = [{"split": "validation", "path": VALIDATION}, {"split": "test", "path": TEST}]
        configs.append({"config_name": "samples", "data_files": [f for f in samples if manifest.samples[f["split"]]]})
    front = yaml.safe_dump({"pretty_name": manifest.corpus, "configs": configs}, sort_keys=False, width=160)
    refused = [s for s in manifest.sources if not s.redistributable]
    passing = "Every source's licence allows it to be passed on; name the sources." if not refused else (
        "**Not redistributable.** Keep this folder to "
        "yourself: " + "; ".join(f"{s.name}: {_in_cell(s.why)}" for s in refused) + "."
    )  # fmt: skip
    sources = "\n".join(
        f"| {s.name} | {s.place} | {s.revision or s.date or '–'} | {_in_cell(', '.join(s.licences))} | "
        f"{'yes' if s.redistributable else 'no'} | {s.read} | {s.kept} |"
        for s in manifest.sources
    )
    dropped = "\n".join(
        f"| {step} | {reason} | {n} |" for step, reasons in manifest.dropped.items() for reason, n in reasons.items()
    )
    changed = ", ".join(f"{what}: {n}" for what, n in manifest.changed.items()) or "nothing"
    return CARD.format(m=manifest, front=front, passing=passing, sources=sources, dropped=dropped, changed=changed)
