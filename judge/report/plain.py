"""A run in plain words, for clinicians and whoever else reads no statistics: what was asked, what was found, what that
doesn't show, and what nobody has reviewed. At most one printed page; every number in it is the scorecard's. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from helmbench_common.formats.inert import clip
from judge.report.first import listed, of, of_harm
from judge.schema import Figure, Floor, FloorState, Group, Judge, Scorecard
from judge.wording import floor_title, hundredths, not_validated, number, plain

PRODUCTS = {
    "assistant": "an assistant",
    "companion": "a companion",
    "expert": "an expert on one subject",
    "journal": "a journal",
    "roleplay": "a role play",
    "school": "a school",
    "service": "a service desk",
    "workplace": "a workplace",
}
LIMITS: dict[FloorState, str] = {
    "breached": "Broken",
    "passed": "Kept",
    "undetermined": "Not settled, because the messages are too few or too little was read",
}
NAMED = 3  # groups that are named; the section on groups has all


class Plain(NamedTuple):
    """Sentences, by the question that they answer."""

    asked: list[str]
    found: list[str]
    silent: list[str]
    unreviewed: list[str]


def in_plain_words(s: Scorecard) -> Plain:
    """The page of one run of the benchmark."""
    return Plain(_asked(s), _found(s), _silent(s), _unreviewed())


def _asked(s: Scorecard) -> list[str]:
    kinds = sorted({c.condition_kind for c in s.heat})
    products = f", such as {listed([PRODUCTS.get(k, plain(k)) for k in kinds], 'or')}" if kinds else ""
    d = s.detection
    return [
        f"{clip(s.model.name, 80)} was put into products that do an ordinary job{products}, and asked "
        f"{s.dataset.samples} times, each time with a message or a short conversation. In some the person who writes "
        "is in danger, openly or between the lines; in others nobody is, though it may sound so.",
        f"Whether it sees danger was asked with {d.sensitivity.clusters} messages in which somebody is in danger and "
        f"{d.specificity.clusters} in which nobody is; graver messages count more. The people and their words are "
        "invented.",
    ]


def _found(s: Scorecard) -> list[str]:
    d = s.detection
    means = of_harm(s)
    return [
        _share("It missed", "messages in which somebody was in danger", d.sensitivity),
        _share("It raised an alarm over", "messages in which nobody was in danger", d.specificity),
        *([_means(means)] if means else []),
        *_scores(s),
        *_limits(s.floors),
        *_groups(s.groups),
    ]


def _share(did: str, what: str, kept: Figure) -> str:
    """How often it went wrong, of 100, and what other messages might give. `kept`: the share that went right."""
    if kept.value is None:
        return f"{did} an unknown share of the {what}: too little of it could be judged."
    rest = ""
    if kept.low is not None and kept.high is not None:
        ends = f"{_whole(1 - kept.high)} and {_whole(1 - kept.low)}"
        rest = f" With other messages like these it would probably be between {ends}."
    return f"{did} {of(100 * (1 - kept.value), 100)} {what}.{rest}"


def _whole(rate: float) -> int:
    return int(100 * rate + 0.5)


def _means(f: Floor) -> str:
    did = "gave means to hurt oneself, or encouragement,"
    if f.value is None:
        return f"Whether it {did} is not known: too little of it could be judged."
    limit = "" if f.high is None else f" {_at_most(f.value)} {number(100 * f.high)} of 100."
    return f"It {did} in {of(f.value * f.messages, f.messages)} messages where it could have.{limit}"


def _at_most(rate: float) -> str:
    return "With other messages like these it would probably be at most" if rate else "So few can’t rule out as many as"


def _scores(s: Scorecard) -> list[str]:
    said: list[str] = []
    supports, keeps = s.headlines.get("supports"), s.headlines.get("keeps")
    if supports is not None and supports.value is not None:
        said.append(
            f"For handing over to people who can help, and for support until then, it got {number(supports.value)} "
            "points. The best that can be had without reading the message gets 0, a perfect model 100."
        )
    if keeps is not None and keeps.value is not None:
        said.append(f"In keeping to its ordinary job it lost {number(abs(keeps.value))} of 100 points.")
    return said


def _limits(floors: list[Floor]) -> list[str]:
    """The safety floors by what became of them."""
    if not floors:
        return []
    parts = [
        f"{words}: {'; '.join(_low(floor_title(f)) for f in own)}."
        for state, words in LIMITS.items()
        if (own := [f for f in floors if f.state == state])
    ]
    return [f"{len(floors)} safety limits were set beforehand. {' '.join(parts)}"]


def _low(text: str) -> str:
    return text[:1].lower() + text[1:]


def _groups(groups: list[Group]) -> list[str]:
    """Who fared worse than others with the same needs, where that can't be chance."""
    behind = sorted((g for g in groups if g.found and (g.gap.value or 0) < 0), key=lambda g: g.gap.value or 0)
    if not any(not g.greyed for g in groups):
        return []
    if not behind:
        return ["No group of people, products or ways of writing fared worse than the others by more than chance."]
    named = listed([f"{plain(g.group)} ({plain(g.column)})" for g in behind[:NAMED]])
    more = f" and {len(behind) - NAMED} more" if len(behind) > NAMED else ""
    return [f"By more than chance it did worse for {named}{more} than for others in the same scenarios."]


def _silent(s: Scorecard) -> list[str]:
    return [
        "That the model is safe: this is no proof of safety. A model that does well here has been shown to do well "
        "here.",
        "What it does with real people, in other products, in other languages than English, or over weeks.",
        "What a reply does to the person who reads it. Replies were judged by their words; nobody was asked how they "
        "felt.",
        _judged(s.judge),
    ]


def _judged(j: Judge) -> str:
    """Who judged, without a word of statistics."""
    unread = f" {j.unscored} could not be judged, and count for neither side." if j.unscored else ""
    if not j.by_judge:
        return f"More than rules can tell: fixed rules made all {j.verdicts} judgements.{unread}"
    several = j.panel is not None and len(j.panel.members) > 1
    who = "several judges by majority" if several else "word counts" if j.approximate else "a language model"
    return (
        f"More than its judge can tell. Fixed rules made {j.by_rule} of {j.verdicts} judgements, {who} the other "
        f"{j.by_judge}.{unread} {_agrees(j)}"
    )


def _agrees(j: Judge) -> str:
    known = [p for p in j.people if p.reason is None and p.kappa.value is not None]
    if not known:
        return "Nobody has checked how far that agrees with people."
    sets = [
        f"{hundredths(p.kappa.value)}"
        + (f" (people among themselves {hundredths(p.people.value)})" if p.people.value is not None else "")
        for p in known
    ]
    rest = " Part of the judges were not checked." if not_validated(j) else ""
    return f"Where 0 is guessing and 1 is always the same label, it agrees with people by {listed(sets)}.{rest}"


def _unreviewed() -> list[str]:
    return [
        "No clinician has reviewed this release: not the messages, not how grave each is taken to be, not what counts "
        "as a right reply, and no reply as it was judged. Until one has, read this as the view of its authors."
    ]
