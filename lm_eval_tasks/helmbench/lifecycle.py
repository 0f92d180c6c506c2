"""The start and end of a run of lm-eval's command line: checks settings, avoids paying for replies that would be lost,
and reports in the last lines and exit code whether anything was answered and what to do next.

lm-eval exits with 0 even if requests failed or its files weren't written, and it has no hook at its end. So two methods
of the object that saves a run are replaced on the instance; the second is called once per task, last before the tables.
Callers of lm-eval's Python API are unaffected.
"""

from __future__ import annotations

import atexit
import difflib
import math
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from lm_eval_tasks.helmbench.api_models import Completion

COMMAND = "lm_eval._cli.run"  # the module of lm-eval's command line
UNWRITTEN, UNANSWERED = 3, 5  # exit codes, as in `helmbench`
DETECT = "helmbench_detect"  # its figures need no judge
REASONS = 3  # number of reasons that an error lists
TRANSCRIPT = "transcript"
SETTINGS = {
    "helmbench_condition": "a file with a system prompt of your own",
    "helmbench_dataset": "the folder of a built dataset",
    "helmbench_messages": "the folder of a labelled corpus of your own",
    "helmbench_patience": "seconds of waiting per request",
    "helmbench_prompt": f"{TRANSCRIPT}, for a base model that has a chat template",
    "helmbench_repeats": "how often each sample is asked",
    "helmbench_user": "the model that plays the users of talks",
    "helmbench_user_url": "the address of its server",
}
SIMILAR = 0.8  # difflib's ratio: `helmbnech_condition` counts as a typo, `model` doesn't


def check_settings(metadata: Mapping[str, Any]) -> None:
    """Checks `--metadata`: a misspelled name would be ignored, and the run would measure the wrong prompt.

    Raises:
        SystemExit: a name close to one of ours, or an invalid value. Other names are lm-eval's.
    """
    for name in metadata:
        low = str(name).lower()
        near = difflib.get_close_matches(low, SETTINGS, n=1, cutoff=0.0 if low.startswith("helmbench") else SIMILAR)
        if low == "condition":  # the run's record of the prompt, which users can't set
            near = ["helmbench_condition"]
        if near and name not in SETTINGS:
            listed = "; ".join(f"{known} ({means})" for known, means in SETTINGS.items())
            raise SystemExit(
                f"helmbench: --metadata: unknown setting {name!r}; did you mean {near[0]!r}? Known are {listed}"
            )
    prompt, patience = metadata.get("helmbench_prompt", TRANSCRIPT), metadata.get("helmbench_patience", 0)
    if prompt != TRANSCRIPT:
        raise SystemExit(f"helmbench: helmbench_prompt is {prompt!r}; expected {TRANSCRIPT!r}, or leave it out")
    if not isinstance(patience, int | float) or isinstance(patience, bool) or not 0 <= patience < math.inf:
        raise SystemExit(f"helmbench: helmbench_patience is {patience!r}; expected seconds, 0 or more")


def watch(frame: FrameType, task: str, limit: float, more: Mapping[str, str]) -> None:
    """Checks that lm-eval will save the replies, and watches for the end of a command-line run.

    `frame`: that of lm-eval's `evaluate`; `limit`: the share of replies that may be missing; `more`: options for
    `helmbench score`, in addition to the run's folder.

    Raises:
        SystemExit: the run couldn't be scored.
    """
    if frame.f_locals.get("log_samples", True) is False:
        raise SystemExit(
            "helmbench: --log_samples is missing: without the replies nothing can be scored; "
            "add --log_samples --output_path runs (in Python: log_samples=True)"
        )
    caller: FrameType | None = frame
    while caller is not None and caller.f_globals.get("__name__") != COMMAND:
        caller = caller.f_back
    tracker = caller.f_locals.get("evaluation_tracker") if caller is not None else None
    if tracker is None:
        return
    out = Path(tracker.output_path)
    if out.suffix == ".json":
        raise SystemExit(f"helmbench: --output_path {out}: `helmbench score` reads folders; name one, such as runs")
    there = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not there.is_dir():
        raise SystemExit(f"helmbench: --output_path {out}: {there} is a file; name a folder, such as runs")
    end = getattr(tracker.save_results_samples, "__self__", None)
    if not isinstance(end, Ending):
        end = Ending(tracker, limit, more)
    end.tasks.add(task)


class Ending:
    """Replaces the two methods that save a run, and reports once the last file is written."""

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
        """Calls lm-eval's method, which only warns if it can't write."""
        self._results(results=results, samples=samples)
        self._to_come = {*results["configs"]}
        if not (path := self.folder / f"results_{self._date}.json").is_file():
            self._unwritten.append(path)

    def samples(self, task_name: str, samples: list[dict[str, Any]]) -> None:
        """Calls lm-eval's method; after the last task, reports on the run.

        Raises:
            SystemExit: files couldn't be written, or too many replies are missing.
        """
        ours = task_name in self.tasks
        for arguments in (a for sample in samples if ours for a in sample["arguments"]):  # lm-eval changes them
            self._replies += 1
            completion = Completion("", **arguments[2]) if len(arguments) > 2 else Completion("")
            if completion.failed:
                self._missing[completion.reason] += 1
        self._samples(task_name=task_name, samples=samples)
        path = self.folder / f"samples_{task_name}_{self._date}.jsonl"
        if ours and _lines(path) != len(samples):
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
        return str(getattr(self._tracker, "date_id", None))  # not set if writing failed before

    def _end(self) -> None:
        if self._unwritten:
            names = ", ".join(map(str, self._unwritten[:REASONS]))
            _exit(UNWRITTEN, f"lm-eval could not write the run ({names}); see its warning above")
        if self._missing.total() > self._limit * self._replies:
            _exit(
                UNANSWERED,
                f"{self._lost()}; at most {self._limit:.0%} may be missing, so no figure of this run counts and no "
                f"table is shown. It is in {self.folder}; if you used --use_cache, the same command asks only for what "
                "is missing",
            )
        atexit.register(_print, "\n".join(self._next()))

    def _lost(self) -> str:
        count, most = self._missing.total(), self._missing.most_common(REASONS)
        why = "; ".join(f"{n} × {reason}" for reason, n in most) + (" …" if len(self._missing) > len(most) else "")
        what = "nothing was answered" if count == self._replies else f"{count} of {self._replies} replies are missing"
        return f"{what} ({why})"

    def _next(self) -> Iterator[str]:
        words = shlex.join(["helmbench", "score", str(self.folder), *(w for o in self._more.items() for w in o)])
        yield ""
        if self._missing:
            yield f"HELMbench: {self._lost()} and count as unscored."
        final = "final: rules decide everything in this task."
        partial = "what rules alone decide, not a score: no judge has read the replies."
        yield f"HELMbench: the figures above are {final if self.tasks == {DETECT} else partial}"
        yield f"Next: {words}"


def _lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return -1


def _exit(code: int, why: str) -> None:
    sys.stderr.write(f"helmbench: {why}\n")
    raise SystemExit(code)


def _print(text: str) -> None:
    with suppress(OSError, ValueError):  # standard output may be closed
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
