"""Writes irrcac_tables.json: rating tables, random and degenerate, with what irrCAC says of each
(tests/test_agreement_libraries.py).

Usage: pip install irrCAC==0.4.4 in an environment of its own, then python scripts/irrcac_tables.py irrCAC is the only
library known to us that has Gwet's AC1. It pins scipy 1.12, which numpy 2 rules out, so its figures are kept and it is
no dependency. A table is one string per item, one digit per rater, "." where a rater gave no label.
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
    """2 to 5 raters, 2 to 6 labels of which the last may go unused, 4 to 60 items, some lopsided, up to half of the
    ratings missing.
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
    """Raw agreement, Fleiss' kappa and AC1 with their standard errors, over all labels and AC1 and Fleiss of each label
    against the rest.
    """
    rated = [
        [math.nan if mark == "." else float(mark) for mark in row] for row in rows if set(row) != {"."}
    ]  # items that nobody rated are no items
    classes = [[[math.nan if math.isnan(x) else float(x == k) for x in row] for row in rated] for k in range(labels)]
    own = [_of(table, 2) for table in classes]
    return _of(rated, labels) | {"classes": [{name: found[name] for name in ("fleiss", "ac1")} for found in own]}


def _of(table: list[list[float]], labels: int) -> dict[str, float | None]:
    """A single item, of which irrCAC asks a standard error, is given to it twice: that changes no value, and leaves the
    errors null.
    """
    if len(table) == 1:
        return {name: None if name.endswith("_se") else value for name, value in _of(table * 2, labels).items()}
    cac = CAC(pd.DataFrame(table), categories=[float(k) for k in range(labels)], digits=12)
    found: dict[str, Any] = {}
    for name, coefficient in (("fleiss", cac.fleiss), ("ac1", cac.gwet)):
        try:
            said = coefficient()["est"]
        except ZeroDivisionError:  # where agreement by chance is certain, or nothing was rated twice
            said = {"pa": math.nan, "coefficient_value": math.nan, "se": math.nan}
        found |= {
            "raw": said["pa"],
            name: said["coefficient_value"],
            f"{name}_se": said["se"],
        }  # the last raw stands: AC1's
    return {name: float(value) if math.isfinite(value) else None for name, value in found.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # it divides by nought and says nan, which is kept as null
    tables = DEGENERATE | {f"random {seed}": drawn(seed) for seed in range(RANDOM)}
    kept = [
        {"name": name, "labels": labels, "rows": rows, "irrCAC": figures(labels, rows)}
        for name, (labels, rows) in tables.items()
    ]
    lines = ",\n".join(json.dumps(table, allow_nan=False) for table in kept)
    OUT.write_text(f'{{"library": "irrCAC {version("irrCAC")}", "tables": [\n{lines}\n]}}\n', encoding="utf-8")
