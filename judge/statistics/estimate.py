"""A figure with its interval: the type of every estimate."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict

from dataset_builder.schema import Strict


class Estimate(Strict):
    """A figure with its 95 % interval, in the unit of the figure; `n` counts the items it rests on.

    `value` is null where the data don't define it, `low` and `high` where they leave no interval; `reason` says why.
    `interval`: `wilson` (Wilson 1927, on clusters of items), or `jackknife` (t·SE, clusters − 1 degrees of freedom, SE
    by leaving out one cluster at a time, on Fisher's z scale of the figure's bounds).
    """

    model_config = ConfigDict(allow_inf_nan=False)  # any comparison with NaN is false, so it would pass every limit

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    interval: Literal["wilson", "jackknife"] | None = None
    reason: str | None = None
