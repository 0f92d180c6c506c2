"""A figure with its interval: the one type in which every estimate is given."""

from __future__ import annotations

from typing import Literal

from dataset_builder.schema import Strict


class Estimate(Strict):
    """A figure with its 95 % interval, in the unit of the figure; `n` counts the items it rests on.

    `value` is null where the data don't define it, `low` and `high` where they leave no interval; `reason` then says
    why.
    `interval`: `wilson` (Wilson 1927, on items), or `analytic` (t·SE, n − 1 degrees of freedom, SE by the delta method,
    on Fisher's z scale of the figure's bounds: that held 93 to 98 % of the time at 24 to 200 items, value ± t·SE 85 to
    96 %).
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    interval: Literal["wilson", "analytic"] | None = None
    reason: str | None = None
