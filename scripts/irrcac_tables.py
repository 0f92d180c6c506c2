"""Writes irrCAC's figures for the rating tables in tests/irrcac_tables.json (tests/test_agreement_libraries.py).

Usage: pip install irrCAC==0.4.4 in a separate environment, then python scripts/irrcac_tables.py

irrCAC is the only library we know that has Gwet's AC1. It pins scipy 1.12, which is incompatible with numpy 2, so its
figures are committed and it isn't a dependency. A table is one string per item, one digit per rater, "." for no label:
degenerate ones by hand, and 120 random ones with 2 to 5 raters, some lopsided, up to half of the ratings missing.
"""

from __future__ import annotations

import json
import math
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from irrCAC.raw import CAC

OUT = Path(__file__).resolve().parents[1] / "tests" / "irrcac_tables.json"


def figures(labels: int, rows: list[str]) -> dict[str, Any]:
    """Raw agreement, Fleiss' kappa and AC1 with standard errors over all labels, and AC1 and Fleiss of each label
    against the rest.
    """
    # Items without ratings don't count.
    rated = [[math.nan if mark == "." else float(mark) for mark in row] for row in rows if set(row) != {"."}]
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
        # The last raw agreement is kept: AC1's.
        found |= {"raw": said["pa"], name: said["coefficient_value"], f"{name}_se": said["se"]}
    return {name: float(value) if math.isfinite(value) else None for name, value in found.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # irrCAC divides by zero and returns nan, which becomes null
    stored = json.loads(OUT.read_text(encoding="utf-8"))["tables"]
    kept = [table | {"irrCAC": figures(table["labels"], table["rows"])} for table in stored]
    lines = ",\n".join(json.dumps(table, allow_nan=False) for table in kept)
    OUT.write_text(f'{{"library": "irrCAC {version("irrCAC")}", "tables": [\n{lines}\n]}}\n', encoding="utf-8")
