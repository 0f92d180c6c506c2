"""The per-document steps: normalize, mask, cut, length, language; and the row of a kept document."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from dataset_builder.corpora.mask import mask, mask_field
from dataset_builder.corpora.normalize import fold, normalize
from dataset_builder.corpora.schema import Document, Dropped, Limits, Recipe, Source, Turn

ROOM = 2**24  # characters after which a batch ends: a process holds several copies of its texts
FIRST_LOOK, WHOLE_LOOK = 160, 1000  # characters: most texts show their language in a sentence, none needs a page
SURE_AT_ONCE = 0.99
_MASK = re.compile(r"\[(?:email|phone|url|handle|card|iban)\]")
# SPDX ids and the Hub's spellings, in lower case, of licenses that allow adapted copies for any purpose. Deliberately
# narrow: everything else (non-commercial, no derivatives, `other`, unknown, none) isn't redistributable.
_OPEN = re.compile(
    r"cc0(-1\.0)?|cc-by(-sa)?-\d\.\d|mit|apache-2\.0|bsd(-[23]-clause)?|isc|unlicense|pddl(-1\.0)?|odc-by(-1\.0)?|"
    r"odbl(-1\.0)?|cdla-permissive-[12]\.0|cdla-sharing-1\.0|zlib|wtfpl"
)
# Fields that hold a writer's name, whatever it looks like.
_WRITER = re.compile(
    r"(?:.*_)?(?:author|user|(?:screen|display|full|first|last|nick|user)_?name|nick|handle|poster|writer|account|profile"
    r"|e?mail)(?:_?(?:id|key|name|hash|url))?|name",
    re.IGNORECASE,
)
FORUM = "people posted there, and a license of the collection is not theirs"


class Cleaned(NamedTuple):
    """A batch of documents after these steps. `folded` and `digests` have one entry per kept document.

    `folded`: the text used to compare near-copies; `digests`: 16 bytes of its sha256, roles included.
    """

    kept: list[Document]
    folded: list[str]
    digests: list[bytes]
    dropped: list[Dropped]
    changed: Counter[str]


def clean(documents: Iterable[Document], source: Source, recipe: Recipe) -> Cleaned:
    """Cleans documents of `source`. Masking precedes length and language, which read the masked text."""
    country, limits = source.country, recipe.limits
    kept: list[Document] = []
    dropped: list[Dropped] = []
    changed: Counter[str] = Counter()
    for raw in documents:
        masked: Counter[str] = Counter()
        texts = ((t.role, normalize(t.text)) for t in raw.turns)
        turns = tuple(Turn(role, mask(text, country, masked)) for role, text in texts if text)
        result, cuts = cut(nameless(raw._replace(turns=turns), source, recipe.name), limits)
        if isinstance(result, Document):
            result = length(result, limits) or language(result, limits)
        if isinstance(result, Dropped):
            dropped.append(result)
            continue
        kept.append(result)
        changed.update(cuts)
        changed.update({f"{kind} masked": n for kind, n in masked.items() if n})
    folded = [fold("\n".join(t.text for t in d.turns)) for d in kept]
    spoken = ("\0".join(f"{t.role}\1{fold(t.text)}" for t in d.turns) for d in kept)
    return Cleaned(kept, folded, [hashlib.sha256(s.encode()).digest()[:16] for s in spoken], dropped, changed)


def nameless(document: Document, source: Source, corpus: str) -> Document:
    """The document without its writer's name in its id and kept fields: masked like a text, or a short hash that is the
    same for the same value throughout a corpus. A post's id on a forum leads to its writer, whatever it looks like.
    """

    def hashed(value: str) -> str:
        return hashlib.sha256(f"{corpus}\0{value}".encode()).hexdigest()[:16]

    own, country = document.source_id, source.country
    named = document.forum or _WRITER.fullmatch(source.fields.id or "")
    if own and (named or mask_field(own, country) != own):
        own = hashed(own)
    kept = (
        (name, value and (hashed(value) if _WRITER.fullmatch(name) else mask_field(value, country)))
        for name, value in document.kept
    )
    return document._replace(source_id=own, kept=tuple(kept))


def batches(documents: Iterable[Document], most: int) -> Iterator[list[Document]]:
    """The documents in lists of at most `most`, or fewer if documents are very long."""
    batch, size = list[Document](), 0
    for document in documents:
        batch.append(document)
        size += sum(len(turn.text) for turn in document.turns)
        if len(batch) == most or size >= ROOM:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def cut(document: Document, limits: Limits) -> tuple[Document | Dropped, list[str]]:
    """The first `max_messages` turns up to the user's last turn, and the names of the changes.

    Anything after the user's last turn is a reply that the model under test should generate. Consecutive turns of one
    role are merged, because chat templates expect alternating roles. The paper's summary says that conversations of
    more than 40 messages were truncated; its published code drops them. `long_conversations` chooses.
    """
    turns, changed = document.turns, list[str]()
    if len(turns) > limits.max_messages:
        if limits.long_conversations == "drop":
            return Dropped(
                document.source, document.line, "conversation", f"more than {limits.max_messages} messages"
            ), []
        turns, changed = turns[: limits.max_messages], ["conversations cut"]
    last = max((n for n, t in enumerate(turns) if t.role == "user"), default=-1)
    if last < 0:
        reason = "nothing said by the user" if turns else "empty"
        return Dropped(document.source, document.line, "conversation" if turns else "read", reason), []
    if last + 1 < len(turns) and "conversations cut" not in changed:
        changed.append("last replies left out")
    spoken = groupby(turns[: last + 1], key=lambda t: t.role)
    return document._replace(turns=tuple(Turn(role, "\n\n".join(t.text for t in own)) for role, own in spoken)), changed


def length(document: Document, limits: Limits) -> Dropped | None:
    """Drops a document with too few letters or too many characters in the user's text."""
    said = _MASK.sub("", document.said)
    if sum(map(str.isalpha, said)) < limits.min_letters:
        return Dropped(document.source, document.line, "length", f"fewer than {limits.min_letters} letters")
    if len(said) > limits.max_characters:
        return Dropped(document.source, document.line, "length", f"more than {limits.max_characters} characters")
    return None


def language(document: Document, limits: Limits) -> Document | Dropped:
    """The document with its language, a two- or three-letter code; dropped if that isn't one of `limits.languages`.

    A language stated by the source wins. Otherwise py3langid reads the user's text, and only a confident answer drops
    a document: people in distress write slang, typos or a second language, and a filter that guesses loses them.
    """
    wanted = {w.split("-")[0].lower() for w in limits.languages}
    code = document.language and document.language.replace("_", "-").split("-")[0].lower()
    if not code:
        said = _MASK.sub("", document.said)
        code, sure = _identifier().classify(said[:FIRST_LOOK])
        # The first characters can keep a document but never drop it, so reading less loses no messages.
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


def row(document: Document, digest: bytes, recipe: Recipe) -> dict[str, Any]:
    """`schema.COLUMNS`, then the kept fields of all sources, null if this source doesn't have them."""
    kept = dict(document.kept)
    return {
        "id": row_id(document.source, digest),
        "source": document.source,
        "source_id": document.source_id,
        "language": document.language,
        "licence": normal_licence(document.licence) or None,
        "redistributable": read_licence(document.licence).redistributable and not document.forum,
        "characters": len(document.said),
        "text": document.turns[-1].text,
        "messages": [{"role": t.role, "content": t.text} for t in document.turns],
        **{name: kept.get(name) for name in recipe.kept},
    }


def row_id(source: str, digest: bytes) -> str:
    """A row's id, derived from its source and text."""
    return f"{source}-{digest.hex()[:16]}"


class LicenceReading(NamedTuple):
    redistributable: bool
    why: str


def normal_licence(licence: str | None) -> str:
    """The name in the form used for comparison: lower case, with hyphens; empty if there is none."""
    return re.sub(r"[\s_]+", "-", (licence or "").strip().lower()).removeprefix("license:")


@cache
def read_licence(licence: str | None) -> LicenceReading:
    """Whether rows under `licence` may be shared, and why (not). Based on its name; not legal advice."""
    name = normal_licence(licence)
    if not name or name in ("unknown", "none"):
        return LicenceReading(False, "no license is stated")
    parts = name.split("-")
    if "nc" in parts or "noncommercial" in name.replace("-", ""):
        return LicenceReading(False, f"{name} allows no commercial use")
    if "nd" in parts:
        return LicenceReading(False, f"{name} allows no adapted copies, and a cleaned corpus is one")
    if not _OPEN.fullmatch(name):
        return LicenceReading(False, f"'{name}' is not a license that is known to allow it")
    same = ", under the same license" if "-sa" in name or name.startswith(("odbl", "cdla-sharing")) else ""
    return LicenceReading(True, f"{name} allows adapted copies{same}")
