"""A built dataset read back: whole and unedited, or refused with the file's name and what to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataset_builder.composing.compose import compose
from dataset_builder.prompts import CONTENT
from dataset_builder.reading.load import load
from dataset_builder.release import CONFIGS, Release, ReleaseError, find, open_release, parquet_path, plain_text, prune
from dataset_builder.schema import Row
from helmbench_common.hashing import canonical, digest, file_digest

ALL = "data/all/test-00000-of-00001.parquet"


@pytest.fixture
def copy(dataset: Path, tmp_path: Path) -> Path:
    """A build that a test may spoil."""
    return Path(shutil.copytree(dataset, tmp_path / "copy"))


def refusal(folder: Path) -> str:
    with pytest.raises(ReleaseError) as caught:
        open_release(folder)
    return str(caught.value)


def test_rows_come_back_as_they_were_composed(release: Release) -> None:
    """Nothing is lost or added on the way through parquet: every row, in order, equals the composed one."""
    content, _ = load(CONTENT)
    assert content
    assert list(release.rows.values()) == compose(content)
    assert list(release.rows) == [row.id for row in release.rows.values()]


def test_criteria_helplines_and_scoring_come_back(release: Release) -> None:
    """The shared tables and the scoring file equal what was authored."""
    content, _ = load(CONTENT)
    assert content
    assert release.criteria == {slug: criterion.row for slug, criterion in content.criteria.items()}
    assert release.helplines == list(content.helplines)
    assert release.scoring == content.scoring


@pytest.mark.parametrize("config", CONFIGS)
def test_every_table_has_the_manifests_rows(release: Release, config: str) -> None:
    """The manifest's counts are the files' counts."""
    assert len(release.records(config)) == release.manifest.rows[config] > 0


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


SAID = [
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


@pytest.mark.parametrize(("turns", "text"), SAID, ids=["a message", "without a system message", "a conversation"])
def test_text_is_what_the_user_says(turns: list[tuple[str, str | None]], text: str) -> None:
    """One message by itself; a conversation with its speakers, and a place for what nobody has said yet."""
    assert plain_text([{"role": role, "content": content} for role, content in turns]) == text


@pytest.mark.parametrize("config", [*CONFIGS[:6], "messages"])
def test_an_edited_text_is_refused_though_every_hash_was_made_again(copy: Path, config: str) -> None:
    """`text` repeats `messages`: a row in which it says anything else is named when the rows are read."""
    path = copy / parquet_path(config)
    table = pq.ParquetFile(path).read()
    texts = table["text"].to_pylist()
    place = table.column_names.index("text")
    pq.write_table(table.set_column(place, "text", pa.array([*texts[:-1], texts[-1] + "!"])), path)
    manifest = json.loads((copy / "MANIFEST.json").read_text(encoding="utf-8"))
    manifest["files"][parquet_path(config)] = file_digest(path)
    (copy / "MANIFEST.json").write_text(json.dumps(manifest), encoding="utf-8")
    edited = open_release(copy)
    last = table["id"].to_pylist()[-1]
    with pytest.raises(ReleaseError, match=rf"{config}/test.*: {last}: `text` differs from `messages`; build again"):
        edited.table(config)
    if config == "all":
        with pytest.raises(ReleaseError, match=f"{last}: `text` differs"):
            _ = edited.rows


def test_a_build_from_before_the_text_is_read_as_it_was(copy: Path, release: Release) -> None:
    """Same hashes, same rows: whoever has such a folder needs no other."""
    path = copy / ALL
    pq.write_table(pq.ParquetFile(path).read().drop_columns("text"), path)
    manifest = json.loads((copy / "MANIFEST.json").read_text(encoding="utf-8"))
    manifest["files"][ALL] = file_digest(path)
    (copy / "MANIFEST.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert open_release(copy).rows == release.rows


def test_no_reader_is_given_the_text(release: Release) -> None:
    """What a task puts to a model, and what its log keeps, is as it was before there was such a column."""
    assert "text" not in release.table("all").column_names + release.table("messages").column_names
    assert "text" in release.table("criteria").column_names  # a criterion's own


def test_a_missing_dataset_says_how_to_build_one(tmp_path: Path) -> None:
    """The folder asked for is named, and so is the command."""
    assert refusal(tmp_path / "nowhere") == (
        f"{tmp_path}/nowhere: no dataset found (MANIFEST.json is missing); run `helmbench build`, "
        "pass --dataset or set HELMBENCH_DATASET"
    )


@pytest.mark.parametrize(
    "name", ["README.md", "scoring.yaml", *[f"data/{c}/test-00000-of-00001.parquet" for c in CONFIGS]]
)
def test_one_changed_byte_is_seen_in_every_file(copy: Path, name: str) -> None:
    """A single flipped bit in the middle of any file is refused, with the file's name."""
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / name).write_bytes(data)
    message = refusal(copy)
    assert message.startswith(f"{copy / name}: sha256 is ")
    assert message.endswith("is incomplete; build the dataset again")


@pytest.mark.parametrize("kept", [0, 1000])
def test_a_truncated_parquet_is_refused(copy: Path, kept: int) -> None:
    """A copy that broke off is named before anything reads it."""
    (copy / ALL).write_bytes((copy / ALL).read_bytes()[:kept])
    assert refusal(copy).startswith(f"{copy / ALL}: sha256 is ")


@pytest.mark.parametrize("name", ["scoring.yaml", ALL])
def test_a_missing_file_is_refused(copy: Path, name: str) -> None:
    """What the manifest lists must be there."""
    (copy / name).unlink()
    assert refusal(copy) == f"{copy / name}: missing, though MANIFEST.json lists it; run `helmbench build`"


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff\xfe", b"[]", b"{}"], ids=["empty", "broken", "bytes", "list", "no fields"]
)
def test_an_unreadable_manifest_is_refused(copy: Path, text: bytes) -> None:
    """A manifest that isn't one is named, with the remedy."""
    (copy / "MANIFEST.json").write_bytes(text)
    message = refusal(copy)
    assert message.startswith(f"{copy / 'MANIFEST.json'}: ")
    assert message.endswith("; build again")


@pytest.mark.parametrize(("key", "value"), [("name", "other"), ("extra", 1), ("rows", "many")])
def test_a_manifest_of_another_shape_is_refused(copy: Path, key: str, value: object) -> None:
    """A foreign name, an unknown field and a wrong type are each named by field."""
    manifest = json.loads((copy / "MANIFEST.json").read_text(encoding="utf-8"))
    (copy / "MANIFEST.json").write_text(json.dumps(manifest | {key: value}), encoding="utf-8")
    assert refusal(copy).startswith(f"{copy / 'MANIFEST.json'}: {key}: ")


def test_a_manifest_that_lists_no_tables_is_refused(copy: Path) -> None:
    """A file that isn't listed is never hashed, so a list that lacks the tables vouches for nothing."""
    manifest = json.loads((copy / "MANIFEST.json").read_text(encoding="utf-8"))
    del manifest["files"][ALL]
    (copy / "MANIFEST.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert refusal(copy).startswith(f"{copy}")


def test_helmbench_dataset_names_the_folder(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable stands before ./helmbench, and an explicit folder before the variable."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(copy, tmp_path / "helmbench")
    shutil.copytree(copy, tmp_path / "third")
    assert find() == tmp_path / "helmbench"
    monkeypatch.setenv("HELMBENCH_DATASET", str(copy))
    assert open_release().path == copy
    assert open_release(tmp_path / "third").path == tmp_path / "third"


def test_a_wrong_helmbench_dataset_is_no_reason_to_take_another(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who names a folder is told that it is wrong, and never served a build that happens to lie near."""
    monkeypatch.chdir(tmp_path)
    copy.rename(tmp_path / "helmbench")
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
