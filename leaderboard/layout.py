"""Where the bytes of a zip archive belong: each to a member or to the list of members. What is left over is read by
nobody, and could hold anything.

An archive as `leaderboard.archive` writes it: member behind member, each a header, a name and packed bytes; then the
list; then 22 bytes that say where the list begins. Nothing before, between or behind.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from helmbench_common.errors import HelmbenchError

HEADER, ENTRY, END = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I"), struct.Struct("<4s4H2IH")
SIGNATURES = (b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06")  # of these three
FLAGS = 0x0806  # a name in UTF-8, and how hard the packer tried
ZIP64, WIDE = 1, 0xFFFFFFFF  # an extra field with sizes; what stands in the place of these
MOST = 2**16  # bytes of the list that are read, and of a member's name and extra fields


class LayoutError(HelmbenchError):
    """Bytes that belong to nothing, or two headers that say different things; the message says where."""


class Member(NamedTuple):
    """Where a member's packed bytes stand, how many they are, and what they unpack to. `method`: 0 none, 8 deflate."""

    name: str
    method: int
    at: int
    packed: int
    size: int
    crc: int


def members(path: Path) -> list[Member]:
    """The members of an archive in which every byte has its place, in the order in which they stand.

    Raises:
        LayoutError: one hasn't.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start, count = _end(file, size)
        entries = sorted(_entries(_read(file, start, size - END.size - start), count), key=lambda e: e.at)
        found, at = list[Member](), 0
        for entry in entries:
            if entry.at != at:
                raise LayoutError(f"member {entry.name!a} begins at byte {entry.at:,}, the one before ends at {at:,}")
            found.append(_member(file, entry))
            at = found[-1].at + found[-1].packed
    if at != start:
        raise LayoutError(f"the members end at byte {at:,}, their list begins at {start:,}")
    return found


def _end(file: BinaryIO, size: int) -> tuple[int, int]:
    """Where the list of members begins, and how many there are."""
    file.seek(max(0, size - END.size))
    raw = file.read(END.size)
    if len(raw) < END.size or not raw.startswith(SIGNATURES[2]):
        raise LayoutError("it doesn't end with the end of its list of members; expected no comment behind it")
    _, disk, first, here, count, length, start, comment = END.unpack(raw)
    if (disk, first, comment) != (0, 0, 0) or here != count or start + length != size - END.size or length > MOST:
        raise LayoutError("the end of its list of members doesn't say where the list stands")
    return start, count


def _entries(raw: bytes, count: int) -> Iterator[Member]:
    """What the list says of each member; `at` is where its header stands."""
    at = 0
    for _ in range(count):
        if len(raw) - at < ENTRY.size or raw[at : at + 4] != SIGNATURES[1]:
            raise LayoutError(f"its list of members has fewer than the {count} that it counts")
        (_, _, _, flags, method, _, _, crc, packed, size, named, extra, comment, disk, _, _, where) = ENTRY.unpack_from(
            raw, at
        )
        name = raw[at + ENTRY.size : at + ENTRY.size + named].decode("utf-8", "replace")
        if flags & ~FLAGS or extra or comment or disk:
            raise LayoutError(f"member {name!a} has flags, extra fields or a comment in the list; expected none")
        yield Member(name, method, where, packed, size, crc)
        at += ENTRY.size + named
    if at != len(raw):
        raise LayoutError(f"{len(raw) - at:,} bytes stand behind the last entry of its list of members")


def _member(file: BinaryIO, entry: Member) -> Member:
    """The member whose header stands where the list says, with the place of its packed bytes."""
    head = _read(file, entry.at, HEADER.size)
    signature, _, flags, method, _, _, crc, packed, size, named, extra = HEADER.unpack(head)
    name = _read(file, entry.at + HEADER.size, named).decode("utf-8", "replace")
    more = _read(file, entry.at + HEADER.size + named, extra)
    if WIDE in (packed, size) and len(more) == 20 and struct.unpack_from("<2H", more) == (ZIP64, 16):
        size, packed = struct.unpack_from("<2Q", more, 4)
        more = b""
    told = (signature, flags & ~FLAGS, name, method, crc, packed, size, more)
    if told != (SIGNATURES[0], 0, entry.name, entry.method, entry.crc, entry.packed, entry.size, b""):
        raise LayoutError(f"the header of member {entry.name!a} says something else than the list, or something more")
    return entry._replace(at=entry.at + HEADER.size + named + extra)


def _read(file: BinaryIO, at: int, length: int) -> bytes:
    file.seek(at, os.SEEK_SET)
    raw = file.read(length)
    if len(raw) < length:
        raise LayoutError(f"it ends before byte {at + length:,}")
    return raw


def named(found: Sequence[Member], name: str) -> Member:
    """The member of this name.

    Raises:
        LayoutError: there is none.
    """
    for member in found:
        if member.name == name:
            return member
    raise LayoutError(f"it has no member {name!a}")
