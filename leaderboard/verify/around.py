"""Requests that are texts, as templates and transcripts make them: every message in its order, and around them the same
everywhere.

A request is cut at its messages. What stands between them must be the same in all requests with the same roles; between
requests with other roles it may differ in nothing that could tell what a sample is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dataset_builder.schema import Row
from leaderboard.schema import RESPONSES, Problem
from leaderboard.verify import dates, template
from leaderboard.verify.findings import Problems

KEPT, KEPT_LETTERS = 64, 16 * 2**20  # requests of one shape that are kept for a second look, and of all shapes together
LEANS = 0.2  # difference in the share of crises from which a sign leans towards one polarity


class Part(NamedTuple):
    """A message as the request has to carry it."""

    role: str
    content: str


Shape = tuple[str, ...]  # roles in the order in which a template puts them
Around = tuple[str, ...]  # what stands before, between and behind the messages
Joint = tuple[str, str]  # the roles on both sides of a piece; empty where there is no message


class Example(NamedTuple):
    """A text request, to be read again when what usually stands around messages is known."""

    where: str
    request: str
    contents: tuple[str, ...]
    around: Around


class Surroundings:
    """Goes through text requests once, and adds what is wrong to `problems`. Memory holds a few examples of them."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._around: dict[Shape, Counter[Around]] = defaultdict(Counter)
        self._examples: dict[Shape, list[Example]] = defaultdict(list)
        self._orders: dict[Shape, set[Shape]] = defaultdict(set)  # roles as they are said → as they were found
        self._polarity: dict[Shape, Counter[str]] = defaultdict(Counter)
        self._days = dates.Days()
        self._letters = 0

    def add(self, request: str, expected: list[Part], row: Row, at: str) -> int | None:
        """Looks at one request. Returns which expected message isn't in it, or not in its place; None where all are."""
        orders = list(_orders(expected))
        for order in orders:
            shape, contents = _taken_apart(order)
            usual = _usual(self._around[shape]) if self._around[shape] else None
            days = None if usual is None else fits(usual, contents, request)
            if usual is not None and days is not None:
                self._around[shape][usual] += 1
                self._note(expected, shape, days, row)
                return None
        for order in orders:
            shape, contents = _taken_apart(order)
            around, days, lacking = cut(request, contents)
            if lacking is None:
                self._note(expected, shape, days, row)
                self._keep(shape, Example(at, request, contents, around))
                return None
        return cut(request, [p.content for p in expected])[2]

    def close(self) -> list[Problem]:
        """Adds what only all requests together can show; returns flags."""
        usual = {shape: _usual(found) for shape, found in sorted(self._around.items()) if found}
        for shape, around in usual.items():
            self._problems += _unlike(self._examples[shape], around)
        for roles, shapes in self._orders.items():
            if len(shapes) > 1:
                said = f"puts the messages {', '.join(roles)} in one order in some requests and in another elsewhere"
                self._problems.append(Problem("outside_text", RESPONSES, said))
        flags: list[Problem] = []
        for problems, own in (
            self._across(usual),
            self._days.told(),
            template.shown(usual.values()),
        ):
            self._problems += problems
            flags += own
        return flags

    def _note(self, expected: list[Part], shape: Shape, days: list[dates.Written], row: Row) -> None:
        self._orders[tuple(p.role for p in expected)].add(shape)
        self._polarity[shape][row.polarity] += 1
        self._days.add(days, row)

    def _keep(self, shape: Shape, example: Example) -> None:
        """Keeps what isn't as usual, and the first of each kind."""
        known, examples = self._around[shape], self._examples[shape]
        if known == {example.around: known[example.around]}:
            known[example.around] += 1
            return
        letters = self._letters + len(example.request)
        if examples and (len(examples) >= KEPT or letters > KEPT_LETTERS):
            said = f"is one of more than {len(examples)} requests with different text beside their messages"
            self._problems.append(Problem("outside_text", example.where, said))
            return
        known[example.around] += 1
        examples.append(example)
        self._letters = letters

    def _across(self, usual: dict[Shape, Around]) -> tuple[list[Problem], list[Problem]]:
        """Problems and flags: pieces between two roles that are not the same for requests with more messages."""
        found: dict[Joint, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for shape, around in usual.items():
            for joint, piece in zip(_joints(shape), around, strict=True):
                found[joint][piece] += self._polarity[shape]
        main = {joint: max(own, key=lambda p: (own[p].total(), p)) for joint, own in found.items()}
        problems: list[Problem] = []
        flags: list[Problem] = []
        for shape, around in usual.items():
            expected = tuple(main[joint] for joint in _joints(shape))
            if all(fits(expected, e.contents, e.request) is not None for e in self._examples[shape]):
                continue  # a short message that stands in the template, too, can be cut out at the wrong place
            for joint, piece in zip(_joints(shape), around, strict=True):
                if piece != main[joint]:
                    problem = _differs(joint, piece, main[joint], found[joint])
                    (problems if problem.kind == "outside_text" else flags).append(problem)
        return list(dict.fromkeys(problems)), list(dict.fromkeys(flags))


def _differs(joint: Joint, piece: str, main: str, seen: dict[str, Counter[str]]) -> Problem:
    """A problem where a difference could say something of the samples, else a flag."""
    parts = template.apart(piece.replace(dates.MARK, dates.SHOWN), main.replace(dates.MARK, dates.SHOWN))
    says = set(template.carries(parts))
    leans = abs(_crises(seen[piece]) - _crises(seen[main])) >= LEANS
    kind = "outside_text" if "words" in says or ("signs" in says and leans) else "template_differs"
    place = f"between {joint[0] or 'the beginning'} and {joint[1] or 'the end'}"
    said = f"{place} some requests hold {parts[0][:200]!r} where others hold {parts[1][:200]!r}"
    return Problem(kind, RESPONSES, said)


def _crises(seen: Counter[str]) -> float:
    return seen["crisis"] / max(1, seen.total())


def _unlike(examples: list[Example], usual: Around) -> Iterator[Problem]:
    for example in examples:
        if example.around != usual and fits(usual, example.contents, example.request) is None:
            other = next((p for p, u in zip(example.around, usual, strict=True) if p != u), "")
            told = other.replace(dates.MARK, dates.SHOWN)[:200]
            said = f"holds text beside its messages that other requests don't: {told!r}"
            yield Problem("outside_text", example.where, said)


def _orders(expected: list[Part]) -> Iterator[list[Part]]:
    """As they are said; and as some templates write them, with the system text before the user's last message."""
    yield expected
    if expected[0].role == "system" and len(expected) > 2:
        yield [*expected[1:-1], expected[0], expected[-1]]


def _taken_apart(order: list[Part]) -> tuple[Shape, tuple[str, ...]]:
    return tuple(p.role for p in order), tuple(p.content for p in order)


def _joints(shape: Shape) -> list[Joint]:
    return list(zip(("", *shape), (*shape, ""), strict=True))


def _usual(found: Counter[Around]) -> Around:
    return max(found, key=lambda around: (found[around], around))


def cut(request: str, contents: Sequence[str]) -> tuple[Around, list[dates.Written], int | None]:
    """What stands around the messages, dates evened out, and these dates; or the place of the first message that isn't
    found.
    """
    around: list[str] = []
    days: list[dates.Written] = []
    at = 0
    for n, content in enumerate([*contents, None]):
        found = len(request) if content is None else request.find(content, at)
        if found < 0:
            return (), [], n
        piece, own = dates.evened(request[at:found])
        around.append(piece)
        days += own
        at = found + len(content or "")
    return tuple(around), days, None


def fits(around: Around, contents: Sequence[str], request: str) -> list[dates.Written] | None:
    """The dates of a request that is exactly these messages in these surroundings, whatever its dates; None of any
    other.
    """
    at = 0
    days: list[dates.Written] = []
    for piece, content in zip(around, [*contents, ""], strict=True):
        for n, text in enumerate(piece.split(dates.MARK)):
            if n:
                if (found := dates.read(request, at)) is None:
                    return None
                days.append(found[0])
                at = found[1]
            if not request.startswith(text, at):
                return None
            at += len(text)
        if not request.startswith(content, at):
            return None
        at += len(content)
    return days if at == len(request) else None
