"""A run by its place: what was replied, the release that it is judged on, and the folder where its judges' answers
stand.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from corpora.labelled import on_corpus
from dataset_builder.release import Release, open_release
from replies.collected import read_replies
from replies.errors import RunError
from replies.inspect_log import SUFFIX, read_log
from replies.lm_eval_log import read_run
from replies.run import Run

SCORED = ".scored"  # ends the home of replies that were collected elsewhere, and of a log of Inspect


class Place(NamedTuple):
    """Where a run stands: `run_dir`, the output of lm-eval or a log of Inspect, or `replies`, a file of replies
    collected elsewhere.

    `dataset`: the built dataset (None: where `dataset_builder.release.find` looks); `messages`: the labelled corpus
    that the run was made on, in the place of the dataset's messages.
    """

    run_dir: Path | None = None
    replies: Path | None = None
    dataset: Path | None = None
    messages: Path | None = None

    @property
    def words(self) -> str:
        """The options of a command that name it, to tell the user."""
        run = f"--replies {self.replies}" if self.replies else str(self.run_dir)
        return run + (f" --messages {self.messages}" if self.messages else "")


class Opened(NamedTuple):
    """A run, its release, and its home: the folder where its judges' folders stand, and scores go by default."""

    run: Run
    release: Release
    home: Path
    place: Place


def open_run(place: Place) -> Opened:
    """Reads a run.

    Raises:
        RunError: neither or both of `run_dir` and `replies`, or a run that can't be read. ReleaseError: no such
            dataset.
    """
    if (place.run_dir is None) == (place.replies is None):
        raise RunError("name either a RUN (the output of lm_eval, or a LOG.eval of Inspect) or --replies FILE")
    release = open_release(place.dataset)
    if place.messages:
        release = on_corpus(release, place.messages)
    if place.replies:
        return Opened(read_replies(place.replies, release), release, place.replies.with_suffix(SCORED), place)
    assert place.run_dir is not None
    run, home = logged(place.run_dir, release)
    return Opened(run, release, home, place)


def logged(place: Path, release: Release) -> tuple[Run, Path]:
    """The run that a runner logged, and its home.

    Raises:
        RunError: no log of any runner's, or one that can't be read.
    """
    if log := log_at(place):
        return read_log(log, release), log.with_suffix(SCORED)
    run = read_run(place, release)
    return run, run.path


def log_at(place: Path) -> Path | None:
    """The log of Inspect that a place is, or the one in it; None where it is no such place.

    Raises:
        RunError: a folder with several logs.
    """
    if place.suffix == SUFFIX:
        return place
    found = sorted(place.glob(f"*{SUFFIX}")) if place.is_dir() else []
    if len(found) > 1:
        raise RunError(f"{place}: holds {len(found)} logs of Inspect; name one of them, such as {found[-1]}")
    return found[0] if found else None


def run_at(home: Path, release: Release) -> Run:
    """The run whose home a folder is: that of lm-eval in it, or the file of replies or log of Inspect beside it.

    Raises:
        RunError: neither is there, or it can't be read.
    """
    if home.suffix == SCORED and (beside := home.with_suffix(".jsonl")).is_file():
        return read_replies(beside, release)
    if home.suffix == SCORED and (log := home.with_suffix(SUFFIX)).is_file():
        return read_log(log, release)
    if not any(home.glob("results_*.json")):
        raise RunError(
            f"{home}: holds scores and no run; scores written beside a run, without --out, are found with it"
        )
    return read_run(home, release)
