"""Whether the replies are those of the whole tier, each once per repeat, and how many of them are equal."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from dataset_builder.release import Release
from dataset_builder.schema import RULED, Row
from helmbench_common.formats.refused import shown
from judge.replies.schema import Reply
from judge.replies.script import live_turns, visible
from judge.rules.answers import no_reply
from leaderboard.schema import RESPONSES, SUBMISSION, Pinned, Problem, Response

NAMED = 8  # ids that a message lists
EQUAL_FROM = 40  # characters from which two equal replies are worth mentioning
EQUAL_SHARE, EQUAL_GROUP = 0.05, 10
REPEATED = 0.5  # share of the samples whose repeats are equal
MARKS = 128  # combining marks in a row; normalizing sorts them, which takes the square of their number
STACKED = re.compile(f"[{''.join(c for c in map(chr, range(0x20000)) if unicodedata.combining(c))}]{{{MARKS + 1}}}")


def misfit(response: Response, row: Row | None, where: str) -> Problem | None:
    """Why a line isn't a reply to a sample of the release."""
    if row is None:
        return Problem("unknown_sample", where, f"{shown(response.id)[:80]} isn't a sample of the release")
    turns = live_turns(row)
    if len(response.turns) != turns or len(response.requests) != turns or len(response.finish) not in (0, turns):
        said = (
            f"{row.id} has {len(response.turns)} replies, {len(response.requests)} requests and "
            f"{len(response.finish)} finish reasons; expected {turns} of each, or no finish reasons"
        )
        return Problem("turns", where, said)
    if any(turn and no_reply(finish) for turn, finish in zip(response.turns, response.finish, strict=False)):
        said = f"{row.id} has a reply and a finish reason that says there is none; it would go unscored"
        return Problem("odd_finish", where, said)
    if any(map(STACKED.search, response.turns)):
        return Problem("too_much_text", where, f"has more than {MARKS} combining marks in a row")
    return None


def check(seen: Counter[tuple[str, int]], dataset: Pinned, repeats: int, release: Release) -> Iterator[Problem]:
    """Missing, extra and repeated samples. `seen`: (id, repeat) → lines."""
    tier = {r.id for r in release.rows.values() if dataset.tier in r.tiers}
    expected = {(i, k) for i in tier for k in range(repeats)}
    for kind, keys, what in (
        ("missing_sample", expected - seen.keys(), "are missing"),
        ("extra_sample", seen.keys() - expected, f"aren't in tier {dataset.tier} with {repeats} repeats"),
        ("repeated_sample", {k for k, n in seen.items() if n > 1}, "appear more than once"),
    ):
        if keys:
            said = f"{len(keys)} replies {what}: {listed(f'{i} repeat {k}' for i, k in keys)}"
            yield Problem(kind, RESPONSES, said)
    if dataset.samples != len(tier):
        said = f"is {dataset.samples}; tier {dataset.tier} has {len(tier)}"
        yield Problem("tier", f"{SUBMISSION}: dataset.samples", said)


def listed(names: Iterable[str]) -> str:
    """The first names in order, and how many more there are."""
    ordered = sorted(names)
    return ", ".join(ordered[:NAMED]) + (f" and {len(ordered) - NAMED} more" if len(ordered) > NAMED else "")


def free_text(replies: Iterable[Reply], release: Release) -> Iterator[tuple[Reply, str]]:
    """Each reply that isn't only tags or numbers and is long enough to compare, with its last visible turn."""
    for reply in replies:
        if any(c.check not in RULED for c in release.rows[reply.id].evaluation):
            said = visible(reply.turns[-1])
            if len(said) >= EQUAL_FROM:
                yield reply, said


def equal_replies(replies: Iterable[Reply], release: Release) -> Iterator[Problem]:
    """A flag if many samples got the same text."""
    groups: dict[bytes, set[str]] = defaultdict(set)
    replies = list(replies)
    asked = {r.id for r in replies if any(c.check not in RULED for c in release.rows[r.id].evaluation)}
    for reply, said in free_text(replies, release):
        groups[hashlib.sha256(said.encode()).digest()].add(reply.id)
    shared = {i for ids in groups.values() if len(ids) > 1 for i in ids}
    largest = max(groups.values(), key=lambda ids: (len(ids), min(ids)), default=set[str]())
    if len(largest) >= EQUAL_GROUP or len(shared) >= EQUAL_SHARE * max(1, len(asked)) > 0:
        yield Problem(
            "same_reply",
            RESPONSES,
            f"{len(shared) / max(1, len(asked)):.0%} of {len(asked)} samples with a free reply got one that another "
            f"sample also got; the largest group has {len(largest)}, such as {listed(largest)}",
        )


def equal_repeats(replies: Iterable[Reply], release: Release) -> Iterator[Problem]:
    """A flag if the repeats of a run have the same text, as in a copied run or at temperature 0."""
    texts: dict[str, list[str]] = defaultdict(list)
    for reply, said in free_text(replies, release):
        texts[reply.id].append(said)
    repeated = [own for own in texts.values() if len(own) > 1]
    same = sum(len(set(own)) < len(own) for own in repeated)
    if repeated and same >= REPEATED * len(repeated):
        said = f"{same} of {len(repeated)} samples got the same text in several repeats, which then don't show variance"
        yield Problem("same_repeats", RESPONSES, said)
