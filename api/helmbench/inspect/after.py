"""When a run has ended, its scorecard stands beside the log: what `helmbench score LOG.eval` writes, unasked."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio.to_thread
from inspect_ai.hooks import Hooks, RunEnd, hooks

from dataset_builder.release import ReleaseError
from judge.pipeline import score_log
from judge.replies.inspect_log import RECORDED, SUFFIX
from judge.replies.schema import RunError


@hooks(name="helmbench_scorecard", description="writes HELMbench's scorecard and report beside a log of its tasks")
class Scorecard(Hooks):
    """Scores every log of ours as soon as it is whole; what goes wrong there is said, and spoils no run."""

    async def on_run_end(self, data: RunEnd) -> None:
        for log in data.logs:
            recorded = (log.eval.metadata or {}).get(RECORDED)
            place = urlsplit(log.location)
            path = Path(unquote(place.path))
            if not recorded or place.scheme not in ("", "file") or path.suffix != SUFFIX:
                continue
            if log.status == "success":
                said = await anyio.to_thread.run_sync(_said, path, str(recorded["dataset_path"]))
            else:  # `inspect eval` itself ends with 0 then
                said = (
                    f"no scorecard: the run ended as '{log.status}'; `inspect eval-retry {path}` goes on where it was"
                )
            sys.stderr.write(f"helmbench: {said}\n")


def _said(path: Path, dataset: str) -> str:
    try:
        return score_log(path, Path(dataset))
    except (RunError, ReleaseError, OSError) as error:
        return f"no scorecard: {error}"
