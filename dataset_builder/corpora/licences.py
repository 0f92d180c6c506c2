"""May a corpus made from this be passed on? A reading of the licence's name, and no legal advice.

What is written here is deliberately narrow: only licences that are known to allow adapted copies for any purpose are
redistributable. Everything else (non-commercial, no derivatives, `other`, an unknown name, none) is not, until a person
says so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# SPDX ids and the Hub's spellings, lower case; without a version where any will do.
OPEN = re.compile(
    r"cc0(-1\.0)?|cc-by(-sa)?-\d\.\d|mit|apache-2\.0|bsd(-[23]-clause)?|isc|unlicense|pddl(-1\.0)?|odc-by(-1\.0)?|odbl(-1\.0)?|cdla-permissive-[12]\.0|cdla-sharing-1\.0|zlib|wtfpl"
)


class Reading(NamedTuple):
    redistributable: bool
    why: str


def normal(licence: str | None) -> str:
    """The name as compared: lower case, hyphens for spaces; empty where there is none."""
    return re.sub(r"[\s_]+", "-", (licence or "").strip().lower()).removeprefix("license:")


def read_licence(licence: str | None) -> Reading:
    """Whether rows under `licence` may be passed on, and why (not)."""
    name = normal(licence)
    if not name or name in ("unknown", "none"):
        return Reading(False, "no licence is stated")
    parts = name.split("-")
    if "nc" in parts or "noncommercial" in name.replace("-", ""):
        return Reading(False, f"{name} allows no commercial use")
    if "nd" in parts:
        return Reading(False, f"{name} allows no adapted copies, and a cleaned corpus is one")
    if OPEN.fullmatch(name):
        return Reading(
            True,
            f"{name} allows adapted "
            f"copies{', under the same licence' if '-sa' in name or name.startswith(('odbl', 'cdla-sharing')) else ''}",
        )
    return Reading(False, f"'{name}' is not among the licences that are known to allow it")
