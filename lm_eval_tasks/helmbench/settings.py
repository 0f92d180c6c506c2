"""What `--metadata` may say to the tasks. Whatever else looks like it ends the run before its first request.

A name with a typing error would otherwise be ignored, and another prompt measured than the team thinks.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

PREFIX = "helmbench"
TRANSCRIPT = "transcript"
KNOWN = {
    "helmbench_condition": "a file with a system prompt of your own",
    "helmbench_dataset": "the folder of a built dataset",
    "helmbench_messages": "the folder of a labelled corpus of your own",
    "helmbench_patience": "seconds of waiting per request",
    "helmbench_prompt": f"{TRANSCRIPT}, for a base model that has a chat template",
    "helmbench_repeats": "how often each sample is asked",
}
ALIKE = 0.8  # of difflib's ratio: `helmbnech_condition` is near enough to be meant, `model` isn't


def check(metadata: Mapping[str, Any]) -> None:
    """Nothing, where each name is one of KNOWN or none of ours (lm-eval puts the model's arguments beside them).

    Raises:
        SystemExit: a name that is meant to be one of ours and isn't, with the nearest; or a value that means nothing.
    """
    for name in metadata:
        if name not in KNOWN and (near := _meant(str(name))):
            listed = "; ".join(f"{known} ({means})" for known, means in KNOWN.items())
            raise SystemExit(f"helmbench: --metadata: there is no {name!r}; did you mean {near!r}? Known are {listed}")
    prompt, patience = metadata.get("helmbench_prompt", TRANSCRIPT), metadata.get("helmbench_patience", 0)
    if prompt != TRANSCRIPT:
        raise SystemExit(f"helmbench: helmbench_prompt is {prompt!r}; expected {TRANSCRIPT!r}, or nothing")
    if not isinstance(patience, int | float) or isinstance(patience, bool) or not 0 <= patience < math.inf:
        raise SystemExit(f"helmbench: helmbench_patience is {patience!r}; expected seconds, 0 or more")


def _meant(name: str) -> str:
    """The name of ours that another one is meant to be; empty where it is none of our business."""
    low = name.lower()
    if f"{PREFIX}_{low}" == "helmbench_condition":  # the run's own record of the prompt, which a user can't write
        return f"{PREFIX}_{low}"
    mine = low.startswith(PREFIX)
    near = difflib.get_close_matches(low, KNOWN, n=1, cutoff=0.0 if mine else ALIKE)
    return near[0] if near else ""
