"""What of a submission may be read by everybody: evidence withheld where a reply is, no path, no key, no character that
hides.
"""

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
# Letters and marks that draw nothing: fillers, and selectors of a variant, but for the one that makes a sign an emoji.
BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u2800\u3164\ufe00-\ufe0e\uffa0\U000e0100-\U000e01ef]")
JOINERS = "\u200c\u200d"  # which Persian, Hindi and others are written with


def public_verdicts(verdicts: Sequence[Verdict], replies: Iterable[Reply]) -> list[Verdict]:
    """The verdicts as they may be published: quotes of replies that `judge.report.entries` withholds are
    `[withheld]`, and those of a verdict in which one looks like a key or a path, or holds what can't be seen.
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


def check(record: dict[str, Any], where: str) -> list[Problem]:
    """Texts of a public record that must not stand there; `record` as `model_dump` gives it."""
    found: list[Problem] = []
    for path, text in _texts(record, ""):
        at = f"{where}: {path}"
        if secrets.holds(text):
            found.append(Problem("secret", at, "holds what looks like a key, or a name and password in an address"))
        if ABSOLUTE.search(text):
            found.append(Problem("absolute_path", at, "holds a path of somebody's machine; expected names only"))
        if odd := next((c for c in text if hidden(c) and not (c == "\n" and path == "declaration.note")), None):
            found.append(
                Problem("odd_unicode", at, f"holds U+{ord(odd):04X}, which can't be seen or turns the text around")
            )
    return found


def hidden(character: str) -> bool:
    """Whether a character has no shape of its own: controls, marks that turn text around, private and unassigned
    ones.
    """
    if BLANK.match(character):
        return True
    return character not in JOINERS and unicodedata.category(character) in HIDDEN


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
