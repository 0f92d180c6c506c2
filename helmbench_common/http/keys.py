"""What a server says, without the key: servers repeat it in their errors, by accident or not.

An answer is never changed. One that holds the key is no answer; a key too short to be told from ordinary words is
looked for in errors only, whose words are then not quoted at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from helmbench_common import jsonl
from helmbench_common.formats.refused import shown

SHORT, LONG = 8, 16  # characters: a shorter key may be a word by chance; a long one stands in no answer by chance
PUBLIC = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type", "user-agent"})  # headers
WITHHELD = "(the server's words hold the key and aren't shown)"


class Keys:
    """The secrets that one client sends to its server."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {form for s in secrets if s.strip() for form in (s.strip(), quote(s.strip(), safe=""))}
        self._known = sorted(found, key=len, reverse=True)  # one may stand in another
        self._pattern = re.compile("|".join(map(re.escape, self._known)) or r"(?!)", re.IGNORECASE)
        long = [s for s in self._known if len(s) >= LONG]
        self._in_answers = re.compile("|".join(map(re.escape, long)) or r"(?!)", re.IGNORECASE)

    def quoted(self, said: str) -> str:
        """A server's own words, for an error: on one line, as a terminal may show them, without a key."""
        plain = shown(jsonl.plain(" ".join(said.split())))
        if any(len(m[0]) < SHORT for m in self._pattern.finditer(plain)):
            return WITHHELD
        return self._pattern.sub("…", plain)

    def within(self, said: str) -> bool:
        """Whether a key of any length stands in a server's words."""
        return bool(self._pattern.search(said))

    def repeated(self, *texts: str | None) -> bool:
        """Whether an answer holds a key, one that can't stand there by chance."""
        return any(text and self._in_answers.search(text) for text in texts)


def in_headers(headers: Mapping[str, object]) -> Iterable[str]:
    """The secrets in the headers of a request: each value, without the word of a scheme before it."""
    for name, value in headers.items():
        words = str(value).split()
        if str(name).lower() not in PUBLIC and words:
            yield words[-1]
            yield " ".join(words[1:] if words[0].lower() in ("basic", "bearer", "token") else words)
