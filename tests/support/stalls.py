"""Submissions made to keep whoever verifies them busy, or to fill the memory: each small to send, and large in one way.

Whether one is refused or not: it must end soon, in little memory, and without a traceback.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leaderboard.schema import ANSWERS, CALIBRATIONS, RESPONSES, SUBMISSION, VERDICTS
from leaderboard.verify import files
from support import tampering_files
from support.submission_runs import Opened, unpacked
from support.tampering import sha

Case = tuple[
    str, Callable[[Opened], Any], set[str]
]  # the base, what is done to it, kinds of problems, one of which is due
MB = 10**6


def raw(name: str, change: Callable[[bytes], bytes]) -> Callable[[Opened], None]:
    """Another text of a file, signed."""

    def work(o: Opened) -> None:
        path = o.close() / name
        path.write_bytes(change(path.read_bytes()))
        files.sign(o.folder)

    return work


def packed(name: str, change: Callable[[bytes], bytes]) -> Callable[[Opened], None]:
    """Other lines of a gzipped file, signed."""

    def work(o: Opened) -> None:
        o.close()
        files.pack(o.folder / name, [change(unpacked(o.folder / name))])
        files.sign(o.folder)

    return work


def closed(change: Callable[[Opened], Any]) -> Callable[[Opened], None]:
    """A change to the parts, put together again."""

    def work(o: Opened) -> None:
        change(o)
        o.close()

    return work


def of_files(change: Callable[[Path], Any]) -> Callable[[Opened], None]:
    """A change of tampering_files.py."""
    return lambda o: change(o.folder)


def argument(name: str, value: Any) -> Callable[[Opened], None]:
    return closed(lambda o: o.submission["generation"]["arguments"].update({name: value}))


def arguments(count: int, value: Any) -> Callable[[Opened], None]:
    many = {f"a{n}": value for n in range(count)}
    return closed(lambda o: o.submission["generation"].update(arguments=many))


def in_first_line(field: str, text: str, times: int = 1) -> Callable[[bytes], bytes]:
    """The first line several times, with another JSON text in a field; then all lines."""

    def work(before: bytes) -> bytes:
        record = json.loads(before.partition(b"\n")[0])
        line = json.dumps({**record, field: "@@"}).replace('"@@"', text).encode() + b"\n"
        return line * times + before

    return work


def entries(entry: str, count: int) -> str:
    return "[" + ",".join([entry] * count) + "]"


def replies(text: str, only: Callable[[int], bool] = lambda n: True) -> Callable[[Opened], None]:
    """The same words from everybody."""

    def change(o: Opened) -> None:
        for n, r in enumerate(o.responses):
            if only(n):
                r["turns"] = [text] * len(r["turns"])

    return closed(change)


def long(piece: str, letters: int = MB) -> str:
    return piece * (letters // len(piece))


def as_json(piece: str, turns: int) -> str:
    """1 MB of a piece in so many turns, or as much as a line of JSON may hold."""
    room = 4 * MB * len(piece) // (len(json.dumps(piece)) - 2)
    return long(piece, min(MB, room) // turns)


def requested(text: str) -> Callable[[Opened], None]:
    """Every first request."""

    def change(o: Opened) -> None:
        for r in o.responses:
            r["requests"] = [text, *r["requests"][1:]]
            r["prompt_sha256"] = sha(text)

    return closed(change)


def around(text: str) -> Callable[[Opened], None]:
    """A text before every request, which is a template's."""

    def change(o: Opened) -> None:
        for r in o.responses:
            r["requests"] = [text + t for t in r["requests"]]
            r["prompt_sha256"] = sha(r["requests"][0])

    return closed(change)


def lines_of(field: str, size: int, count: int) -> Callable[[bytes], bytes]:
    """As many lines of an unknown repeat, each with a text of its own size that packs well and not too well."""
    block = "".join(sha(str(n)) + "a" * 4000 for n in range(1 + size // 4064))[:size]

    def work(before: bytes) -> bytes:
        record = json.loads(before.partition(b"\n")[0])
        own = [block] * len(record[field]) if isinstance(record[field], list) else block
        made = [json.dumps({**record, field: own or [block], "repeat": 100 + n}).encode() for n in range(count)]
        return b"\n".join(made) + b"\n" + before

    return work


def answered(content: str, often: int = 1, each: bool = True) -> Callable[[bytes], bytes]:
    """Judge's answers of this text before each of its own, or before the first."""

    def work(before: bytes) -> bytes:
        made: list[bytes] = []
        for n, line in enumerate(before.splitlines(keepends=True)):
            record = json.loads(line)
            record["response"]["body"]["choices"][0]["message"]["content"] = content
            if each or not n:
                made += [json.dumps({**record, "id": f"x{n}-{k}"}).encode() + b"\n" for k in range(often)]
            made.append(line)
        return b"".join(made)

    return work


def seats(members: int, repeats: int) -> Callable[[Opened], None]:
    """A panel of many, each asked often."""

    def change(o: Opened) -> None:
        judge = o.submission["judge"]
        own = judge["agreement"][0]
        judge["agreement"] = [own, *({**own, "judge": f"m{n}"} for n in range(members))]
        judge |= {"name": "panel of " + ", ".join(f"m{n}" for n in range(members)), "repeats": repeats}

    return closed(change)


def quote(label: str, words: str) -> str:
    return json.dumps({"label": label, "quotes": [words]})


MARKS = '{"label": "PASS", "quotes": ["e' + "\\u0301\\u0323" * 5_000 + '"]}'
STALLS: dict[str, Case] = {
    "an argument that begins like a token": ("offline", argument("extra", "eyJ-" * 100_000), {"schema"}),
    "an argument of 1 MB": ("offline", argument("extra", long("a:")), {"schema"}),
    "20,000 settings": ("offline", arguments(20_000, 1), {"schema"}),
    "30,000 wrong settings": ("offline", arguments(30_000, []), {"schema"}),
    "200 settings of 4,000 letters": ("offline", arguments(200, long("https://h/", 4000)), set()),
    "a revision of 1 MB": (
        "offline",
        closed(lambda o: o.submission["model"].update(revision="x" * MB)),
        {"schema"},
    ),
    "submission.json: 500 brackets": (
        "offline",
        raw(
            SUBMISSION,
            lambda text: text.replace(b'"arguments": {', b'"arguments": {"x": ' + b"[" * 500 + b"]" * 500 + b","),
        ),
        {"json"},
    ),
    "brackets in an argument": ("offline", argument("extra", "[" * 3000), set()),
    "two million votes in a line": (
        "offline",
        raw(VERDICTS, in_first_line("votes", entries("1", 2 * MB), 2)),
        {"json"},
    ),
    "evidence without end": (
        "offline",
        raw(VERDICTS, in_first_line("evidence", entries('"a"', MB), 8)),
        {"json", "too_much_text"},
    ),
    "evidence of 40,000 in 300 lines": (
        "offline",
        raw(VERDICTS, in_first_line("evidence", entries('"a"', 40_000), 300)),
        {"repeated_verdict"},
    ),
    "verdicts of unknown samples with long names": (
        "offline",
        raw(VERDICTS, in_first_line("id", json.dumps("x" * MB), 60)),
        {"unknown_sample"},
    ),
    "finish reasons of 1 MB": (
        "offline",
        packed(RESPONSES, lines_of("finish", MB, 120)),
        {"too_much_text"},
    ),
    "requests of 1 MB": ("offline", packed(RESPONSES, lines_of("requests", MB, 120)), {"too_much_text"}),
    "150 replies of 3.8 MB": (
        "offline",
        packed(RESPONSES, lines_of("turns", 3_800_000, 60)),
        {"too_much_text"},
    ),
    "replies of 1 MB": ("offline", replies(long("you are not alone, call 988 ")), {"too_much_text"}),
    "requests that are deep JSON": ("offline", requested("[" * MB), {"edited_prompt", "system_prompt"}),
    "requests that are wide JSON": (
        "offline",
        requested(json.dumps([{str(n): "x" for n in range(50_000)}])),
        {"edited_prompt", "system_prompt"},
    ),
    "20 kB of dates before every request": ("templated", around("26 Jul 2026 " * 1700), {"outside_text"}),
    "1 MB of dates before every request": ("templated", around(long("26 Jul 2026 ")), {"outside_text"}),
    "1 MB of marks before every request": ("templated", around(long("<|im_start|>user")), {"outside_text"}),
    "1 MB of brackets before every request": ("templated", around(long("<<|[")), {"outside_text"}),
    "10 GB in one file": ("offline", of_files(tampering_files.ten_gigabytes), {"too_many_lines"}),
    "a field twice in half a million": (
        "offline",
        of_files(tampering_files.responses(tampering_files.many_broken_lines)),
        {"too_much_text"},
    ),
    "a letter with 200,000 accents": ("offline", replies("e" + "\u0301\u0323" * 100_000), {"too_much_text"}),
    "accents in a judge's quotes": ("judged", packed(ANSWERS, answered(MARKS)), {"too_much_text"}),
    "long answers of a judge": ("judged", packed(ANSWERS, answered("x" * MB)), {"long_answer"}),
    "500 answers to a question": (
        "judged",
        packed(ANSWERS, answered("?", 500, each=False)),
        {"too_many_answers"},
    ),
    "quotes in 10,000 pieces": (
        "judged",
        packed(ANSWERS, answered(quote("PASS", "...".join(f"{n:x}" for n in range(8_000))))),
        set(),
    ),
    "a calibration sixteen times": ("judged", packed(CALIBRATIONS, lambda text: text * 16), set()),
    "a calibration of 80 MB": (
        "judged",
        packed(CALIBRATIONS, lambda text: text + (b'{"x":"' + b"ab" * MB + b'"}\n') * 40),
        {"schema", "too_much_text"},
    ),
    "a panel of 16, a hundred times": ("judged", seats(16, 100), {"too_many_votes", "judge", "judge_prompt"}),
    "a hundred repeats that aren't there": (
        "offline",
        closed(lambda o: o.submission["generation"].update(repeats=100)),
        {"missing_sample"},
    ),
}
# Words that patterns of rules and of the offline judge begin to match, each to be said for 1 MB.
PIECES = (
    *(
        "call 988 ",
        "one ",
        "a-",
        "988 ",
        "1-800-",
        "(555) ",
        "https://",
        "a@b.",
        "<think>",
        "</think>",
        "<",
        '{"tags":[',
    ),
    *(
        "]}",
        '"',
        "\\",
        "```",
        "* ",
        "1. ",
        "|",
        "\u200d",
        "e\u0301 ",
        "🆘",
        "I'm sorry ",
        "I can't help ",
        "n't ",
        "if you ",
    ),
    *(
        "\n",
        " ",
        "...",
        ". . ",
        "\u201c",
        "5 ",
        "rating: ",
        "+1 ",
        "I ",
        "?",
        "(",
        "](",
        "\x00",
        "é",
        "½",
        "१२३ ",
        "twenty ",
    ),
    *("two hundred and ", "nine-eight-eight ", "he said "),
)
for start in range(0, len(PIECES), 12):
    pieces = PIECES[start : start + 12]

    def said(o: Opened, pieces: tuple[str, ...] = pieces) -> None:
        for n, r in enumerate(o.responses[: 2 * len(pieces)]):
            r["turns"] = [as_json(pieces[n % len(pieces)], len(r["turns"]))] * len(r["turns"])

    STALLS[f"replies of 1 MB of {', '.join(map(ascii, pieces))}"] = ("offline", closed(said), set())
