"""Reads a parquet file's rows within limits: rejects data that expands too far before copying it.

A one-kilobyte file can claim to repeat a long text a billion times. So a text column is read as stored, each text
once, and its size is computed first. Arrow can't do that for texts inside lists: these are read a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from helmbench_common.formats.plain_file import open_plain
from helmbench_common.formats.refused import FormatError, shown

COLUMNS, NESTED, FOOTER = 2_000, 50, 16 * 2**20  # columns, their depth, and bytes of the footer
EXPANDED = 2**30  # bytes of a whole table
BATCH, ROWS, FEW = 2**28, 1_000, 100  # bytes and rows in memory at once; rows if texts are inside lists
LIMITS: dict[str, Any] = {
    "thrift_string_size_limit": FOOTER,
    "thrift_container_size_limit": FOOTER,
    "schema_depth_limit": NESTED,
}

Columns = Mapping[str, pa.DataType]


def batches(path: Path, expected: str, columns: Columns | None = None) -> Iterator[pa.RecordBatch]:
    """A file's rows in order, at most `ROWS` at once. `expected`: a description of the file. `columns`: the required
    columns.

    Raises:
        FormatError: it isn't parquet, has other columns, is truncated or damaged, or expands too far.
    """
    with _opened(path, expected, columns or {}) as (file, schema):
        yield from _read(file, schema, path, expected)


def table(path: Path, expected: str, columns: Columns | None = None) -> pa.Table:
    """All rows of a file, at most `EXPANDED` bytes; raises the same errors as `batches`."""
    found: list[pa.RecordBatch] = []
    size = 0
    with _opened(path, expected, columns or {}) as (file, schema):
        for batch in _read(file, schema, path, expected):
            found.append(batch)
            size += batch.nbytes
            if size > EXPANDED:
                raise FormatError(path, None, f"expands to more than {EXPANDED:,} bytes; expected {expected}")
        return pa.Table.from_batches(found, schema)


def _read(file: pq.ParquetFile, schema: pa.Schema, path: Path, expected: str) -> Iterator[pa.RecordBatch]:
    rows = FEW if any(map(pa.types.is_nested, schema.types)) else ROWS
    for batch in file.iter_batches(batch_size=rows):
        if (size := batch.nbytes + sum(map(_copied, batch.columns))) > BATCH:
            what = f"{batch.num_rows} rows expand to {size:,} bytes; expected {expected}, at most {BATCH:,} in them"
            raise FormatError(path, None, what)
        decoded = batch.cast(schema)
        decoded.validate(full=True)  # otherwise, texts that aren't UTF-8 would fail on use
        yield decoded


def _copied(array: pa.Array) -> int:
    """The bytes that a text column, read as stored, takes once every occurrence of a text is copied."""
    if not pa.types.is_dictionary(array.type):
        return 0
    lengths = pc.take(pc.binary_length(array.dictionary), array.indices)
    return pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0


@contextmanager
def _opened(path: Path, expected: str, columns: Columns) -> Iterator[tuple[pq.ParquetFile, pa.Schema]]:
    """The file, with texts read as stored, and the schema of its rows. Turns pyarrow errors into FormatErrors."""
    with open_plain(path, expected) as handle:
        try:
            plain = pq.ParquetFile(handle, **LIMITS)
            _check_columns(plain, path, columns)
            own = map(plain.metadata.schema.column, range(plain.metadata.num_columns))
            texts = [c.path for c in own if c.physical_type == "BYTE_ARRAY" and c.path == c.name]
            yield pq.ParquetFile(handle, read_dictionary=texts, pre_buffer=False, **LIMITS), plain.schema_arrow
        except FormatError:
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
            # Arrow's messages quote values from the file, and lines of Arrow's source.
            what = next(iter(str(error).splitlines()), "") or type(error).__name__
            raise FormatError(
                path, None, f"can't be read as parquet ({shown(what)[:200]}); expected {expected}"
            ) from None


def _check_columns(file: pq.ParquetFile, path: Path, columns: Columns) -> None:
    schema, count = file.schema_arrow, file.metadata.num_columns
    if count > COLUMNS:
        raise FormatError(path, None, f"has {count:,} columns; expected at most {COLUMNS:,}")
    if name := next((n for n in schema.names if schema.names.count(n) > 1), None):
        raise FormatError(path, None, f"duplicate column '{shown(name)}'")
    for name, kind in columns.items():
        if name not in schema.names:
            raise FormatError(path, None, f"has no column '{name}'; expected {', '.join(columns)}")
        if (found := schema.field(name).type) != kind:
            raise FormatError(path, None, f"its column '{name}' is {shown(str(found))[:200]}; expected {kind}")
