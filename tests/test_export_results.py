"""`helmbench export` on submissions as `helmbench submit` packs them: what it writes, and what it refuses."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import pytest
import reference_policies
from helmbench.cli.app import main
from support import submission_runs

from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge.schema import Figure
from leaderboard.exports import FORMATS
from leaderboard.submit.pack import make

JUDGE = "judge-2026-01-01"


@dataclass(frozen=True)
class Packed:
    release: Release
    demo: Path
    judged: Path
    composite: Figure

    def export(self, folder: Path, form: str, out: Path, *more: str) -> int:
        return main(
            ["export", str(folder), "--format", form, "--out", str(out), "--dataset", str(self.release.path), *more]
        )


def as_policy(row: Row, turn: int, repeat: int) -> str:
    """The keyword policy, to the messages as they are authored."""
    messages = [{"role": m.role, "content": m.content} for m in row.messages if m.content is not None]
    return reference_policies.reply("keyword", messages, 0)


@pytest.fixture(scope="module")
def packed(small: Release, tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """Two submissions of one run of an open model on the core tier: judged offline, and by a language model that was
    calibrated.
    """
    root = tmp_path_factory.mktemp("packed")
    model = submission_runs.ABOUT.model.model_copy(update={"access": "open_weights"})
    about = submission_runs.ABOUT._replace(model=model)
    # What a trivial policy says is known, so that the demo has a score.
    policy = submission_runs.log(root / "policy", small, "core", as_policy)
    submission_runs.score(policy, small)
    demo = make(policy, small, about, root / "submissions", name="demo")
    run = submission_runs.log(root / "run", small, "core")
    submission_runs.answer(run, small, JUDGE)
    submission_runs.measure(run, small, JUDGE)
    submission_runs.score(run, small, "--judge", JUDGE)
    judged = make(run, small, about, root / "submissions", name="judged")
    assert (demo.verified.state, judged.verified.state) == ("demo", "verified")
    assert judged.verified.scorecard
    return Packed(small, demo.folder, judged.folder, judged.verified.scorecard.composite)


def everything(folder: Path) -> dict[str, str]:
    return {
        p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8")
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def test_verified_submissions_and_marked_demos_are_exported(
    packed: Packed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every file is named and complete, without a word of a reply; a demo needs --demo, and its files are marked."""
    for form in FORMATS:
        out, repo = tmp_path / form, ("--dataset-repo", "org/helmbench")
        assert packed.export(packed.judged, form, out / "a", *repo) == 0
        files = everything(out / "a")
        assert sorted(capsys.readouterr().out.split()) == sorted(str(out / "a" / name) for name in files)
        if form == "csv":
            first = next(csv.DictReader(files["helmbench.csv"].splitlines()))
            assert packed.composite.value is not None
            assert (first["figure"], float(first["value"])) == ("composite", packed.composite.value)
        for name, text in files.items():
            assert submission_runs.MARKER not in text.lower()
            assert "demo" not in (name + text).lower()
        assert packed.export(packed.demo, form, out / "demo", *repo) == 1
        assert "--demo exports it, marked as a demo" in capsys.readouterr().err
        assert not (out / "demo").exists()
        assert packed.export(packed.demo, form, out / "demo", *repo, "--demo") == 0
        assert all("helmbench-demo" in name for name in everything(out / "demo"))
        capsys.readouterr()


def test_what_can_not_be_exported_is_one_line(
    packed: Packed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed submission, no folder, no dataset, an --out that is a file: exit code 1 and a line that names it."""
    opened = submission_runs.Opened(submission_runs.copied(packed.judged, tmp_path))
    opened.submission["scores"]["composite"]["value"] += 1
    (tmp_path / "taken").write_text("", encoding="utf-8")
    cases = [
        (opened.close(), tmp_path / "out", ("--demo",)),
        (tmp_path / "none", tmp_path / "out", ()),
        (packed.judged, tmp_path / "out", ("--dataset", str(tmp_path))),
        (packed.judged, tmp_path / "taken", ()),
    ]
    for folder, out, more in cases:
        assert packed.export(folder, "csv", out, *more) == 1
        said = capsys.readouterr().err
        assert len(said.splitlines()) == 1
        assert str(tmp_path) in said
    assert not (tmp_path / "out").exists()
