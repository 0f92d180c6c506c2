"""What `helmbench score` left in a run's folder, read back: its scorecard and its verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from pydantic import ValidationError

from dataset_builder import jsonl
from judge.schema import Scorecard, Verdict
from replies.errors import RunError

SCORECARD, VERDICTS, RATINGS = "scorecard.json", "verdicts.jsonl", "ratings.jsonl"


def card_in(folder: Path) -> Scorecard:
    """A scored run's card.

    Raises:
        RunError: the folder was not scored, or the file is damaged.
    """
    path = folder / SCORECARD
    if not path.is_file():
        raise RunError(f"{path}: missing; run `helmbench score {folder}` first")
    try:
        return Scorecard.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise RunError(f"{path}: {': '.join(jsonl.first_problem(error))}; score the run again") from None


def verdicts_in(path: Path) -> list[Verdict]:
    """The verdicts of a file that scoring wrote.

    Raises:
        RunError: no such file, or a damaged line, which is named.
    """
    if not path.is_file():
        raise RunError(f"{path}: missing; run `helmbench score {path.parent}` first")

    def bad(number: int, why: ValueError) -> NoReturn:
        raise RunError(f"{path}:{number}: {': '.join(jsonl.first_problem(why))}; score the run again")

    return [verdict for _, verdict in jsonl.models(path, Verdict, bad)]
