"""What `helmbench score` left, found and read back: RUN/scores/JUDGE/, a folder for each judge, with its verdicts and
their scorecard. RUN is the folder of an lm_eval run, or FILE.scored. An earlier layout had one judge's right in RUN.
"""

from __future__ import annotations

from collections.abc import Iterator
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


class Scoring(NamedTuple):
    """A run's scores by one judge. `folder`: where they stand; `home`: their run's, where they stand in it."""

    folder: Path
    home: Path
    card: Scorecard

    @property
    def results(self) -> Path | None:
        """The results file that was scored, where the home is a run of lm-eval and has it still."""
        source = self.card.source
        found = [p for p in self.home.glob("results_*.json") if source and p.name == source.file]
        return found[0] if found else None

    @property
    def told(self) -> str:
        """Whose scores they are, and of which replies."""
        source, (name, _, repeats) = self.card.source, judged_by(self.card.judge)
        asked = f", asked {repeats} times" if repeats > 1 else ""
        return f"by {clip(name, 80)}{asked}" + (f"; {source.file}, {source.samples} samples" if source else "")

    def taken(self, path: Path) -> str:
        """Which scores a path came to, to tell the user; empty where it names them itself."""
        return "" if self.folder == path else f"{path}: took the scores in {self.folder}, {self.told}"

    @property
    def typed(self) -> Path:
        """What to type for these scores and no others."""
        return self.folder / SCORECARD if self.folder == self.home else self.folder


def find(path: Path) -> Scoring:
    """The scores that a path names: of their folder or their scorecard these, of a run's folder or file the only ones.

    Raises:
        RunError: there are none, or several judges', which are listed.
    """
    if path.name == SCORECARD:
        return _scoring(path.parent)
    found = [_scoring(folder) for folder in _folders(path)]
    anew = {judged_by(s.card.judge) for s in found if s.folder != s.home}
    # The earlier layout's scores don't count where the same judge has a folder now.
    found = [s for s in found if s.folder != s.home or judged_by(s.card.judge) not in anew]
    if not found:
        if path.is_file():
            words = path if path.suffix == SUFFIX else f"--replies {path}"
            raise RunError(f"{path}: has no scores; run `helmbench score {words}` first")
        raise RunError(f"{path / SCORECARD}: missing; run `helmbench score {home_of(path)}` first")
    if len(found) > 1:
        named = (f"  {s.typed}  {s.told}" for s in found)
        raise RunError("\n".join([f"{path}: holds several scores; name one of these in its place:", *named]))
    return found[0]


def judged_by(judge: Judge) -> tuple[str, str | None, int]:
    """A judge's name, the hash of its prompt, and how often it was asked; of a panel, its language models."""
    repeats = max((m.repeats for m in judge.panel.members), default=1) if judge.panel else 1
    return judge.name, judge.prompt_hash, repeats


def _scoring(folder: Path) -> Scoring:
    return Scoring(folder, home_of(folder), card_in(folder))


def _folders(path: Path) -> Iterator[Path]:
    """Where the scores stand that a path may name."""
    homes = {path.with_suffix(SCORED)} if path.is_file() else {path, *(p.parent for p in path.rglob("results_*.json"))}
    for home in sorted(homes):
        folders = [home, *sorted((home / SCORES).glob("[!.]*"))]
        yield from (folder for folder in folders if (folder / SCORECARD).is_file())


def card_in(folder: Path) -> Scorecard:
    """A scored run's card.

    Raises:
        RunError: the folder was not scored, or the file is damaged.
    """
    path = folder / SCORECARD
    if not path.exists():
        raise RunError(f"{path}: missing; run `helmbench score {home_of(folder)}` first")
    try:
        return Scorecard.model_validate_json(read_bytes(path, "the scores of a run"))
    except FormatError as error:
        raise RunError(str(error)) from None
    except ValidationError as error:
        raise RunError(f"{path}: {': '.join(jsonl.first_problem(error))}; score the run again") from None


def verdicts_in(path: Path) -> list[Verdict]:
    """The verdicts of a file that scoring wrote.

    Raises:
        RunError: no such file, or a damaged line, which is named.
    """
    if not path.is_file():
        raise RunError(f"{path}: missing; run `helmbench score {home_of(path.parent)}` first")

    def bad(number: int, why: ValueError) -> NoReturn:
        raise RunError(f"{path}:{number}: {': '.join(jsonl.first_problem(why))}; score the run again")

    return [verdict for _, verdict in jsonl.models(path, Verdict, bad)]
