"""Stage 5: what is written, what its hashes cover, and what happens to what was there before."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
import yaml
from support.contents import edit, edited, read

from dataset_builder.composing.compose import compose
from dataset_builder.prompts import CONTENT, FIELDS
from dataset_builder.release import CONFIGS, Release, plain_text
from dataset_builder.schema import Manifest
from dataset_builder.writing import features
from dataset_builder.writing.write import write

HANDOFF, STRESS = "scenarios/P2-B3-S1.md", "scenarios/P4-B2-S1.md"


def build(root: Path, out: Path) -> Manifest:
    content = read(root)
    return write(content, compose(content), out)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def manifest_of(folder: Path) -> Manifest:
    return Manifest.model_validate_json((folder / "MANIFEST.json").read_bytes())


def test_the_same_content_gives_the_same_bytes(small: Release, content_copy: Path, tmp_path: Path) -> None:
    """A second build, from another folder into an empty one or over an earlier build, is the first one byte by byte.
    What an earlier build left and this one doesn't write is gone; nothing stays beside the folder.
    """
    out = tmp_path / "out"
    out.mkdir()
    build(content_copy, out)
    first, second = files(small.path), files(out)
    described = ["MANIFEST.json", "README.md", "croissant.json", "eval.yaml", "scoring.yaml", "baselines.yaml"]
    assert sorted(first) == sorted(
        [*described, *[f"prompts/{n}.md" for n in FIELDS], *[f"data/{c}/test-00000-of-00001.parquet" for c in CONFIGS]]
    )
    assert [name for name in first if first[name] != second.get(name)] == []
    assert len(second) == len(first)
    (out / "data" / "old.parquet").write_bytes(b"old")
    build(content_copy, out)
    assert files(out) == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["content", "out"]


CHANGES = {
    "a perturbation's words": (STRESS, "\n# PT2 (", "\nAnd more.\n# PT2 (", True, False, True),
    "the job": (STRESS, "You chat with the user", "You talk with the user", True, False, False),
    "a criterion": ("criteria/acts-at-once.md", "persona, tone and length", "tone and length", True, False, False),
    "a helpline's number": ("helplines.csv", "13 11 14", "13 11 15", True, False, True),
    "a rationale": (STRESS, "Most stress is not a crisis", "Much stress is not a crisis", False, True, False),
    "a helpline's source": ("helplines.csv", "[B] rtve.es 2022", "[B] rtve.es 2023", False, True, False),
    "the version": ("benchmark.yaml", "version: ", "version: 1", False, True, False),
    "the canary": ("benchmark.yaml", "CANARY c", "CANARY d", False, True, False),
    "a criterion that messages share": ("criteria/answers-the-need.md", "title: ", "title: Now ", True, False, True),
    "a criterion of messages only": ("criteria/sees-the-danger.md", "title: ", "title: Now ", False, False, True),
    "a protocol": ("protocols/self_harm.md", "# Level 3\n", "# Level 3\nAll in all: ", False, False, True),
    "a category": ("taxonomy/self_harm.md", "# Definition\n", "# Definition\nIn short: ", False, False, True),
    "that a message can't stand alone": (STRESS, "# PT11 (severity -6", "# PT11 (alone: no; severity -6", False, False,
        True),
    "how sure an interval is": ("scoring.yaml", "confidence: 0.95", "confidence: 0.90", True, False, True),
    "a baseline's label": ("baselines.yaml", "acts-at-once: FAIL-ignores", "acts-at-once: PARTIAL", True, False, False),
    "a remark in scoring.yaml": ("scoring.yaml", "points: ", "# why\npoints: ", False, False, False),
}  # fmt: skip


def test_configs_part_the_samples(dataset: Path) -> None:
    """Every sample is in `all`, and in just one of the pillars and `conversations`; live turns only in the last."""
    ids = {
        config: pq.read_table(dataset / f"data/{config}/test-00000-of-00001.parquet", partitioning=None)[
            "id"
        ].to_pylist()
        for config in CONFIGS[:6]
    }
    assert sorted(i for config in CONFIGS[:5] for i in ids[config]) == sorted(ids["all"])
    assert {i[:8] for i in ids["conversations"]} == {path.stem for path in (CONTENT / "conversations").glob("*.md")}
    assert [{i[:2] for i in ids[f"pillar{n}"]} for n in (1, 2, 3, 4)] == [{"P1"}, {"P2"}, {"P3"}, {"P4"}]


def sizes(out: Path) -> list[object]:
    card = yaml.safe_load((out / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    return [(info["splits"], info["download_size"]) for info in card["dataset_info"]]


def test_a_stale_cache_serves_no_old_rows(content_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One letter edited, all sizes and times the same, rebuilt into the same place: the same cache gives the new
    words.
    """
    monkeypatch.chdir(tmp_path)
    for path in [*content_copy.glob("scenarios/*.md"), *content_copy.glob("conversations/*.md")]:
        if path.stem != "P4-B2-S1":
            path.unlink()  # the fewer rows, the likelier that an edit leaves every size as it was

    def rebuilt(old: str, new: str) -> list[object]:
        edit(content_copy, STRESS, old, new)
        build(content_copy, tmp_path / "helmbench")
        return sizes(tmp_path / "helmbench")

    def served() -> str:
        for path in (tmp_path / "helmbench").rglob("*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))
        rows = datasets.load_dataset("helmbench", split="test", cache_dir=str(tmp_path / "cache"))
        return str(rows[rows["id"].index("P4-B2-S1-C1-U1-PT1")]["messages"][-1]["content"])[-15:]

    first = rebuilt("\n# PT2 (", "\nthrea deadlines\n# PT2 (")
    assert served() == "threa deadlines"
    words = [f"thre{letter} deadlines" for letter in "abcdfghijklmnopqrstuvwxyz"]
    alike = next(
        new for old, new in itertools.pairwise(words) if rebuilt(old, new) == first
    )  # compression decides which
    assert served() == alike


def test_columns_are_as_datasets_would_write_them() -> None:
    """The Arrow schema with its metadata, and the card's list of features."""
    for config in CONFIGS:
        schema = features.schema(config)
        read = datasets.Features.from_arrow_schema(schema)
        assert read.arrow_schema.equals(schema, check_metadata=True), config
        assert read._to_yaml_list() == features.listed(features.of(config))


def test_the_cards_sizes_are_true(dataset: Path) -> None:
    """num_bytes is the size in memory (to a hundredth), download_size the file's, num_examples the rows'."""
    card = yaml.safe_load((dataset / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert (
        [info["config_name"] for info in card["dataset_info"]]
        == [c["config_name"] for c in card["configs"]]
        == list(CONFIGS)
    )
    for info in card["dataset_info"]:
        path = dataset / f"data/{info['config_name']}/test-00000-of-00001.parquet"
        table = pq.read_table(path, partitioning=None)
        (split,) = info["splits"]
        assert (split["name"], split["num_examples"], info["download_size"]) == (
            "test",
            table.num_rows,
            path.stat().st_size,
        )
        assert split["num_bytes"] == info["dataset_size"] == pytest.approx(table.nbytes, rel=0.01)


def test_a_failing_build_leaves_the_old_one_whole(content_copy: Path, tmp_path: Path) -> None:
    """A build that breaks half-way (here: a file vanished after loading) changes no byte and leaves nothing behind."""
    build(content_copy, tmp_path / "out")
    before = files(tmp_path / "out")
    edit(content_copy, STRESS, "\n# PT2 (", "\nAnd more.\n# PT2 (")
    content = read(content_copy)
    (content_copy / "scoring.yaml").unlink()
    with pytest.raises(FileNotFoundError):
        write(content, compose(content), tmp_path / "out")
    assert files(tmp_path / "out") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["content", "out"]


def test_hashes_change_with_what_they_cover(small: Release, content_copy: Path, tmp_path: Path) -> None:
    """score_hash: all that a score depends on. messages_hash: the same for messages by themselves. prose_hash: the
    rest. None moves for another. The manifest says which scenario differs.
    """
    for what, (file, old, new, *moved) in CHANGES.items():
        with edited(content_copy, file, old, new):
            changed = build(content_copy, tmp_path / "edited")
        names = ("score_hash", "prose_hash", "messages_hash")
        assert [getattr(small.manifest, name) != getattr(changed, name) for name in names] == moved, what
        if what == "a perturbation's words":
            apart = [a["id"] for a, b in zip(changed.scenarios, small.manifest.scenarios, strict=True) if a != b]
            assert apart == ["P4-B2-S1"]


def test_load_dataset_finds_the_configs(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the folder that holds the build, `load_dataset("helmbench")` is `all`, and each config has the manifest's
    rows.
    """
    monkeypatch.chdir(dataset.parent)
    for config in (None, "conversations", "messages", "helplines"):
        found = datasets.load_dataset("helmbench", config, cache_dir=str(tmp_path / "cache"))
        counts = {split: rows.num_rows for split, rows in found.items()}
        assert counts == {"test": manifest_of(dataset).rows[config or "all"]}
        rows = found["test"]
        if "messages" in rows.column_names:
            assert rows.column_names[:2] == ["id", "text"]
            assert [plain_text(messages) for messages in rows["messages"]] == list(rows["text"])


def test_a_foreign_folder_is_refused_and_untouched(content_copy: Path, tmp_path: Path) -> None:
    """A folder that is no build isn't ours to replace, even if it has a MANIFEST.json of its own."""
    (tmp_path / "mine").mkdir()
    for name, text in (("notes.txt", "years of work"), ("MANIFEST.json", '{"name": "my web app"}')):
        (tmp_path / "mine" / name).write_text(text, encoding="utf-8")
        before = files(tmp_path / "mine")
        with pytest.raises(FileExistsError, match=r"mine: exists and is not a HELMbench build; .* nothing was written"):
            build(content_copy, tmp_path / "mine")
        assert files(tmp_path / "mine") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["content", "mine"]
