"""A run by its place: what was replied, the release that it is judged on, and the folder where its judges' answers
stand.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dataset_builder.corpora.labelled import on_corpus
from dataset_builder.release import Release, open_release
from helmbench_common.formats.refused import shown
from judge.replies.collected import read_replies
from judge.replies.errors import RunError
from judge.replies.inspect_log import SUFFIX, read_log
from judge.replies.lm_eval_log import read_run
from judge.replies.run import Run

SCORED = ".scored"  # ends the home of replies that were collected elsewhere, and of a log of Inspect
SCORES = "scores"  # in a home: a folder for each judge
NO_RESULTS = "--results chooses among the results files of an lm_eval run; this is none"


class Place(NamedTuple):
    """Where a run stands: `run_dir`, the output of lm-eval or a log of Inspect, or `replies`, a file of replies
    collected elsewhere.

    `dataset`: the built dataset (None: where `dataset_builder.release.find` looks); `messages`: the labelled corpus
    that the run was made on, in the place of the dataset's messages; `results`: which of several results files in
    `run_dir` (None: the newest).
    """

    run_dir: Path | None = None
    replies: Path | None = None
    dataset: Path | None = None
    messages: Path | None = None
    results: Path | None = None

    @property
    def path(self) -> Path:
        """The folder or file that was named.

        Raises:
            RunError: neither was, or both.
        """
        if (self.run_dir is None) == (self.replies is None):
            raise RunError("name either a RUN (the output of lm_eval, or a LOG.eval of Inspect) or --replies FILE")
        return self.run_dir or self.replies or Path()

    @property
    def words(self) -> str:
        """The options of a command that name it, to tell the user."""
        run = f"--replies {self.replies}" if self.replies else str(self.run_dir)
        own = {"--messages": self.messages, "--results": self.results}
        return " ".join([run, *(f"{option} {path}" for option, path in own.items() if path)])


class Opened(NamedTuple):
    """A run, its release, and its home: the folder where its judges' answers and their scores stand."""

    run: Run
    release: Release
    home: Path
    place: Place

    @property
    def taken(self) -> str:
        """Which of several results files was read, and how to take another; empty where there is one."""
        said = self.run.taken
        return f"{said}; --results FILE takes another" if said and not self.place.results else said


def open_run(place: Place) -> Opened:
    """Reads a run.

    Raises:
        RunError: neither or both of `run_dir` and `replies`, or a run that can't be read. ReleaseError: no such
            dataset.
    """
    path, release = place.path, open_release(place.dataset)
    if place.messages:
        release = on_corpus(release, place.messages)
    if place.replies and place.results:
        raise RunError(NO_RESULTS)
    run = read_replies(path, release) if place.replies else run_in(path, release, place.results)
    return Opened(run, release, home_for(run), place)


def home_for(run: Run) -> Path:
    """Where a run's answers and scores stand: in the folder of lm-eval's run, or in one beside a file.

    Raises:
        RunError: the folder beside a file is a link, which whoever made the run may have laid there.
    """
    if not run.path.is_file():
        return run.path
    home = run.path.with_suffix(SCORED)
    if home.is_symlink():
        raise RunError(f"{shown(home)}: is a link; expected a folder of its own")
    return home


def run_in(folder: Path, release: Release, results: Path | None = None) -> Run:
    """The run that a folder is of: the output of lm-eval, a log of Inspect or its folder, the home of a run, or the
    folder of its scores by one judge.

    Raises:
        RunError: there is none, or it can't be read.
    """
    home = home_of(folder)
    log = log_at(home)
    beside = home.with_suffix(".jsonl")
    if log is None and (home.suffix != SCORED or not beside.is_file()):
        return read_run(home, release, results)
    if results:
        raise RunError(NO_RESULTS)
    return read_log(log, release) if log else read_replies(beside, release)


def log_at(place: Path) -> Path | None:
    """The log of Inspect that a place is, whose home it is, or that is the only one in it; None where there is none.

    Raises:
        RunError: a folder with several logs.
    """
    if place.suffix == SUFFIX:
        return place
    if place.suffix == SCORED:
        beside = place.with_suffix(SUFFIX)
        return beside if beside.is_file() else None
    found = sorted(place.glob(f"*{SUFFIX}")) if place.is_dir() else []
    if len(found) > 1:
        raise RunError(f"{place}: holds {len(found)} logs of Inspect; name one of them, such as {found[-1]}")
    return found[0] if found else None


def run_at(home: Path, release: Release, results: Path | None = None) -> Run:
    """The run whose home a folder is: that of lm-eval in it, or the file of replies or log of Inspect beside it.

    Raises:
        RunError: neither is there, or it can't be read.
    """
    if not is_home(home):
        raise RunError(
            f"{home}: holds scores and no run; scores written beside a run, without --out, are found with it"
        )
    return run_in(home, release, results)


def home_of(folder: Path) -> Path:
    """The home of the run whose scores by one judge a folder holds; any other folder is returned as it is."""
    whole = folder.absolute()
    home = folder.parent.parent if folder.parent.name == SCORES else whole.parent.parent
    return home if whole.parent.name == SCORES and is_home(home) else folder


def is_home(folder: Path) -> bool:
    """Whether a folder is a run's home: lm-eval wrote its results right into it, or it is called after replies or a
    log.
    """
    beside = [folder.with_suffix(suffix) for suffix in (".jsonl", SUFFIX)] if folder.suffix == SCORED else []
    return any(path.is_file() for path in beside) or any(folder.glob("results_*.json"))
