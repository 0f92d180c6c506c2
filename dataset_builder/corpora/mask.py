"""Masks personal data that has a recognizable pattern: `[email]`, `[url]`, `[iban]`, `[card]`, `[phone]`, `[handle]`.

Names, addresses, dates of birth, employers and other data that takes reading to recognize stay: no pattern finds them,
and a model that does is heavy and still misses some. A masked corpus is still personal data. Helpline numbers in
`content/helplines.csv` stay: they aren't personal, and the benchmark measures how a reply uses them.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import phonenumbers
from phonenumbers import Leniency, PhoneNumberMatcher

HELPLINES = Path(__file__).resolve().parents[1] / "content" / "helplines.csv"
# If a source names no country, find national numbers of these: most English on the web is written there.
REGIONS = ("US", "GB", "AU", "IN", "IE", "NZ", "ZA")
_AT, _DOT = r"\s?(?:\(at\)|\[at\])\s?", r"\s?(?:\(dot\)|\[dot\])\s?"
_EMAIL = re.compile(
    rf"[\w.+%\-]{{1,64}}(?:@|{_AT})[\w\-]{{1,63}}(?:(?:\.|{_DOT})[\w\-]{{1,63}})*(?:\.|{_DOT})[^\W\d_]{{2,}}",
    re.IGNORECASE,
)
_PLATFORMS = (
    r"(?:reddit|twitter|x|facebook|fb|instagram|tiktok|linkedin|snapchat|tumblr|twitch|github|medium|pinterest|youtube|vk|telegram|t|wa|discord)"
    r"\.(?:com|me|gg|net|tv|org|app)"
)
_URL = re.compile(
    rf"(?:https?://|www\.)[^\s<>\"')\]]+|\b(?:[\w\-]{{1,63}}\.)?{_PLATFORMS}/[^\s<>\"')\]]+", re.IGNORECASE
)
# A path segment that is, or precedes, a person's name.
_PERSON_PATH = re.compile(
    r"/(?:@|~|(?:u|user|users|profile|profiles|people|person|in|member|members|author|c|channel)/)[\w.\-]+|/profile\.php",
    re.IGNORECASE,
)
_PERSON_QUERY = re.compile(
    r"(?:^|[&;])(?:user|username|uid|userid|profile|email|e-?mail|token|fbid|handle)=", re.IGNORECASE
)
# First segments of a platform's path that don't name a person.
_PLACE = re.compile(
    r"r|watch|hashtag|search|explore|topics|help|about|legal|policies|groups|p|jobs|shorts|playlist|home|tagged"
)
# The address of what somebody posted: on a site where people post under a name, or in the form of a forum's address.
_POST = re.compile(
    r"(?:https?://)?(?:[\w\-]+\.)*(?:(?:reddit|twitter|x|facebook|instagram|tiktok|tumblr|quora|threads|weibo|youtube|vk)"
    r"\.com|threads\.net|redd\.it|bsky\.app|t\.me|youtu\.be)/\S+|/?r/\w+/comments/\S+"
    r"|https?://(?:[\w\-]+\.)*(?:forums?|boards?|community)\.\S+"
    r"|https?://\S+/(?:comments|status|forums?|threads?|topics?|posts?|showthread|viewtopic)\b\S+",
    re.IGNORECASE,
)
LONGEST_POST = 2000  # characters of an address
_CARD = re.compile(r"(?<![\w.+\-])\d(?:[ \-]?\d){12,18}(?![\w\-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){2,8}\b", re.IGNORECASE)
_HANDLE = re.compile(
    r"(?<![\w@/.])@[A-Za-z_][\w.]*\w|(?<![\w/])/?u/[\w\-]{3,20}|(?<![\w#])[^\W\d][\w.]{1,31}#\d{4}(?!\w)"
)
# Seven or more digits with common separators: only such texts need the slower search.
_DIGITS = re.compile(r"(?<![\w.])\+?\(?\d(?:[\s().\-/]{0,3}\d){6,14}(?!\w)")
MANY, LONG = 40, 100_000  # a text with more numbers, or characters, isn't a message
_SAYS_PHONE = re.compile(
    r"\b(?:call|text|ring|phone|tel|telephone|mobile|cell|whats ?app|signal|sms|number)(?: "
    r"is)?\W{0,3}(?:me|us|him|her)?\W{0,3}(?:is|at|on)?\W*$",
    re.IGNORECASE,
)


def is_post(value: str) -> bool:
    """Whether `value` is the address of a post, from which anybody finds who wrote it."""
    return len(value) <= LONGEST_POST and _POST.fullmatch(value.strip()) is not None


def mask_field(value: str, country: str | None = None) -> str:
    """A field of a row, masked like a text; addresses of posts, too."""
    value = "[url]" if is_post(value) else _URL.sub(lambda m: "[url]" if is_post(m[0]) else m[0], value)
    return mask(value, country)


def mask(text: str, country: str | None = None, found: Counter[str] | None = None) -> str:
    """`text` masked. Adds counts to `found`. `country`: for numbers without a +, an ISO 3166-1 code such as AU."""
    found = Counter() if found is None else found
    if "/" in text or "www." in text.lower():
        text = _URL.sub(lambda m: _url(m[0], found), text)
    if "@" in text or "at)" in text.lower() or "at]" in text.lower():
        text, n = _EMAIL.subn("[email]", text)
        found["email"] += n
    if sum(map(str.isdigit, text)) >= 7:
        text = _IBAN.sub(lambda m: _iban(m[0], found), text)
        text = _CARD.sub(lambda m: _card(m[0], found), text)
        if _DIGITS.search(text):
            text = _phones(text, country, found)
    if "@" in text or "u/" in text or "#" in text:
        text, n = _HANDLE.subn("[handle]", text)
        found["handle"] += n
    return text


def _url(url: str, found: Counter[str]) -> str:
    """`[url]` if the address names a person; other URLs stay, because a link to help is part of the message."""
    bare = url.rstrip(".,;:!?")
    try:
        parts = urlsplit(bare if "://" in bare else f"https://{bare}")
        person = "@" in parts.netloc or bool(_PERSON_PATH.search(parts.path)) or bool(_PERSON_QUERY.search(parts.query))
    except ValueError:  # not a URL, such as http://[
        return url
    host = re.fullmatch(rf"(?:[\w\-]+\.)?{_PLATFORMS}", parts.netloc, re.IGNORECASE)
    first = parts.path.strip("/").split("/")[0].lower()
    if not (person or (host and first and not _PLACE.fullmatch(first))):
        return url
    found["url"] += 1
    return "[url]" + url[len(bare) :]


def _iban(text: str, found: Counter[str]) -> str:
    """`[iban]` if ISO 7064 mod 97-10 holds, so that following words of the same form stay."""
    pieces = text.split(" ")
    for end in range(len(pieces), 0, -1):
        account = "".join(pieces[:end]).upper()
        if 15 <= len(account) <= 34 and int("".join(str(int(c, 36)) for c in account[4:] + account[:4])) % 97 == 1:
            found["iban"] += 1
            return " ".join(["[iban]", *pieces[end:]])
    return text


def _card(text: str, found: Counter[str]) -> str:
    """`[card]` for 13 to 19 digits that pass the Luhn check (ISO/IEC 7812), as one in ten other numbers does."""
    digits = [int(c) for c in text if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) for d in digits[-2::-2]]
    if (sum(digits[-1::-2]) + sum(doubled)) % 10 or len({*digits}) == 1:
        return text
    found["card"] += 1
    return "[card]"


def _phones(text: str, country: str | None, found: Counter[str]) -> str:
    """Masks numbers that phonenumbers considers valid, and any seven digits that the preceding words call a phone."""
    candidates = [m.span() for m in _DIGITS.finditer(text)]
    if len(candidates) > MANY or len(text) > LONG:  # a number dump or a book isn't worth minutes of search
        spans = candidates
    else:
        spans = [
            (m.start, m.end)
            for region in ([country] if country else REGIONS)
            for m in PhoneNumberMatcher(text, region, leniency=Leniency.VALID)
        ]
        spans += [(start, end) for start, end in candidates if _SAYS_PHONE.search(text[max(0, start - 40) : start])]
    pieces, at = list[str](), 0
    for start, end in _merged(spans):
        digits = "".join(c for c in text[start:end] if c.isdigit())
        if digits not in _helplines() and digits.lstrip("0") not in _helplines():
            pieces += [text[at:start], "[phone]"]
            at = end
            found["phone"] += 1
    return "".join([*pieces, text[at:]])


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


@cache
def _helplines() -> frozenset[str]:
    """The digits of every listed number: as written, without leading zeros, and with the country calling code."""
    known: set[str] = set()
    with HELPLINES.open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            code = phonenumbers.country_code_for_region(row["country"])
            for number in re.split(r"\s*\|\s*", f"{row['phone'] or ''}|{row['text'] or ''}"):
                digits = "".join(c for c in number if c.isdigit())
                known |= {digits, digits.lstrip("0"), f"{code}{digits.lstrip('0')}"} if digits else set()
    return frozenset(known)
