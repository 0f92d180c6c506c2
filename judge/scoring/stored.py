"""Reads the output of `helmbench score`. RUN/scores/JUDGE/ contains a judge's verdicts and their scorecard; RUN is the
folder of an lm_eval run, or FILE.scored.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import NamedTuple, NoReturn

from pydantic import ValidationError

from helmbench_common import jsonl
from helmbench_common.formats.inert import clip
from helmbench_common.formats.plain_file import read_bytes
from helmbench_common.formats.refused import FormatError
from judge.replies.inspect_log import SUFFIX
from judge.replies.opening import SCORED, SCORES, home_of
from judge.replies.schema import RunError
from judge.schema import Judge, Scorecard, Verdict

SCORECARD, VERDICTS, RATINGS, SUMMARY = "scorecard.json", "verdicts.jsonl", "ratings.jsonl", "summary.md"
TALKS = "talk_verdicts.jsonl"


class Scoring(NamedTuple):
    """A run's scores by one judge. `folder`: where they are; `home`: the run's folder, if they are in one."""

    folder: Path
    home: Path
    card: Scorecard

    @property
    def results(self) -> Path | None:
        """The results file that was scored, if the home is an lm-eval run that still has it."""
        source = self.card.source
        found = [p for p in self.home.glob("results_*.json") if source and p.name == source.file]
        return found[0] if found else None

    @property
    def told(self) -> str:
        """The judge and the replies behind these scores, in words."""
        source, (name, _, repeats) = self.card.source, judged_by(self.card.judge)
        asked = f", asked {repeats} times" if repeats > 1 else ""
        return f"by {clip(name, 80)}{asked}" + (f"; {source.file}, {source.samples} samples" if source else "")

    def taken(self, path: Path) -> str:
        """Which scores a path resolved to, for the user; empty if the path is their folder."""
        return "" if self.folder == path else f"{path}: using the scores in {self.folder}, {self.told}"


def find(path: Path) -> Scoring:
    """The scores at a path: a folder of scores, its scorecard, or the folder or file of a run with one scoring.

    Raises:
        RunError: there are none, or several judges' scores, which are listed.
    """
    if path.name == SCORECARD:
        return _scoring(path.parent)
    homes = {path.with_suffix(SCORED)} if path.is_file() else {path, *(p.parent for p in path.rglob("results_*.json"))}
    folders = [f for home in sorted(homes) for f in (home, *sorted((home / SCORES).glob("[!.]*")))]
    found = [_scoring(folder) for folder in folders if (folder / SCORECARD).is_file()]
    if not found:
        if path.is_file():
            words = path if path.suffix == SUFFIX else f"--replies {path}"
            raise RunError(f"{path}: has no scores; run `helmbench score {words}` first")
        raise RunError(f"{path / SCORECARD}: missing; run `helmbench score {home_of(path)}` first")
    if len(found) > 1:
        named = (f"  {s.folder}  {s.told}" for s in found)
        raise RunError("\n".join([f"{path}: scored by several judges; pass one of these folders instead:", *named]))
    return found[0]


def judged_by(judge: Judge) -> tuple[str, str | None, int]:
    """A judge's name, the hash of its prompt, and how often it was asked; for a panel, its language models."""
    repeats = max((m.repeats for m in judge.panel.members), default=1) if judge.panel else 1
    return judge.name, judge.prompt_hash, repeats


def _scoring(folder: Path) -> Scoring:
    return Scoring(folder, home_of(folder), card_in(folder))


def card_in(folder: Path) -> Scorecard:
    """The scorecard in a folder of scores.

    Raises:
        RunError: the folder was not scored, or the file is damaged.
    """
    path = folder / SCORECARD
    if not path.exists():
        raise RunError(f"{path}: missing; run `helmbench score {home_of(folder)}` first")
    return read_card(path)


def read_card(path: Path) -> Scorecard:
    """A scorecard.

    Raises:
        RunError: the file can't be read, or isn't a scorecard.
    """
    try:
        return Scorecard.model_validate_json(read_bytes(path, "the scores of a run"))
    except FormatError as error:
        raise RunError(str(error)) from None
    except ValidationError as error:
        raise RunError(
            f"{path}: not a scorecard: {': '.join(jsonl.first_problem(error))}; score the run again"
        ) from None


def verdicts_in(path: Path) -> list[Verdict]:
    """The verdicts in a file written by scoring.

    Raises:
        RunError: no such file, or a damaged line, whose number is in the message.
    """
    if not path.is_file():
        raise RunError(f"{path}: missing; run `helmbench score {home_of(path.parent)}` first")

    def bad(number: int, why: ValueError) -> NoReturn:
        raise RunError(
            f"{path}:{number}: not a valid verdict ({': '.join(jsonl.first_problem(why))}); score the run again"
        )

    # The cyclic garbage collector repeatedly walks all verdicts read so far: without it, reading takes a third of the
    # time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return [verdict for _, verdict in jsonl.models(path, Verdict, bad)]
    finally:
        if collecting:
            gc.enable()
