"""`helmbench export` on submissions as `helmbench submit` packs them: what it writes, and what it refuses."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from helmbench.cli.app import main
from support.submission_runs import MARKER, Opened, copied, judged_offline

from dataset_builder.release import Release

Export = Callable[..., int]  # a submission, where to, and more options


@pytest.fixture
def export(small: Release) -> Export:
    def run(folder: Path, out: Path, *more: str, form: str = "csv") -> int:
        return main(["export", str(folder), "--format", form, "--out", str(out), "--dataset", str(small.path), *more])

    return run


def test_verified_submissions_and_marked_demos_are_exported(
    export: Export, judged: Path, small: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every file is named and complete, without a word of a reply; a demo needs --demo, and its files are marked."""
    demo, scores = judged_offline(tmp_path / "run", small), Opened(judged).submission["scores"]
    capsys.readouterr()
    for form in ("csv", "every-eval-ever"):
        out, repo = tmp_path / form, ("--dataset-repo", "org/helmbench")
        assert export(judged, out / "a", *repo, form=form) == 0
        files = [p for p in out.rglob("*") if p.is_file()]
        assert sorted(capsys.readouterr().out.split()) == sorted(map(str, files))
        texts = [p.read_text(encoding="utf-8") for p in files]
        assert all(MARKER not in text.lower() and "demo" not in text.lower() for text in texts)
        if form == "csv":
            first = next(csv.DictReader(texts[0].splitlines()))
            assert (first["figure"], float(first["value"])) == ("composite", scores["composite"]["value"])
        assert export(demo, out / "demo", *repo, form=form) == 1
        assert "--demo exports it, marked as a demo" in capsys.readouterr().err
        assert not (out / "demo").exists()
        assert export(demo, out / "demo", *repo, "--demo", form=form) == 0
        assert "helmbench-demo" in capsys.readouterr().out


def test_what_can_not_be_exported_is_one_line(
    export: Export, judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed submission, no folder, no dataset, an --out that is a file: exit code 1 and a line that names it."""
    opened = Opened(copied(judged, tmp_path))
    opened.submission["scores"]["composite"]["value"] += 1
    (tmp_path / "taken").write_text("", encoding="utf-8")
    cases = [
        (opened.close(), tmp_path / "out", ("--demo",)),
        (tmp_path / "none", tmp_path / "out", ()),
        (judged, tmp_path / "out", ("--dataset", str(tmp_path))),
        (judged, tmp_path / "taken", ()),
    ]
    for folder, out, more in cases:
        assert export(folder, out, *more) == 1
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1
        assert str(tmp_path) in said
    assert not (tmp_path / "out").exists()
