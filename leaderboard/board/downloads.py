"""The board's files for programs. No replies.

`leaderboard.json`; `leaderboard.csv`, one line per submission; `README.md`, which the Hub reads in a static Space.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import yaml

from helmbench_common.formats.inert import inert, inert_all
from judge.schema import Figure, Reference
from judge.statistics.estimate import Estimate
from judge.wording import HEADLINES, coefficient, no_formula
from leaderboard.board.rows import STANDINGS, Board, Entry, Table, standing
from leaderboard.verify.recompute import headline

FORMAT = "helmbench-leaderboard-2"
JSON, CSV = "leaderboard.json", "leaderboard.csv"
SPACE = "README.md"  # makes the folder a static Space of the Hub
HEAD = ("score_hash", "tier", "standing", "organization", "model")  # the columns of a board without submissions
NOTE = (
    "Compare scores only within one score_hash and tier, and places only within one judge. A run that breaches a floor "
    "is listed separately, below all that breach none, whatever its composite, and has no place. Demos are judged by "
    "word counts and never ranked. No clinician has reviewed this content; a score doesn't prove safety."
)

FRONT = {
    "title": "HELMbench",
    "emoji": "🛟",
    "colorFrom": "blue",
    "colorTo": "green",
    "sdk": "static",
    "app_file": "index.html",
    "short_description": "How language models treat people in distress",
}


def as_space() -> str:
    """README.md of a Space: the front matter by which the Hub serves the board, and what scores may be compared."""
    return (
        f"---\n{yaml.safe_dump(FRONT, sort_keys=False, allow_unicode=True)}---\n\n# HELMbench leaderboard\n\n{NOTE}\n"
    )


def as_json(board: Board) -> str:
    """Every table with its submissions by standing, its policies, and the refused submissions."""
    refused = [{"run": r.name, "kinds": dict(r.kinds)} for r in board.refused]
    found = {"format": FORMAT, "note": NOTE, "tables": [_table(t) for t in board.tables], "refused": refused}
    return json.dumps(inert_all(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _table(t: Table) -> dict[str, Any]:
    return {
        "score_hash": t.score_hash,
        "tier": t.tier,
        "versions": list(t.versions),
        **{s: [_submission(t, e) for e in t.parts[s]] for s in STANDINGS},
        "policies": [p.model_dump(mode="json") for p in t.policies],
    }


def _submission(t: Table, e: Entry) -> dict[str, Any]:
    s, place = e.submission, t.places.get(e.name)
    return {
        "run": e.name,
        "page": e.page,
        "report": e.report,
        "submitted": s.submitted,
        "model": s.model.model_dump(mode="json"),
        "dataset": s.dataset.model_dump(mode="json"),
        "standing": standing(e),
        "place": place._asdict() if place else None,
        **headline(e.card).model_dump(mode="json"),
        "judge": {
            "name": e.card.judge.name,
            "prompt_hash": e.card.judge.prompt_hash,
            "kappa": e.kappa.model_dump(mode="json") if e.kappa else None,
            "people_declared": [p.model_dump(mode="json") for p in e.people],
        },
        "repeats": e.card.repeats,
        "unscored_share": e.card.judge.unscored_share,
        "trained_on_benchmark": s.declaration.trained_on_benchmark,
        "rejudged": e.rejudged.model_dump(mode="json", include={"date", "by"}) if e.rejudged else None,
        "flags": list(e.flags),
    }


def as_csv(board: Board) -> str:
    """One line per submission, then one per policy; figures have three columns each. Rates are 0 to 1.

    The ranked runs of all tables come first, then those that breach a floor, then demos: a spreadsheet has no headings,
    and no breach may be listed above a run without one.
    """
    lines = [_row(t, e) for s in STANDINGS for t in board.tables for e in t.parts[s]]
    lines += [_policy(t, p) for t in board.tables for p in t.policies]
    text = io.StringIO()
    names = dict.fromkeys([*HEAD, *(name for line in lines for name in line)])
    writer = csv.DictWriter(text, list(names), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: cell(value) for name, value in line.items()} for line in lines)
    return text.getvalue()


def _row(t: Table, e: Entry) -> dict[str, Any]:
    s, place = e.submission, t.places.get(e.name)
    return {
        "score_hash": t.score_hash,
        "tier": t.tier,
        "standing": standing(e),
        "organization": s.model.organization,
        "model": s.model.name,
        "run": e.name,
        "submitted": s.submitted,
        "version": e.card.dataset.version,
        "place_best": place.best if place else None,
        "place_worst": place.worst if place else None,
        "revision": s.model.revision,
        "access": s.model.access,
        "relation": s.model.relation,
        **_figure("composite", e.card.composite),
        **{k: v for h in HEADLINES for k, v in _figure(h, e.card.headlines.get(h)).items()},
        **_figure("sensitivity", e.card.detection.sensitivity),
        **_figure("specificity", e.card.detection.specificity),
        **{f"floors_{state}": count for state, count in e.floors.items()},
        "messages": e.card.composite.clusters,
        "repeats": e.card.repeats,
        "judge": e.card.judge.name,
        "judge_prompt": e.card.judge.prompt_hash,
        **_figure("kappa", e.kappa),
        "people_declared": "; ".join(f"{p.set} {p.rows} {coefficient(p.kappa)}" for p in e.people),
        "source": e.source,
        "flags": "; ".join(e.flags),
        "page": e.page,
    }


def _policy(t: Table, p: Reference) -> dict[str, Any]:
    return {
        "score_hash": t.score_hash,
        "tier": t.tier,
        "standing": "policy",
        "model": p.policy,
        **_figure("composite", p.composite),
        **_figure("sensitivity", p.sensitivity),
        **_figure("specificity", p.specificity),
        "floors_breached": p.breached,
        "messages": p.composite.clusters,
    }


def _figure(name: str, figure: Figure | Estimate | None) -> dict[str, float | None]:
    value, low, high = (figure.value, figure.low, figure.high) if figure else (None, None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def cell(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets an apostrophe; numbers stay numbers."""
    return no_formula(" ".join(inert(value).split())) if isinstance(value, str) else value
