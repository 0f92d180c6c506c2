"""Removes the key from a server's messages: servers repeat it in errors, by accident or not.

An answer is never changed. One that contains the key is rejected. A key too short to distinguish from ordinary words is
searched for only in errors, which are then not quoted at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from helmbench_common import jsonl
from helmbench_common.formats.refused import shown

SHORT, LONG = 8, 16  # characters: a shorter key may be a word by chance; a long one never occurs by chance
PUBLIC = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type", "user-agent"})  # headers
WITHHELD = "(the server's words hold the key and aren't shown)"


class Keys:
    """The secrets that a client sends to its server."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {form for s in secrets if s.strip() for form in (s.strip(), quote(s.strip(), safe=""))}
        self._known = sorted(found, key=len, reverse=True)  # one may contain another
        self._pattern = re.compile("|".join(map(re.escape, self._known)) or r"(?!)", re.IGNORECASE)
        long = [s for s in self._known if len(s) >= LONG]
        self._in_answers = re.compile("|".join(map(re.escape, long)) or r"(?!)", re.IGNORECASE)

    def quoted(self, said: str) -> str:
        """A server's message for use in an error: one line, safe for a terminal, without a key."""
        plain = shown(jsonl.plain(" ".join(said.split())))
        if any(len(m[0]) < SHORT for m in self._pattern.finditer(plain)):
            return WITHHELD
        return self._pattern.sub("…", plain)

    def within(self, said: str) -> bool:
        """Whether a server's message contains a key of any length."""
        return bool(self._pattern.search(said))

    def repeated(self, *texts: str | None) -> bool:
        """Whether an answer contains a key that is too long to occur by chance."""
        return any(text and self._in_answers.search(text) for text in texts)


def in_headers(headers: Mapping[str, object]) -> Iterable[str]:
    """The secrets in a request's headers: each value, without its authentication scheme."""
    for name, value in headers.items():
        words = str(value).split()
        if str(name).lower() not in PUBLIC and words:
            yield words[-1]
            yield " ".join(words[1:] if words[0].lower() in ("basic", "bearer", "token") else words)
