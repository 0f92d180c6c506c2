"""Rows → parquet, samples, the list of dropped documents, README.md and MANIFEST.json. Same rows, same bytes."""

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
from helmbench_common.hashing import file_digest
from helmbench_common.tables import markdown_table, one_line

GROUP = 10_000  # rows per parquet row group
TOOLS = ("rensa", "py3langid", "phonenumbers", "pyarrow", "helmbench")
CORPUS, VALIDATION, TEST = "data/corpus.parquet", "data/validation.parquet", "data/test.parquet"
DROPPED = "dropped.parquet"
CARD = """---
{front}---
# {m.corpus}, {m.date}

{sharing}

These are people's messages, some of them written in distress. Email addresses, phone numbers, handles, web addresses
that name a user, and card and account numbers were masked by pattern; ids that lead to a writer are hashes. **Names and
everything else that takes reading to recognize were not**: treat the corpus as personal data. It may contain what
people wrote about harming themselves or others. Not for training.

{m.rows} rows, sha256 {m.corpus_hash}. Made by `helmbench corpus` from `mapping.yaml`. `MANIFEST.json` holds every
figure, `dropped.parquet` names each document that was left out, and why.

{sources}

{dropped}

Changed: {changed}.
"""
DROPPED_TYPES = {"line": pa.int64(), "jaccard": pa.float64()}
DROPPED_COLUMNS = pa.schema([(name, DROPPED_TYPES.get(name, pa.string())) for name in Dropped._fields])


class Finished(NamedTuple):
    """What is known about a corpus before its rows are written. `samples`: the ids of validation and test."""

    loaded: Loaded
    sources: list[SourceSummary]
    dropped: dict[str, dict[str, int]]
    changed: dict[str, int]
    samples: tuple[set[str], set[str]]


class Piece(NamedTuple):
    """Consecutive rows, as a table and as the canonical lines that the corpus hash covers."""

    table: pa.Table
    lines: bytes


def row_schema(kept: Iterable[str]) -> pa.Schema:
    """The columns of a corpus: `schema.COLUMNS`, then the kept fields."""
    own: dict[str, pa.DataType] = {name: pa.string() for name in ("id", "source", "source_id", "language", "licence")}
    own |= {"redistributable": pa.bool_(), "characters": pa.int64(), "text": pa.string()}
    own |= {"messages": pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))}
    return pa.schema([*own.items(), *((name, pa.string()) for name in kept)])


def dropped_table(dropped: Iterable[Dropped]) -> pa.Table:
    return pa.Table.from_pylist([d._asdict() for d in dropped], schema=DROPPED_COLUMNS)


def write_folder(
    out: Path, finished: Finished, rows: Iterable[Piece], dropped: Iterable[pa.Table], tell: Callable[[int], None]
) -> CorpusManifest:
    """Writes everything into `out` and returns the manifest. The chunk sizes of `rows` and `dropped` don't matter."""
    recipe = finished.loaded.recipe
    (out / "data").mkdir()
    files = [CORPUS, DROPPED, "README.md", "mapping.yaml"]
    hasher, count = hashlib.sha256(), 0
    ids = [pa.array(sorted(own), pa.string()) for own in finished.samples]
    columns = row_schema(recipe.kept)
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
    samples = {}
    for name, path, found in zip(("validation", "test"), (VALIDATION, TEST), drawn, strict=True):
        if recipe.samples:
            table = pa.concat_tables(found).combine_chunks()
            pq.write_table(table, out / path, compression="zstd")
            files.append(path)
            samples[name] = table.num_rows
    with pq.ParquetWriter(out / DROPPED, DROPPED_COLUMNS, compression="zstd") as writer:
        for group in _groups(dropped):
            writer.write_table(group)
    (out / "mapping.yaml").write_bytes(finished.loaded.path.read_bytes())
    redistributable = all(s.redistributable for s in finished.sources)
    if not redistributable:
        (out / ".gitignore").write_text("# Not redistributable, see README.md\n*\n", encoding="utf-8")
        files.append(".gitignore")
    manifest = CorpusManifest(
        name="helmbench-corpus",
        corpus=recipe.name,
        date=recipe.date,
        corpus_hash=hasher.hexdigest(),
        recipe_sha256=finished.loaded.sha256,
        redistributable=redistributable,
        rows=count,
        samples=samples,
        sources=finished.sources,
        dropped=finished.dropped,
        changed=finished.changed,
        limits=recipe.limits,
        sampling=recipe.samples,
        tools={name: version(name) for name in TOOLS}
        | {"python": platform.python_version(), "unicode": unicodedata.unidata_version},
        files={},
    )
    (out / "README.md").write_text(_card(manifest), encoding="utf-8")
    manifest = manifest.model_copy(update={"files": {name: file_digest(out / name) for name in sorted(files)}})
    (out / "MANIFEST.json").write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of `GROUP` rows; the last may be shorter."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        while sum(t.num_rows for t in waiting) >= GROUP:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, GROUP).combine_chunks()
            waiting = [whole.slice(GROUP)]
    if any(t.num_rows for t in waiting):
        yield pa.concat_tables(waiting).combine_chunks()


def _card(manifest: CorpusManifest) -> str:
    """What a reader of the folder must know first: whether it may be shared, and that masking misses names."""
    configs: list[dict[str, Any]] = [
        {"config_name": "corpus", "default": True, "data_files": [{"split": "corpus", "path": CORPUS}]}
    ]
    if manifest.samples:
        samples = [{"split": "validation", "path": VALIDATION}, {"split": "test", "path": TEST}]
        configs.append({"config_name": "samples", "data_files": [f for f in samples if manifest.samples[f["split"]]]})
    refused = "; ".join(f"{s.name}: {one_line(s.why)}" for s in manifest.sources if not s.redistributable)
    return CARD.format(
        m=manifest,
        front=yaml.safe_dump({"pretty_name": manifest.corpus, "configs": configs}, sort_keys=False, width=160),
        sharing=f"**Not redistributable.** Keep this folder to yourself: {refused}."
        if refused
        else "Every source's license allows sharing; name the sources.",
        sources=markdown_table(
            ["source", "from", "revision or date", "license", "may be shared", "read", "kept"],
            [
                [
                    *(s.name, s.place, s.revision or s.date or "–", ", ".join(s.licences)),
                    *("yes" if s.redistributable else "no", str(s.read), str(s.kept)),
                ]
                for s in manifest.sources
            ],
        ),
        dropped=markdown_table(
            ["dropped at", "because", "documents"],
            [[step, reason, str(n)] for step, reasons in manifest.dropped.items() for reason, n in reasons.items()],
        ),
        changed=", ".join(f"{what}: {n}" for what, n in manifest.changed.items()) or "nothing",
    )
