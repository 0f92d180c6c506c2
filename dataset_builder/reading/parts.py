"""`parts/`: the people whom a simulated user plays in a talk, each with the lines of the built-in user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from dataset_builder.reading.content_types import ConditionText, PartFile, Voice
from dataset_builder.reading.markdown import (
    NOTES,
    Document,
    Errors,
    Part,
    Wrong,
    choice,
    filled,
    integer,
    known_attributes,
    known_keys,
    whole,
)
from dataset_builder.reading.signing import check_review
from dataset_builder.schema import PILLARS, Arc, CrisisCategory, PartRow, PlayedLine, Polarity

KEYS = (
    *("id", "title", "review", "pillar", "polarity", "crisis_category", "arc", "condition", "voice", "turns", "wants"),
    *("shows", "means"),
)
PROSE = ("Person", "Situation", "Tells", "Reactions", "End")
WAYS = ("refuses", "help", "asks", "then")  # what a reply does, in the order in which it counts
CLOSE = ("companion", "roleplay")  # kinds of conditions that no minor meets
ADULT = 18
SHORTEST, USUAL = 7, 10  # messages on any path, and on the path of `then`


def read_part(
    document: Document, errors: Errors, voices: Mapping[str, Voice], conditions: Mapping[str, ConditionText]
) -> PartFile | None:
    """One part; adds an error for everything that a talk can't be played with."""
    wrong, front = errors.at(document.path), document.front_lines
    if not known_keys(document, KEYS, KEYS[:-2], errors):
        return None

    def chosen(key: str, allowed: object) -> str:
        return choice(document.text(key), get_args(allowed) or allowed, key, front[key], wrong)  # type: ignore[arg-type]

    check_review(document, errors)
    chosen("pillar", PILLARS)
    chosen("arc", Arc)
    polarity, category = chosen("polarity", Polarity), chosen("crisis_category", CrisisCategory)
    if (category == "no_crisis") != (polarity == "control"):
        wrong(front["crisis_category"], f"{polarity} with category {category}; expected no_crisis of every control")
    voice, condition = voices.get(chosen("voice", voices)), conditions.get(chosen("condition", conditions))
    if voice and condition and voice.age < ADULT and condition.kind in CLOSE:
        wrong(front["condition"], f"voice '{voice.slug}' is {voice.age}; expected an adult with a {condition.kind}")
    turns = integer(document.text("turns"), 10, 30, "turns", front["turns"], wrong)
    if ("shows" in front) != (polarity == "crisis"):
        wrong(front.get("shows", 1), "a crisis has 'shows', the message by which the danger shows; a control has none")
    shows = integer(document.text("shows"), 1, turns, "shows", front["shows"], wrong) if "shows" in front else None
    prose = [p for p in document.parts if p.name in PROSE]
    if [p.name for p in prose] != [*PROSE] or document.parts[: len(PROSE)] != prose:
        wrong(1, f"expected the headings {', '.join(PROSE)}, in this order, and then the lines from '# 1' on")
        return None
    lines = _lines([p for p in document.parts[len(PROSE) :] if p.name != NOTES], polarity, turns, wrong)
    if errors.found or voice is None or condition is None:
        return None
    texts = {p.name.lower(): filled(p, wrong) for p in prose}
    row = PartRow.model_validate(
        {key: document.text(key) for key in ("id", "title", "pillar", "arc", "wants")}
        | {"polarity": polarity, "crisis_category": category, "turns": turns, "shows": shows, "lines": lines, **texts}
        | {"means": document.text("means") == "yes", "condition": condition.slug, "system": condition.text}
        | {"voice": voice.text, "age": voice.age, "country": voice.country, "first_language": voice.first_language}
        | {"canary": ""}
    )
    return PartFile(document, row, voice.slug)


def _lines(parts: list[Part], polarity: str, turns: int, wrong: Wrong) -> list[PlayedLine]:
    """The built-in user's lines: each names later ones, and every path is long enough and, in a crisis, shows it."""
    lines: list[PlayedLine] = []
    for number, part in enumerate(parts, start=1):
        known_attributes(part, (*WAYS, "danger"), (), wrong)
        if whole(part.name) != number:
            wrong(part.line, f"heading '# {part.name}'; expected '# {number}', since lines are numbered in order")
        to = {way: whole(part.attributes[way]) for way in WAYS if way in part.attributes}
        for way, target in to.items():
            if target is None or not number < target <= len(parts):
                wrong(part.line, f"{way} is '{part.attributes[way]}'; expected a later line, at most {len(parts)}")
        if to and "then" not in to:
            wrong(part.line, f"line {number} has no 'then'; expected one wherever a reply can lead on")
        danger = part.attributes.get("danger") == "yes"
        if danger and polarity == "control":
            wrong(part.line, f"line {number} has 'danger'; a control has none")
        lines.append(PlayedLine(text=filled(part, wrong), danger=danger, **to))
    _paths(lines, polarity, turns, parts[0].line if parts else 1, wrong)
    return lines


def _paths(lines: list[PlayedLine], polarity: str, turns: int, line: int, wrong: Wrong) -> None:
    shortest, longest, unshown = [0] * (len(lines) + 1), [0] * (len(lines) + 1), [False] * (len(lines) + 1)
    usual, n = 0, 1
    for number in range(len(lines), 0, -1):
        own = lines[number - 1]
        nexts = [k for way in WAYS if (k := getattr(own, way)) and number < k <= len(lines)]
        shortest[number] = 1 + min((shortest[k] for k in nexts), default=0)
        longest[number] = 1 + max((longest[k] for k in nexts), default=0)
        unshown[number] = not own.danger and (any(unshown[k] for k in nexts) if nexts else True)
    while 1 <= n <= len(lines):
        following = lines[n - 1].then or 0
        usual, n = usual + 1, following if following > n else 0  # a wrong target may lead back
    if not lines or shortest[1] < SHORTEST or usual < USUAL:
        found = f"the shortest path has {shortest[1] if lines else 0} messages, that of 'then' {usual}"
        wrong(line, f"{found}; expected at least {SHORTEST} and {USUAL}")
    if lines and longest[1] > turns:
        wrong(line, f"the longest path has {longest[1]} messages; expected at most 'turns', {turns}")
    if lines and polarity == "crisis" and unshown[1]:
        wrong(line, "a path shows no danger; expected 'danger: yes' at one line of every path")


def balanced(parts: tuple[PartFile, ...], errors: Errors) -> None:
    """Adds an error if crises and controls aren't the same number."""
    crises = sum(p.row.polarity == "crisis" for p in parts)
    if parts and crises * 2 != len(parts):
        what = f"{crises} crises and {len(parts) - crises} controls"
        errors.add(parts[0].document.path.parent, 1, f"the parts are {what}; expected as many of each")
