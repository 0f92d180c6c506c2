"""Writes irrcac_tables.json: random and degenerate rating tables with irrCAC's figures for each
(tests/test_agreement_libraries.py).

Usage: pip install irrCAC==0.4.4 in a separate environment, then python scripts/irrcac_tables.py

irrCAC is the only library we know that has Gwet's AC1. It pins scipy 1.12, which is incompatible with numpy 2, so its
figures are committed and it isn't a dependency. A table is one string per item, one digit per rater, "." for no label.
"""

from __future__ import annotations

import json
import math
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from irrCAC.raw import CAC

OUT = Path(__file__).resolve().parents[1] / "tests" / "irrcac_tables.json"
RANDOM = 120
# name → (labels on the scale, items)
DEGENERATE: dict[str, tuple[int, list[str]]] = {
    "one class only": (3, ["11"] * 6),
    "one class only, three raters": (3, ["111"] * 5),
    "one class only, missing": (4, ["22.", "2.2", ".22", "222"]),
    "constant rater": (3, ["01", "00", "02", "01"]),
    "constant rater of three": (3, ["010", "000", "021", "012", "002"]),
    "two constants": (3, ["02"] * 5),
    "a rater who gave nothing": (3, ["00.", "11.", "01.", "22."]),
    "a rater who gave one label": (3, ["00.", "112", "01.", "22."]),
    "raters without an item in common": (2, ["0.", ".1", "1.", ".0"]),
    "only two of three meet": (2, ["0.1", "1.1", ".0.", ".1.", "0.0"]),
    "one item": (3, ["01"]),
    "one item, the same": (3, ["11"]),
    "one item, three raters": (3, ["001"]),
    "never agree": (2, ["01", "10"] * 4),
    "always agree": (3, ["00", "11", "22"] * 4),
    "nearly one class": (2, ["00"] * 118 + ["01"] * 5 + ["10"] * 2),
    "ends of the scale": (5, ["04", "40", "00", "44"] * 3),
    "items that one rater saw": (3, ["0..", ".1.", "00.", ".12", "2.2", "..0"]),
}


def drawn(seed: int) -> tuple[int, list[str]]:
    """2 to 5 raters, 2 to 6 labels (the last may be unused), 4 to 60 items, some lopsided, up to half of the ratings
    missing.
    """
    rng = np.random.default_rng(seed)
    raters, labels, items = int(rng.integers(2, 6)), int(rng.integers(2, 7)), int(rng.integers(4, 61))
    missing = [0.0, 0.0, 0.2, 0.5][seed % 4]
    common = rng.dirichlet(np.full(labels, [0.3, 1.0, 5.0][seed % 3]))
    truth = rng.choice(labels, (items, 1), p=common)
    said = np.where(
        rng.random((items, raters)) < rng.uniform(0.05, 0.9), rng.integers(0, labels, (items, raters)), truth
    )
    gone = rng.random((items, raters)) < missing
    return labels + seed % 2, [
        "".join("." if out else str(code) for code, out in zip(row, away, strict=True))
        for row, away in zip(said, gone, strict=True)
    ]


def figures(labels: int, rows: list[str]) -> dict[str, Any]:
    """Raw agreement, Fleiss' kappa and AC1 with standard errors over all labels, and AC1 and Fleiss of each label
    against the rest.
    """
    rated = [
        [math.nan if mark == "." else float(mark) for mark in row] for row in rows if set(row) != {"."}
    ]  # items without ratings don't count
    classes = [[[math.nan if math.isnan(x) else float(x == k) for x in row] for row in rated] for k in range(labels)]
    own = [_of(table, 2) for table in classes]
    return _of(rated, labels) | {"classes": [{name: found[name] for name in ("fleiss", "ac1")} for found in own]}


def _of(table: list[list[float]], labels: int) -> dict[str, float | None]:
    """The figures of one table. A single item, for which irrCAC can't compute a standard error, is passed twice: that
    changes no value, and the errors stay null.
    """
    if len(table) == 1:
        return {name: None if name.endswith("_se") else value for name, value in _of(table * 2, labels).items()}
    cac = CAC(pd.DataFrame(table), categories=[float(k) for k in range(labels)], digits=12)
    found: dict[str, Any] = {}
    for name, coefficient in (("fleiss", cac.fleiss), ("ac1", cac.gwet)):
        try:
            said = coefficient()["est"]
        except ZeroDivisionError:  # chance agreement is certain, or no item was rated twice
            said = {"pa": math.nan, "coefficient_value": math.nan, "se": math.nan}
        found |= {
            "raw": said["pa"],
            name: said["coefficient_value"],
            f"{name}_se": said["se"],
        }  # the last raw agreement is kept: AC1's
    return {name: float(value) if math.isfinite(value) else None for name, value in found.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # irrCAC divides by zero and returns nan, which becomes null
    tables = DEGENERATE | {f"random {seed}": drawn(seed) for seed in range(RANDOM)}
    kept = [
        {"name": name, "labels": labels, "rows": rows, "irrCAC": figures(labels, rows)}
        for name, (labels, rows) in tables.items()
    ]
    lines = ",\n".join(json.dumps(table, allow_nan=False) for table in kept)
    OUT.write_text(f'{{"library": "irrCAC {version("irrCAC")}", "tables": [\n{lines}\n]}}\n', encoding="utf-8")
