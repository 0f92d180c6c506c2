"""`responses.zip`: written so that the same run gives the same bytes, and read as what a stranger sent."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from helmbench_common.errors import HelmbenchError
from leaderboard import layout
from leaderboard.schema import Problem

RESPONSES, ANSWERS, CALIBRATIONS = "responses.jsonl", "answers.jsonl", "calibrations.jsonl"
MEMBERS = (RESPONSES, ANSWERS, CALIBRATIONS)  # the latter two only where a language model judged
MEMBER_BYTES = 2 * 2**30  # of one member, unpacked
SPARE = 1024  # bytes that packing may add to a member that can't be made smaller
LINE_BYTES = 4 * 2**20  # a conversation of a reasoning model takes about 1 MiB
RATIO = 300  # unpacked to packed: replies of one policy, all alike, come to about 40
RATIO_FROM = 16 * 2**20  # bytes below which a ratio says nothing
CHUNK = 2**16
ENDING = 64  # bytes that `zipfile` reads beyond the longest comment
EPOCH = (1980, 1, 1, 0, 0, 0)
LINK = 0o120000
DIRECTORY = 2**16  # bytes of the list of members that are read: three members take some hundreds


class _Bounded(io.FileIO):
    """A file that hands out no more than DIRECTORY bytes at once: `zipfile` reads the whole list of members in one go,
    however long it says that it is.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > DIRECTORY:
            raise _TooManyError(f"its list of members takes {size:,} bytes; at most {DIRECTORY:,} are read")
        return super().read(DIRECTORY + ENDING if size is None or size < 0 else size) or b""


class _TooManyError(Exception):
    """A list of members that is too long to be read."""


class ArchiveError(HelmbenchError):
    """A member that can't be read to its end; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def write(path: Path, members: dict[str, Iterable[bytes]]) -> None:
    """Writes lines as members, with fixed times and settings, in the order given."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, lines in members.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type, info.external_attr, info.create_system = zipfile.ZIP_DEFLATED, 0o644 << 16, 3
            with archive.open(info, "w", force_zip64=True) as file:
                for line in lines:
                    file.write(line)


def inspect(path: Path) -> list[Problem]:
    """What is wrong with the archive, judged by its directory alone; nothing is unpacked."""
    where = path.name
    try:
        with _Bounded(path) as file, zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
    except _TooManyError as error:
        return [Problem("too_many_members", where, str(error))]
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, RuntimeError, struct.error) as error:
        return [Problem("broken_archive", where, f"is no readable zip archive ({error})")]
    found = [p for info in infos for p in _member(where, info)]
    names = Counter(info.filename for info in infos)
    found += [
        Problem("duplicate_member", where, f"holds {shown_name(name)} {times} times")
        for name, times in sorted(names.items())
        if times > 1
    ]
    if RESPONSES not in names:
        found.append(Problem("missing_member", where, f"holds no {RESPONSES}"))
    return found or _layout(path)


def _layout(path: Path) -> list[Problem]:
    """Bytes that belong to no member, where nothing else is wrong: they could hold anything, and nobody reads them."""
    try:
        layout.members(path)
    except (layout.LayoutError, OSError) as error:
        said = f"holds bytes that belong to no member, or two accounts of one: {error}"
        return [Problem("odd_archive", path.name, said)]
    return []


def names(path: Path) -> set[str]:
    """The members of an archive in which `inspect` found nothing wrong."""
    return {member.name for member in layout.members(path)}


def shown_name(name: str) -> str:
    """A foreign name, to stand in a message."""
    return name.encode("unicode_escape").decode()[:80]


def _member(where: str, info: zipfile.ZipInfo) -> Iterator[Problem]:
    name = info.orig_filename  # `filename` ends where the name has a zero byte
    shown = shown_name(name)
    if name.startswith(("/", "\\")) or ":" in name[:3] or ".." in name.replace("\\", "/").split("/"):
        yield Problem("unsafe_member", where, f"member {shown} points out of the archive")
    elif name not in MEMBERS:
        yield Problem("unknown_member", where, f"member {shown} is none of {', '.join(MEMBERS)}")
    if (info.external_attr >> 16) & 0o170000 == LINK:
        yield Problem("link_member", where, f"member {shown} is a symbolic link")
    if info.flag_bits & 0x1:
        yield Problem("encrypted", where, f"member {shown} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        yield Problem(
            "odd_compression",
            where,
            f"member {shown} is packed by method {info.compress_type}; expected deflate or none",
        )
    if info.compress_size > info.file_size + info.file_size // 64 + SPARE:
        said = (
            f"member {shown} takes {info.compress_size:,} bytes for {info.file_size:,}; packing makes no more of them"
        )
        yield Problem("odd_archive", where, said)
    if info.file_size > MEMBER_BYTES:
        yield Problem(
            "zip_bomb", where, f"member {shown} unpacks to {info.file_size:,} bytes; at most {MEMBER_BYTES:,} are read"
        )
    elif info.file_size > RATIO_FROM and info.file_size > RATIO * max(1, info.compress_size):
        yield Problem(
            "zip_bomb",
            where,
            f"member {shown} unpacks to {info.file_size // max(1, info.compress_size)} times its size; at "
            f"most {RATIO} is read",
        )


def lines(path: Path, member: str, most: int = MEMBER_BYTES) -> Iterator[tuple[int, bytes]]:
    """The lines of a member with their numbers, unpacked piece by piece; nothing beyond a piece and a line is held.
    `most`: bytes that it may unpack to.

    Raises:
        ArchiveError: a line or member over its limit, or packed bytes that don't give what the directory says.
    """
    where = f"{path.name}/{member}"
    parts: list[bytes] = []  # of the line that no piece has ended yet
    held, number = 0, 0
    for chunk in _chunks(path, member, where, most):
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        held += len(first)
        if held > LINE_BYTES:
            raise ArchiveError(Problem("long_line", f"{where}:{number + 1}", f"is longer than {LINE_BYTES:,} bytes"))
        if rest:
            for line in (b"".join(parts), *rest[:-1]):
                number += 1
                yield number, line
            parts, held = [rest[-1]], len(rest[-1])
    if held:
        yield number + 1, b"".join(parts)


def _chunks(path: Path, name: str, where: str, most: int) -> Iterator[bytes]:
    """A member's bytes, CHUNK at a time.

    Raises:
        ArchiveError: as `lines`.
    """
    total = crc = 0
    try:
        member = layout.named(layout.members(path), name)
        for chunk in _unpacked(path, member):
            total, crc = total + len(chunk), zlib.crc32(chunk, crc)
            if total > most:
                said = f"unpacks to more than {most:,} bytes, the most for a run of this size; the rest was not read"
                raise ArchiveError(Problem("too_much_text", where, said))
            if total > member.size or (total > RATIO_FROM and total > RATIO * max(1, member.packed)):
                said = f"goes on after {total:,} bytes from {member.packed:,}; its directory claims {member.size:,}"
                raise ArchiveError(Problem("zip_bomb", where, said))
            yield chunk
    except (layout.LayoutError, zlib.error, OSError) as error:
        said = f"can't be unpacked to the size and checksum that the archive claims ({error})"
        raise ArchiveError(Problem("broken_archive", where, said)) from None
    if (total, crc) != (member.size, member.crc):
        said = f"unpacks to {total:,} bytes ({crc:08x}); its directory claims {member.size:,} ({member.crc:08x})"
        raise ArchiveError(Problem("broken_archive", where, said))


def _unpacked(path: Path, member: layout.Member) -> Iterator[bytes]:
    """A member's bytes, CHUNK at a time at most, whatever they come to.

    Raises:
        LayoutError: its packed bytes end too early, or go on behind the end of what they hold.
    """
    packer = zlib.decompressobj(-zlib.MAX_WBITS) if member.method else None
    for raw in _packed(path, member):
        if packer is None:
            yield raw
        elif packer.eof:
            raise layout.LayoutError(f"packed bytes go on behind the end of {member.name}")
        else:
            yield from _inflated(packer, raw)
            if packer.unused_data:
                raise layout.LayoutError(f"packed bytes go on behind the end of {member.name}")
    if packer is not None and not packer.eof:
        raise layout.LayoutError(f"the packed bytes of {member.name} have no end")


def _packed(path: Path, member: layout.Member) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(member.at)
        for at in range(0, member.packed, CHUNK):
            yield file.read(min(CHUNK, member.packed - at))


def _inflated(packer: zlib._Decompress, raw: bytes) -> Iterator[bytes]:
    """All that some packed bytes give, no more than CHUNK of it at once."""
    while True:
        chunk = packer.decompress(raw, CHUNK)
        raw = packer.unconsumed_tail
        yield chunk
        if packer.eof or (not raw and len(chunk) < CHUNK):
            return
