"""Stage 5 of the build: rows and prose → parquet per config, the card, scoring.yaml, MANIFEST.json. Same input, same bytes."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq

from dataset_builder import card, features
from dataset_builder.content_types import Content
from dataset_builder.release import CONFIGS, digest, file_digest, parquet_path
from dataset_builder.schema import Manifest, Row, ScenarioRow
from dataset_builder.staging import replacing

# A judge prompt changes scores as a criterion does, so `score_hash` covers the files that the judge package ships.
PROMPTS = Path(__file__).resolve().parents[1] / "judge" / "asking" / "prompts"
# What a score does not depend on. Everything else in a row is scored, shown to the model, or groups results.
PROSE_FIELDS = ("canary",)


def write(content: Content, rows: list[Row], out: Path) -> Manifest:
    """Builds the dataset into `out`, which may hold an earlier build and is replaced whole.

    Raises:
        FileExistsError: `out` exists and is not a built dataset (it is not ours to replace).
    """
    if out.exists() and not _ours(out):
        raise FileExistsError(f"{out}: exists and is no HELMbench build; expected an empty or earlier build folder, so nothing was written")
    with replacing(out) as staging:
        return _write_into(content, rows, staging)


def _ours(out: Path) -> bool:
    """Whether a folder may be replaced: it is empty, or a build of ours says so."""
    if not out.is_dir():
        return False
    try:
        return not any(out.iterdir()) or json.loads((out / "MANIFEST.json").read_bytes()).get("name") == "helmbench"
    except (OSError, ValueError, AttributeError):
        return False


def _write_into(content: Content, rows: list[Row], out: Path) -> Manifest:
    records = [row.model_dump(mode="json") for row in rows]
    prose = _scenarios(content, rows)
    tables: dict[str, list[dict[str, Any]]] = {
        **{f"pillar{n}": [r for r in records if r["pillar"] == f"P{n}" and not _live(r)] for n in range(1, 5)},
        "conversations": [r for r in records if _live(r)],
        "all": records,
        "scenarios": [s.model_dump(mode="json") for s in prose],
        "criteria": [content.criteria[slug].row.model_dump(mode="json") for slug in sorted(content.criteria)],
        "calibration": [r.model_dump(mode="json") for r in content.calibration],
        "helplines": [h.model_dump(mode="json") for h in content.helplines],
    }
    infos = [_write_parquet(out, config, tables[config]) for config in CONFIGS]
    shutil.copyfile(content.root / "scoring.yaml", out / "scoring.yaml")
    hashes = score_and_prose_hash(content, records, prose)
    described = card.files(content, infos, hashes, records, {c: file_digest(out / parquet_path(c)) for c in CONFIGS})
    for name, text in described.items():
        (out / name).write_text(text, encoding="utf-8")
    manifest = Manifest(
        name="helmbench",
        version=content.version,
        released=content.released,
        canary=content.canary,
        score_hash=hashes[0],
        prose_hash=hashes[1],
        rows={config: len(tables[config]) for config in CONFIGS},
        tiers={tier: sum(tier in r["tiers"] for r in records) for tier in card.TIERS},
        behaviors=dict(sorted(Counter(check["behavior"] for r in records for check in r["evaluation"]).items())),
        scenarios=[{"id": s.id, "samples": s.samples, "hash": digest([r for r in records if r["scenario"] == s.id])} for s in prose],
        files={name: file_digest(out / name) for name in [*described, "scoring.yaml", *map(parquet_path, CONFIGS)]},
        additions=content.additions,
    )
    (out / "MANIFEST.json").write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


def score_and_prose_hash(content: Content, records: list[dict[str, Any]], prose: list[ScenarioRow]) -> tuple[str, str]:
    """`score_hash`: all that a score depends on. `prose_hash`: the rest, so that a mended rationale moves no score."""
    scored = {
        "rows": [{k: v for k, v in r.items() if k not in PROSE_FIELDS} for r in records],
        "criteria": [content.criteria[slug].row.model_dump(mode="json") for slug in sorted(content.criteria)],
        "helplines": [h.model_dump(mode="json", exclude={"source"}) for h in content.helplines],
        "scoring": content.scoring,
        "prompts": {p.name: p.read_text(encoding="utf-8") for p in sorted(PROMPTS.glob("*.md"))},
    }
    rest = {
        "scenarios": [s.model_dump(mode="json") for s in prose],
        "sources": [h.source for h in content.helplines],
        "calibration": [r.model_dump(mode="json") for r in content.calibration],
        "version": [content.version, content.released, content.canary],
    }
    return digest(scored), digest(rest)


def _live(record: dict[str, Any]) -> bool:
    return any(m["content"] is None for m in record["messages"])


def _scenarios(content: Content, rows: list[Row]) -> list[ScenarioRow]:
    counts = Counter(row.scenario for row in rows)
    return [
        ScenarioRow(
            id=s.id,
            title=s.document.text("title"),
            pillar=s.id.split("-")[0],
            behavior=s.behavior,
            kind="conversation" if s.kind == "conversation" else "scenario",
            review=s.document.text("review"),
            sources=s.document.text("sources"),
            rationale=s.prose("Rationale"),
            judgement_calls=s.prose("Judgement calls"),
            not_tested=s.prose("Not tested"),
            samples=counts[s.id],
        )
        for s in content.scenarios
    ]


def _write_parquet(out: Path, config: str, records: list[dict[str, Any]]) -> dict[str, Any]:
    """Writes one config and returns its `dataset_info` entry, whose sizes are the true ones."""
    path = out / parquet_path(config)
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = features.of(config)
    rows = [features.complete(r, config) for r in records]
    table = datasets.Dataset.from_list(rows, features=columns).data.table if rows else columns.arrow_schema.empty_table()
    pq.write_table(table, path, compression="zstd")
    size = table.nbytes
    return {
        "config_name": config,
        # The cache of `datasets` keys on this entry and not on the parquet; the hash makes edited rows another dataset.
        "description": f"HELMbench {config}, rows sha256 {digest(records)}",
        "features": columns._to_yaml_list(),
        "splits": [{"name": "test", "num_bytes": size, "num_examples": len(records)}],
        "download_size": path.stat().st_size,
        "dataset_size": size,
    }
