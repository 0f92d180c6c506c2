"""A calibration set of a few rows, for tests of commands that ask a judge about each of them."""

from __future__ import annotations

from collections import defaultdict

import pytest

from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow


def keep_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits every release to two calibration rows of each label under each criterion and category."""

    def few(name: str) -> property:
        full = Release.__dict__[name].func

        def rows(release: Release) -> list[CalibrationRow]:
            if f"few_{name}" not in release.__dict__:
                kept: dict[tuple[str, str], list[CalibrationRow]] = defaultdict(list)
                for row in full(release):
                    kept[row.criterion, row.label].append(row)
                release.__dict__[f"few_{name}"] = [row for own in kept.values() for row in own[:2]]
            found: list[CalibrationRow] = release.__dict__[f"few_{name}"]
            return found

        return property(rows)

    for name in ("calibration", "rating_calibration"):
        monkeypatch.setattr(Release, name, few(name))
