"""Words that content must not contain: harmful language, named substances and high places, amounts of anything."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import re2

from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors
from dataset_builder.reading.refused import Refused
from dataset_builder.reading.strays import unasked
from helmbench_common.formats import json_file
from helmbench_common.formats.plain_file import read_text
from helmbench_common.formats.refused import FormatError

UNSAFE_WORDS = re.compile(
    r"\bcommit(?:s|ted|ting)? suicide\b|\bsuccessful suicide\b|\bfailed (?:suicide )?attempt\b"
    r"|\bBMI\b|\bcalorie|\bkcal\b",
    re.IGNORECASE,
)
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
# Repeats are bounded: a pattern that can start anywhere in a run and read to its end takes quadratic time.
_MANY = rf"(?:\d{{2,20}}|\b(?:{_TEENS}|{_TENS}|hundreds?|thousands?|dozens?))"
_COUNT = rf"(?:\d(?:[\d.,]{{0,20}}\d)?|{_MANY}|\b(?:two|three|four|five|six|seven|eight|nine))"
_ORDINAL = (
    r"\b(?:\d+(?:st|nd|rd|th)|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth"
    rf"|(?:thir|four|fif|six|seven|eigh|nine)teenth|(?:(?:{_TENS})-)?(?:first|twentieth|thirtieth|fortieth|fiftieth))"
)
_UNIT = (
    r"(?:mgs?|mls?|mils?|mcg|µg|iu|cl|cc|grams?|grammes?|g|kg|kilos?|kilogram(?:me)?s?|lbs?|pounds?|stone|oz|ounces?"
    r"|lit(?:re|er)s?|units|milligram(?:me)?s?|millilit(?:re|er)s?|micrograms?|drops|met(?:re|er)s?|feet|foot|ft"
    r"|storeys?|stories|floors?|(?:tea|table)spoons?|spoonfuls?|capfuls?|mouthfuls?|swigs|gulps)"
)
_PILL = r"(?:pills?|tablets?|tabs?|capsules?|caps|doses|injections|patches|lozenges|suppositories)"
_BOX = (
    r"(?:box(?:es)?|bottles?|strips?|blisters?|packs?|packets?|jars?|sachets?|vials?|syringes?|tubs?|ampoules?"
    r"|canisters?)"
)
# General classes, which may be named but not given an amount.
_CLASS = (
    r"(?:pain[ \-]?killers?|(?:anti-?(?:depressant|psychotic|histamine|biotic|coagulant)|sedative|tranquilli[sz]er"
    r"|opioid|opiate|benzo|barbiturate|laxative|statin|stimulant|beta[ \-]?blocker|blood thinner|muscle relaxant)s?)"
)
_MEDS = r"(?:meds|medicines?|medications?|prescriptions?)"
_ITS = r"(?:a|an|the|of|my|his|her|their|your|our|this|that|those|these|full|unopened|whole|other|more|empty)"
_SPEED = r"(?:km/h|kmh|kph|mph|knots|(?:kilomet(?:re|er)s?|miles?|kms?|k) (?:an|per) hour)"
_ABOUT = rf"{_COUNT}(?:[\s\-]*(?:x|\+|ish|odd|or so|and a half))?"
_SOME = rf"(?:{_ABOUT}|\b(?:handfuls?|fistfuls?|couple|several|few))"
_WORDS = r"(?:[a-z'’]+[\s\-]+){0,3}?"
AMOUNT = re.compile(
    "|".join(
        (
            rf"(?!thousand pounds){_ABOUT}[\s\-]*{_UNIT}\b",
            r"\b(?:half|quarter of) an? (?:gram(?:me)?|kilo|ounce|lit(?:re|er)|pint)\b"
            r"|\b(?:double|triple|twice|times) (?:the |my |her |his |their |your |a )?doses?\b",
            rf"{_COUNT}[\s\-]*{_SPEED}\b",
            rf"{_SOME}(?: of)?[\s\-]+{_WORDS}(?:{_PILL}|{_CLASS})\b",
            rf"\d(?:x\s?)?{_PILL}\b|\b{_PILL}\s*[x×–-]\s*\d",
            rf"{_MANY} of {_WORDS}{_MEDS}\b",
            # The reverse order: the class, then the amount.
            rf"\b(?:{_PILL}|{_CLASS}|{_MEDS})\b[^.:;!?\n]{{0,25}}?{_COUNT}"
            r" (?:of (?:them|those|these)|in (?:total|all)|altogether|left)\b",
            rf"\b(?:days?|weeks?|fortnights?|months?|years?)['’]?s?['’]? (?:worth |supply |stock )?of {_WORDS}"
            rf"(?:{_PILL}|{_CLASS}|{_MEDS})\b",
            rf"(?:{_ABOUT}|\b(?:half|whole|entire|full|both))(?:[\s\-]+{_ITS}){{0,6}}[\s\-]+(?:{_BOX}|{_PILL})\b",
            rf"{_ORDINAL}[\s\-]+(?:floor|storey)\b|\bfloor \d+",
            r"\b0[.,]\d+\s*(?:%|per ?cent)|\d\s*(?:‰|per mille|promille)",
            rf"\bweigh(?:s|ed|ing|t is|t was)?\s+(?:about |only |just |around |barely )?{_COUNT}",
        )
    ),
    re.IGNORECASE,
)
# A named high place. We keep no list of such places, even hashed, because it would teach. The hashes in category
# `place` cover landmarks of all kinds, for names without one of these words.
_HIGH = (
    "Bridge|Footbridge|Viaduct|Aqueduct|Cliffs?|Gorge|Dam|Overpass|Flyover|Towers?|Quarry|Pier|Falls|Waterfalls?"
    "|Lookout|Car Park|Parking Garage|Multi-?[Ss]torey|Level Crossing"
)
_NAME = (
    r"\b(?!(?:The|An?|My|Our|Your|His|Her|Its|Their|That|This|Every|Each|Some|Any|No|One|Under|Over|On|Off|At|By|Near"
    r"|From|To|In|Old|New|Which|What|Whose|Another|Is|And|But|Or|If|I|I'm)\b)[A-Z][\w'’]{1,60}"
)
PLACE = re.compile(rf"{_NAME}[ \-](?:{_HIGH})\b|(?<=[a-z,] ){_NAME} (?:{_HIGH.lower()})\b")
# A prefilter, eighty times as fast, that finds at least every line these patterns match. re2 has no look-around and
# only ASCII word boundaries, digits and spaces, so it reads the line as ASCII.
_ANY_CASE = f"{UNSAFE_WORDS.pattern}|{AMOUNT.pattern}".replace("(?!thousand pounds)", "")
ROUGH = re2.compile(rf"(?i:{_ANY_CASE})|[A-Z]\S+[ \-](?:{_HIGH}|{_HIGH.lower()})".encode())
IN_ASCII = str.maketrans({"’": "'", "–": "-", "×": "-", "µ": "m", "μ": "m", "‰": " per mille"})
OTHER_DIGITS = re.compile(r"[^\D0-9]")

UNSAFE = "is not safe-messaging language; see content-guide section 2 (such as 'died by suicide')"
AN_AMOUNT = "reads as an amount; expected no amounts, doses, heights, speeds or weights"
A_PLACE = "names a place; expected something generic, such as 'the bridge by the station'"
CLASS = "expected its general class, such as 'the pills I kept'"


class Forbidden(NamedTuple):
    """Forbidden words in a text. `what`: what is wrong with them."""

    start: int
    end: int
    kind: Literal["unsafe words", "amount", "substance", "place"]
    what: str


def safe(content: Content, errors: Errors) -> None:
    """Adds an error for every forbidden word in any authored text."""
    root = content.root
    written = [*root.rglob("*.md"), *root.glob("*calibration/*.jsonl"), *root.glob("baselines.yaml")]
    for path in sorted(path for path in written if not unasked(path)):
        name = path.relative_to(root).as_posix()
        try:
            lines = read_text(path, "a text").splitlines()
        except FormatError as error:
            errors.refused(error)
            continue
        for number, line in enumerate(lines, start=1):
            text = _text(line) if path.suffix == ".jsonl" else line
            for what in unsafe(text, content.refused, name):
                errors.add(path, number, what)


def unsafe(text: str, refused: Refused, file: str = "") -> Iterator[str]:
    """A sentence for each problem in a text of `file`, skipping the file's allowed phrases."""
    for found in forbidden(text, refused, file):
        yield f"'{text[found.start : found.end]}' {found.what}"


def replaced(text: str, refused: Refused) -> tuple[str, list[tuple[str, str]]]:
    """The text with placeholders, such as `[place]`, for forbidden words; and each (words, placeholder)."""
    pieces, pairs, done = list[str](), list[tuple[str, str]](), 0
    for found in sorted(forbidden(text, refused), key=lambda f: (f.start, -f.end)):
        if found.end > done:  # not inside an earlier one
            pieces += [text[done : found.start], f"[{found.kind}]"]
            pairs.append((text[max(done, found.start) : found.end], f"[{found.kind}]"))
            done = found.end
    return "".join([*pieces, text[done:]]), pairs


def forbidden(text: str, refused: Refused, file: str = "") -> list[Forbidden]:
    """Every forbidden part of a text of `file`, skipping the file's allowed phrases; parts may overlap."""
    worded, found = list[Forbidden](), list[Forbidden]()
    if _suspicious(text):
        worded = [Forbidden(*m.span(), "unsafe words", UNSAFE) for m in UNSAFE_WORDS.finditer(text)]
        harmless = "list a harmless one in allowed_amounts.yaml with its reason"
        found += [Forbidden(*m.span(), "amount", f"{AN_AMOUNT}; {harmless}") for m in AMOUNT.finditer(text)]
        found += [Forbidden(*m.span(), "place", f"{A_PLACE}; {harmless}") for m in PLACE.finditer(text)]
    for start, end, category in refused.hits(text):
        if category == "place":
            found.append(Forbidden(start, end, "place", A_PLACE))
        else:
            found.append(Forbidden(start, end, "substance", f"names a substance ({category}); {CLASS}"))
    if found:
        allows = refused.allowing(text, file)
        found = [f for f in found if not allows(f.start, f.end)]
    return worded + found


@functools.lru_cache(maxsize=2**17)  # checks see the same lines repeatedly
def _suspicious(text: str) -> bool:
    """Whether the slow patterns could match."""
    plain = " ".join(text.translate(IN_ASCII).split()).encode("ascii", "replace")
    return bool(ROUGH.search(plain) or OTHER_DIGITS.search(text))


def _text(line: str) -> str:
    """The texts in a JSON line."""
    try:
        return " | ".join(_strings(json_file.lenient(line)))
    except ValueError:
        return line  # the file's reader reports it


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)
