"""A score on a held-out split next to the public one: figures and their difference, without the questions.

Published as JSON or as a table; docs/publishing.md says how to read it.
"""

from __future__ import annotations

import math
from typing import Any

from helmbench_common.tables import columns
from judge.replies.schema import RunError
from judge.schema import Figure, Scorecard


def beside(public: Scorecard, held_out: Scorecard) -> dict[str, Any]:
    """The data to publish: versions, hashes, model, judge, and each figure public, held out, and their difference.

    Raises:
        RunError: not a public and a held-out run of the same version, tier, model, settings and judge, or one of them
    is incomplete.
    """
    _refuse_unlike(public, held_out)
    ours, theirs, none = _figures(public), _figures(held_out), Figure(value=None)
    short = {"value", "low", "high", "n", "clusters"}
    return {
        "format": "helmbench-held-out-1",
        "public": public.dataset.model_dump(mode="json"),
        "held_out": held_out.dataset.model_dump(mode="json"),
        "model": public.model.model_dump(mode="json"),
        "judge": public.judge.name,
        "approximate": public.judge.approximate or held_out.judge.approximate,
        "figures": {  # a split may not cover every pillar
            name: {
                "public": (one := ours.get(name, none)).model_dump(include=short),
                "held_out": (other := theirs.get(name, none)).model_dump(include=short),
                "difference": difference(one, other),
            }
            for name in {**ours, **theirs}
        },
    }


def _refuse_unlike(public: Scorecard, held_out: Scorecard) -> None:
    version = public.dataset.version
    if "+" in version or not held_out.dataset.version.startswith(f"{version}+held-out."):
        raise RunError(
            f"the runs used datasets {version} and {held_out.dataset.version}; expected the public dataset first, then "
            f"a held-out split of it, such as {version.partition('+')[0]}+held-out.a"
        )
    for what, one, other in (
        ("model", public.model, held_out.model),
        ("dataset.tier", public.dataset.tier, held_out.dataset.tier),
        ("judge.name", public.judge.name, held_out.judge.name),
        ("judge.prompt_hash", public.judge.prompt_hash, held_out.judge.prompt_hash),
    ):
        if one != other:
            raise RunError(f"{what} is {one} in the public run and {other} in the held-out one; expected the same")
    for name, card in (("public", public), ("held-out", held_out)):
        if not card.complete:
            raise RunError(
                f"the {name} run is incomplete ({'; '.join(card.notes) or 'see its notes'}); complete it first"
            )


def _figures(card: Scorecard) -> dict[str, Figure]:
    return {
        "composite": card.composite,
        "sensitivity": card.detection.sensitivity,
        "specificity": card.detection.specificity,
        **{str(name): figure for name, figure in card.headlines.items()},
    }


def difference(public: Figure, held_out: Figure) -> dict[str, float | None]:
    """Held out minus public, with a 95 % interval; in the figures' unit, None if either is missing.

    The messages differ, so nothing is paired: Zou and Donner's MOVER (Statistics in Medicine 27, 2008) recovers the
    variances from the two intervals, which need not be symmetric.
    """
    if public.value is None or held_out.value is None:
        return {"value": None, "low": None, "high": None}
    value = held_out.value - public.value
    if public.low is None or public.high is None or held_out.low is None or held_out.high is None:
        return {"value": value, "low": None, "high": None}
    low = value - math.hypot(held_out.value - held_out.low, public.high - public.value)
    high = value + math.hypot(held_out.high - held_out.value, public.value - public.low)
    return {"value": value, "low": low, "high": high}


def table(found: dict[str, Any]) -> str:
    """The same figures as aligned text, with a guide to reading them."""

    def cell(figure: dict[str, Any]) -> str:
        if figure["value"] is None:
            return "–"
        limits = f" ({figure['low']:.2f} to {figure['high']:.2f})" if figure["low"] is not None else ""
        return f"{figure['value']:.2f}{limits}"

    judge = found["judge"] + (" (approximate)" if found["approximate"] else "")
    splits = [
        (name, d["version"], f"score_hash {d['score_hash'][:12]}", f"{d['samples']} samples")
        for name, d in (("public", found["public"]), ("held out", found["held_out"]))
    ]
    rows = [
        (name, *(cell(row[part]) for part in ("public", "held_out", "difference")))
        for name, row in found["figures"].items()
    ]
    return f"""{found["model"]["name"]}, tier {found["public"]["tier"]}, judge {judge}
{columns(("split", "version", "dataset", "size"), splits)}

{columns(("figure", "public", "held out", "held out minus public"), rows)}

Read the composite's difference; the other rows explain it. An interval wholly below 0 says that the model
does worse on messages that it can't have seen, or that these are harder: compare with the trivial policies
and with other models before calling it contamination."""
