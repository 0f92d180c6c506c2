"""What `helmbench calibrate` does for one judge: ask what is missing, measure, write both files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from dataset_builder.release import Release
from helmbench_common.files import write_whole
from judge.calibration import ratings
from judge.calibration.asking import Passes, examine_all, measured
from judge.calibration.known import FILE
from judge.calibration.ratings import RatingCalibration
from judge.calibration.text import text as labels_text
from judge.calibration.types import Calibration
from judge.llm.asking import Asker
from judge.replies.errors import RunError


class Measured(NamedTuple):
    """A judge's calibration and where it stands; of ratings too, where the release has a set for them."""

    labels: Calibration
    path: Path
    ratings: RatingCalibration | None
    ratings_path: Path


def calibrate_judge(release: Release, name: str, asker: Asker, passes: Passes, out: Path | None = None) -> Measured:
    """Measures one judge against the calibration sets. `out`: where to write (default: its folder below the asker's
    home).

    Raises:
        RunError: no calibration set, or questions without an answer where there is nobody to ask.
        EngineError, BudgetError: as `judge.llm.asking.ask`.
    """
    if not release.calibration:
        raise RunError(
            f"{release.path}: this dataset has no calibration set; measure against people's labels with --labels"
        )
    labels, rated = examine_all(release, name, asker, passes)
    found = measured(release, labels)
    path = out or asker.folder(found.judge) / FILE
    write_whole(path, found.model_dump_json(indent=1) + "\n")
    of_ratings = ratings.measured(release, rated.identity, rated.repeats) if release.rating_calibration else None
    if of_ratings:
        write_whole(path.parent / ratings.FILE, of_ratings.model_dump_json(indent=1) + "\n")
    return Measured(found, path, of_ratings, path.parent / ratings.FILE)


def text(found: Measured, release: Release) -> str:
    """What is told of it: the tables, and where the figures stand."""
    said = [f"{labels_text(found.labels, release)}\n{found.path}"]
    if found.ratings:
        said.append(f"{ratings.text(found.ratings)}\n{found.ratings_path}")
    return "\n\n".join(said)


def plain_values(found: Measured) -> dict[str, Any]:
    """Every figure, ready for JSON."""
    rated = found.ratings.model_dump(mode="json") if found.ratings else None
    return {"labels": found.labels.model_dump(mode="json"), "ratings": rated}
