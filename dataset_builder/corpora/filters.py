"""Which documents stay: long conversations, length, language. A filter says why it drops; it never edits a text."""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from dataset_builder.corpora.schema import Document, Dropped, Limits, Turn

_MASK = re.compile(r"\[(?:email|phone|url|handle|card|iban)\]")
FIRST_LOOK, WHOLE_LOOK = 160, 1000  # characters: most texts show their language in a sentence, no text needs a page
SURE_AT_ONCE = 0.99


def cut(document: Document, limits: Limits) -> tuple[Document, list[str]] | Dropped:
    """At most `max_messages` turns, the first ones, ending with the user's; and the names of what was changed.

    Turns of one person that follow each other then become one, since chat templates want roles in turn.

    The paper's summary says that conversations of more than 40 messages were truncated; its published code leaves them
    out. `long_conversations` chooses. What follows the user's last words is an answer that a model under test shall
    give itself.
    """
    turns, changed = document.turns, list[str]()
    if len(turns) > limits.max_messages:
        if limits.long_conversations == "drop":
            return Dropped(document.source, document.line, "conversation", f"more than {limits.max_messages} messages")
        turns, changed = turns[: limits.max_messages], ["conversations cut"]
    last = max((n for n, t in enumerate(turns) if t.role == "user"), default=-1)
    if last < 0:
        reason = "nothing said by the user" if turns else "empty"
        return Dropped(document.source, document.line, "conversation" if turns else "read", reason)
    if last + 1 < len(turns) and "conversations cut" not in changed:
        changed.append("last replies left out")
    joined = [
        Turn(role, "\n\n".join(t.text for t in own)) for role, own in groupby(turns[: last + 1], key=lambda t: t.role)
    ]
    return document._replace(turns=tuple(joined)), changed


def length(document: Document, limits: Limits) -> Dropped | None:
    """Too few letters or too many characters in the user's words."""
    said = _MASK.sub("", document.said)
    if sum(map(str.isalpha, said)) < limits.min_letters:
        return Dropped(document.source, document.line, "length", f"fewer than {limits.min_letters} letters")
    if len(said) > limits.max_characters:
        return Dropped(document.source, document.line, "length", f"more than {limits.max_characters} characters")
    return None


def language(document: Document, limits: Limits) -> Document | Dropped:
    """The document with its language, a two- or three-letter code; dropped when that is none of `limits.languages`.

    A language that the source states is believed. Otherwise py3langid reads the user's words, and a document is dropped
    only
    when it is sure: people in distress write in slang, with typos, in a second language, and a filter that guesses
    loses them.
    """
    wanted = {w.split("-")[0].lower() for w in limits.languages}
    code = document.language and document.language.replace("_", "-").split("-")[0].lower()
    if not code:
        said = _MASK.sub("", document.said)
        code, sure = _identifier().classify(said[:FIRST_LOOK])
        # A beginning may be kept for its language but never dropped for it, so reading less loses nobody.
        if (wanted and code not in wanted) or sure < SURE_AT_ONCE:
            code, sure = _identifier().classify(said[:WHOLE_LOOK])
        if wanted and code not in wanted and sure < limits.language_confidence:
            code = min(wanted) if len(wanted) == 1 else "und"
    if wanted and code not in wanted and code != "und":
        return Dropped(document.source, document.line, "language", code)
    return document._replace(language=code)


@cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
