"""`helmbench export` on submissions as `helmbench submit` packs them: what it writes, and what it refuses."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import reference_policies
import yaml
from helmbench.cli.app import main
from huggingface_hub import parse_eval_result_entries
from support import submission_runs

from dataset_builder.composing.compose import compose
from dataset_builder.reading.load import load
from dataset_builder.release import Release, open_release
from dataset_builder.schema import Row
from dataset_builder.writing.write import write
from leaderboard.exports import FORMATS
from leaderboard.schema import Verified
from leaderboard.submit.pack import make

JUDGE = "judge-2026-01-01"


@dataclass(frozen=True)
class Packed:
    release: Release
    demo: Path
    judged: Path
    verified: Verified

    def export(self, folder: Path, form: str, out: Path, *more: str) -> int:
        return main(
            ["export", str(folder), "--format", form, "--out", str(out), "--dataset", str(self.release.path), *more]
        )


def as_policy(row: Row, turn: int, repeat: int) -> str:
    """The keyword policy, to the messages as they are authored."""
    messages = [{"role": m.role, "content": m.content} for m in row.messages if m.content is not None]
    return reference_policies.reply("keyword", messages, 0)


@pytest.fixture(scope="module")
def packed(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """Two submissions of one run of an open model on the core tier: judged offline, and by a language model that was
    calibrated.
    """
    root = tmp_path_factory.mktemp("packed")
    content, errors = load(small_content)
    assert content, errors.lines()
    write(content, compose(content), root / "helmbench")
    release = open_release(root / "helmbench")
    about = submission_runs.ABOUT._replace(
        model=submission_runs.ABOUT.model.model_copy(update={"access": "open_weights"})
    )
    # What a trivial policy says is known, so that the demo has a score.
    policy = submission_runs.log(root / "policy", release, "core", as_policy)
    submission_runs.score(policy, release)
    demo = make(policy, release, about, root / "submissions", name="demo")
    run = submission_runs.log(root / "run", release, "core")
    submission_runs.answer(run, release, JUDGE)
    submission_runs.measure(run, release, JUDGE)
    submission_runs.score(run, release, "--judge", JUDGE)
    judged = make(run, release, about, root / "submissions", name="judged")
    assert (demo.verified.state, judged.verified.state) == ("demo", "verified")
    return Packed(release, demo.folder, judged.folder, judged.verified)


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
        for name, text in files.items():
            assert submission_runs.MARKER not in text.lower()
            assert "demo" not in (name + text).lower()
        assert packed.export(packed.demo, form, out / "demo", *repo) == 1
        assert "--demo exports it, marked as a demo" in capsys.readouterr().err
        assert not (out / "demo").exists()
        assert packed.export(packed.demo, form, out / "demo", *repo, "--demo") == 0
        assert all("helmbench-demo" in name for name in everything(out / "demo"))
        capsys.readouterr()


def test_its_figures_are_those_that_verifying_gives(packed: Packed, tmp_path: Path) -> None:
    """The Hub's values, Every Eval Ever's and CSV's composite are the recomputed scorecard's."""
    for form in FORMATS:
        assert packed.export(packed.judged, form, tmp_path, "--dataset-repo", "org/helmbench") == 0
    card = packed.verified.scorecard
    assert card
    entries = parse_eval_result_entries(
        yaml.safe_load((tmp_path / ".eval_results" / "helmbench.yaml").read_text(encoding="utf-8"))
    )
    assert {e.task_id: e.value for e in entries} == {
        name: round(figure.value or 0.0, 2)
        for name, figure in [*card.headlines.items(), ("composite", card.composite)]
        if name != "composite" or all(f.state != "breached" for f in card.floors)
    }
    (aggregate,) = tmp_path.glob("data/helmbench/acme/north-2/*.json")
    first = json.loads(aggregate.read_text(encoding="utf-8"))["evaluation_results"][0]
    assert (first["evaluation_result_id"], first["score_details"]["score"]) == ("composite", card.composite.value)
    assert first["metric_config"]["llm_scoring"]["judges"][0]["model_info"]["id"] == JUDGE
    with (tmp_path / "helmbench.csv").open(encoding="utf-8") as file:
        assert float(next(csv.DictReader(file))["value"]) == card.composite.value


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
