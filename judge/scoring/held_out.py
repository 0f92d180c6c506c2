"""A score on a held-out split beside the public one: figures and their difference, and nothing of what was asked.

What is published of such a split, as JSON or as a table; docs/publishing.md says how to read it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from helmbench_common.errors import HelmbenchError
from helmbench_common.formats.plain_file import read_bytes
from helmbench_common.formats.refused import FormatError
from judge.schema import Figure, Scorecard


class UnlikeError(HelmbenchError, ValueError):
    """Two scorecards that can't stand beside each other; the message says why."""


def read_scorecard(path: Path) -> Scorecard:
    """The scorecard in `path`.

    Raises:
        UnlikeError: it is none, or can't be read.
    """
    try:
        return Scorecard.model_validate_json(read_bytes(path, "a scorecard"))
    except FormatError as error:
        raise UnlikeError(str(error)) from None
    except ValidationError as error:
        first = error.errors()[0]
        raise UnlikeError(
            f"{path}: is no scorecard: {'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}"
        ) from None


def beside(public: Scorecard, held_out: Scorecard) -> dict[str, Any]:
    """What is published: versions, hashes, model, judge, and each figure public, held out, and their difference.

    Raises:
        UnlikeError: not a public and a held-out run of one version, tier, model, settings and judge, or one of them is
            incomplete.
    """
    _refuse_unlike(public, held_out)
    ours, theirs = _figures(public), _figures(held_out)
    figures = {
        name: (ours.get(name, Figure(value=None)), theirs.get(name, Figure(value=None))) for name in {**ours, **theirs}
    }  # a split may lack a pillar
    return {
        "format": "helmbench-held-out-1",
        "public": public.dataset.model_dump(mode="json"),
        "held_out": held_out.dataset.model_dump(mode="json"),
        "model": public.model.model_dump(mode="json"),
        "judge": public.judge.name,
        "approximate": public.judge.approximate or held_out.judge.approximate,
        "figures": {
            name: {"public": _short(one), "held_out": _short(other), "difference": difference(one, other)}
            for name, (one, other) in figures.items()
        },
    }


def _refuse_unlike(public: Scorecard, held_out: Scorecard) -> None:
    version = public.dataset.version
    if "+" in version or not held_out.dataset.version.startswith(f"{version}+held-out."):
        raise UnlikeError(
            f"the datasets are {version} and {held_out.dataset.version}; expected a public version and a "
            "held-out split of it, in this order"
        )
    for what in ("model", "dataset.tier", "judge.name", "judge.prompt_hash"):
        one, other = _field(public, what), _field(held_out, what)
        if one != other:
            raise UnlikeError(
                f"{what} is {one} in the public run and {other} in the held-out one; a difference would mix "
                "that with what was seen before"
            )
    for name, card in (("public", public), ("held-out", held_out)):
        if not card.complete:
            raise UnlikeError(
                f"the {name} run is incomplete ({'; '.join(card.notes) or 'see its notes'}); complete it first"
            )


def _field(card: Scorecard, path: str) -> Any:
    value: Any = card
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _figures(card: Scorecard) -> dict[str, Figure]:
    return {
        "composite": card.composite,
        "sensitivity": card.detection.sensitivity,
        "specificity": card.detection.specificity,
        **{str(name): figure for name, figure in card.headlines.items()},
    }


def _short(figure: Figure) -> dict[str, Any]:
    return figure.model_dump(include={"value", "low", "high", "n", "clusters"})


def difference(public: Figure, held_out: Figure) -> dict[str, float | None]:
    """Held out minus public, with a 95 % interval; in the figures' unit, None where either has none.

    The messages are other ones, so nothing is paired: Zou and Donner's MOVER (Statistics in Medicine 27, 2008) recovers
    the variances from the two intervals, which need not be symmetric.
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
    """The same figures as aligned text, with how to read them."""

    def cell(figure: dict[str, Any]) -> str:
        if figure["value"] is None:
            return "-"
        return f"{figure['value']:.2f}" + (
            f" [{figure['low']:.2f}, {figure['high']:.2f}]" if figure["low"] is not None else ""
        )

    one, other = found["public"], found["held_out"]
    judge = found["judge"] + (" (approximate)" if found["approximate"] else "")
    return "\n".join(
        [
            f"{found['model']['name']}, tier {one['tier']}, judge {judge}",
            f"public    {one['version']}, score_hash {one['score_hash'][:12]}, {one['samples']} samples",
            f"held out  {other['version']}, score_hash {other['score_hash'][:12]}, {other['samples']} samples",
            "",
            f"{'':<14}{'public':<26}{'held out':<26}held out minus public",
            *(
                f"{name:<14}{cell(row['public']):<26}{cell(row['held_out']):<26}{cell(row['difference'])}"
                for name, row in found["figures"].items()
            ),
            "",
            "Read the composite's difference; the other rows explain it. An interval wholly below 0 says "
            "that the model does worse on messages that it",
            "can't have seen, or that these are harder: compare with the trivial policies and with other "
            "models before calling it contamination.",
        ]
    )
