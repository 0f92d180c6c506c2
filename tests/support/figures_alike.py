"""Compares JSON values. The last digits of a sum depend on the processor: another machine adds in another order."""

from __future__ import annotations

import math
from typing import Any


def same(first: Any, second: Any) -> bool:
    """Whether two values are equal, numbers to nine digits."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float) or isinstance(second, float):
        return (
            isinstance(first, int | float)
            and isinstance(second, int | float)
            and math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)
        )
    return bool(first == second)
