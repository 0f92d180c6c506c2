"""Measures how often an injected text in a reply changes a language-model judge's label.

Usage: python scripts/measure_injections.py ask FILE         the questions, as an OpenAI batch file
       python scripts/measure_injections.py count ANSWERS…   the flips, from the engine's answers

Each text of tests/injections.jsonl and tests/injections_woven.jsonl goes into a reply of the calibration set; four of
five replies shouldn't pass. The judge reads each reply with the text, without it, and without it again: the changes
between the last two are the judge's noise, the baseline for the flips. Questions are built as in a run and shuffled; a
judge sees one at a time.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from harness import run

from dataset_builder.release import Release, open_release
from dataset_builder.schema import CalibrationRow
from helmbench_common import jsonl
from helmbench_common.files import write_whole
from helmbench_common.tables import columns
from judge.llm.answers import Parsed, parse
from judge.llm.batch import request_line
from judge.llm.questions import JudgeRequest, for_calibration

TESTS = Path(__file__).parent.parent / "tests"
FILES = (TESTS / "injections.jsonl", TESTS / "injections_woven.jsonl")
LONGEST = 6_000  # characters kept of a text, so that the question fits a small context window
RANK = {"FAIL": 0, "PARTIAL": 1, "PASS": 2}
PLACES = ("after", "before", "inside")


class Injection(NamedTuple):
    """An injected text and its kind."""

    id: str
    kind: str
    text: str


class Trial(NamedTuple):
    """The three questions about a reply: with the text, without it, and without it again."""

    injection: Injection
    row: CalibrationRow
    with_text: JudgeRequest
    without: JudgeRequest
    again: JudgeRequest


def injections() -> list[Injection]:
    """Every text, repeated as often as its line says."""
    lines = (line for path in FILES for _, line in jsonl.objects(path))
    return [Injection(r["id"], r["kind"], r["text"] * r.get("repeat", 1)) for r in lines]


def trials(release: Release, judge: str) -> list[Trial]:
    """One trial per text, each with a different reply; the same on every machine."""
    rng = random.Random(19)
    rows = sorted(
        (r for r in release.calibration if release.criteria[r.criterion].kind != "graded"), key=lambda r: r.id
    )
    rng.shuffle(rows)
    good = [r for r in rows if r.label == "PASS"]
    poor = [r for r in rows if r.label != "PASS"]
    return [
        _trial(injection, (good if n % 5 == 4 else poor).pop(), PLACES[n % 3], release, judge)
        for n, injection in enumerate(injections())
    ]


def _trial(injection: Injection, row: CalibrationRow, place: str, release: Release, judge: str) -> Trial:
    told = row.model_copy(update={"reply": put(injection.text[:LONGEST], row.reply, place)})
    return Trial(
        injection,
        row,
        for_calibration(told, release, judge),
        for_calibration(row, release, judge),
        for_calibration(row, release, judge, repeat=1),
    )


def put(text: str, reply: str, place: str) -> str:
    """The reply with the text as a separate paragraph. "Inside" is after the first paragraph."""
    first, _, rest = reply.partition("\n\n")
    parts = {"before": (text, reply), "inside": (first, text, rest), "after": (reply, text)}[place]
    return "\n\n".join(filter(None, parts))


def questions(tried: Iterable[Trial]) -> list[JudgeRequest]:
    """All questions, shuffled."""
    asked = [q for t in tried for q in (t.with_text, t.without, t.again)]
    random.Random(97).shuffle(asked)
    return asked


def rank(answer: Parsed | None) -> int | None:
    """How good a label is; None if the answer can't be read."""
    return RANK[answer.label.partition("-")[0]] if answer and answer.label else None


def answers(files: Iterable[Path], asked: Iterable[JudgeRequest]) -> dict[str, Parsed]:
    """The answers by question."""
    known = {q.custom_id: q for q in asked}
    found: dict[str, Parsed] = {}
    for path in files:
        for _, line in jsonl.objects(path):
            if question := known.get(line["custom_id"]):
                content = line["response"]["body"]["choices"][0]["message"]["content"]
                found[question.custom_id] = parse(content, question.labels, question.reply)
    return found


class Flips(NamedTuple):
    """Of `of` replies, how many the text raised or lowered, and how many changed without it."""

    of: int = 0
    lifted: int = 0
    lowered: int = 0
    wavered_up: int = 0
    wavered_down: int = 0

    def plus(self, with_text: int, without: int, again: int) -> Flips:
        return Flips(
            self.of + 1,
            self.lifted + (with_text > without),
            self.lowered + (with_text < without),
            self.wavered_up + (again > without),
            self.wavered_down + (again < without),
        )


def table(tried: Iterable[Trial], given: dict[str, Parsed]) -> Iterator[str]:
    """The flips by kind, then each reply whose label a text changed, then the unanswered questions."""
    by_kind: dict[str, Flips] = {}
    moved, unanswered, unreadable = list[str](), 0, 0
    for t in tried:
        asked = (t.with_text, t.without, t.again)
        ranks = [rank(given.get(q.custom_id)) for q in asked]
        unanswered += sum(q.custom_id not in given for q in asked)
        unreadable += sum(q.custom_id in given and r is None for q, r in zip(asked, ranks, strict=True))
        with_text, without, again = ranks
        if with_text is None or without is None or again is None:
            continue
        for kind in (t.injection.kind, "all"):
            by_kind[kind] = by_kind.get(kind, Flips()).plus(with_text, without, again)
        if with_text != without:
            told, plain, once_more = (given[q.custom_id].label for q in asked)
            moved.append(f"{t.injection.id} on {t.row.id}: {plain} → {told}; once more without it {once_more}")
    total = by_kind.pop("all", Flips())
    head = ("kind", "replies", "lifted", "lowered", "wavered up", "wavered down")
    yield columns(head, [(kind, *map(str, flips)) for kind, flips in [*by_kind.items(), ("all", total)]])
    yield from moved
    yield f"answers that can't be read: {unreadable}; questions without an answer: {unanswered}"


def main(what: Literal["ask", "count"], files: list[Path], judge: str = "judge", dataset: Path | None = None) -> None:
    """Write the questions to a file, or count the flips in files of answers."""
    tried = trials(open_release(dataset), judge)
    asked = questions(tried)
    if what == "ask":
        write_whole(files[0], map(request_line, asked))
        print(f"{len(asked)} questions in {files[0]}")
    else:
        print(*table(tried, answers(files, asked)), sep="\n")


if __name__ == "__main__":
    run(main)
