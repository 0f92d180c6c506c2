"""How a run of lm-eval's command line begins and ends: nothing is paid for that would be lost, the last lines say what
to do next, and the exit code says whether anything was answered.

lm-eval writes a run's files, prints its tables and ends with 0, whatever was answered and whether the files could be
written or not. There is no hook at its end. What it saves a run with is an object of its own command, so that object's
two methods are replaced on the instance, as the model's `generate_until` is: the second is called once per task, last
of all before the tables. Callers in Python keep what they have: they get the samples, and judge them themselves.
"""

from __future__ import annotations

import atexit
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from lm_eval_tasks.helmbench.wire import Ended

COMMAND = "lm_eval._cli.run"  # the module of lm-eval's command line
UNWRITTEN, UNANSWERED = 3, 5  # exit codes, as those of `helmbench`
REASONS = 3  # that are named


def keep_what_is_paid_for(frame: FrameType) -> None:
    """Nothing, where lm-eval will keep the replies. `frame`: that of its `evaluate`.

    Raises:
        SystemExit: nobody could ever score the run.
    """
    if frame.f_locals.get("log_samples", True) is False:
        raise SystemExit(
            "helmbench: --log_samples is missing: the replies would be thrown away, and nothing could be scored; "
            "add --log_samples --output_path runs (in Python: log_samples=True)"
        )
    tracker = _tracker(frame)
    if tracker is None:
        return
    out = Path(tracker.output_path)
    if out.suffix == ".json":
        raise SystemExit(f"helmbench: --output_path {out}: `helmbench score` reads folders; name one, such as runs")
    there = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not there.is_dir():
        raise SystemExit(f"helmbench: --output_path {out}: {there} is a file; name a folder, such as runs")


def watch(frame: FrameType, task: str, limit: float, more: Mapping[str, str]) -> None:
    """Sees to the end of a run of the command line, for each of our tasks in it. `frame`: of lm-eval's `evaluate`.

    `limit`: the share of replies that may be missing; `more`: options of `helmbench score`, beside the run's folder.
    """
    tracker = _tracker(frame)
    if tracker is None:
        return
    end = getattr(tracker.save_results_samples, "__self__", None)
    if not isinstance(end, Ending):
        end = Ending(tracker, limit, more)
    end.tasks.add(task)


class Ending:
    """Stands in for the two methods by which one run is saved, and speaks when the last file is written."""

    def __init__(self, tracker: Any, limit: float, more: Mapping[str, str]) -> None:
        self.tasks: set[str] = set()
        self._tracker, self._limit, self._more = tracker, limit, more
        self._results, self._samples = tracker.save_results_aggregated, tracker.save_results_samples
        tracker.save_results_aggregated, tracker.save_results_samples = self.results, self.samples
        self._to_come: set[str] = set()
        self._unwritten: list[Path] = []
        self._replies = 0
        self._missing: Counter[str] = Counter()

    def results(self, results: dict[str, Any], samples: Any = None) -> None:
        """lm-eval's own, which only warns where it could not write."""
        self._results(results=results, samples=samples)
        self._to_come = {*results["configs"]}
        if not (path := self.folder / f"results_{self._date}.json").is_file():
            self._unwritten.append(path)

    def samples(self, task_name: str, samples: list[dict[str, Any]]) -> None:
        """lm-eval's own; after the last task's, the verdict on the run.

        Raises:
            SystemExit: files that could not be written, or fewer replies than figures could rest on.
        """
        if task_name in self.tasks:
            self._count(samples)
        self._samples(task_name=task_name, samples=samples)
        path = self.folder / f"samples_{task_name}_{self._date}.jsonl"
        if task_name in self.tasks and _lines(path) != len(samples):
            self._unwritten.append(path)
        self._to_come.discard(task_name)
        if not self._to_come:
            self._end()

    @property
    def folder(self) -> Path:
        """Where lm-eval writes the run."""
        return Path(self._tracker.output_path) / str(self._tracker.general_config_tracker.model_name_sanitized)

    @property
    def _date(self) -> str:
        return str(getattr(self._tracker, "date_id", None))  # set on the way, unless writing failed before

    def _count(self, samples: list[dict[str, Any]]) -> None:
        for arguments in (a for sample in samples for a in sample["arguments"]):
            self._replies += 1
            ended = Ended("", **arguments[2]) if len(arguments) > 2 else Ended("")
            if ended.failed:
                self._missing[ended.reason] += 1

    def _end(self) -> None:
        if self._unwritten:
            names = ", ".join(map(str, self._unwritten[:REASONS]))
            _leave(UNWRITTEN, f"lm-eval could not write the run ({names}); its warning stands above")
        if self._missing.total() > self._limit * self._replies:
            _leave(
                UNANSWERED,
                f"{self._lost()}; at most {self._limit:.0%} may be missing, so no figure of this run counts and no "
                f"table is shown. It is in {self.folder}; where the command had --use_cache, the same command asks "
                "only for what is missing",
            )
        atexit.register(_say, "\n".join(self._next()))

    def _lost(self) -> str:
        count, most = self._missing.total(), self._missing.most_common(REASONS)
        why = "; ".join(f"{n} × {reason}" for reason, n in most) + (" …" if len(self._missing) > len(most) else "")
        said = "nothing was answered" if count == self._replies else f"{count} of {self._replies} replies never came"
        return f"{said} ({why})"

    def _next(self) -> Iterator[str]:
        words = shlex.join(["helmbench", "score", str(self.folder), *(w for o in self._more.items() for w in o)])
        yield ""
        if self._missing:
            yield f"HELMbench: {self._lost()} and stand as unscored."
        yield "HELMbench: the figures above are what rules alone decide, and no score: no judge has read anything."
        yield f"Next: {words}"


def _lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return -1


def _leave(code: int, why: str) -> None:
    sys.stderr.write(f"helmbench: {why}\n")
    raise SystemExit(code)


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # whoever reads has gone
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _tracker(frame: FrameType | None) -> Any:
    """What lm-eval's command saves the run with; None where a program of its own called `evaluate`."""
    while frame is not None and frame.f_globals.get("__name__") != COMMAND:
        frame = frame.f_back
    return frame.f_locals.get("evaluation_tracker") if frame is not None else None
