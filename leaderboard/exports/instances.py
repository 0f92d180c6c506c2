"""Every Eval Ever's instances: a JSON line per scored verdict. What was asked is named by its id, what was replied is
withheld.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dataset_builder.release import Release
from dataset_builder.schema import Row
from helmbench_common.hashing import canonical
from judge.report.entries import WITHHELD
from judge.schema import Verdict

VERSION = "0.3.0"  # of the format


class Of(NamedTuple):
    """What every instance of an evaluation repeats: its id, the model's, and the data that was asked."""

    evaluation: str
    model: str
    source: dict[str, Any]


def instances(verdicts: list[Verdict], release: Release, of: Of) -> list[str]:
    """A line per verdict with a label, in order. An unscored one has no score to give, and the format no word for
    that.
    """
    worth = release.scoring["points"]  # what each label earns, 0 to 1
    scored = sorted((v for v in verdicts if v.label in worth), key=lambda v: (v.id, v.repeat, v.index))
    return [canonical(_instance(v, release.rows[v.id], float(worth[v.label]), of)) for v in scored]


def _instance(v: Verdict, row: Row, points: float, of: Of) -> dict[str, Any]:
    """One verdict. Its behavior's score weighs messages and corrects for chance, so it is not these scores' mean."""
    live = sum(m.content is None for m in row.messages)
    place = of.source.get("hf_repo", of.source["dataset_name"])
    version = of.source["additional_details"]["version"]
    turns = {"num_turns": live + 1} if live else {}
    return {
        "schema_version": VERSION,
        "evaluation_id": of.evaluation,
        "model_id": of.model,
        "evaluation_name": f"HELMbench {v.behavior}",
        "evaluation_result_id": v.behavior,
        "sample_id": v.id,
        "interaction_type": "multi_turn" if live else "single_turn",
        "input": {"raw": f"[withheld: sample {v.id} of {place} {version}]", "reference": []},
        **_said(row, bool(live)),
        "answer_attribution": [],
        "evaluation": {"score": points, "is_correct": points == 1, **turns},
        "metadata": _metadata(v),
    }


def _said(row: Row, live: bool) -> dict[str, Any]:
    """Who spoke when, and not a word of it."""
    if not live:
        return {"output": {"raw": [WITHHELD]}, "messages": None}
    roles = [*(m.role for m in row.messages), "assistant"]
    messages = [{"turn_idx": n, "role": role, "content": None} for n, role in enumerate(roles)]
    return {"output": None, "messages": messages}


def _metadata(v: Verdict) -> dict[str, str]:
    return {
        "label": str(v.label),
        "check": v.check,
        "check_index": str(v.index),
        "repeat": str(v.repeat),
        "turn": str(v.turn),
        "decided_by": v.decided_by,
        **({"criterion": v.criterion} if v.criterion else {}),
        **({"outcome": v.outcome} if v.outcome else {}),
        **({"incident": v.incident} if v.incident else {}),
    }
