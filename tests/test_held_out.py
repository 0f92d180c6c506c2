"""A held-out split: the same checks together with the public content, a version of its own, and figures beside the
public ones.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from helmbench.cli.app import main
from support.reports import policy_reply, run

from dataset_builder.prompts import CONTENT
from dataset_builder.release import REPOSITORY, open_release
from judge.schema import Figure
from judge.scoring.held_out import difference

SETTINGS = "split: a\nreleased: 2026-12-01\ncanary: HELMBENCH HELD-OUT CANARY 00000000-1111-2222-3333-444444444444\n"
PRIVATE = "P4-B2-S1"


class Split:
    """A public content that lacks one scenario, and a private folder that holds it."""

    def __init__(self, content: Path, folder: Path) -> None:
        self.content, self.folder, self.out = content, folder, folder.parent / "private-build" / "helmbench"
        (folder / "scenarios").mkdir(parents=True)
        (content / "scenarios" / f"{PRIVATE}.md").rename(self.path)
        (folder / "held-out.yaml").write_text(SETTINGS, encoding="utf-8")

    @property
    def path(self) -> Path:
        return self.folder / "scenarios" / f"{PRIVATE}.md"

    @property
    def canary(self) -> str:
        return str(yaml.safe_load((self.content / "benchmark.yaml").read_text(encoding="utf-8"))["canary"])

    def build(self, out: Path | None = None) -> int:
        return main(
            ["build", "--content", str(self.content), "--held-out", str(self.folder), "--out", str(out or self.out)]
        )


@pytest.fixture
def split(content_copy: Path, tmp_path: Path) -> Split:
    """What only this scenario used would be an error of the public content, so its twin stays there under another
    name.
    """
    made = Split(content_copy, tmp_path / "private")
    twin = made.path.read_text(encoding="utf-8").replace(f"id: {PRIVATE}", "id: P4-B2-S2")
    # Every message of the twin is other words: its letters moved by one place, so that nothing nearly repeats.
    head, *parts = re.split(r"(?m)(?=^# PT)", twin)
    moved = [
        f"{lines[0]}\n" + "\n".join(lines[1:]).translate({c: c + 1 for c in range(ord("a"), ord("z"))})
        for lines in (p.split("\n") for p in parts)
    ]
    (content_copy / "scenarios" / "P4-B2-S2.md").write_text(head + "".join(moved), encoding="utf-8")
    return made


def test_a_split_is_the_private_scenarios_and_the_public_rest(split: Split) -> None:
    """Only private rows; version, canary and hash of its own; people, criteria and weights of the public content."""
    public_out = split.folder.parent / "public" / "helmbench"
    assert main(["build", "--content", str(split.content), "--out", str(public_out)]) == 0
    assert split.build() == 0
    public, private = open_release(public_out), open_release(split.out)
    assert {row.scenario for row in private.rows.values()} == {PRIVATE}
    assert PRIVATE not in {row.scenario for row in public.rows.values()}
    assert private.manifest.version == f"{public.manifest.version}+held-out.a"
    assert private.manifest.canary != public.manifest.canary
    assert {row.canary for row in private.rows.values()} == {private.manifest.canary}
    assert private.manifest.score_hash != public.manifest.score_hash
    card = (split.out / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    assert card.startswith("> **A held-out split. It is never published**")
    assert not (split.out / "eval.yaml").exists()  # nothing would register it anywhere
    assert (private.criteria, private.helplines, private.scoring) == (public.criteria, public.helplines, public.scoring)


def repeat_a_public_message(split: Split) -> None:
    def part(text: str) -> re.Match[str]:
        found = re.search(r"(?m)^# PT1 .*\n((?:(?!# ).*\n)+)", text)
        assert found
        return found

    public = part((split.content / "scenarios" / "P4-B2-S2.md").read_text(encoding="utf-8"))[1]
    text = split.path.read_text(encoding="utf-8")
    split.path.write_text(text.replace(part(text)[1], public, 1), encoding="utf-8")


def reuse_an_id(split: Split) -> None:
    shutil.copy(split.content / "scenarios" / "P4-B2-S2.md", split.folder / "scenarios" / "P4-B2-S2.md")


def swap(old: str, new: str, name: str) -> Callable[[Split], None]:
    def spoil(split: Split) -> None:
        path = split.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return spoil


ERRORS: dict[str, tuple[Callable[[Split], object], str]] = {
    "a public message, nearly repeated": (repeat_a_public_message,
        r"private/scenarios/P4-B2-S1\.md:\d+: PT1 nearly repeats P4-B2-S2-PT1 \(5-gram Jaccard 1\.00\)"),
    "a public id": (reuse_an_id, r"scenarios/P4-B2-S2\.md:\d+: id 'P4-B2-S2' is a public scenario's"),
    "no settings": (lambda s: (s.folder / "held-out.yaml").unlink(), r"held-out\.yaml:1: is missing"),
    "settings that are none": (lambda s: (s.folder / "held-out.yaml").write_text("- a\n", encoding="utf-8"),
        r"held-out\.yaml:1: is a list .*; expected a mapping .*: the keys split, released and canary"),
    "an unknown setting": (swap("split: a", "split: a\nsize: 3", "held-out.yaml"),
        r"held-out\.yaml:2: 'size': Extra inputs"),
    "the public canary": (lambda s: (s.folder / "held-out.yaml").write_text(
        re.sub(r"canary: .*", f"canary: {s.canary}", SETTINGS), encoding="utf-8"), "canary is the public one"),
    "weights of its own": (lambda s: (s.folder / "scoring.yaml").write_text("{}", encoding="utf-8"),
        r"scoring\.yaml:1: not part of a held-out split"),
    "a scenario that nothing reads": (lambda s: shutil.copy(s.path, s.path.with_suffix(".txt")),
        r"private/scenarios/P4-B2-S1\.txt:1: isn't read; in scenarios/ only NAME\.md is"),
    "no scenario": (lambda s: s.path.unlink(), r"private:1: has no scenario"),
}  # fmt: skip


def test_a_split_passes_the_same_checks(split: Split, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each error by file, and nothing is written."""
    shutil.copytree(split.folder, tmp_path / "kept")
    for what, (spoil, message) in ERRORS.items():
        spoil(split)
        assert split.build() == 1, what
        assert re.search(message, capsys.readouterr().err), what
        assert not split.out.exists(), what
        shutil.rmtree(split.folder)
        shutil.copytree(tmp_path / "kept", split.folder)


def test_nothing_private_goes_into_the_public_repository(
    split: Split, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the build nor the folder: a careless `git add` would publish it. Code that runs from elsewhere, such as
    an installed package, knows a checkout by its content.
    """
    assert split.build(REPOSITORY / "helmbench-private") == 1
    assert "--out lies in the public repository" in capsys.readouterr().err
    assert not (REPOSITORY / "helmbench-private").exists()
    assert main(["check", "--content", str(split.content), "--held-out", str(REPOSITORY / "docs")]) == 1
    assert "the split lies in the public repository" in capsys.readouterr().err
    content = tmp_path / "clone" / "dataset_builder" / "content"
    content.mkdir(parents=True)
    shutil.copy(CONTENT / "benchmark.yaml", content)
    assert split.build(tmp_path / "clone" / "private") == 1
    assert f"--out lies in the public repository {tmp_path / 'clone'}" in capsys.readouterr().err


# The figures beside each other


@pytest.fixture
def cards(split: Split, tmp_path: Path) -> tuple[Path, Path]:
    """scorecard.json of one policy on the public content and on the split."""
    assert main(["build", "--content", str(split.content), "--out", str(tmp_path / "public" / "helmbench")]) == 0
    assert split.build() == 0
    for name, folder in (("public", tmp_path / "public" / "helmbench"), ("private", split.out)):
        (tmp_path / f"{name}.json").write_text(
            run(open_release(folder), policy_reply, "core").card.model_dump_json(), encoding="utf-8"
        )
    return tmp_path / "public.json", tmp_path / "private.json"


def test_both_scores_stand_beside_each_other(
    cards: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table and the file have both figures, their difference, both hashes, and nothing of what was asked or
    answered.
    """
    for card in cards:
        edited(card, judge__approximate=True)  # as the offline judge is wherever it reads
    capsys.readouterr()
    assert main(["compare", "--held-out", *map(str, cards), "--json-file", str(tmp_path / "held-out.json")]) == 0
    said, text = capsys.readouterr().out, (tmp_path / "held-out.json").read_text(encoding="utf-8")
    found = json.loads(text)
    assert found["held_out"]["version"] == f"{found['public']['version']}+held-out.a"
    assert found["public"]["score_hash"][:12] in said
    assert found["held_out"]["score_hash"][:12] in said
    assert "judge offline-1 (approximate)" in said
    assert set(found["figures"]) >= {"composite", "sensitivity", "specificity", "keeps"}
    row = found["figures"]["keeps"]
    assert row["difference"]["value"] == row["held_out"]["value"] - row["public"]["value"]
    assert re.search(r"(?m)^keeps( +-?\d+\.\d\d( \(-?\d+\.\d\d to -?\d+\.\d\d\))?){3}$", said)
    assert re.search(r"(?m)^sees +-?\d+\.\d\d .*\) +– +–$", said)  # the split has no such scenario
    assert not re.search(rf"{PRIVATE}|PT\d|reply|message\"", text)


def edited(path: Path, **changes: object) -> None:
    """Changes fields of a scorecard, named by dotted path with __ between."""
    card = json.loads(path.read_text(encoding="utf-8"))
    for name, value in changes.items():
        *where, last = name.split("__")
        place = card
        for key in where:
            place = place[key]
        place[last] = value
    path.write_text(json.dumps(card), encoding="utf-8")


UNLIKE: dict[str, tuple[dict[str, object], str]] = {
    "another model": ({"model__name": "other"}, r"model is .* in the public run and .* in the held-out one"),
    "another tier": ({"dataset__tier": "lite"}, r"dataset\.tier is core in the public run and lite"),
    "another judge": ({"judge__name": "gpt"}, r"judge\.name is offline-1 in the public run and gpt"),
    "an incomplete run": ({"complete": False}, r"the held-out run is incomplete"),
    "a split of another version": (
        {"dataset__version": "9.0.0+held-out.a"},
        r"the runs used datasets \S+ and 9\.0\.0\+held-out\.a; expected",
    ),
    "two public runs": ({"dataset__version": "0.1.0"}, r"expected the public dataset first"),
    "no scorecard": ({"format": "other"}, r"private\.json: not a scorecard: format: "),
}


def test_runs_that_do_not_belong_together_are_refused(
    cards: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each reason by name, no file written; also the two in the wrong order, and a file that isn't there."""
    public, private = cards
    kept, none = private.read_bytes(), tmp_path / "none.json"
    command = ["compare", "--held-out"]
    for what, (changes, message) in UNLIKE.items():
        private.write_bytes(kept)
        edited(private, **changes)
        capsys.readouterr()
        assert main([*command, str(public), str(private), "--json-file", str(none)]) == 1, what
        assert re.search(message, capsys.readouterr().err), what
    private.write_bytes(kept)
    assert main([*command, str(private), str(public)]) == 1
    assert "then a held-out split of it" in capsys.readouterr().err
    assert main([*command, str(public), str(tmp_path / "nowhere.json")]) == 1
    assert not none.exists()


def test_the_interval_of_a_difference() -> None:
    """MOVER on two figures that are not paired: 40 [35, 46] and 30 [22, 37]."""
    public, held_out = Figure(value=40, low=35, high=46), Figure(value=30, low=22, high=37)
    found = difference(public, held_out)
    assert found["value"] == 30 - 40
    assert found["low"] == pytest.approx(-10 - (8**2 + 6**2) ** 0.5)
    assert found["high"] == pytest.approx(-10 + (7**2 + 5**2) ** 0.5)
    assert difference(Figure(value=None), held_out) == {"value": None, "low": None, "high": None}
    assert difference(Figure(value=40), held_out) == {"value": -10, "low": None, "high": None}
