"""How our messages read beside real ones: length, punctuation and habits, ours by polarity and real ones by public set.

Of the real ones only figures are kept, in real_messages.yaml, which scripts/measure_real_messages.py makes from
checkouts; their texts never come here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dataset_builder.composing.compose import samples
from dataset_builder.reading.content_types import Content
from dataset_builder.stats.surface import NUMBERS, SHARES, distribution
from helmbench_common.formats import yaml_file

FILE = Path(__file__).with_name("real_messages.yaml")
WIDTH, COLUMN = 30, 16


def known() -> list[dict[str, Any]]:
    """The public sets that were measured: {set, source, commit, date, licence, rows, figures}, the last as
    `dataset_builder.stats.surface.distribution` gives them.
    """
    found: list[dict[str, Any]] = yaml_file.load(FILE, "the figures of public sets", list).value
    return found


def beside_real(content: Content) -> dict[str, Any]:
    """{ours: {crisis, control, lite}, real: set → …}, each a distribution; ours are of scenarios that aren't withdrawn.

    Scripts of several turns are left out: all sets are of single messages.
    """
    found = [(s.id, p) for s in content.live if s.kind == "scenario" for p in s.perturbations]
    lite = {(x.scenario.id, x.message.code) for x in samples(content) if "lite" in x.tiers}
    ours = {
        polarity: distribution(p.words for _, p in found if p.polarity == polarity)
        for polarity in ("crisis", "control")
    }
    ours["lite"] = distribution(p.words for scenario, p in found if (scenario, p.code) in lite)
    return {"ours": ours, "real": {one["set"]: one["figures"] for one in known()}}


def table(figures: dict[str, Any]) -> str:
    """The same figures as aligned text."""
    columns = {**figures["ours"], **figures["real"]}
    return "\n".join([
        "single messages, ours and real ones: median (quartiles), or the share of messages",
        _line("", list(columns)),
        _line("messages", [f"{own.get('messages', 0):,}" for own in columns.values()]),
        *(_line(name, [_quartiles(own.get(name)) for own in columns.values()]) for name in NUMBERS),
        *(_line(name, [_share(own.get(name)) for own in columns.values()]) for name in SHARES),
    ])  # fmt: skip


def _line(name: str, cells: list[str]) -> str:
    return f"{name:<{WIDTH}}" + "".join(f"{cell:>{COLUMN}}" for cell in cells)


def _quartiles(found: list[float] | None) -> str:
    return "–" if found is None else "{1:.0f} ({0:.0f}–{2:.0f})".format(*found)


def _share(found: float | None) -> str:
    return "–" if found is None else f"{found:.0f} %"
