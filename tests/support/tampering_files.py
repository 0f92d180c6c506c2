"""Changes to a submission's files as files: links, bombs, broken texts and archives; each with the kind of problem and
a word that must name it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from leaderboard.schema import ARCHIVE, SUBMISSION, SUMS, VERDICTS
from leaderboard.verify import files
from support.submission_runs import zipped

Case = tuple[Callable[[Path], Any], str, str]  # the change, the kind of problem, a word of its message


def rewritten(name: str, change: Callable[[bytes], bytes], sign: bool = True) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(change(before))
        assert (folder / name).read_bytes() != before
        if sign:
            files.sign(folder)

    return work


def replaced(name: str, put: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Another thing under a file's name; nothing can be signed then."""

    def work(folder: Path) -> None:
        (folder / name).unlink()
        put(folder / name)

    return work


def added(name: str) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        (folder / name).write_text("x")

    return work


def many(folder: Path) -> None:
    for k in range(99):
        (folder / f"n{k}").touch()


def archived(change: Callable[[Path, dict[str, bytes]], None]) -> Callable[[Path], None]:
    """Another archive from the members of this one, signed."""

    def work(folder: Path) -> None:
        path = folder / ARCHIVE
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        change(path, members)
        files.sign(folder)

    return work


def with_member(name: str) -> Callable[[Path], None]:
    return archived(lambda path, members: zipped(path, {**members, name: b"x\n"}))


def patched(at: dict[bytes, dict[int, bytes]]) -> Callable[[Path], None]:
    """Bytes of the first member's headers, by signature and offset."""

    def change(path: Path, members: dict[str, bytes]) -> None:
        zipped(path, members)
        raw = bytearray(path.read_bytes())
        for signature, values in at.items():
            start = raw.index(signature)
            for offset, value in values.items():
                raw[start + offset : start + offset + len(value)] = value
        path.write_bytes(raw)

    return archived(change)


LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"


def duplicate_member(path: Path, members: dict[str, bytes]) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")
        for name, data in [*members.items(), ("responses.jsonl", b"x\n")]:
            archive.writestr(name, data)


def sixty_thousand_members(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for n in range(60_000):
            archive.writestr(f"{n}", b"")


def many_broken_lines(path: Path, members: dict[str, bytes]) -> None:
    """A field twice at the end of half a million, line after line."""
    line = b"{" + b"".join(b'"%x":1,' % n for n in range(400_000)) + b'"0":1}\n'
    zipped(path, {**members, "responses.jsonl": line * 12})


def endless_replies(path: Path, members: dict[str, bytes]) -> None:
    """Replies of four megabytes for every sample."""
    record = json.loads(members["responses.jsonl"].splitlines()[0])
    said = "".join(hashlib.sha256(bytes([n])).hexdigest() + "a" * 2000 for n in range(256)) * 7
    line = json.dumps({**record, "turns": [said] * len(record["turns"])}).encode() + b"\n"
    zipped(path, {**members, "responses.jsonl": line * 40})


def stacked_marks(path: Path, members: dict[str, bytes]) -> None:
    """A letter with two hundred thousand accents of two kinds, whose order is sorted one by one."""
    first, *rest = members["responses.jsonl"].splitlines(keepends=True)
    record = json.loads(first)
    record["turns"] = ["e" + "\u0301\u0323" * 100_000] * len(record["turns"])
    zipped(path, {**members, "responses.jsonl": json.dumps(record).encode() + b"\n" + b"".join(rest)})


def link_member(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o120777 if name == "responses.jsonl" else 0o100644) << 16
            archive.writestr(info, data)


def ten_gigabytes_in_one_line(path: Path, members: dict[str, bytes]) -> None:
    """A deflate stream of ten equal pieces of a gigabyte's tenth each, made once and repeated; its directory tells the
    truth.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(b"a" * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    stream = piece * 10240 + packer.flush(zlib.Z_FINISH)
    zipped(path, {"responses.jsonl": b"a"})
    raw = io.BytesIO()
    size = struct.pack("<QQ", 10240 * 2**20, len(stream))
    extra = struct.pack("<HH", 1, 16) + size
    name = b"responses.jsonl"
    head = struct.pack("<HHHHHIIIHH", 45, 0, 8, 0, 33, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(name), len(extra))
    raw.write(LOCAL + head + name + extra + stream)
    start = raw.tell()
    raw.write(CENTRAL + struct.pack("<H", 45) + head + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name + extra)
    raw.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, raw.tell() - start, start, 0))
    path.write_bytes(raw.getvalue())


class Packed(NamedTuple):
    """What stands where in an archive that is made byte by byte; of the first member where one is meant."""

    before: bytes = b""  # the second member
    behind: bytes = b""  # the last member
    end: bytes = b""  # behind the whole
    comment: bytes = b""
    tail: bytes = b""  # within the packed bytes
    extra: bytes = b""
    listed_extra: bytes = b""
    listed_comment: bytes = b""
    name: str = ""  # in the header, where the list has another
    listed_name: str = ""
    descriptor: bool = False  # sizes behind the member in place of before it
    twice: bool = False  # the second member's header stands where the first's does


def hidden(p: Packed) -> Callable[[Path], None]:
    """An archive with bytes that no reader of its members comes upon."""

    def change(path: Path, members: dict[str, bytes]) -> None:
        out, listed = io.BytesIO(), list[bytes]()
        for n, (name, data) in enumerate(members.items()):
            packer, own = zlib.compressobj(6, zlib.DEFLATED, -15), p if not n else Packed(before=p.before)
            packed = packer.compress(data) + packer.flush() + own.tail
            out.write(p.before if n == 1 else b"")
            sizes = struct.pack("<III", zlib.crc32(data), len(packed), len(data))
            flags, at = struct.pack("<H", 8 * own.descriptor), 0 if p.twice else out.tell()
            head = flags + struct.pack("<HHH", 8, 0, 33)
            called, entered = (own.name or name).encode(), (own.listed_name or name).encode()
            out.write(LOCAL + b"\x14\0" + head + (bytes(12) if own.descriptor else sizes))
            out.write(struct.pack("<HH", len(called), len(own.extra)) + called + own.extra + packed)
            out.write(b"PK\x07\x08" + sizes if own.descriptor else b"")
            lengths = struct.pack("<HHHHHII", len(entered), len(own.listed_extra), len(own.listed_comment), 0, 0, 0, at)
            listed.append(
                CENTRAL + b"\x14\0\x14\0" + head + sizes + lengths + entered + own.listed_extra + own.listed_comment
            )
        out.write(p.behind)
        start, entries = out.tell(), b"".join(listed)
        counts = struct.pack("<HHHHIIH", 0, 0, len(listed), len(listed), len(entries), start, len(p.comment))
        path.write_bytes(out.getvalue() + entries + b"PK\x05\x06" + counts + p.comment + p.end)

    return archived(change)


NOTE = b"what nobody is to see"
EXTRA = struct.pack("<HH", 0x9999, len(NOTE)) + NOTE
HIDDEN: dict[str, tuple[Packed, str, str]] = {
    "bytes between two members": (Packed(before=NOTE), "odd_archive", "the one before ends at"),
    "bytes behind the last member": (Packed(behind=NOTE), "odd_archive", "their list begins at"),
    "bytes behind the archive": (Packed(end=NOTE), "odd_archive", "doesn't end with"),
    "a comment of the archive": (Packed(comment=NOTE), "odd_archive", "no comment behind it"),
    "a comment of a member": (Packed(listed_comment=NOTE), "odd_archive", "extra fields or a comment"),
    "extra fields of a member": (Packed(extra=EXTRA), "odd_archive", "or something more"),
    "extra fields in the list": (Packed(listed_extra=EXTRA), "odd_archive", "extra fields or a comment"),
    "sizes behind a member": (Packed(descriptor=True), "odd_archive", "has flags"),
    "bytes behind a member's end": (Packed(tail=NOTE), "broken_archive", "packed bytes go on"),
    "a second stream in a member": (
        Packed(tail=zlib.compress(NOTE)[2:-4]),
        "broken_archive",
        "packed bytes go on",
    ),
    "a member padded": (Packed(tail=os.urandom(10**6)), "odd_archive", "packing makes no more"),
    "two members in one place": (Packed(twice=True), "odd_archive", "the one before ends at"),
    "another name in a header": (Packed(name="responses.jsonX"), "odd_archive", "says something else than the list"),
    "a name that goes on behind a zero": (
        Packed(name="responses.jsonl\0" + NOTE.decode(), listed_name="responses.jsonl\0" + NOTE.decode()),
        "unknown_member",
        "x00what nobody",
    ),
    "sizes of 64 bits that say less": (
        Packed(extra=struct.pack("<HHQQ", 1, 16, 1, 1)),
        "odd_archive",
        "or something more",
    ),
}


def long_line(path: Path, members: dict[str, bytes]) -> None:
    zipped(path, {**members, "responses.jsonl": os.urandom(3 * 2**20).hex().encode()})


def zip_bomb(path: Path, members: dict[str, bytes]) -> None:
    zipped(path, {**members, "responses.jsonl": b"{}\n" * (16 * 2**20)})


def other_sum(folder: Path) -> None:
    path = folder / SUMS
    path.write_text(path.read_text().replace(path.read_text()[:8], "00000000"))


def sums_without(name: str) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        path = folder / SUMS
        path.write_text("".join(x for x in path.read_text().splitlines(keepends=True) if name not in x))

    return work


def moved(folder: Path) -> None:
    """Into the folder of another model, by which the board would show it."""
    folder.parent.rename(folder.parent.with_name("acme__south-9"))


def linked_folder(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 * 2**30)


def constant(value: bytes) -> Callable[[Path], None]:
    """Another composite, as text."""
    return rewritten(SUBMISSION, lambda raw: re.sub(rb'("composite":\s*\{\s*"value":\s*)[^,]+', rb"\g<1>" + value, raw))


IN_JSON = {
    "NaN": (b"NaN", "not_finite", "NaN"),
    "Infinity": (b"-Infinity", "not_finite", "Infinity"),
    "a number beyond floats": (b"1e999", "not_finite", "1e999"),
    "a huge whole number": (b"1" * 4000, "huge_number", "4000 digits"),
    "a number of a million digits": (b"1" * 10**6, "huge_number", "1000000 digits"),
    "deep nesting": (b"[" * 10**5 + b"]" * 10**5, "nesting", "deeply"),
}
RAW: dict[str, Case] = {
    **{f"hidden: {name}": (hidden(packed), kind, word) for name, (packed, kind, word) in HIDDEN.items()},
    **{f"submission.json: {name}": (constant(raw), kind, word) for name, (raw, kind, word) in IN_JSON.items()},
    "duplicate key": (
        rewritten(SUBMISSION, lambda raw: raw.replace(b"{", b'{"format":"x",', 1)),
        "duplicate_key",
        "format",
    ),
    "invalid UTF-8": (rewritten(SUBMISSION, lambda raw: raw.replace(b"Ann", b"An\xff")), "encoding", "UTF-8"),
    "lone surrogate": (
        rewritten(SUBMISSION, lambda raw: raw.replace(b"Ann", b"An\\ud83d")),
        "encoding",
        "surrogate",
    ),
    "byte order mark": (rewritten(SUBMISSION, lambda raw: b"\xef\xbb\xbf" + raw), "encoding", "byte order mark"),
    "submission.json: cut": (rewritten(SUBMISSION, lambda raw: raw[:-9]), "json", "not JSON"),
    "submission.json: a list": (rewritten(SUBMISSION, lambda raw: b"[1]"), "schema", "object"),
    "verdicts.jsonl: NaN": (
        rewritten(VERDICTS, lambda raw: raw.replace(b'"turn":-1', b'"turn":NaN', 1)),
        "not_finite",
        "NaN",
    ),
    "verdicts.jsonl: no JSON": (rewritten(VERDICTS, lambda raw: b"hello\n" + raw), "json", "not JSON"),
    "verdicts.jsonl: lone surrogate": (
        rewritten(VERDICTS, lambda raw: raw.replace(b'"behavior":"', b'"behavior":"\\udfff', 1)),
        "encoding",
        "surrogate",
    ),
    "file edited": (
        rewritten(VERDICTS, lambda raw: raw.replace(b"FAIL", b"PASS", 1), sign=False),
        "sums",
        "edited or damaged",
    ),
    "sum edited": (other_sum, "sums", "00000000"),
    "sums of one file missing": (sums_without("verdicts"), "sums", "does not list verdicts.jsonl"),
    "sums of another file": (
        rewritten(SUMS, lambda raw: raw + b"0" * 64 + b"  ../x\n", sign=False),
        "sums",
        "../x",
    ),
    "sums twice": (
        rewritten(SUMS, lambda raw: raw + raw.splitlines(keepends=True)[0], sign=False),
        "sums",
        "again",
    ),
    "sums of no form": (rewritten(SUMS, lambda raw: b"\x00\xff\n" + raw, sign=False), "sums", "not a sha256"),
    "file missing": (lambda folder: (folder / VERDICTS).unlink(), "missing_file", "is missing"),
    "archive missing": (lambda folder: (folder / ARCHIVE).unlink(), "missing_file", "is missing"),
    "sums missing": (lambda folder: (folder / SUMS).unlink(), "missing_file", "is missing"),
    "file added": (added("notes.txt"), "extra_file", "no part of a submission"),
    "file with an odd name": (added("\u202etxt.\x1b[2J"), "extra_file", "\\u202e"),
    "many files": (
        many,
        "extra_file",
        "103 entries",
    ),
    "symbolic link": (replaced(VERDICTS, lambda path: path.symlink_to("/etc/hostname")), "link", "symbolic link"),
    "pipe": (replaced(ARCHIVE, lambda path: os.mkfifo(path)), "not_a_file", "pipe"),
    "folder for a file": (replaced(SUBMISSION, lambda path: path.mkdir()), "not_a_file", "folder"),
    "10 GB file": (replaced(VERDICTS, sparse), "too_large", "10,737,418,240"),
    "long submission.json": (rewritten(SUBMISSION, lambda raw: raw + b" " * 5 * 2**20), "too_large", "bytes"),
    "empty submission.json": (rewritten(SUBMISSION, lambda raw: b""), "empty_file", "empty"),
    "empty verdicts.jsonl": (rewritten(VERDICTS, lambda raw: b""), "empty_file", "empty"),
    "empty archive": (rewritten(ARCHIVE, lambda raw: b""), "empty_file", "empty"),
    "long verdict": (
        rewritten(VERDICTS, lambda raw: raw + b'"' + b"a" * 5 * 2**20 + b'"\n'),
        "long_line",
        "longer than",
    ),
    "folder moved": (moved, "misplaced", "acme__south-9"),
    "folder linked": (linked_folder, "link", "symbolic link"),
    "no archive": (rewritten(ARCHIVE, lambda raw: b"hello" * 99), "broken_archive", "zip"),
    "archive cut": (rewritten(ARCHIVE, lambda raw: raw[:-100]), "broken_archive", "zip"),
    "archive damaged": (
        rewritten(ARCHIVE, lambda raw: raw[:5000] + bytes(99) + raw[5099:]),
        "broken_archive",
        "its directory claims",
    ),
    "bytes before the archive": (
        rewritten(ARCHIVE, lambda raw: b"#!/bin/sh\n" + raw),
        "odd_archive",
        "doesn't say where the list stands",
    ),
    "member above": (with_member("../answers.jsonl"), "unsafe_member", "out of the archive"),
    "member above, the other way": (with_member("a\\..\\..\\b"), "unsafe_member", "out of the archive"),
    "absolute member": (with_member("/etc/cron.d/x"), "unsafe_member", "out of the archive"),
    "unknown member": (with_member("readme.txt"), "unknown_member", "readme.txt"),
    "member missing": (
        archived(lambda path, members: zipped(path, {"answers.jsonl": members["answers.jsonl"]})),
        "missing_member",
        "responses.jsonl",
    ),
    "member twice": (archived(duplicate_member), "duplicate_member", "2 times"),
    "60,000 members": (archived(sixty_thousand_members), "too_many_members", "65,536"),
    "lines that can't be read": (archived(many_broken_lines), "unreadable_lines", "16,777,216"),
    "replies without end": (archived(endless_replies), "too_much_text", "for a run of this size"),
    "a letter with 200,000 accents": (archived(stacked_marks), "stacked_marks", "128 combining marks"),
    "member a link": (archived(link_member), "link_member", "symbolic link"),
    "encrypted": (patched({LOCAL: {6: b"\x01\x00"}, CENTRAL: {8: b"\x01\x00"}}), "encrypted", "encrypted"),
    "packed another way": (
        archived(lambda path, members: zipped(path, members, zipfile.ZIP_LZMA)),
        "odd_compression",
        "method 14",
    ),
    "header says little": (
        patched({LOCAL: {22: struct.pack("<I", 99)}, CENTRAL: {24: struct.pack("<I", 99)}}),
        "odd_archive",
        "packing makes no more",
    ),
    "header says less": (
        patched({LOCAL: {22: struct.pack("<I", 50_000)}, CENTRAL: {24: struct.pack("<I", 50_000)}}),
        "zip_bomb",
        "claims 50,000",
    ),
    "header says more": (
        patched({LOCAL: {22: struct.pack("<I", 2**24)}, CENTRAL: {24: struct.pack("<I", 2**24)}}),
        "broken_archive",
        "claims 16,777,216",
    ),
    "header says 1.9 GB": (patched({CENTRAL: {24: struct.pack("<I", 2**31 - 2**27)}}), "zip_bomb", "times its size"),
    "header says 3.9 GB": (patched({CENTRAL: {24: struct.pack("<I", 2**32 - 2**27)}}), "zip_bomb", "2,147,483,648"),
    "zip bomb": (archived(zip_bomb), "zip_bomb", "times its size"),
    "10 GB in one line": (archived(ten_gigabytes_in_one_line), "zip_bomb", "10,737,418,240"),
    "long line": (archived(long_line), "long_line", "longer than"),
    "a million lines": (
        archived(lambda path, members: zipped(path, {**members, "responses.jsonl": b"\n" * 10**6})),
        "too_many_lines",
        "goes on after 1,048",
    ),
    "responses empty": (
        archived(lambda path, members: zipped(path, {**members, "responses.jsonl": b""})),
        "missing_sample",
        "are missing",
    ),
}
