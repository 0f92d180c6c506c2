"""A built dataset read back: whole and unedited, or refused with the file's name and what to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataset_builder.composing.compose import compose
from dataset_builder.reading.content_types import Content
from dataset_builder.release import CONFIGS, Release, ReleaseError, find, open_release, parquet_path, plain_text, prune
from dataset_builder.schema import Row
from helmbench_common.hashing import canonical, digest, file_digest

ALL = "data/all/test-00000-of-00001.parquet"


@pytest.fixture
def copy(small: Release, tmp_path: Path) -> Path:
    """A build that a test may spoil."""
    return Path(shutil.copytree(small.path, tmp_path / "copy"))


def refusal(folder: Path) -> str:
    with pytest.raises(ReleaseError) as caught:
        open_release(folder)
    return str(caught.value)


def test_what_was_authored_comes_back(release: Release, shipped: Content) -> None:
    """Nothing is lost or added on the way through parquet: every row, in order, equals the composed one; so do the
    shared tables and the scoring file.
    """
    assert list(release.rows.values()) == compose(shipped)
    assert list(release.rows) == [row.id for row in release.rows.values()]
    assert release.criteria == {slug: criterion.row for slug, criterion in shipped.criteria.items()}
    assert release.helplines == list(shipped.helplines)
    assert release.scoring == shipped.scoring


def test_prune_drops_only_absent_fields_of_checks(dataset: Path) -> None:
    """A record as parquet gives it has `text` and every column of every check; pruned, it is a valid row, and row-level
    nulls stay.
    """
    record = pq.read_table(dataset / ALL, partitioning=None).to_pylist()[0]
    with pytest.raises(ValueError, match="evaluation"):
        Row.model_validate(record)
    pruned = prune(record)
    assert Row.model_validate(pruned).id == record["id"]
    assert pruned.keys() == record.keys() - {"text"}


SAID: list[tuple[list[tuple[str, str | None]], str]] = [
    ([("system", "You help."), ("user", "Can't sleep.\n\nAgain.")], "Can't sleep.\n\nAgain."),
    ([("user", "Assistant: no")], "Assistant: no"),
    (
        [
            ("system", "You help."),
            ("user", "Hi."),
            ("assistant", "Hello."),
            ("user", "Well."),
            ("assistant", None),
            ("user", "Bye."),
        ],
        "User: Hi.\n\nAssistant: Hello.\n\nUser: Well.\n\nAssistant: [the model under test replies]\n\nUser: Bye.",
    ),
]


def test_helmbench_dataset_names_the_folder(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable stands before ./helmbench, and an explicit folder before the variable. A folder that is named
    wrongly is an error, never a reason to take a build that happens to lie near.
    """
    monkeypatch.chdir(tmp_path)
    shutil.copytree(copy, tmp_path / "helmbench")
    shutil.copytree(copy, tmp_path / "third")
    assert find() == tmp_path / "helmbench"
    monkeypatch.setenv("HELMBENCH_DATASET", str(copy))
    assert open_release().path == copy
    assert open_release(tmp_path / "third").path == tmp_path / "third"
    monkeypatch.setenv("HELMBENCH_DATASET", "typo")
    with pytest.raises(ReleaseError, match=r"^typo: no dataset found"):
        open_release()


def test_the_hashed_form_is_fixed() -> None:
    """Key order and spaces don't count, characters do, and NaN has no form; the digest is a literal that must never
    move.
    """
    assert canonical({"b": [1, None], "a": "é"}) == '{"a":"é","b":[1,null]}'
    assert digest({"b": [1, None], "a": "é"}) == digest({"a": "é", "b": [1, None]})
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))


def edited(copy: Path, **changes: Any) -> None:
    """Changes fields of the manifest, after hashing its files again."""
    manifest = json.loads((copy / "MANIFEST.json").read_text(encoding="utf-8"))
    manifest["files"] = {name: file_digest(copy / name) for name in manifest["files"]}
    (copy / "MANIFEST.json").write_text(json.dumps(manifest | changes), encoding="utf-8")


def test_text_is_what_the_user_says() -> None:
    """One message by itself; a conversation with its speakers, and a place for what nobody has said yet."""
    for turns, text in SAID:
        assert plain_text([{"role": role, "content": content} for role, content in turns]) == text


def test_the_text_of_a_row_is_checked_and_left_out(copy: Path, small: Release) -> None:
    """`text` repeats `messages`: a row in which it says anything else is named when the rows are read, though every
    hash was made again. No reader is given it; a build from before it existed has the same rows.
    """
    assert "text" not in small.table("all").column_names + small.table("messages").column_names
    for config in ("all", "messages"):
        path = copy / parquet_path(config)
        table = pq.ParquetFile(path).read()
        texts, place = table["text"].to_pylist(), table.column_names.index("text")
        pq.write_table(table.set_column(place, "text", pa.array([*texts[:-1], texts[-1] + "!"])), path)
        edited(copy)
        last = table["id"].to_pylist()[-1]
        wrong = rf"{config}/test.*: {last}: `text` differs from `messages`; build again"
        with pytest.raises(ReleaseError, match=wrong):
            open_release(copy).table(config)
        pq.write_table(table.drop_columns("text"), path)
        edited(copy)
    assert open_release(copy).rows == small.rows


def test_an_edited_cut_or_missing_file_is_refused(copy: Path) -> None:
    """One flipped bit in the middle of any file, a copy that broke off, and a file that is gone, each by name."""
    for name in ("README.md", "scoring.yaml", *map(parquet_path, CONFIGS)):
        data = (copy / name).read_bytes()
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 1
        for spoiled in (flipped, data[:1000]):
            (copy / name).write_bytes(spoiled)
            message = refusal(copy)
            assert message.startswith(f"{copy / name}: sha256 is ")
            assert message.endswith("is incomplete; build the dataset again")
        (copy / name).unlink()
        assert refusal(copy) == f"{copy / name}: missing, though MANIFEST.json lists it; run `helmbench build`"
        (copy / name).write_bytes(data)


def test_a_manifest_that_is_none_is_refused(copy: Path, tmp_path: Path) -> None:
    """No manifest, an unreadable one, a wrong field, and one that lists no tables, which would vouch for nothing."""
    path = copy / "MANIFEST.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    changes: dict[str, Any] = {"name": "other", "extra": 1, "rows": "many"}
    for key, value in changes.items():
        path.write_text(json.dumps(kept | {key: value}), encoding="utf-8")
        assert refusal(copy).startswith(f"{path}: {key}: ")
    edited(copy, **kept | {"files": {name: h for name, h in kept["files"].items() if name != ALL}})
    assert refusal(copy) == f"{path}: does not list {ALL}; build again"
    for data in (b"", b"{", b"\xff\xfe", b"[]", b"{}"):
        path.write_bytes(data)
        assert refusal(copy).startswith(f"{path}: ")
        assert refusal(copy).endswith("; build again")
    assert refusal(tmp_path / "nowhere") == (
        f"{tmp_path}/nowhere: no dataset found (MANIFEST.json is missing); run `helmbench build`, "
        "pass --dataset or set HELMBENCH_DATASET"
    )
