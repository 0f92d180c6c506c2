"""Parquet that a stranger made: rows as pyarrow reads them, and one line for whatever is none or expands too far."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helmbench_common.formats import parquet_file
from helmbench_common.formats.refused import FormatError

COLUMNS = {"id": pa.string(), "n": pa.int64()}
ROWS = [{"id": f"a{n}", "n": n, "said": [{"role": "user", "content": "hello"}, None]} for n in range(2500)]


def write(path: Path, rows: list[dict[str, Any]], **options: Any) -> bytes:
    pq.write_table(pa.Table.from_pylist(rows), path, **options)
    return path.read_bytes()


def refused(path: Path) -> str:
    """What is said of a file."""
    with pytest.raises(FormatError) as caught:
        parquet_file.table(path, "rows", COLUMNS)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert said.isprintable()
    return said.removeprefix(f"{path}: ")


def test_rows_are_those_that_pyarrow_reads(tmp_path: Path) -> None:
    """With texts and numbers, nested and null, in several row groups, and without a row."""
    write(tmp_path / "a", ROWS, row_group_size=600, compression="zstd", dictionary_pagesize_limit=5000)
    found = parquet_file.table(tmp_path / "a", "rows", COLUMNS)
    assert found.equals(pq.ParquetFile(tmp_path / "a").read())
    assert max(b.num_rows for b in parquet_file.batches(tmp_path / "a", "rows")) == parquet_file.FEW
    pq.write_table(found.slice(0, 0), tmp_path / "none")
    assert parquet_file.table(tmp_path / "none", "rows", COLUMNS).schema == found.schema


def test_a_file_that_is_not_parquet(tmp_path: Path) -> None:
    """A pipe, no file, another format, an empty file, one that is cut off anywhere, an impossible footer."""
    path = tmp_path / "a"
    os.mkfifo(path)
    assert refused(path) == "is not a regular file; expected rows"
    path.unlink()
    assert refused(path) == "can't be read (No such file or directory); expected rows"
    footers = (b"\xff\xff\xff\x7fPAR1", b"\x10\0\0\0PAR1")
    others = (b"", b"PAR1", b"PAR1PAR1", b"id,n\na,1\n" * 9, b"PAR1" + bytes(99) + b"PARE")
    for raw in (*others, *(b"PAR1" + bytes(99) + footer for footer in footers)):
        path.write_bytes(raw)
        assert refused(path).startswith("can't be read as parquet ("), raw


def test_every_damaged_byte_of_a_small_file_is_read_or_said(tmp_path: Path) -> None:
    """Whatever byte is another: rows of the columns that were asked for, or one line."""
    raw = write(tmp_path / "good", ROWS[:20], compression="snappy")
    said: list[str] = []
    for at in range(0, len(raw), max(1, len(raw) // 400)):
        (tmp_path / "a").write_bytes(raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :])
        try:
            parquet_file.table(tmp_path / "a", "rows", COLUMNS)
        except FormatError as error:
            said.append(str(error))
    assert len(said) > 20
    assert all(map(str.isprintable, said))


def test_columns_are_those_that_were_asked_for(tmp_path: Path) -> None:
    """One that is missing, of another type, too many, or there twice."""
    write(tmp_path / "a", [{"id": "a"}])
    assert refused(tmp_path / "a") == "has no column 'n'; expected id, n"
    write(tmp_path / "a", [{"id": "a", "n": "1\x1b[2J"}])
    assert refused(tmp_path / "a") == "its column 'n' is string; expected int64"
    write(tmp_path / "a", [{f"c{n}": n for n in range(2001)}])
    assert refused(tmp_path / "a") == "has 2,001 columns; expected at most 2,000"
    pq.write_table(pa.table([["a"], ["b"]], names=["\x1bid", "\x1bid"]), tmp_path / "a")
    assert refused(tmp_path / "a") == "duplicate column '[U+001B]id'"
    # Arrow itself would return text that is no UTF-8, which fails only as a str.
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    pq.write_table(pa.table([bad, [1]], names=["id", "n"]), tmp_path / "a")
    assert "UTF8" in refused(tmp_path / "a")


@pytest.mark.parametrize("nested", [False, True], ids=["text", "nested"])
def test_a_text_that_is_stored_once_and_meant_very_often(tmp_path: Path, nested: bool) -> None:
    """A file of half a megabyte that says one of a hundred gigabytes: refused at its first rows, which of a column by
    itself are not copied.
    """
    once = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 2**20]))
    said = pa.ListArray.from_arrays(list(range(0, 100_001, 4)), once) if nested else once
    table = pa.table([["a"] * len(said), list(range(len(said))), said], names=["id", "n", "said"])
    pq.write_table(table, tmp_path / "a", compression="zstd", store_schema=False)
    assert (tmp_path / "a").stat().st_size < 600_000
    assert refused(tmp_path / "a").startswith(f"{100 if nested else 1000} rows expand to ")
