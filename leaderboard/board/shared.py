"""What two submissions share: replies, and questions to the same judge that it is said to have answered differently."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from helmbench_common.hashing import digest
from judge.schema import Vote
from leaderboard.board.gather import Checked
from leaderboard.board.rows import Entry
from leaderboard.verify.coverage import REPEATED, free_text

SHARE, LEAST = 0.1, 5  # flag from this share of the smaller submission's replies, and this many replies


@dataclass(frozen=True)
class Content:
    """What of a submission is compared with others.

    `replies`: hashes of the replies that only one sample got. A canned reply to many samples identifies no run.
    `answers`: a language model's label by the question's hash.
    """

    replies: frozenset[str]
    answers: dict[str, str]


def content(checked: Checked) -> Content:
    """What of an accepted submission is compared with others."""
    samples: dict[str, set[str]] = defaultdict(set)
    for reply, said in free_text(checked.verified.replies, checked.release):
        samples[digest(said)].add(reply.id)
    replies = frozenset(digest([said, *ids]) for said, ids in samples.items() if len(ids) == 1)
    return Content(replies, dict(_answers(checked)))


def _answers(checked: Checked) -> Iterator[tuple[str, str]]:
    """Each question that a language model was asked, one per repeat of the judge, and its label with the incident."""
    verified = checked.verified
    assert verified.submission
    prompts = {a.judge.casefold(): a.prompt_hash for a in verified.submission.judge.agreement}
    turns = {(r.id, r.repeat): r.turns for r in verified.replies}
    for v in verified.verdicts:
        if v.decided_by not in ("judge", "panel"):
            continue
        asked = [checked.release.manifest.score_hash, v.id, v.index, turns[v.id, v.repeat][: v.turn]]
        alone = Vote(judge=v.judge or "", label=v.outcome or v.label, incident=v.incident)
        for vote in v.votes or (alone,):
            if vote.label is not None:
                judge = vote.judge.casefold()
                yield digest([*asked, judge, prompts.get(judge), vote.repeat]), f"{vote.label} {vote.incident}"


def flag(entries: Iterable[Entry], contents: Mapping[str, Content]) -> dict[str, Entry]:
    """The entries by name, each flagged with what it shares with others: one model under two names, one run submitted
    twice, copied replies, or a judge's answers that can't all be real. `contents`: by entry name.
    """
    found = {e.name: e for e in entries}
    flags = {name: _Flags() for name in found}
    for a, b, shared in _pairs({name: contents[name].replies for name in found}):
        share = shared / min(len(contents[a].replies), len(contents[b].replies))
        # At temperature 0, runs of one model share replies, too.
        if shared >= LEAST and share >= (REPEATED if _same_model(found[a], found[b]) else SHARE):
            for own, other in ((a, b), (b, a)):
                name = _name(found[own], found[other])
                flags[own].replies[name] = max(share, flags[own].replies.get(name, 0))
    for a, b, asked in _pairs({name: contents[name].answers.keys() for name in found}):
        one, two = contents[a].answers, contents[b].answers
        if differ := sum(label != two[question] for question, label in one.items() if question in two):
            for own, other in ((a, b), (b, a)):
                name = _name(found[own], found[other])
                said = f"the judge labeled {differ} of {asked} questions differently that were also asked about {name}"
                flags[own].answers[name] = max((differ, said), flags[own].answers.get(name, (0, "")))
    return {name: replace(e, flags=(*e.flags, *flags[name].texts())) for name, e in found.items()}


class _Flags:
    """The flags of one entry, by other run. `replies`: the largest share of equal ones; `answers`: how many the judge
    gave differently, and what to say of them.
    """

    def __init__(self) -> None:
        self.replies: dict[str, float] = {}
        self.answers: dict[str, tuple[int, str]] = {}

    def texts(self) -> list[str]:
        said = [text for _, (_, text) in sorted(self.answers.items())]
        if not self.replies:
            return said
        most, names = max(self.replies.values()), ", ".join(sorted(self.replies))
        if len(self.replies) == 1:
            return [f"{most:.0%} of the replies are identical to those of {names}", *said]
        return [f"replies identical to those of {len(self.replies)} other runs: up to {most:.0%}, of {names}", *said]


def _pairs(held: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str, int]]:
    """Two submissions that hold the same hashes, and how many."""
    holders: dict[str, list[str]] = defaultdict(list)
    for name in sorted(held):
        for key in held[name]:
            holders[key].append(name)
    common = Counter(pair for names in holders.values() for pair in combinations(names, 2))
    return ((a, b, shared) for (a, b), shared in sorted(common.items()))


def _same_model(a: Entry, b: Entry) -> bool:
    return a.model.casefold() == b.model.casefold()


def _name(own: Entry, other: Entry) -> str:
    """The other run, as a reader of this one's row finds it."""
    if not _same_model(own, other):
        return other.model
    return f"another run of this model, {other.name}"
