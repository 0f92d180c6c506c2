"""Personal data that has a shape is replaced by what it was: `[email]`, `[url]`, `[iban]`, `[card]`, `[phone]`,
`[handle]`.

Names, addresses, dates of birth, employers and whatever else takes reading to recognise stay in the text: no pattern
finds them, and a model that does is heavy and still misses some. A corpus of real people is personal data after
masking, too.
Numbers of helplines that `content/helplines.csv` lists stay: they are nobody's, and what a reply does with them is
measured.
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

from dataset_builder.corpora.schema import Document, Turn

HELPLINES = Path(__file__).resolve().parents[1] / "content" / "helplines.csv"
# Where a source states no country, national numbers are looked for in these: where most English of the web is written.
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
# A part of a path that is followed by, or is, somebody's name.
_PERSON_PATH = re.compile(
    r"/(?:@|~|(?:u|user|users|profile|profiles|people|person|in|member|members|author|c|channel)/)[\w.\-]+|/profile\.php",
    re.IGNORECASE,
)
_PERSON_QUERY = re.compile(
    r"(?:^|[&;])(?:user|username|uid|userid|profile|email|e-?mail|token|fbid|handle)=", re.IGNORECASE
)
# First parts of a platform's path that name no person.
_PLACE = re.compile(
    r"r|watch|hashtag|search|explore|topics|help|about|legal|policies|groups|p|jobs|shorts|playlist|home|tagged"
)
_CARD = re.compile(r"(?<![\w.+\-])\d(?:[ \-]?\d){12,18}(?![\w\-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){2,8}\b", re.IGNORECASE)
_HANDLE = re.compile(
    r"(?<![\w@/.])@[A-Za-z_][\w.]*\w|(?<![\w/])/?u/[\w\-]{3,20}|(?<![\w#])[^\W\d][\w.]{1,31}#\d{4}(?!\w)"
)
# Seven digits or more, with what people put between them: only such texts are worth the slower reading.
_DIGITS = re.compile(r"(?<![\w.])\+?\(?\d(?:[\s().\-/]{0,3}\d){6,14}(?!\w)")
MANY, LONG = 40, 100_000  # numbers, or characters, of a text that is no message any more
_SAYS_PHONE = re.compile(
    r"\b(?:call|text|ring|phone|tel|telephone|mobile|cell|whats ?app|signal|sms|number)(?: "
    r"is)?\W{0,3}(?:me|us|him|her)?\W{0,3}(?:is|at|on)?\W*$",
    re.IGNORECASE,
)


def mask_document(document: Document, country: str | None) -> tuple[Document, Counter[str]]:
    """The document with personal data masked in every turn, and how many of each kind were found."""
    found: Counter[str] = Counter()
    turns = tuple(Turn(t.role, mask(t.text, country, found)) for t in document.turns)
    return document._replace(turns=turns), found


def mask(text: str, country: str | None = None, found: Counter[str] | None = None) -> str:
    """`text` masked; `found` is added to. `country` (ISO 3166-1, such as AU) is where numbers without a + are from."""
    found = Counter() if found is None else found
    if "/" in text or "www." in text.lower():
        text = _URL.sub(lambda m: _url(m[0], found), text)
    if "@" in text or "at)" in text.lower() or "at]" in text.lower():
        text = _each(_EMAIL, "email", text, found)
    if sum(map(str.isdigit, text)) >= 7:
        text = _IBAN.sub(lambda m: _iban(m[0], found), text)
        text = _CARD.sub(lambda m: _card(m[0], found), text)
        if _DIGITS.search(text):
            text = _phones(text, country, found)
    if "@" in text or "u/" in text or "#" in text:
        text = _each(_HANDLE, "handle", text, found)
    return text


def _each(pattern: re.Pattern[str], kind: str, text: str, found: Counter[str]) -> str:
    text, n = pattern.subn(f"[{kind}]", text)
    found[kind] += n
    return text


def _url(url: str, found: Counter[str]) -> str:
    """`[url]` where the address names a person; other addresses stay, since a page of help is part of what is said."""
    bare = url.rstrip(".,;:!?")
    try:
        parts = urlsplit(bare if "://" in bare else f"https://{bare}")
        person = "@" in parts.netloc or bool(_PERSON_PATH.search(parts.path)) or bool(_PERSON_QUERY.search(parts.query))
    except ValueError:  # no address after all, such as http://[
        return url
    host = re.fullmatch(rf"(?:[\w\-]+\.)?{_PLATFORMS}", parts.netloc, re.IGNORECASE)
    first = parts.path.strip("/").split("/")[0].lower()
    if not (person or (host and first and not _PLACE.fullmatch(first))):
        return url
    found["url"] += 1
    return "[url]" + url[len(bare) :]


def _iban(text: str, found: Counter[str]) -> str:
    """An IBAN passes ISO 7064 mod 97-10; words that follow it in the same shape are given back."""
    pieces = text.split(" ")
    for end in range(len(pieces), 0, -1):
        account = "".join(pieces[:end]).upper()
        if 15 <= len(account) <= 34 and int("".join(str(int(c, 36)) for c in account[4:] + account[:4])) % 97 == 1:
            found["iban"] += 1
            return " ".join(["[iban]", *pieces[end:]])
    return text


def _card(text: str, found: Counter[str]) -> str:
    """A card's number has 13 to 19 digits and passes Luhn's check (ISO/IEC 7812); one in ten other numbers does,
    too.
    """
    digits = [int(c) for c in text if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) for d in digits[-2::-2]]
    if (sum(digits[-1::-2]) + sum(doubled)) % 10 or len({*digits}) == 1:
        return text
    found["card"] += 1
    return "[card]"


def _phones(text: str, country: str | None, found: Counter[str]) -> str:
    """Numbers that phonenumbers finds valid, and any number of seven digits that the words before it call one's
    phone.
    """
    candidates = [m.span() for m in _DIGITS.finditer(text)]
    if len(candidates) > MANY or len(text) > LONG:  # a dump of numbers, or a book: not worth minutes of reading
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
        if not _helpline(text[start:end]):
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


def _helpline(text: str) -> bool:
    digits = "".join(c for c in text if c.isdigit())
    return digits in _helplines() or digits.lstrip("0") in _helplines()


@cache
def _helplines() -> frozenset[str]:
    """Digits of every listed number: as written, without the leading zero, and with the country's calling code."""
    known: set[str] = set()
    with HELPLINES.open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            code = phonenumbers.country_code_for_region(row["country"])
            for number in re.split(r"\s*\|\s*", f"{row['phone'] or ''}|{row['text'] or ''}"):
                digits = "".join(c for c in number if c.isdigit())
                known |= {digits, digits.lstrip("0"), f"{code}{digits.lstrip('0')}"} if digits else set()
    return frozenset(known)
