"""Finds keys and passwords in text to be published: by the argument's name, by their look, and by the word before them.

Patterns run in linear time on any text.
"""

from __future__ import annotations

import re

import re2

# Parts of names under which keys are passed (`db_pass`, `Set-Cookie`), but not `tokenizer` or `passage`.
WORD = re.compile(
    "keys?|apikey|tokens?|secrets?|passw(?:or)?d|passwort|passphrase|passcode|pass|pwd|psw|psk|pw|otp|dsn|credentials?|creds|cookies?|bearer|"
    "auth|authorization|authentication|oauth|jwt|pat|sig|signature|session|sessionid|headers?"
)
ANYWHERE = re2.compile(
    r"(?i)api_?key|apikey|passw|passphrase|secret|credential|cookie|bearer|authoriz|connection_?string|conn_?str"
)
# Names of generation settings that contain such a word but aren't keys.
HARMLESS = re2.compile(
    r"(?i)^(?:.*(?:eos|bos|pad|unk|stop|end|special|new|max|min|image|think|forced|suppress|num|add|skip|prompt|logit)"
    r".*tokens?.*|tokenizer.*|tokenized_requests)$"
)
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
GIVEN = (  # `pwd=…`, `"cookie": "…"`, `Cookie: a=…`
    r"(?:api[_\-]?key|access[_\-]?key|access[_\-]?token|auth[_\-]?token|token|secret|client[_\-]?secret|passw(?:or)?d|"
    r"passwort|passphrase|pass|pwd|pw|credentials?|creds|cookies?|bearer|sig|signature|authorization|jwt|"
    r"session(?:[_\-]?id)?|key)"
)
SURELY = (  # words that mean only a key, even before a colon or at the end of a longer name
    r"(?:api[_\-]?key|access[_\-]?key|account[_\-]?key|access[_\-]?token|auth[_\-]?token|client[_\-]?secret|"
    r"secret[_\-]?key|secret[_\-]?access[_\-]?key|passw(?:or)?d|passwort|passphrase|pwd|signature)"
)
SECRET = re2.compile(
    r"\b(?:sk|pk|rk)-[\w\-]{16,}|\bhf_\w{16,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}|\bxox[abprs]-[\w\-]{10,}|"
    r"\bAKIA[0-9A-Z]{12,}|\bAIza[\w\-]{20,}|\bglpat-[\w\-]{16,}|\beyJ[\w\-]{10,}\.[\w\-]{10,}\.|"
    r"\b(?:sk|pk|rk)_(?:live|test)_\w{16,}|\bgsk_\w{16,}|\b(?:xai|pplx|nvapi|xapp)-[\w\-]{16,}|\br8_\w{16,}|"
    r"\bnpm_\w{16,}|\bpypi-[\w\-]{16,}|\bya29\.[\w\-]{16,}|\bhvs\.[\w\-]{16,}|\bSG\.[\w\-]{10,}\.[\w\-]{10,}|"
    r"\bASIA[0-9A-Z]{12,}|\bdop_v1_\w{16,}|\bshpat_\w{16,}|"
    r"-----BEGIN [A-Z ]*PRIVATE KEY|(?i:\bbearer\s+\S{8,})|(?i:\bbasic\s+[A-Za-z0-9+/]{12,}=*)|"
    r"//[^/@\s]+@|[?&#;](?i:" + GIVEN + r")=|"
    r"(?i:(?:^|[^A-Za-z0-9])" + GIVEN + r"=[^\s=&]{3,})|(?i:" + SURELY + r"\s*=\s*[^\s=&]{3,})|"
    r"(?i:(?:^|[^A-Za-z])(?:(?:x[_\-])?" + SURELY + r"|authorization)\s*:\s*[^\s\"']{3,})|"
    r"(?i:(?:^|\s)--?" + GIVEN + r"[ =]+[^\s\-]\S{2,})|"
    r"(?i:[\"']" + GIVEN + r"\\*[\"']\s*:\s*\\*[\"'][^\"'\s]{3,})|"
    r"(?i:\b(?:set-)?cookie:\s*\S+=)"
)
# A name and a password before a host, without `//`; `mailto:` and other NO_NAME words aren't names.
NAMED = re2.compile(r"([^\s/:@\"'=,;(<]+):[^\s/@]+@[\w\-]+")
NO_NAME = frozenset({"mailto", "acct", "sip", "xmpp", "email", "mail", "e-mail", "contact"})
JOINERS = "\u200c\u200d"  # invisible, but Persian, Hindi and others need them
RUN, DIGITS, WILD = re2.compile(r"[A-Za-z0-9]{24,}"), re.compile("[0-9]+"), 4  # a run anywhere; places with digits


def named_like(name: str) -> bool:
    """Whether an argument with this name may contain a key."""
    if HARMLESS.search(name):
        return False
    return bool(ANYWHERE.search(name)) or any(WORD.fullmatch(p.lower()) for p in PART.findall(name))


def holds(text: str) -> bool:
    """Whether a text contains what looks like a key, or a name and password in an address; joiners between its
    characters, which are invisible, don't hide it.
    """
    text = text.translate(dict.fromkeys(map(ord, JOINERS)))
    if SECRET.search(text):
        return True
    if any(m[1].lower() not in NO_NAME for m in NAMED.finditer(text)):
        return True
    return any(map(_mixed, RUN.findall(text)))


def _mixed(run: str) -> bool:
    """Whether a long run mixes lowercase, capitals and digits, with digits in more places than in a model's name."""
    kinds = (any(map(str.islower, run)), any(map(str.isupper, run)), any(map(str.isdigit, run)))
    return all(kinds) and len(DIGITS.findall(run)) >= WILD
