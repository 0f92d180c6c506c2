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
from replies.lm_eval_log import read_run
from replies.run import Run

SCORED = ".scored"  # ends the home of replies that were collected elsewhere


class Place(NamedTuple):
    """Where a run stands: `run_dir`, the output of lm-eval, or `replies`, a file of replies collected elsewhere.

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
        raise RunError("name either a RUN_DIR of lm_eval or --replies FILE")
    release = open_release(place.dataset)
    if place.messages:
        release = on_corpus(release, place.messages)
    if place.replies:
        return Opened(read_replies(place.replies, release), release, place.replies.with_suffix(SCORED), place)
    assert place.run_dir is not None
    run = read_run(place.run_dir, release)
    return Opened(run, release, run.path, place)


def run_at(home: Path, release: Release) -> Run:
    """The run whose home a folder is: that of lm-eval in it, or the file of replies beside it.

    Raises:
        RunError: neither is there, or it can't be read.
    """
    beside = home.with_suffix(".jsonl")
    if home.suffix == SCORED and beside.is_file():
        return read_replies(beside, release)
    if not any(home.glob("results_*.json")):
        raise RunError(
            f"{home}: holds scores and no run; scores written beside a run, without --out, are found with it"
        )
    return read_run(home, release)
