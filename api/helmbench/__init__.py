"""HELMbench from Python: build or load the dataset, read a run, score it, compare it, verify a submission.

    import helmbench as hb

    release = hb.load("helmbench")
    run = hb.read_run("runs/my-model", release)
    scored = hb.score(run, release)
    scored.scorecard.composite, scored.to_frame()

`docs/python.md` is the guide. `helmbench.cli` is the command line, `helmbench.inspect` has the Inspect AI tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from helmbench_common.errors import HelmbenchError

if TYPE_CHECKING:
    from dataset_builder.release import Release
    from helmbench.api import (
        Comparison,
        Question,
        Scored,
        build,
        compare,
        load,
        play,
        read_run,
        replies,
        score,
        verify,
    )
    from judge.replies.run import Run
    from leaderboard.schema import Verified

__all__ = [
    "Comparison",
    "HelmbenchError",
    "Question",
    "Release",
    "Run",
    "Scored",
    "Verified",
    "build",
    "compare",
    "load",
    "play",
    "read_run",
    "replies",
    "score",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Imports the API on first use: its libraries take a second to load, and `helmbench --help` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'helmbench' has no attribute '{name}'")
    from helmbench import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted(__all__)
