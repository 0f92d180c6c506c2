"""Words that no content holds: language that harms, substances by name, and amounts of anything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors

UNSAFE_WORDS = re.compile(
    r"\bcommit(?:s|ted|ting)? suicide\b|\bsuccessful suicide\b|\bfailed (?:suicide )?attempt\b"
    r"|\bBMI\b|\bcalorie|\bkcal\b",
    re.IGNORECASE,
)
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_COUNT = (
    r"(?:\d(?:[\d.,]*\d)?"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    rf"|eighteen|nineteen|{_TENS}|hundred|thousand|dozen))"
)
_ORDINAL = (
    r"\b(?:\d+(?:st|nd|rd|th)|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth"
    rf"|(?:thir|four|fif|six|seven|eigh|nine)teenth|(?:(?:{_TENS})-)?(?:first|twentieth|thirtieth|fortieth|fiftieth))"
)
_UNIT = (
    r"(?:mg|ml|mcg|µg|cl|cc|grams?|grammes?|g|kg|kilos?|kilogram(?:me)?s?|lbs?|pounds?|stone|oz|ounces?|lit(?:re|er)s?"
    r"|units|milligram(?:me)?s?|millilit(?:re|er)s?|micrograms?|drops|met(?:re|er)s?|feet|foot|ft|storeys?|stories"
    r"|floors?)"
)
_PILL = r"(?:pills?|tablets?|tabs?|capsules?|caps|doses|injections|patches)"
_BOX = r"(?:box(?:es)?|bottles?|strips?|blisters?|packs?|packets?|jars?|sachets?|vials?|syringes?|tubs?)"
_ITS = r"(?:a|an|the|of|my|his|her|their|your|our|this|that|those|these|full|unopened|whole|other|more|empty)"
_SPEED = r"(?:km/h|kmh|kph|mph|knots|(?:kilomet(?:re|er)s?|miles?|kms?|k) (?:an|per) hour)"
AMOUNT = re.compile(
    "|".join(
        (
            rf"(?!thousand pounds){_COUNT}[\s\-]*{_UNIT}\b",
            rf"{_COUNT}[\s\-]*{_SPEED}\b",
            rf"(?:{_COUNT}|\b(?:handfuls?|fistfuls?|couple|several|few))(?: of)?[\s\-]+(?:[a-z']+[\s\-]+){{0,2}}?"
            rf"{_PILL}\b",
            rf"(?:{_COUNT}|\b(?:half|whole|entire|full))(?:[\s\-]+{_ITS})*[\s\-]+(?:{_BOX}|{_PILL})\b",
            rf"{_ORDINAL}[\s\-]+(?:floor|storey)\b|\bfloor \d+",
            r"\b0[.,]\d+\s*(?:%|per ?cent)|\d\s*(?:‰|per mille|promille)",
            rf"\bweigh(?:s|ed|ing|t is|t was)?\s+(?:about |only |just |around |barely )?{_COUNT}",
        )
    ),
    re.IGNORECASE,
)


def safe(content: Content, errors: Errors) -> None:
    """Adds an error for every such word of a text, a voice, a calibration reply or a baseline."""
    root = content.root
    for path in sorted([*root.rglob("*.md"), *root.glob("*calibration/*.jsonl"), *root.glob("baselines.yaml")]):
        name = path.relative_to(root).as_posix()
        for number, text in _lines(path):
            if match := UNSAFE_WORDS.search(text):
                errors.add(
                    path,
                    number,
                    f"'{match[0]}' is not safe-messaging language; see content-guide section 2 (such as "
                    "'died by suicide')",
                )
            for match in AMOUNT.finditer(text):
                if not content.refused.allows(text, match.start(), match.end(), name):
                    errors.add(
                        path,
                        number,
                        f"'{match[0]}' reads as an amount; expected no amounts, doses, heights, speeds or weights; "
                        "one that is harmless stands in allowed_amounts.yaml with its reason",
                    )
            for hit in content.refused.hits(text):
                if not content.refused.allows(text, hit.start, hit.end, name):
                    errors.add(
                        path,
                        number,
                        f"'{text[hit.start : hit.end]}' names a substance ({hit.category}); expected its general "
                        "class, such as 'the pills I kept'",
                    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that people read, numbered; of a JSON line, the texts in it."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        yield number, _text(line) if path.suffix == ".jsonl" else line


def _text(line: str) -> str:
    try:
        return " | ".join(_strings(json.loads(line)))
    except ValueError:
        return line  # the reader of this file says what is wrong


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
