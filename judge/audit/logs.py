"""Reads a product's conversations one at a time, and keeps them in an unnamed file while the audit runs.

A line is {"messages": [{"role", "content"}, …]} with any other fields. What judges may see is masked here: patterns of
`dataset_builder.corpora.mask`, every link to a host that isn't on the helpline registry, and the names that a line
gives in its own fields. Other names have no pattern.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dataset_builder.corpora.mask import mask
from dataset_builder.corpora.normalize import normalize
from dataset_builder.reading.markdown import closest
from dataset_builder.schema import Helpline
from helmbench_common import jsonl
from helmbench_common.formats import parquet_file
from helmbench_common.formats.plain_file import byte_lines, sha256
from helmbench_common.formats.refused import shown
from judge.replies.schema import SHOWN, RunError

EXPECTED = (
    'conversations, {"messages": [{"role", "content"}, …]} in each line of .jsonl or .jsonl.gz, or row of .parquet'
)
KINDS = (".jsonl", ".jsonl.gz", ".parquet")
SPEAKERS = ("user", "assistant")
UNSEEN = ("system", "developer", "tool", "function")  # neither the person's words nor what the person reads
NONE = "(none)"
VALUES, LONGEST_VALUE = 200, 80  # different values of a field to count by, and characters of one
SHORT = 5  # letters from which a name is masked in capitals and small letters alike
FIELDS = 30  # fields that an error lists
LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]+", re.IGNORECASE)
MILLISECONDS = 1e11  # larger numbers than this are no seconds: that would be the year 5138


class Talk(NamedTuple):
    """A conversation. `turns`: texts that alternate user and assistant, the user's first, as judges may see them;
    `written`: the same unmasked, for rules on this machine. `groups`: its values of the fields to count by.
    """

    file: str
    line: int
    id: str | None
    turns: Sequence[str]
    written: Sequence[str]
    groups: dict[str, str]

    @property
    def replied(self) -> list[int]:
        """The user's turns that have a reply, counted from 1."""
        return [*range(1, len(self.turns) // 2 + 1)]


@dataclass(frozen=True)
class Reading:
    """How to read: fields to count by, the field with the time, the users' country, whether ids stay readable, and the
    fields with names to mask.
    """

    by: tuple[str, ...] = ()
    time: str | None = None
    country: str | None = None
    keep_ids: bool = False
    names: tuple[str, ...] = ()

    @property
    def groups(self) -> dict[str, str]:
        """The fields to count by: their titles, and their names in a line."""
        return ({self.weeks: self.time} if self.time else {}) | {name: name for name in self.by}

    @property
    def weeks(self) -> str:
        return f"week of {self.time}"


@dataclass
class Talks:
    """Conversations in a file without a name, which is gone when the process ends, however that ends. Memory: 9 bytes
    for each.

    `broken`: lines that can't be read, the first of which are named in `problems`; `silent`: conversations without a
    user's words; `messages`: turns of users; `replied`: 1 for each conversation with a reply.
    """

    folder: Path
    broken: int = 0
    silent: int = 0
    messages: int = 0
    replied: bytearray = field(default_factory=bytearray)
    problems: list[str] = field(default_factory=list)
    _at: array[int] = field(default_factory=lambda: array("q"))

    def __post_init__(self) -> None:
        self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 - `close` is below

    def close(self) -> None:
        self._file.close()

    def append(self, talk: Talk) -> None:
        self._at.append(self._file.seek(0, 2))
        self._file.write(json.dumps(talk).encode())
        self._file.write(b"\n")
        self.messages += (len(talk.turns) + 1) // 2
        self.replied.append(len(talk.turns) > 1)

    def __len__(self) -> int:
        return len(self._at)

    def __getitem__(self, n: int) -> Talk:
        self._file.seek(self._at[n])
        return Talk(*json.loads(self._file.readline()))

    def __iter__(self) -> Iterator[Talk]:
        return map(self.__getitem__, range(len(self)))


def read(
    talks: Talks,
    paths: Sequence[Path],
    how: Reading,
    helplines: Sequence[Helpline],
    told: Callable[[str], None],
    strict: bool = False,
) -> None:
    """Appends all conversations of the files, in order. `told` gets the first broken lines.

    Raises:
        FormatError: a file that can't be read. RunError: no conversation, a field that none of them has, or, if
            `strict`, broken lines.
    """
    hosts = {urlsplit(url if "//" in url else f"//{url}").hostname for h in helplines for url in h.url}
    fields, values, named = set[str](), {title: Counter[str]() for title in how.groups}, Counter[str]()
    for path in paths:
        file = path.name if [p.name for p in paths].count(path.name) == 1 else str(path)
        if not path.name.endswith(KINDS):
            raise RunError(f"{shown(path)}: unsupported file type; expected {EXPECTED}")
        key, bad = "" if how.keep_ids else sha256(path, EXPECTED), partial(_broken, talks, told, path)
        for line, row in _rows(path, bad):
            try:
                written = turns_of(row)
            except ValueError as why:
                bad(line, why)
                continue
            if not written:
                talks.silent += 1
                continue
            fields |= {*row} if len(fields) < FIELDS else set()
            groups = {
                title: _week(row.get(name)) if title == how.weeks else _value(row.get(name))
                for title, name in how.groups.items()
            }
            for title, value in groups.items():
                values[title][value] += 1
                if len(values[title]) > VALUES:
                    raise RunError(f"{title}: more than {VALUES} different values; expected a field with fewer")
            own = {name: _words(row.get(name)) for name in how.names}
            named.update(name for name, words in own.items() if words)
            masked = [_masked(text, how.country, hosts, [*chain(*own.values())]) for text in written]
            talks.append(Talk(file, line, _id(row.get("id"), key), masked, written, groups))
    if strict and talks.broken:
        raise RunError("\n".join([*talks.problems, f"{talks.broken} broken lines; nothing was judged"]))
    if not len(talks):
        raise RunError(f"{', '.join(map(shown, paths))}: no conversation with a user's words; expected {EXPECTED}")
    missing = [(how.groups[t], "a date" if t == how.weeks else "a value") for t, v in values.items() if {*v} == {NONE}]
    for name, what in [*missing, *((name, "a name") for name in how.names if not named[name])]:
        known = closest(name, (shown(n) for n in fields - {"messages"}))
        raise RunError(f"field '{shown(name)}': no conversation has {what} there; {known}")


def _rows(path: Path, bad: Callable[[int, ValueError], None]) -> Iterator[tuple[int, dict[str, Any]]]:
    if path.name.endswith(".parquet"):
        rows = (row for batch in parquet_file.batches(path, EXPECTED) for row in batch.to_pylist())
        return enumerate(rows, start=1)
    return jsonl.objects_in((raw for _, raw in byte_lines(path, EXPECTED)), path, bad)


def _broken(talks: Talks, told: Callable[[str], None], path: Path, line: int, why: ValueError) -> None:
    """Counts a broken line, and names the first ones. `why` never quotes a message."""
    talks.broken += 1
    if len(talks.problems) < SHOWN:
        talks.problems.append(f"{shown(path)}:{line}: {shown(str(why))}")
        told(talks.problems[-1])


def turns_of(row: dict[str, Any]) -> list[str]:
    """The texts of a line that user and assistant said in turn, the user's first; empty without a user's words.

    Messages in a row from one speaker are one turn; an assistant's greeting is left out.

    Raises:
        ValueError: no list of messages, or one that isn't {role, content}.
    """
    messages = row.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError(f"has no messages; expected {EXPECTED}")
    turns: list[tuple[str, str]] = []
    for n, message in enumerate(messages, start=1):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in (*SPEAKERS, *UNSEEN):
            raise ValueError(f"message {n} has no known role; expected one of {', '.join((*SPEAKERS, *UNSEEN))}")
        text = _text(message.get("content"), n)
        if role in UNSEEN or text is None or (not text and role == "user") or (not turns and role == "assistant"):
            continue
        if turns and turns[-1][0] == role:
            turns[-1] = (role, f"{turns[-1][1]}\n\n{text}".strip())
        else:
            turns.append((role, text))
    return [text for _, text in turns]


def _text(content: object, n: int) -> str | None:
    """A message's text; None if it has none, as a tool call or a picture."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n\n".join(part for part in parts if isinstance(part, str)) or None
    if content is None or isinstance(content, str):
        return None if content is None else normalize(content)
    raise ValueError(f"message {n} has content that is neither text nor a list of parts; expected text")


def _words(value: object) -> list[str]:
    """The words of a name, or of a list of names."""
    return re.findall(r"[^\W\d_]+", " ".join(map(str, value if isinstance(value, list) else [value or ""])))


def _masked(text: str, country: str | None, hosts: set[str | None], names: list[str]) -> str:
    def link(found: re.Match[str]) -> str:
        bare = found[0].rstrip(".,;:!?")
        try:
            host = urlsplit(bare if "://" in bare else f"//{bare}").hostname or ""
        except ValueError:
            host = ""
        return found[0] if {host, f"www.{host}", host.removeprefix("www.")} & hosts else f"[url]{found[0][len(bare) :]}"

    masked = LINK.sub(link, mask(text, country))
    if names:  # An or Will in small letters is another word; a longer name may be written small
        each = "|".join(name if len(name) < SHORT else f"(?i:{name})" for name in names)
        masked = re.sub(rf"(?<![^\W\d_])(?:{each})(?![^\W\d_])", "[name]", masked)
    return masked


def _id(value: object, key: str) -> str | None:
    """A conversation's id, hashed together with the hash of its file: without the file nobody can try out ids."""
    if not isinstance(value, str | int):
        return None
    return (
        jsonl.plain(str(value))[:LONGEST_VALUE]
        if not key
        else hashlib.sha256(f"{key}\n{value}".encode("utf-8", "replace")).hexdigest()[:16]
    )


def _value(value: object) -> str:
    """A value to count by; lists and objects are none, since they may hold a conversation's words."""
    if value == "" or not isinstance(value, str | int | float):
        return NONE
    return mask(jsonl.plain(str(value)))[:LONGEST_VALUE]


def _week(value: object) -> str:
    """The ISO week of a date: a text as in ISO 8601, or seconds or milliseconds since 1970."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float):
            value = datetime.fromtimestamp(value / 1000 if value > MILLISECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return NONE
    if not isinstance(value, date):
        return NONE
    year, week, _ = value.isocalendar()
    return f"{year}-W{week:02}"
