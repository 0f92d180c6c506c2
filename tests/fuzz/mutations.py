"""What may stand in the place of a valid file: its bytes changed, its values or lines changed, or something else than a
file. Every change is plain data that can be applied again; hypothesis draws and shrinks it.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from hypothesis import strategies as st

MOST = 2**24  # bytes of a file that is changed further: one that was made huge stays as it is
SCALE = 2**16  # positions are counted in parts of the file, so that they mean something in every file
DIGITS = "9" * 5000  # more than Python turns into a number
# fmt: off
TOKENS = (
    b"\x00", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xc3", b"\x80", b"\r\n", b"\r", b"\n",
    b"\t", b"\x1b[2J\x1b]0;x\x07", b"\x0b\x0c\x1c\x85", b"\xc2\x85", b"\xe2\x80\xae", b"\xc2\xb2\xc2\xb9\xe2\x82\x83",
    b"\xcc\x81" * 2000, b" " * 100_000, b"# " + b" " * 5000, b"a-" * 20_000, b"\xef\xb7\xba" * 500, b"\xd9\xa3",
    b"1e999", b"-1e999", b"9" * 400, DIGITS.encode(), b"NaN", b"-Infinity", b"0x1F", b"1_000", b"1:30", b"-0",
    b"[" * 200, b"[" * 50_000, b'{"a":' * 50_000, b"]" * 100, b"- " * 3000, b"{" * 3000, b"(" * 3000, b"> " * 3000,
    b"!!python/object/apply:os.system [id]", b"&a [*a, *a]", b"*a", b"<<: *a", b"<<: 1", b"? [a]\n: b\n", b"!!set {",
    b"---\n", b"...\n", b"--- \n---\n", b"%YAML 9.9\n---\n", b"\n# \n", b"\n# PT1\n", b"\n# PT9\xc2\xb2\n",
    b"\n## x\n", b'"', b"'", b'"""', b",", b",,,,", b";", b":", b": ", b"{}", b"[]", b"null", b"true", b"~",
    b"\\ud800", b"\\u0000", b"../escaped", b"/etc/passwd", b"$HOME", b"%s%n{0}", b"=1+1", b"</script><b>", b"x" * 300,
    b"2026-13-45", b"PK\x03\x04",
)
# JSON texts, since some can't be made by dumping a value. Each is YAML, too.
VALUES = (
    "null", "true", "false", "0", "-1", "1", "3", "0.5", "1e308", "1e999", "-1e999", "NaN", "-Infinity", "9" * 400,
    DIGITS, "18446744073709551616", "-2147483649", '""', '" "', '"a"', '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"',
    '"\\u001b[2J"', '"\\u202e"', '"\\u2028"', '"\\u00b2"', '"\\u0663"', '"a\\nb"', '"\\n# PT1\\n"', '"---"',
    '"../escaped"', '"/etc/passwd"', '"."', '".."', '"/"', '"PASS"', '"FAIL-misses"', '"1"', '"5"', '"2026-13-45"',
    '"NaN"', '"no"', '"' + "e\\u0301" * 3000 + '"', '"' + "a" * 200_000 + '"', '"' + "a-" * 20_000 + '"',
    '"' + " " * 50_000 + '"', '"' + "\\u0301" * 5000 + '"', '"' + DIGITS + '"', "[]", "{}", "[[]]", "[null]", "[{}]",
    '[""]', "[1,2]", '["a"]', '{"a":1}', '{"a":1,"a":2}', '{"":null}', "[" * 200 + "]" * 200,
    "[" * 50_000 + "]" * 50_000, '{"a":' * 20_000 + "1" + "}" * 20_000, "[" + "0," * 50_000 + "0]",
    "[" + "{}," * 20_000 + "{}]",
)
YAML_VALUES = (
    "!!python/object/apply:os.system [id]", "&a [*a]", "&a {a: *a}", "*nobody", ".nan", ".inf", "2026-01-01",
    "2026-13-45", "2026-01-01T00:00:00Z", "1:30", "0o17", "0x1F", "0b2", "1_0", "yes", "~", "!!binary x", "!!set {a}",
    "!!timestamp x", "!!int x", "!!float x", "!!omap [a]", "{[a]: 1}", "{? {a: 1} : 2}", "{<<: 1}", "{<<: [a]}",
    "!x y", "{a: 1, a: 2}",
    "[" + ", ".join(f"&a{n} [" + (f"*a{n - 1}, " * 9 if n else "x") + "]" for n in range(9)) + "]",
)
# What else may stand under a file's name.
PLACES = ("folder", "pipe", "dangling", "loop", "device", "empty", "gone", "socket", "huge", "parent")
# Names that somebody else's file may have; what it ends with stays.
NAMES = (
    b"\x1b[2Jx", b"a\nb", b"\xff\xfe", b"\xe2\x80\xae", b" ", b"-x", b"=1+1", b"<b>", b"x" * 240, b".hidden", b"a,b",
    b"\\",
)
# fmt: on


class Change(NamedTuple):
    """One change of one file. `kind`: the function of KINDS; `at`, `size`: of SCALE; `with_`: which token, value or
    place.
    """

    file: int
    kind: str
    at: int
    size: int
    with_: int
    deep: bool  # whether an archive's member is changed, and JSON that stands inside a text


def changes() -> st.SearchStrategy[list[Change]]:
    """One to three changes; the first ones of each list are the simplest."""
    numbers = st.integers(0, SCALE - 1)
    kinds = st.sampled_from([k for k in KINDS for _ in range(WEIGHTS.get(k, 1))])
    change = st.builds(Change, numbers, kinds, numbers, numbers, numbers, st.booleans())
    return st.lists(change, min_size=1, max_size=3)


def apply(change: Change, room: Path, files: list[Path]) -> None:
    """Puts a change into the room. What can't be applied to this file, as values to no JSON, changes its bytes."""
    if not files:
        return
    path = files[change.file % len(files)]
    if change.kind == "place":
        _placed(path, PLACES[change.with_ % len(PLACES)], room)
    elif change.kind == "name":
        _renamed(path, NAMES[change.with_ % len(NAMES)], copied=change.deep)
    elif path.is_file() and not path.is_symlink() and path.stat().st_size <= MOST:
        path.write_bytes(_changed(path.read_bytes(), path.suffix, change))


def _changed(raw: bytes, suffix: str, change: Change) -> bytes:
    if change.deep and suffix in (".zip", ".eval") and (inside := _in_archive(raw, change)) is not None:
        return inside
    return KINDS[change.kind](raw, suffix, change)


def _in_archive(raw: bytes, change: Change) -> bytes | None:
    """The archive with one member changed; None where it is no archive any more."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # whatever broke it, and Inspect's archives have a method of their own
        return None
    if not members:
        return None
    name = sorted(members)[change.file // 7 % len(members)]
    members[name] = _changed(members[name], Path(name).suffix, change)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _span(raw: bytes, change: Change) -> tuple[int, int]:
    """A place in the file and one behind it, at most 64 bytes or, for large sizes, up to its end."""
    start = change.at * (len(raw) + 1) // SCALE
    length = change.size % 65 if change.size < SCALE // 2 else change.size * (len(raw) - start) // SCALE
    return start, min(len(raw), start + length)


def flipped(raw: bytes, suffix: str, change: Change) -> bytes:
    if not raw:
        return raw
    at = change.at * len(raw) // SCALE
    return raw[:at] + bytes([raw[at] ^ (1 << change.with_ % 8)]) + raw[at + 1 :]


def truncated(raw: bytes, suffix: str, change: Change) -> bytes:
    return raw[: _span(raw, change)[0]]


def inserted(raw: bytes, suffix: str, change: Change) -> bytes:
    start, _ = _span(raw, change)
    return raw[:start] + TOKENS[change.with_ % len(TOKENS)] + raw[start:]


def spliced(raw: bytes, suffix: str, change: Change) -> bytes:
    start, end = _span(raw, change)
    return raw[:start] + TOKENS[change.with_ % len(TOKENS)] + raw[end:]


def doubled(raw: bytes, suffix: str, change: Change) -> bytes:
    start, end = _span(raw, change)
    return raw[:end] + raw[start:end] * (1 + change.with_ % 3) + raw[end:]


def line(raw: bytes, suffix: str, change: Change) -> bytes:
    """A line twice, left out, moved to the end, or with another value behind its colon."""
    lines = raw.splitlines(keepends=True)
    if not lines:
        return raw
    at, way = change.at * len(lines) // SCALE, change.size % 5
    if way == 0:
        return b"".join([*lines[: at + 1], *lines[at:]])
    if way == 1:
        return b"".join([*lines[:at], *lines[at + 1 :]])
    if way == 2:
        return b"".join([*lines[:at], *lines[at + 1 :], lines[at]])
    head, colon, _ = lines[at].partition(b":" if b":" in lines[at] else b" ")
    values = YAML_VALUES + VALUES if way == 3 else [t.decode("utf-8", "surrogateescape") for t in TOKENS]
    new = values[change.with_ % len(values)].encode("utf-8", "surrogateescape")
    return b"".join([*lines[:at], head, colon, b" ", new, b"\n", *lines[at + 1 :]])


def cell(raw: bytes, suffix: str, change: Change) -> bytes:
    """Another value between two commas of a table."""
    cells = raw.split(b",")
    values = [*TOKENS, *(v.encode() for v in VALUES)]
    cells[change.at * len(cells) // SCALE] = values[change.with_ % len(values)]
    return b",".join(cells)


def value(raw: bytes, suffix: str, change: Change) -> bytes:
    """Another value anywhere in JSON, YAML, one line of JSONL or a Markdown file's front matter."""
    if suffix == ".csv":
        return cell(raw, suffix, change)
    if suffix == ".jsonl":
        lines = raw.splitlines(keepends=True)
        if not lines:
            return raw
        at = change.file // 11 * len(lines) // (SCALE // 11 + 1)
        return b"".join([*lines[:at], _valued(lines[at], "json", change), b"\n", *lines[at + 1 :]])
    if suffix == ".md":
        head, mark, rest = raw.removeprefix(b"---\n").partition(b"\n---\n")
        return b"---\n" + _valued(head, "yaml", change) + mark + rest if mark else line(raw, suffix, change)
    return _valued(raw, "json" if suffix == ".json" else "yaml", change)


MARK = "PUT-THE-VALUE-HERE"


class _Twice(dict[str, Any]):
    """A mapping that is dumped with one of its keys twice."""

    def items(self) -> Any:
        pairs = list(super().items())
        return [*pairs, pairs[0]]


def _valued(raw: bytes, form: str, change: Change) -> bytes:
    try:
        found = json.loads(raw) if form == "json" else yaml.safe_load(raw)
        places = list(_places(found, change.deep))
        if not places:
            return spliced(raw, "", change)
        values = VALUES if form == "json" else YAML_VALUES + VALUES
        put = values[change.with_ % len(values)]
        way = ("put", "put", "put", "drop", "twice", "key", "many", "wrap")[change.size % 8]
        made = _edited(found, places[change.at * len(places) // SCALE], way, change)
        text = json.dumps(made, ensure_ascii=change.size % 3 == 0) if form == "json" else yaml.safe_dump(made)
    except (ValueError, yaml.YAMLError, RecursionError, TypeError):
        return spliced(raw, "", change)
    inside = f'\\"{MARK}\\"'  # in JSON that stands in a text
    text = text.replace(inside, put.replace("\\", "\\\\").replace('"', '\\"')).replace(f'"{MARK}"', put)
    return text.replace(MARK, put).encode("utf-8", "surrogatepass")


def _places(found: Any, deep: bool, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value; with `deep` also of those in JSON that stands in a text, behind a None."""
    yield at
    if isinstance(found, dict):
        for key, own in found.items():
            yield from _places(own, deep, (*at, key))
    elif isinstance(found, list):
        for n, own in enumerate(found[:40]):
            yield from _places(own, deep, (*at, n))
    elif deep and isinstance(found, str) and found[:1] in ("{", "["):
        yield from _places(json.loads(found), deep, (*at, None))


def _edited(found: Any, at: tuple[Any, ...], way: str, change: Change) -> Any:
    if at and at[0] is None:
        return json.dumps(_edited(json.loads(found), at[1:], way, change))
    if not at or (len(at) == 1 and way in ("drop", "key", "twice")):
        return _replaced(found, at, way)
    key, rest = at[0], at[1:]
    if isinstance(found, dict):
        return {k: _edited(v, rest, way, change) if k == key else v for k, v in found.items()}
    return [_edited(v, rest, way, change) if n == key else v for n, v in enumerate(found)]


def _replaced(found: Any, at: tuple[Any, ...], way: str) -> Any:
    if at and isinstance(found, dict):
        if way == "drop":
            return {k: v for k, v in found.items() if k != at[0]}
        if way == "key":
            return {MARK if k == at[0] else k: v for k, v in found.items()}
        return _Twice(found)
    if at and isinstance(found, list):
        return [v for n, v in enumerate(found) if n != at[0]]
    if way == "many":
        return [found] * 300
    if way == "wrap":
        return [found] if not isinstance(found, list) else {"a": found}
    return MARK


def _placed(path: Path, what: str, room: Path) -> None:
    """Something else than a file under its name."""
    plain = path.is_file() and not path.is_symlink() and path.stat().st_size <= MOST
    old = path.read_bytes() if plain else b""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if what == "folder":
        path.mkdir()
        (path / "inside").write_bytes(old)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "socket":
        os.mknod(path, 0o140644)
    elif what == "huge":
        with path.open("wb") as file:
            file.truncate(3 * 2**30)  # takes no room on the disk
    elif what == "empty":
        path.touch()
    elif what != "gone":
        to = {"dangling": "nowhere", "loop": path.name, "device": "/dev/zero", "parent": str(room)}[what]
        path.symlink_to(to)


def _renamed(path: Path, name: bytes, copied: bool) -> None:
    """The file under another name, or beside it."""
    other = Path(os.fsdecode(os.path.join(os.fsencode(path.parent), name + path.suffix.encode())))
    if not path.is_file() or other.exists():
        return
    if copied:
        shutil.copyfile(path, other)
    else:
        path.rename(other)


KINDS: dict[str, Callable[[bytes, str, Change], bytes]] = {
    "truncated": truncated,
    "flipped": flipped,
    "inserted": inserted,
    "spliced": spliced,
    "doubled": doubled,
    "line": line,
    "value": value,
    "place": lambda raw, suffix, change: raw,
    "name": lambda raw, suffix, change: raw,
}
WEIGHTS = {"value": 8, "line": 3, "inserted": 3, "spliced": 3, "place": 2}
