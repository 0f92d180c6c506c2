"""Changes to a submission's files, each with the kind of problem and a word of its message."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leaderboard.schema import RESPONSES, SUBMISSION, SUMS, VERDICTS
from leaderboard.verify import files
from support.submission_runs import unpacked

Case = tuple[Callable[[Path], Any], str, str]


def rewritten(name: str, change: Callable[[bytes], bytes], sign: bool = True) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(change(before))
        assert (folder / name).read_bytes() != before
        if sign:
            files.sign(folder)

    return work


def replaced(name: str, put: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Replaces a file with something else, which can't be signed."""

    def work(folder: Path) -> None:
        (folder / name).unlink()
        put(folder / name)

    return work


def responses(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Changes the lines of the responses, and packs and signs them."""

    def work(folder: Path) -> None:
        files.pack(folder / RESPONSES, [change(unpacked(folder / RESPONSES))])
        files.sign(folder)

    return work


def in_first_line(**values: Any) -> Callable[[bytes], bytes]:
    """Changes values in the first record."""

    def work(raw: bytes) -> bytes:
        first, rest = raw.split(b"\n", 1)
        return json.dumps({**json.loads(first), **values}).encode() + b"\n" + rest

    return work


def ten_gigabytes(folder: Path) -> None:
    """A gzip file of ten thousand members of one megabyte each."""
    (folder / RESPONSES).write_bytes(gzip.compress(b"{}\n" * (2**20 // 3)) * 10_000)
    files.sign(folder)


def many(folder: Path) -> None:
    for k in range(99):
        (folder / f"n{k}").touch()


def moved(folder: Path) -> None:
    """Moves it into the folder of another model, under which the board would list it."""
    folder.parent.rename(folder.parent.with_name("acme__south-9"))


def linked_folder(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 * 2**30)


def composite(value: bytes) -> Callable[[Path], None]:
    """Changes the composite's text."""
    return rewritten(SUBMISSION, lambda raw: re.sub(rb'("composite":\s*\{\s*"value":\s*)[^,]+', rb"\g<1>" + value, raw))


RAW: dict[str, Case] = {
    "NaN": (composite(b"NaN"), "json", "NaN"),
    "deep nesting": (composite(b"[" * 10**5 + b"]" * 10**5), "json", "nested"),
    "duplicate key": (rewritten(SUBMISSION, lambda raw: raw.replace(b"{", b'{"format":"x",', 1)), "json", "format"),
    "invalid UTF-8": (rewritten(SUBMISSION, lambda raw: raw.replace(b"Ann", b"An\xff")), "unreadable", "UTF-8"),
    "invalid UTF-8 in a verdict": (
        rewritten(VERDICTS, lambda raw: raw.replace(b"FAIL", b"FA\xff", 1)),
        "unreadable",
        "UTF-8",
    ),
    "lone surrogate": (rewritten(SUBMISSION, lambda raw: raw.replace(b"Ann", b"An\\ud83d")), "json", "hex escape"),
    "submission.json: cut": (rewritten(SUBMISSION, lambda raw: raw[:-9]), "json", "not valid JSON"),
    "submission.json: a list": (rewritten(SUBMISSION, lambda raw: b"[1]"), "schema", "object"),
    "verdicts.jsonl: no JSON": (rewritten(VERDICTS, lambda raw: b"hello\n" + raw), "json", "not valid JSON"),
    "file edited": (
        rewritten(VERDICTS, lambda raw: raw.replace(b"FAIL", b"PASS", 1), sign=False),
        "sums",
        "edited or damaged",
    ),
    "sums of one file missing": (
        rewritten(SUMS, lambda raw: b"".join(raw.splitlines(keepends=True)[:-1]), sign=False),
        "sums",
        "doesn't list verdicts.jsonl",
    ),
    "sums of another file": (rewritten(SUMS, lambda raw: raw + b"0" * 64 + b"  ../x\n", sign=False), "sums", "../x"),
    "sums twice": (rewritten(SUMS, lambda raw: raw + raw.splitlines(keepends=True)[0], sign=False), "sums", "twice"),
    "sums of no form": (rewritten(SUMS, lambda raw: b"\x00\xff\n" + raw, sign=False), "sums", "expected a sha256"),
    "verdicts missing": (lambda folder: (folder / VERDICTS).unlink(), "missing_file", "is missing"),
    "responses missing": (lambda folder: (folder / RESPONSES).unlink(), "missing_file", "is missing"),
    "file with an odd name": (lambda folder: (folder / "\u202etxt.\x1b[2J").touch(), "extra_file", "[U+202E]"),
    "many files": (many, "extra_file", "105 entries"),
    "symbolic link": (replaced(VERDICTS, lambda path: path.symlink_to("/etc/hostname")), "link", "symbolic link"),
    "pipe": (replaced(RESPONSES, os.mkfifo), "not_a_file", "pipe"),
    "10 GB file": (replaced(VERDICTS, sparse), "too_large", "10,737,418,240"),
    "empty verdicts.jsonl": (rewritten(VERDICTS, lambda raw: b""), "empty_file", "empty"),
    "folder moved": (moved, "misplaced", "acme__south-9"),
    "folder linked": (linked_folder, "link", "symbolic link"),
    "responses not gzipped": (rewritten(RESPONSES, lambda raw: b"hello" * 99), "unreadable", "gzip"),
    "responses damaged": (
        rewritten(RESPONSES, lambda raw: raw[:5000] + bytes(99) + raw[5099:]),
        "unreadable",
        "can't be read",
    ),
    "responses empty": (responses(lambda raw: b""), "missing_sample", "are missing"),
    "10 GB in one file": (ten_gigabytes, "too_many_lines", "expected at most 1,051 lines"),
    "10 GB in one line": (responses(lambda raw: b"a" * 5 * 2**20), "unreadable", "longer than"),
    "a letter with 200,000 accents": (
        responses(in_first_line(turns=["e" + "\u0301\u0323" * 100_000])),
        "too_much_text",
        "128 combining marks",
    ),
}
