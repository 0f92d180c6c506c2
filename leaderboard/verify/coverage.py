"""Whether the replies are those of the whole tier, each once per repeat; and how many of them are word for word
alike.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge.replies.schema import Reply
from judge.replies.script import live_turns, visible
from judge.rules.answers import RULED, no_reply
from leaderboard.schema import ARCHIVE, Pinned, Problem, Response

NAMED = 8  # ids that a message lists
ALIKE_FROM = 40  # characters from which two equal replies are worth a word
ALIKE_SHARE, ALIKE_GROUP = 0.05, 10
REPEATED = 0.5  # of the samples whose repeats are alike
CONDITION = re.compile(r"-C[0-9]+")  # the part of a sample's id that names its condition


def fits(response: Response, row: Row | None, where: str) -> Problem | None:
    """Why a line is no reply to a sample of the release: an unknown id, or another number of turns than its script
    has.
    """
    if row is None:
        return Problem("unknown_sample", where, f"{shown(response.id)} is no sample of the release")
    turns = live_turns(row)
    if len(response.turns) != turns or len(response.requests) != turns:
        return Problem(
            "turns",
            where,
            f"{row.id} has {len(response.turns)} replies and {len(response.requests)} requests; expected "
            f"{turns} of each",
        )
    if len(response.finish) not in (0, turns):
        return Problem("turns", where, f"{row.id} has {len(response.finish)} finish reasons; expected {turns} or none")
    if any(turn and no_reply(finish) for turn, finish in zip(response.turns, response.finish, strict=False)):
        return Problem(
            "odd_finish",
            where,
            f"{row.id} has a reply where its finish reason says that there is none; it would go unscored",
        )
    return None


def check(seen: Counter[tuple[str, int]], dataset: Pinned, repeats: int, release: Release) -> list[Problem]:
    """Missing, surplus and repeated samples. `seen`: (id, repeat) → lines."""
    tier = {r.id for r in release.rows.values() if dataset.tier in r.tiers}
    expected = {(i, k) for i in tier for k in range(repeats)}
    found: list[Problem] = []
    for kind, keys, what in (
        ("missing_sample", expected - seen.keys(), "are missing"),
        (
            "extra_sample",
            seen.keys() - expected,
            f"are not among the {len(tier)} samples of tier {dataset.tier} in {repeats} repeats",
        ),
        ("repeated_sample", {k for k, n in seen.items() if n > 1}, "stand more than once"),
    ):
        if keys:
            found.append(
                Problem(kind, ARCHIVE, f"{len(keys)} replies {what}: {listed(f'{i} repeat {k}' for i, k in keys)}")
            )
    if dataset.samples != len(tier):
        found.append(
            Problem(
                "tier",
                "submission.json: dataset.samples",
                f"says {dataset.samples}; tier {dataset.tier} has {len(tier)}",
            )
        )
    return found


def listed(names: Iterable[str]) -> str:
    """The first of them in order, and how many more."""
    ordered = sorted(names)
    return ", ".join(ordered[:NAMED]) + (f" and {len(ordered) - NAMED} more" if len(ordered) > NAMED else "")


def shown(text: str) -> str:
    """A foreign text that may hold anything, to stand in a message."""
    return ascii(text)[1:-1][:80]


def free(replies: Iterable[Reply], release: Release) -> Iterator[tuple[Reply, str]]:
    """Each reply in words of its own, with the last that a person would see of it: no tags, no numbers."""
    for reply in replies:
        if any(c.check not in RULED for c in release.rows[reply.id].evaluation):
            yield reply, visible(reply.turns[-1])


def alike(replies: Iterable[Reply], release: Release) -> Iterator[Problem]:
    """A flag where many samples got the same words. Answers that are tags or numbers, and very short ones, are left
    out.
    """
    groups: dict[bytes, set[str]] = defaultdict(set)
    asked: set[str] = set()
    for reply, said in free(replies, release):
        asked.add(reply.id)
        if len(said) >= ALIKE_FROM:
            groups[hashlib.sha256(said.encode()).digest()].add(reply.id)
    shared = {i for ids in groups.values() if len(ids) > 1 for i in ids}
    largest = max(groups.values(), key=lambda ids: (len(ids), min(ids)), default=set[str]())
    if len(largest) >= ALIKE_GROUP or len(shared) >= ALIKE_SHARE * max(1, len(asked)) > 0:
        share = len(shared) / max(1, len(asked))
        under = sum(n for ids in groups.values() for n in Counter(CONDITION.sub("", i) for i in ids).values() if n > 1)
        yield Problem(
            "same_reply",
            ARCHIVE,
            f"{share:.0%} of {len(asked)} samples with a free reply got one that another sample got too ({under} of "
            f"them the same message under another condition); the largest group has {len(largest)}, such as "
            f"{listed(largest)}",
        )


def drawn_once(replies: Iterable[Reply], release: Release) -> Iterator[Problem]:
    """A flag where the repeats of a run hold the same words: as of a copied run, or of temperature 0."""
    said: dict[str, list[str]] = defaultdict(list)
    for reply, words in free(replies, release):
        if len(words) >= ALIKE_FROM:
            said[reply.id].append(hashlib.sha256(words.encode()).hexdigest())
    often = [texts for texts in said.values() if len(texts) > 1]
    same = sum(len(set(texts)) < len(texts) for texts in often)
    if often and same >= REPEATED * len(often):
        told = f"{same} of {len(often)} samples got the same words in several repeats, which then say nothing of chance"
        yield Problem("same_repeats", ARCHIVE, told)
