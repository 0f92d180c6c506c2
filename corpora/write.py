"""Rows → parquet, samples, the list of what was dropped, README.md and MANIFEST.json. Same rows, same bytes."""

from __future__ import annotations

import hashlib
import json
import platform
import unicodedata
from collections.abc import Callable, Iterable
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from corpora.recipe import Loaded
from corpora.schema import CorpusManifest, Dropped, SourceSummary
from dataset_builder.release import canonical, file_digest

GROUP = 10_000  # rows in memory at once
TOOLS = ("rensa", "py3langid", "phonenumbers", "pyarrow", "helmbench")
CORPUS, VALIDATION, TEST, DROPPED = (
    "data/corpus.parquet",
    "data/validation.parquet",
    "data/test.parquet",
    "dropped.parquet",
)
Drawn = tuple[list[dict[str, Any]], list[dict[str, Any]]]  # the rows of validation and test
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
_DROPPED = pa.schema(
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


def is_corpus(folder: Path) -> bool:
    """Whether a folder may be replaced: it is empty, or a manifest of ours is in it."""
    try:
        return folder.is_dir() and (
            not any(folder.iterdir())
            or json.loads((folder / "MANIFEST.json").read_bytes()).get("name") == "helmbench-corpus"
        )
    except (OSError, ValueError, AttributeError):
        return False


def schema(kept: Iterable[str]) -> pa.Schema:
    """The columns of a corpus: its own, then the kept fields."""
    own: dict[str, pa.DataType] = {name: pa.string() for name in ("id", "source", "source_id", "language", "licence")}
    own |= {"redistributable": pa.bool_(), "characters": pa.int64(), "text": pa.string()}
    own |= {"messages": pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))}
    return pa.schema([*own.items(), *((name, pa.string()) for name in kept)])


def write_folder(
    out: Path, finished: Finished, rows: Iterable[dict[str, Any]], dropped: list[Dropped], tell: Callable[[int], None]
) -> CorpusManifest:
    """Writes everything into `out` and returns the manifest that now stands there."""
    columns = schema(finished.loaded.recipe.kept)
    (out / "data").mkdir()
    corpus_hash, count, drawn = _write_rows(out, rows, columns, finished.samples, tell)
    files = [CORPUS, DROPPED, "README.md", "mapping.yaml"]
    if finished.loaded.recipe.samples:
        for name, own in zip((VALIDATION, TEST), drawn, strict=True):
            pq.write_table(pa.Table.from_pylist(own, schema=columns), out / name, compression="zstd")
        files += [VALIDATION, TEST]
    pq.write_table(
        pa.Table.from_pylist([d._asdict() for d in dropped], schema=_DROPPED), out / DROPPED, compression="zstd"
    )
    (out / "mapping.yaml").write_bytes(finished.loaded.path.read_bytes())
    if not all(s.redistributable for s in finished.sources):
        (out / ".gitignore").write_text("# Not redistributable, see README.md\n*\n", encoding="utf-8")
        files.append(".gitignore")
    manifest = _manifest(finished, corpus_hash, count, drawn)
    (out / "README.md").write_text(_card(manifest), encoding="utf-8")
    manifest = manifest.model_copy(update={"files": {name: file_digest(out / name) for name in sorted(files)}})
    (out / "MANIFEST.json").write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


def _manifest(finished: Finished, corpus_hash: str, rows: int, drawn: Drawn) -> CorpusManifest:
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
        samples={"validation": len(drawn[0]), "test": len(drawn[1])} if recipe.samples else {},
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
    rows: Iterable[dict[str, Any]],
    columns: pa.Schema,
    samples: tuple[set[str], set[str]],
    tell: Callable[[int], None],
) -> tuple[str, int, Drawn]:
    """The rows' sha256 and number, and those of the two samples."""
    hasher, count = hashlib.sha256(), 0
    drawn: Drawn = ([], [])
    stream = iter(rows)
    with pq.ParquetWriter(out / CORPUS, columns, compression="zstd") as writer:
        while group := list(islice(stream, GROUP)):
            for row in group:
                hasher.update(canonical(row).encode() + b"\n")
                for ids, own in zip(samples, drawn, strict=True):
                    if row["id"] in ids:
                        own.append(row)
            writer.write_table(pa.Table.from_pylist(group, schema=columns))
            count += len(group)
            tell(count)
    return hasher.hexdigest(), count, drawn


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
        "yourself: " + "; ".join(f"{s.name}: {s.why}" for s in refused) + "."
    )  # fmt: skip
    sources = "\n".join(
        f"| {s.name} | {s.place} | {s.revision or s.date or '–'} | {', '.join(s.licences)} | "
        f"{'yes' if s.redistributable else 'no'} | {s.read} | {s.kept} |"
        for s in manifest.sources
    )
    dropped = "\n".join(
        f"| {step} | {reason} | {n} |" for step, reasons in manifest.dropped.items() for reason, n in reasons.items()
    )
    changed = ", ".join(f"{what}: {n}" for what, n in manifest.changed.items()) or "nothing"
    return CARD.format(m=manifest, front=front, passing=passing, sources=sources, dropped=dropped, changed=changed)
