"""The public part of a submission: no quotes of withheld replies, paths, keys or invisible characters."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from judge.replies.schema import Reply
from judge.report.entries import WITHHELD, Key, withheld
from judge.schema import Verdict
from leaderboard import secrets
from leaderboard.schema import Problem

ABSOLUTE = re.compile(
    r"^~?/(?!/)[\w.\-]|(?:^|[\s='\"(,:\[{<;|`])(?:~?/(?!/)[\w.\-]+/|file://|[A-Za-z]:[\\/]|\\\\[\w.\-]+\\)"
)
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters and marks that are invisible: fillers and variation selectors, except the one that makes emoji.
BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u2800\u3164\ufe00-\ufe0e\uffa0\U000e0100-\U000e01ef]")


def public_verdicts(verdicts: Sequence[Verdict], replies: Iterable[Reply]) -> list[Verdict]:
    """The verdicts as they may be published: quotes of withheld replies become `[withheld]`, and so do all quotes of a
    verdict with one that contains what looks like a key or path, or invisible characters.
    """
    by_sample: dict[Key, list[Verdict]] = defaultdict(list)
    for v in verdicts:
        by_sample[v.id, v.repeat].append(v)
    silent = withheld(by_sample, {(r.id, r.repeat): r for r in replies})
    return [_silent(v) if (v.id, v.repeat) in silent or not all(map(_harmless, _quotes(v))) else v for v in verdicts]


def _quotes(v: Verdict) -> Iterator[str]:
    yield from v.evidence
    for vote in v.votes:
        yield from vote.evidence


def _harmless(quote: str) -> bool:
    return not (secrets.holds(quote) or ABSOLUTE.search(quote) or any(hidden(c) and c not in "\n\t" for c in quote))


def _silent(v: Verdict) -> Verdict:
    votes = tuple(vote.model_copy(update={"evidence": (WITHHELD,)}) if vote.evidence else vote for vote in v.votes)
    return v.model_copy(update={"evidence": (WITHHELD,) if v.evidence else (), "votes": votes})


def check(record: dict[str, Any], where: str) -> Iterator[Problem]:
    """Texts that a public record can't contain; `record` as `model_dump` gives it. A chat template is code, in which
    much looks like a key or path.
    """
    for path, text in _texts(record, ""):
        at = f"{where}: {path}"
        code = path == "generation.template.text"
        if not code and secrets.holds(text):
            yield Problem("secret", at, "contains what looks like a key, or a name and password in an address")
        if not code and ABSOLUTE.search(text):
            yield Problem("absolute_path", at, "contains a path of someone's machine; expected names only")
        ends = "\r\n\t" if code else "\n" if path == "declaration.note" else ""
        if odd := next((c for c in text if hidden(c) and c not in ends), None):
            yield Problem("odd_unicode", at, f"contains U+{ord(odd):04X}, which is invisible or reorders the text")


def hidden(character: str) -> bool:
    """Whether a character is invisible: controls, marks that reorder text, private and unassigned ones."""
    if BLANK.match(character):
        return True
    return character not in secrets.JOINERS and unicodedata.category(character) in HIDDEN


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield f"{path}.key", str(key)
            yield from _texts(part, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part, path)
