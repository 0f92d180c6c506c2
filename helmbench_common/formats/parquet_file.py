"""A parquet file's rows, after its ends, its footer and its columns were looked at: what expands too far is not read.

A file of a kilobyte can say that it holds a long text a billion times. So a column of texts is taken as the file stores
it, each text once, and counted before any is copied. Of texts inside lists Arrow can't do that: these are read a few
rows at a time, and it ends by itself at 2 GiB of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from helmbench_common.formats.plain_file import open_plain
from helmbench_common.formats.refused import FormatError, shown

MAGIC = b"PAR1"  # how a file begins and ends
ENDS = 2 * len(MAGIC) + 4  # bytes of both, and of the footer's length
FOOTER = 16 * 2**20  # bytes
COLUMNS, NESTED, GROUPS = 2_000, 50, 100_000  # a file's columns, how deep they stand, and its row groups
# As the footer states them, of one row group: bytes of its columns, and their values.
EXPANDED, VALUES = 2**30, 50_000_000
BATCH, ROWS, FEW = 2**28, 1_000, 100  # bytes and rows in memory at once, and rows where texts stand inside lists
LIMITS: dict[str, Any] = {
    "thrift_string_size_limit": FOOTER,
    "thrift_container_size_limit": FOOTER,
    "schema_depth_limit": NESTED,
}

Columns = Mapping[str, pa.DataType]


def batches(path: Path, expected: str, columns: Columns | None = None) -> Iterator[pa.RecordBatch]:
    """A file's rows, in order, at most `ROWS` at once. `expected`: what the file should be, in words. `columns`: those
    that it must have; further ones may stand beside them.

    Raises:
        FormatError: it is no parquet file, has other columns, is cut off or damaged, or expands too far.
    """
    with _opened(path, expected, columns or {}) as (file, schema):
        yield from _read(file, schema, path, expected)


def table(path: Path, expected: str, columns: Columns | None = None) -> pa.Table:
    """All rows of a file at once, at most `EXPANDED` bytes of them; raises as `batches` does."""
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
            said = f"{batch.num_rows} rows expand to {size:,} bytes; expected {expected}, at most {BATCH:,} in them"
            raise FormatError(path, None, said)
        decoded = batch.cast(schema)
        decoded.validate(full=True)  # texts that are no UTF-8 would be found where somebody uses them
        yield decoded


@contextmanager
def _opened(path: Path, expected: str, columns: Columns) -> Iterator[tuple[pq.ParquetFile, pa.Schema]]:
    """The file, which gives texts as it stores them, and the schema that its rows are of."""
    with open_plain(path, expected) as handle, _told(path, expected):
        _ends(handle, path, expected)
        plain = pq.ParquetFile(handle, **LIMITS)
        _columns(plain, path, columns)
        _groups(plain.metadata, path, expected)
        texts = _texts(plain.metadata)
        yield pq.ParquetFile(handle, read_dictionary=texts, pre_buffer=False, **LIMITS), plain.schema_arrow


@contextmanager
def _told(path: Path, expected: str) -> Iterator[None]:
    """What pyarrow says of a file, in one line."""
    try:
        yield
    except FormatError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        # Arrow writes values of the file, and places of its own source, into what it says.
        said = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise FormatError(path, None, f"can't be read as parquet ({shown(said)[:200]}); expected {expected}") from None


def _ends(handle: BinaryIO, path: Path, expected: str) -> None:
    """Whether the file begins and ends as one of parquet, and its footer lies within it."""
    size = os.fstat(handle.fileno()).st_size
    begins = handle.read(len(MAGIC))
    handle.seek(max(0, size - ENDS + len(MAGIC)))
    length, ends = int.from_bytes(handle.read(4), "little"), handle.read(len(MAGIC))
    handle.seek(0)
    if size < ENDS or begins != MAGIC or ends != MAGIC:
        raise FormatError(path, None, f"not a parquet file, or truncated; expected {expected}")
    if length > min(size - ENDS, FOOTER):
        said = f"its footer would have {length:,} bytes of {size:,}; expected {expected}, its footer at most {FOOTER:,}"
        raise FormatError(path, None, said)


def _columns(file: pq.ParquetFile, path: Path, columns: Columns) -> None:
    schema, count = file.schema_arrow, file.metadata.num_columns
    if count > COLUMNS:
        raise FormatError(path, None, f"has {count:,} columns; expected at most {COLUMNS:,}")
    if len(set(schema.names)) < len(schema.names):
        name = next(n for n in schema.names if schema.names.count(n) > 1)
        raise FormatError(path, None, f"has the column '{shown(name)}' twice; expected it once")
    for name, kind in columns.items():
        if name not in schema.names:
            raise FormatError(path, None, f"has no column '{name}'; expected {', '.join(columns)}")
        if (found := schema.field(name).type) != kind:
            said = f"its column '{name}' is {shown(str(found))[:200]}; expected {kind}"
            raise FormatError(path, None, said)


def _groups(footer: pq.FileMetaData, path: Path, expected: str) -> None:
    """Whether what the footer states of each row group can be read into memory."""
    if footer.num_row_groups > GROUPS:
        said = f"has {footer.num_row_groups:,} row groups; expected {expected}, at most {GROUPS:,} of them"
        raise FormatError(path, None, said)
    for n in range(footer.num_row_groups):
        group = footer.row_group(n)
        own = [group.column(c) for c in range(group.num_columns)]
        size, values = sum(c.total_uncompressed_size for c in own), sum(c.num_values for c in own)
        if size > EXPANDED or values > VALUES or group.num_rows > VALUES:
            said = f"row group {n + 1} expands to {size:,} bytes in {values:,} values; expected {expected}"
            raise FormatError(path, None, f"{said}, at most {EXPANDED:,} in {VALUES:,}")


def _texts(footer: pq.FileMetaData) -> list[str]:
    """The columns of texts by themselves, which are read as the file stores them: each text once, numbers for them."""
    columns = map(footer.schema.column, range(footer.num_columns))
    return [c.path for c in columns if c.physical_type == "BYTE_ARRAY" and c.path == c.name]


def _copied(array: pa.Array) -> int:
    """The bytes of the texts of a column that is read as stored, each as often as it occurs."""
    if not pa.types.is_dictionary(array.type):
        return 0
    lengths = pc.take(pc.binary_length(array.dictionary), array.indices)
    return pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0
