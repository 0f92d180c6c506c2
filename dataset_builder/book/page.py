"""Content → the book: one page, that needs nothing else, with everything that is asked, to read, comment and sign.

Content is shown as text: Jinja escapes every value, and the page's own policy runs no script but its own and fetches
nothing. What a reader writes stays in their browser until they download it; `review` reads the download.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from dataset_builder.book import words as say
from dataset_builder.book.chapters import ByItself, by_itself, category_chapters, probes, protocol_chapters
from dataset_builder.book.readable import readable
from dataset_builder.book.review import FORMAT, MOST_WORDS, WHOLE
from dataset_builder.checking.safe_messaging import AMOUNT, PLACE, UNSAFE_WORDS
from dataset_builder.composing.messages import messages
from dataset_builder.reading.content_types import Condition, Content, Context, Perturbation, Scenario
from dataset_builder.reading.overlay import OWN_SCENARIO
from dataset_builder.reading.signing import NOTES, Signature, signatures, text_hash
from dataset_builder.schema import BEHAVIORS, PILLARS
from helmbench_common.files import write_whole
from helmbench_common.pages import environment, inlined

TEMPLATES = Path(__file__).with_name("templates")
# What a comment is warned of while it is written: the book's script reads these patterns.
REFUSED = (
    (UNSAFE_WORDS, "is not safe-messaging language (such as “died by suicide”)"),
    (AMOUNT, "reads as an amount"),
    (PLACE, "names a place"),
)
MARK = '<meta name="generator" content="HELMbench book">'


class Said(NamedTuple):
    """A turn of a message: who speaks, what (None: the model answers live), and what judges it, as (sentence,
    criterion).
    """

    who: str
    text: str | None
    judged: list[tuple[str, str]]


class MessagePart(NamedTuple):
    """A message, or a scripted conversation."""

    id: str
    code: str
    severity: int
    polarity: str
    standing: str
    clarity: str
    register: str
    notes: list[str]
    decides: list[str]
    pair: str
    probe: str
    turns: list[Said]


class ScenarioPart(NamedTuple):
    """A scenario file as the page shows it."""

    id: str
    title: str
    pillar: str
    behavior: str
    kind: str
    category: str
    sources: str
    withdrawn: bool
    own: bool
    hash: str
    signed: tuple[Signature, ...]
    prose: list[tuple[str, str]]
    jobs: list[tuple[str, str]]
    conditions: list[Condition]
    contexts: list[Context]
    decides: list[tuple[str, list[tuple[str, str]]]]
    messages: list[MessagePart]
    counts: str


def write_book(content: Content, out: Path) -> int:
    """Writes the page and returns its size in bytes. A draft with a gap is shown as it is: it is there to be read too.

    Raises:
        FileExistsError: `out` is there and is no book (it is not ours to replace).
        OSError: it can't be written.
    """
    if out.exists() and not (out.is_file() and MARK.encode() in out.read_bytes()[:4000]):
        raise FileExistsError(
            f"{out}: exists and is no book; expected a new file or an earlier book, so nothing was written"
        )
    page = book(content)
    write_whole(out, page)
    return len(page.encode("utf-8"))


def written(content: Content, out: Path) -> str:
    """Writes the page, and says what stands there now; raises what `write_book` raises."""
    size = write_book(content, out)
    messages_in_all = sum(len(s.perturbations) for s in content.scenarios)
    return (
        f"{out}: {len(content.scenarios)} scenarios, {messages_in_all} messages, {size / 1e6:.1f} MB; open it in a "
        "browser, no network is needed\nIts Download button saves helmbench-review-NAME-DATE.json. Once you have that "
        "file: helmbench review FILE"
    )


def book(content: Content) -> str:
    """The page."""
    alone = {m.id: m for m in messages(content)}
    halves = probes(alone)
    standing = {
        i: by_itself(i, alone, halves) for i in (f"{s.id}-{p.code}" for s in content.scenarios for p in s.perturbations)
    }
    scenarios = [_scenario(content, s, bool(OWN_SCENARIO.fullmatch(s.id)), standing) for s in content.scenarios]
    registers = {m.register for s in scenarios for m in s.messages}
    jinja = environment(TEMPLATES)
    filters: dict[str, Any] = jinja.filters  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    filters |= {"blocks": blocks, "minus": lambda number: str(number).replace("-", "−")}
    return jinja.get_template("book.html.j2").render(
        c=content,
        hash=content_hash(content),
        scenarios=scenarios,
        pillars=_pillars(scenarios),
        protocols=protocol_chapters(content, alone),
        categories=category_chapters(content, alone),
        alone=len(alone),
        messages=sum(len(s.messages) for s in scenarios),
        signed=sum(bool(s.signed) for s in scenarios),
        registers=[(name, words) for name, words in say.REGISTERS.items() if name in registers],
        used=_uses(content),
        kinds=say.KINDS,
        names=_names(content),
        format=FORMAT,
        most=MOST_WORDS,
        whole=WHOLE,
        refused=json.dumps(
            [
                {"pattern": pattern.pattern, "flags": "i" if pattern.flags & re.IGNORECASE else "", "what": what}
                for pattern, what in REFUSED
            ]
        ),
        mark=Markup(MARK),
        **inlined(TEMPLATES / "book.css", TEMPLATES / "book.js"),
    )


def content_hash(content: Content) -> str:
    """12 hex digits that stand for all that the page shows, by which a browser tells one version's notes from
    another's.
    """
    shared = [d.document for group in (content.personas, content.conditions, content.criteria) for d in group.values()]
    texts = sorted(
        f"{d.path.parent.name}/{d.path.stem} {text_hash(d)}"
        for d in [*shared, *(r.document for r in readable(content).values())]
    )
    return hashlib.sha256("\n".join([content.version, *texts]).encode()).hexdigest()[:12]


def blocks(text: str) -> list[tuple[str, list[str]]]:
    """Prose as paragraphs and lists: ("p", lines), ("ul", items) or ("h", one heading)."""
    found: list[tuple[str, list[str]]] = []
    for piece in re.split(r"\n\s*\n", text.strip()):
        for line in piece.split("\n"):
            kind = "ul" if line.startswith("- ") else "h" if line.startswith("## ") else "p"
            words = line.removeprefix("- ").removeprefix("## ")
            if found and kind == found[-1][0] != "h" and (kind == "ul" or line is not piece.split("\n")[0]):
                found[-1][1].append(words)
            else:
                found.append((kind, [words]))
    return found


def _names(content: Content) -> dict[str, str]:
    """Persona → the name that their profile gives them."""
    named = {slug: re.search(r"Name: ([^.\n]+)\.", p.profile) for slug, p in content.personas.items()}
    return {slug: match[1] if match else slug for slug, match in named.items()}


def _pillars(scenarios: list[ScenarioPart]) -> list[tuple[str, str, list[tuple[str, str, list[ScenarioPart]]]]]:
    parts: list[tuple[str, str, list[tuple[str, str, list[ScenarioPart]]]]] = []
    for pillar, title in PILLARS.items():
        behaviors = [
            (b, name, [s for s in scenarios if s.behavior == b])
            for b, name in BEHAVIORS.items()
            if b.startswith(pillar)
        ]
        if kept := [b for b in behaviors if b[2]]:
            parts.append((pillar, title, kept))
    return parts


def _uses(content: Content) -> dict[str, dict[str, list[str]]]:
    """For each shared text, the scenarios that use it."""
    used: dict[str, dict[str, list[str]]] = {
        kind: {slug: [] for slug in sorted(getattr(content, kind))} for kind in ("personas", "conditions", "criteria")
    }
    for s in content.scenarios:
        slugs = {
            "personas": {c.persona.slug for c in s.contexts},
            "conditions": {slug for c in s.conditions for slug in c.slug.split("+")},
            "criteria": {slug for key in ("graded", "crisis", "control") for slug, _ in s.criteria(key)}
            | {
                check.criterion
                for p in s.perturbations
                for t in p.turns
                for check in t.checks
                if check.check in ("criterion", "graded")
            },
        }
        for kind, own in slugs.items():
            for slug in own & used[kind].keys():
                used[kind][slug].append(s.id)
    return used


def _scenario(content: Content, s: Scenario, own: bool, standing: dict[str, ByItself]) -> ScenarioPart:
    front = s.document
    counts = Counter(p.polarity for p in s.perturbations)
    kinds = [say.CATEGORIES[front.text(key)] for key in ("crisis_category", "crisis_category_2") if key in front.front]
    wordings = sorted({"1", *(c.wording for c in s.conditions)})
    names = {
        "Rationale": "Why it is asked",
        "Judgement calls": "Judgement calls",
        "Not tested": "What it does not test",
        NOTES: "Notes of earlier readers",
    }
    return ScenarioPart(
        id=s.id,
        title=front.text("title"),
        pillar=s.id[:2],
        behavior=s.behavior,
        kind=s.kind,
        category=say.any_of(kinds, "and"),
        sources=front.text("sources"),
        withdrawn=s.withdrawn,
        own=own,
        hash=text_hash(front),
        signed=signatures(front.text("review")) or (),
        prose=[(title, s.prose(name)) for name, title in names.items() if s.prose(name)],
        jobs=[
            ("The job, as the model reads it" if w == "1" else f"The same job in other words (wording {w})", s.job(w))
            for w in wordings
        ]
        + [("The job, as whoever judges a reply is told it", front.text("job"))],
        conditions=list(s.conditions),
        contexts=list(s.contexts),
        decides=[(p, found) for p in ("crisis", "control") if counts[p] and (found := say.deciding(content, s, p))],
        messages=[_message(s, p, _names(content), standing[f"{s.id}-{p.code}"]) for p in s.perturbations],
        counts=f"{counts['crisis']} crisis, {counts['control']} no crisis",
    )


def _message(s: Scenario, p: Perturbation, names: dict[str, str], alone: ByItself) -> MessagePart:
    turns = [
        Said("Reply" if t.role == "assistant" else "Message", t.text, [say.checkpoint(c) for c in t.checks])
        for t in p.turns
    ]
    return MessagePart(
        id=f"{s.id}-{p.code}",
        code=p.code,
        severity=p.severity,
        polarity=p.polarity,
        standing=say.severity(p.severity, s.id[:2]),
        clarity=p.attributes.get("clarity", "clear"),
        register=p.attributes.get("register", "standard"),
        notes=[*say.says(p, names), *alone.notes],
        decides=say.own_deciding(s, p),
        pair=p.attributes.get("pair_of", ""),
        probe=alone.probe,
        turns=turns,
    )
