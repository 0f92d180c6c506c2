"""Submissions that try to keep the verifier busy or fill its memory: small files, each large in one way.

Refused or not, verifying each must end soon, with little memory and without a traceback.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from leaderboard.schema import ANSWERS, CALIBRATIONS, RESPONSES, VERDICTS
from leaderboard.verify import files
from support.submission_runs import Opened, unpacked
from support.tampering import requests

Case = tuple[str, Callable[[Opened], Any], set[str]]  # the base, the change, kinds of problems of which one is expected
MB = 10**6


def closed(change: Callable[[Opened], Any]) -> Callable[[Opened], None]:
    """A change to the parts, which are then put together again."""

    def work(o: Opened) -> None:
        change(o)
        o.close()

    return work


def packed(name: str, change: Callable[[bytes], bytes]) -> Callable[[Opened], None]:
    """Changes the lines of a file and signs it."""

    def work(o: Opened) -> None:
        path = o.close() / name
        if path.suffix == ".gz":
            files.pack(path, [change(unpacked(path))])
        else:
            path.write_bytes(change(path.read_bytes()))
        files.sign(o.folder)

    return work


def with_line(field: str, text: str, times: int = 1) -> Callable[[bytes], bytes]:
    """The first line several times, with another JSON text in a field; then all lines."""

    def work(before: bytes) -> bytes:
        record = json.loads(before.partition(b"\n")[0])
        return json.dumps({**record, field: "@@"}).replace('"@@"', text).encode().join([b"", b"\n"]) * times + before

    return work


def entries(entry: str, count: int) -> str:
    return "[" + ",".join([entry] * count) + "]"


def replies(*texts: str) -> Callable[[Opened], None]:
    """Replies with these texts in turn, for every sample."""

    def change(o: Opened) -> None:
        for n, r in enumerate(o.responses):
            r["turns"] = [texts[n % len(texts)]] * len(r["turns"])

    return closed(change)


def long_lines(field: str, size: int, count: int) -> Callable[[bytes], bytes]:
    """As many lines of an unknown repeat, each with a text of this size."""

    def work(before: bytes) -> bytes:
        record = json.loads(before.partition(b"\n")[0])
        own = ["x" * size] * max(1, len(record[field]))
        return b"".join(json.dumps({**record, field: own, "repeat": n}).encode() + b"\n" for n in range(count)) + before

    return work


def answered(content: str, often: int = 1, each: bool = True) -> Callable[[bytes], bytes]:
    """Judge's answers with this text before each real one, or before the first."""

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


def panel(members: int, repeats: int) -> Callable[[Opened], None]:
    """A panel of many judges, each asked many times."""

    def change(o: Opened) -> None:
        judge = o.submission["judge"]
        own = judge["agreement"][0]
        judge["agreement"] = [own, *({**own, "judge": f"m{n}"} for n in range(members))]
        judge |= {"name": "panel of " + ", ".join(f"m{n}" for n in range(members)), "repeats": repeats}

    return closed(change)


PIECES_QUOTED = json.dumps({"label": "PASS", "quotes": ["...".join(f"{n:x}" for n in range(8_000))]})
STALLS: dict[str, Case] = {
    "two million votes in a line": (
        "offline",
        packed(VERDICTS, with_line("votes", entries("1", 15 * MB // 10), 2)),
        {"schema"},
    ),
    "replies of 3.8 MB": ("offline", packed(RESPONSES, long_lines("turns", 3_800_000, 60)), {"too_much_text"}),
    "replies of 1 MB": ("offline", replies("you are not alone, call 988 " * (MB // 28)), {"too_much_text"}),
    "requests that are deep JSON": ("offline", closed(requests(lambda t: "[" * MB)), {"mixed_requests"}),
    "1 MB of marks before every request": (
        "templated",
        closed(requests(lambda t: "<|im_start|>user" * (MB // 16) + t)),
        {"outside_text"},
    ),
    "long answers of a judge": ("judged", packed(ANSWERS, answered("x" * MB)), {"long_answer"}),
    "500 answers to a question": ("judged", packed(ANSWERS, answered("?", 500, each=False)), {"too_many_answers"}),
    "quotes in 8,000 pieces": ("judged", packed(ANSWERS, answered(PIECES_QUOTED)), set()),
    "a calibration of 80 MB": (
        "judged",
        packed(CALIBRATIONS, lambda text: text + (b'{"x":"' + b"ab" * MB + b'"}\n') * 40),
        {"schema", "too_much_text"},
    ),
    "a panel of 16, a hundred times": ("judged", panel(16, 100), {"too_many_votes", "judge", "judge_prompt"}),
}
# Words at which patterns of the rules and the offline judge begin to match, 1 MB of each.
PIECES = (
    *("call 988 ", "one ", "a-", "988 ", "1-800-", "(555) ", "https://", "a@b.", "<think>", "</think>", "<", "```"),
    *('{"tags":[', "]}", '"', "\\", "* ", "1. ", "|", "\u200d", "e\u0301 ", "🆘", "I'm sorry ", "I can't help "),
    *("n't ", "if you ", "\n", " ", "...", ". . ", "\u201c", "5 ", "rating: ", "+1 ", "I ", "?", "(", "](", "\x00"),
    *("é", "½", "१२३ ", "twenty ", "two hundred and ", "nine-eight-eight ", "he said "),
)
