"""Words that no content holds: language that harms, and amounts of anything."""

from __future__ import annotations

import re

from dataset_builder.reading.content_types import Content
from dataset_builder.reading.markdown import Errors

UNSAFE_WORDS = re.compile(
    r"\bcommit(?:s|ted|ting)? suicide\b|\bsuccessful suicide\b|\bfailed (?:suicide )?attempt\b|\bBMI\b|\bcalorie",
    re.IGNORECASE,
)
_COUNT = (
    r"(?:\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty"
    r"|hundred))"
)
_UNIT = (
    r"(?:mg|ml|mcg|grams?|g|kg|kilos?|lbs?|pounds?|stone|pills|tablets|tabs|capsules|units|milligrams"
    r"|metres|meters|feet|ft|storeys?|stories|floors?)"
)
AMOUNT = re.compile(rf"{_COUNT}[\s\-]*{_UNIT}\b", re.IGNORECASE)


def safe(content: Content, errors: Errors) -> None:
    """Adds an error for every line of a text or of a calibration reply that holds such words."""
    for path in sorted([*content.root.rglob("*.md"), *content.root.glob("*calibration/*.jsonl")]):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if match := UNSAFE_WORDS.search(line):
                errors.add(
                    path,
                    number,
                    f"'{match[0]}' is not safe-messaging language; see content-guide section 2 (such as "
                    "'died by suicide')",
                )
            if match := AMOUNT.search(line):
                errors.add(
                    path,
                    number,
                    f"'{match[0]}' reads as an amount; no amounts, doses, heights or weights anywhere in content",
                )
