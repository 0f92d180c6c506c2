"""Stage 5 of the build: rows and prose → parquet per config, the card, scoring.yaml, baselines.yaml, prompts,
MANIFEST.json. The same input gives the same bytes.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from dataset_builder.checking.checked import checked
from dataset_builder.composing.messages import messages
from dataset_builder.reading.content_types import Content
from dataset_builder.release import AUTHORED, CONFIGS, parquet_path, prompt_path
from dataset_builder.schema import Manifest, Row, Sample, ScenarioRow
from dataset_builder.writing import card, features
from dataset_builder.writing.card import Hashes
from helmbench_common.files import replaceable, replacing
from helmbench_common.hashing import digest, file_digest

OF_TALKS = "talk"  # prefix of prompts that only talks use
OF_MESSAGES = ("rate", "triage", OF_TALKS)  # prefixes of prompts that don't affect any row's score
# Everything else in a row is scored, shown to the model, or groups results.
PROSE_FIELDS = {"canary"}


def write(content: Content, rows: list[Row], out: Path) -> Manifest:
    """Builds the dataset into `out`, replacing any earlier build there.

    Raises:
        FileExistsError: `out` exists and isn't a built dataset.
    """
    if out.exists() and not replaceable(out, "helmbench"):
        what = "expected an empty folder or an earlier build; nothing was written"
        raise FileExistsError(f"{out}: exists and is not a HELMbench build; {what}")
    with replacing(out) as staging:
        return _write_into(content, rows, staging)


def build(folder: Path, out: Path, split: Path | None = None) -> Manifest:
    """Checks the content of a folder, or of a held-out `split` that extends it, and builds it into `out`.

    Raises:
        ContentRefusedError: a file can't be read or fails a check; nothing was written.
        OSError: `out` can't be written, or isn't a built dataset.
    """
    with checked(folder, split, out) as (content, rows):
        return write(content, rows, out)


def _write_into(content: Content, rows: list[Row], out: Path) -> Manifest:
    records = [row.model_dump(mode="json") for row in rows]
    alone = messages(content)
    prose = _scenarios(content, rows)
    tables = _tables(content, records, prose, alone)
    infos = [_write_parquet(out, config, tables[config]) for config in CONFIGS]
    for name in AUTHORED:
        shutil.copyfile(content.root / name, out / name)
    hashes = Hashes(*score_and_prose_hash(content, rows, prose), messages_hash(content, alone))
    asked = {prompt_path(name): text for name, text in content.prompts.texts.items()}
    described = card.files(content, infos, hashes, records, {c: file_digest(out / parquet_path(c)) for c in CONFIGS})
    (out / "prompts").mkdir()
    for name, text in {**asked, **described}.items():
        (out / name).write_text(text, encoding="utf-8")
    manifest = Manifest(
        name="helmbench",
        version=content.version,
        released=content.released,
        canary=content.canary,
        score_hash=hashes.score,
        prose_hash=hashes.prose,
        messages_hash=hashes.messages,
        talks_hash=talks_hash(content),
        rows={config: len(tables[config]) for config in CONFIGS},
        tiers={tier: sum(tier in r["tiers"] for r in records) for tier in card.TIERS},
        behaviors=dict(sorted(Counter(check["behavior"] for r in records for check in r["evaluation"]).items())),
        scenarios=[
            {"id": s.id, "samples": s.samples, "hash": digest([r for r in records if r["scenario"] == s.id])}
            for s in prose
        ],
        files={name: file_digest(out / name) for name in [*described, *AUTHORED, *asked, *map(parquet_path, CONFIGS)]},
        additions=content.additions,
    )
    (out / "MANIFEST.json").write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return manifest


def _tables(
    content: Content, records: list[dict[str, Any]], prose: list[ScenarioRow], alone: Sequence[Sample]
) -> dict[str, list[dict[str, Any]]]:
    """The records of every config."""
    others: dict[str, Iterable[BaseModel]] = {
        "scenarios": prose,
        "criteria": [content.criteria[slug].row for slug in sorted(content.criteria)],
        "calibration": content.calibration,
        "helplines": content.helplines,
        "messages": alone,
        "protocols": content.protocols.values(),
        "taxonomy": content.taxonomy.values(),
        "rating_calibration": content.rating_calibration,
        "parts": [part.row.model_copy(update={"canary": content.canary}) for part in content.parts],
        "talk_criteria": content.talk_criteria,
    }
    return {
        **{f"pillar{n}": [r for r in records if r["pillar"] == f"P{n}" and not _live(r)] for n in range(1, 5)},
        "conversations": [r for r in records if _live(r)],
        "all": records,
        **{config: [row.model_dump(mode="json") for row in rows] for config, rows in others.items()},
    }


def score_and_prose_hash(content: Content, rows: list[Row], prose: list[ScenarioRow]) -> tuple[str, str]:
    """`score_hash`: everything that affects scores. `prose_hash`: the rest.

    The first covers rows without canary, their criteria, helplines without sources, `scoring.yaml`, `baselines.yaml`,
    and prompts except those for rating and triage. The second covers both calibration sets. `messages_hash` covers
    what affects only stand-alone messages.
    """
    scored = {
        "rows": [_scored(row) for row in rows],
        "criteria": _criteria(content, rows),
        "helplines": _lines(content),
        "scoring": content.scoring,
        "baselines": {name: b.model_dump(mode="json") for name, b in content.baselines.items()},
        "prompts": {f"{n}.md": t for n, t in content.prompts.texts.items() if not n.startswith(OF_MESSAGES)},
    }
    rest = {
        "scenarios": [s.model_dump(mode="json") for s in prose],
        "sources": [h.source for h in content.helplines],
        "calibration": [r.model_dump(mode="json") for r in (*content.calibration, *content.rating_calibration)],
        "version": [content.version, content.released, content.canary],
    }
    return digest(scored), digest(rest)


def messages_hash(content: Content, alone: Sequence[Sample]) -> str:
    """Hash of everything that affects triage and appropriateness figures: messages without canary, protocols, taxonomy,
    criteria, helplines without sources, prompts except those of talks, and the settings for intervals and unscored
    verdicts.
    """
    covered = {
        "messages": [_scored(message) for message in alone],
        "protocols": [p.model_dump(mode="json") for p in content.protocols.values()],
        "taxonomy": [c.model_dump(mode="json") for c in content.taxonomy.values()],
        "criteria": _criteria(content, alone),
        "helplines": _lines(content),
        "prompts": {f"{n}.md": t for n, t in content.prompts.texts.items() if not n.startswith(OF_TALKS)},
        "scoring": {key: content.scoring.get(key) for key in ("confidence", "pooled_messages", "unscored_limit")},
    }
    return digest(covered)


def talks_hash(content: Content) -> str:
    """Hash of everything that affects figures of talks: parts without canary, all criteria, helplines without sources,
    and the prompts.
    """
    covered = {
        "parts": [part.row.model_dump(mode="json", exclude=PROSE_FIELDS) for part in content.parts],
        "talk_criteria": [c.model_dump(mode="json") for c in content.talk_criteria],
        "criteria": [c.row.model_dump(mode="json") for _, c in sorted(content.criteria.items())],
        "helplines": _lines(content),
        "prompts": {f"{n}.md": t for n, t in content.prompts.texts.items()},
    }
    return digest(covered)


def _scored(sample: Sample) -> dict[str, Any]:
    return sample.model_dump(mode="json", exclude=PROSE_FIELDS)


def _criteria(content: Content, samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """The criteria of the samples' checks, sorted by name."""
    used = {c.criterion for s in samples for c in s.evaluation if c.check in ("graded", "criterion")}
    return [content.criteria[slug].row.model_dump(mode="json") for slug in sorted(used)]


def _lines(content: Content) -> list[dict[str, Any]]:
    return [h.model_dump(mode="json", exclude={"source"}) for h in content.helplines]


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
    """Writes one config and returns its `dataset_info` entry."""
    path = out / parquet_path(config)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [features.complete(r, config) for r in records]
    table = pa.Table.from_pylist(rows, features.schema(config))
    pq.write_table(table, path, compression="zstd")
    size = table.nbytes
    return {
        "config_name": config,
        # The `datasets` cache keys on this entry, not on the parquet; the hash makes edited rows a new dataset.
        "description": f"HELMbench {config}, rows sha256 {digest(rows)}",
        "features": features.listed(features.of(config)),
        "splits": [{"name": "test", "num_bytes": size, "num_examples": len(records)}],
        "download_size": path.stat().st_size,
        "dataset_size": size,
    }
