"""Content → the book: one self-contained page with all content, to read, comment on and sign.

Jinja escapes every value. The page's policy allows only its own script and no network requests. A reader's notes stay
in their browser until they download them; `review` reads the download.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dataset_builder.book import words as say
from dataset_builder.book.review import FORMAT, MOST_WORDS, WHOLE, readable
from dataset_builder.checking.safe_messaging import AMOUNT, PLACE, UNSAFE_WORDS
from dataset_builder.composing.messages import NAMES, messages
from dataset_builder.reading.content_types import Content, Perturbation, Scenario
from dataset_builder.reading.markdown import NOTES
from dataset_builder.reading.opening import OWN_SCENARIO
from dataset_builder.reading.parts import PROSE
from dataset_builder.reading.refused import DIGITS
from dataset_builder.reading.signing import signatures, text_hash
from dataset_builder.schema import BEHAVIORS, PILLARS, UserMessage
from helmbench_common.files import write_whole
from helmbench_common.pages import environment, inlined

TEMPLATES = Path(__file__).with_name("templates")
# The book's script warns about these as a reviewer types a comment; the import replaces them.
REFUSED = (
    (UNSAFE_WORDS, "[unsafe words]"),
    (AMOUNT, "[amount]"),
    (PLACE, "[place]"),
)
SIGNALS = {"direct": "the danger is stated", "indirect": "the danger has to be inferred"}
Part = dict[str, Any]  # what a macro of the template shows
MARK = '<meta name="generator" content="HELMbench book">'


def written(content: Content, out: Path) -> str:
    """Writes the page, including incomplete drafts, and returns a summary.

    Raises:
        FileExistsError: `out` exists and is not a book.
        OSError: the page can't be written.
    """
    if out.exists() and not (out.is_file() and MARK.encode() in out.read_bytes()[:4000]):
        raise FileExistsError(f"{out}: exists and is not a book; expected a new file or an earlier book")
    page = book(content)
    write_whole(out, page)
    count = sum(len(s.perturbations) for s in content.scenarios)
    return (
        f"{out}: {len(content.scenarios)} scenarios, {count} messages, {len(page.encode()) / 1e6:.1f} MB; open it in a "
        "browser, it needs no network\nIts Download button saves helmbench-review-NAME-DATE.json. Once you have that "
        "file: helmbench review FILE"
    )


def book(content: Content) -> str:
    """The page as HTML."""
    alone = {m.id: m for m in messages(content)}
    scenarios = [_scenario(content, s, alone) for s in content.scenarios]
    registers = {m["register"] for s in scenarios for m in s["messages"]}
    jinja = environment(TEMPLATES)
    filters: dict[str, Any] = jinja.filters  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    filters |= {"blocks": blocks, "minus": lambda number: str(number).replace("-", "−")}
    return jinja.get_template("book.html.j2").render(
        c=content,
        hash=content_hash(content),
        scenarios=scenarios,
        pillars=_pillars(scenarios),
        protocols=_protocols(content, alone),
        categories=_categories(content, alone),
        parts=_parts(content),
        alone=len(alone),
        messages=sum(len(s["messages"]) for s in scenarios),
        signed=sum(bool(s["signed"]) for s in scenarios),
        registers=[(name, words) for name, words in say.REGISTERS.items() if name in registers],
        used=_uses(content),
        kinds=say.KINDS,
        names=_names(content),
        format=FORMAT,
        most=MOST_WORDS,
        whole=WHOLE,
        refused=json.dumps(
            [{"pattern": p.pattern, "flags": "gi" if p.flags & re.IGNORECASE else "g", "by": by} for p, by in REFUSED]
        ),
        terms=_terms(content),
        mark=Markup(MARK),
        **inlined(TEMPLATES / "book.css", TEMPLATES / "book.js"),
    )


def _terms(content: Content) -> str:
    """The hashes of names of substances and places, by placeholder, for the script."""
    terms = content.refused.terms
    hashes: dict[str, str] = {}
    for category, own in terms.terms.items():
        placeholder = "[place]" if category == "place" else "[substance]"
        hashes[placeholder] = " ".join([*hashes.get(placeholder, "").split(), *sorted(own)])
    return json.dumps({"salt": terms.salt, "digits": DIGITS, "terms": hashes})


def content_hash(content: Content) -> str:
    """A 12-digit hex hash of everything the page shows; it separates a browser's notes on different contents."""
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
    """Persona → the name in their profile."""
    named = {slug: re.search(r"Name: ([^.\n]+)\.", p.profile) for slug, p in content.personas.items()}
    return {slug: match[1] if match else slug for slug, match in named.items()}


def _pillars(scenarios: list[Part]) -> list[tuple[str, str, list[tuple[str, str, list[Part]]]]]:
    """(pillar, title, [(behavior, name, its scenarios)]), without those that have none."""
    behaviors = [(b, name, [s for s in scenarios if s["behavior"] == b]) for b, name in BEHAVIORS.items()]
    parts = [
        (pillar, title, [b for b in behaviors if b[0].startswith(pillar) and b[2]]) for pillar, title in PILLARS.items()
    ]
    return [part for part in parts if part[2]]


def _uses(content: Content) -> dict[str, dict[str, list[str]]]:
    """For each shared text, the scenarios that use it."""
    used: dict[str, dict[str, list[str]]] = {
        kind: {slug: [] for slug in sorted(getattr(content, kind))} for kind in ("personas", "conditions", "criteria")
    }
    for s in content.scenarios:
        checks = [check for p in s.perturbations for t in p.turns for check in t.checks]
        slugs = {
            "personas": {c.persona.slug for c in s.contexts},
            "conditions": {slug for c in s.conditions for slug in c.slug.split("+")},
            "criteria": {slug for key in ("graded", "crisis", "control") for slug, _ in s.criteria(key)}
            | {check.criterion for check in checks if check.check in ("criterion", "graded")},
        }
        for kind, own in slugs.items():
            for slug in own & used[kind].keys():
                used[kind][slug].append(s.id)
    return used


def _protocols(content: Content, alone: dict[str, UserMessage]) -> list[Part]:
    """One per protocol, in taxonomy order: what each rating means, and what is not judged."""
    rated = Counter(m.crisis_category for m in alone.values())
    return [
        _chapter(content, "protocol", name)
        | {
            "title": row.title,
            "tally": f"{name}, {rated[name]} messages",
            "facts": [f"Replies to {rated[name]} messages that stand alone are rated by it."],
            "said": [*((f"Level {n}", text) for n, text in enumerate(row.levels, 1)), ("Not judged", row.not_judged)],
            "quotes": [],
            "other": f"category-{name}",
        }
        for name, row in content.protocols.items()
    ]


def _categories(content: Content, alone: dict[str, UserMessage]) -> list[Part]:
    """One per category: its definition, borderline cases, and examples."""
    rated = Counter(m.crisis_category for m in alone.values())
    chapters: list[Part] = []
    for name, row in content.taxonomy.items():
        facts = ["Left out of triage and of ratings: the other categories have no right answer for it."]
        if row.in_triage:
            facts = ["Triage offers it as a label."]
        if row.high_risk:
            facts.append("High risk: missing such a message may cost a life, and such misses are listed first.")
        border = "\n".join(f"- {point}" for point in row.borderline)
        chapters.append(
            _chapter(content, "category", name)
            | {
                "title": row.title,
                # Borderline cases name other categories by this name.
                "tally": f"{name}, {rated[name]} messages" if row.in_triage else name,
                "facts": facts,
                "said": [("Definition", row.definition), ("Near its border", border)],
                "quotes": row.examples,
                "other": f"protocol-{name}" if name in content.protocols else "",
            }
        )
    return chapters


def _parts(content: Content) -> list[Part]:
    """One per part of a simulated user: who it is, and the lines of the built-in one."""
    return [
        _chapter(content, "part", row.id)
        | {
            "title": f"{row.id} {row.title}",
            "tally": f"{row.polarity}, {say.CATEGORIES[row.crisis_category]}",
            "facts": [
                f"Age {row.age}, {NAMES.get(row.country or '', row.country or 'country unknown')}; at most {row.turns} "
                f"messages. Hopes to get: {row.wants}"
            ],
            "said": [(name, getattr(row, name.lower())) for name in PROSE],
            "quoted": "What the built-in user says, in the order of the file",
            "quotes": [line.text for line in row.lines],
            "other": "",
        }
        for row in (part.row for part in content.parts)
    ]


def _chapter(content: Content, what: str, name: str) -> Part:
    """What protocols and categories share. `said`: headings with prose; `quotes`: examples shown as messages; `other`:
    the id of the category's protocol, or of the protocol's category.
    """
    read = readable(content)[name if what == "part" else f"{what}-{name}"]
    signed = signatures(read.document.text("review")) if read.signs else None
    return {"id": read.id, "what": what, "hash": text_hash(read.document), "signs": read.signs, "signed": signed or ()}


def _scenario(content: Content, s: Scenario, alone: dict[str, UserMessage]) -> Part:
    front = s.document
    counts = Counter(p.polarity for p in s.perturbations)
    kinds = [say.CATEGORIES[front.text(key)] for key in ("crisis_category", "crisis_category_2") if key in front.front]
    wordings = sorted({"1", *(c.wording for c in s.conditions)})
    headings = {
        "Rationale": "Why it is asked",
        "Judgement calls": "Judgement calls",
        "Not tested": "What it does not test",
        NOTES: "Notes of earlier readers",
    }
    jobs = [
        ("The job, as the model reads it" if w == "1" else f"The same job in other words (wording {w})", s.job(w))
        for w in wordings
    ]
    names = _names(content)
    return {
        "id": s.id,
        "title": front.text("title"),
        "pillar": s.id[:2],
        "behavior": s.behavior,
        "kind": s.kind,
        "category": say.any_of(kinds, "and"),
        "sources": front.text("sources"),
        "withdrawn": s.withdrawn,
        "own": bool(OWN_SCENARIO.fullmatch(s.id)),
        "hash": text_hash(front),
        "signed": signatures(front.text("review")) or (),
        "prose": [(title, s.prose(name)) for name, title in headings.items() if s.prose(name)],
        "jobs": [*jobs, ("The job, as judges of a reply read it", front.text("job"))],
        "conditions": list(s.conditions),
        "contexts": list(s.contexts),
        "decides": [(p, found) for p in ("crisis", "control") if counts[p] and (found := say.deciding(content, s, p))],
        "messages": [_message(s, p, names, alone) for p in s.perturbations],
        "counts": f"{counts['crisis']} crisis, {counts['control']} no crisis",
    }


def _message(s: Scenario, p: Perturbation, names: dict[str, str], alone: dict[str, UserMessage]) -> Part:
    """A message, or a scripted conversation. A turn's text is None for a live model turn; `judged`: (sentence,
    criterion) of each check.
    """
    own = f"{s.id}-{p.code}"
    notes, other = ["Only within its job"], ""
    if message := alone.get(own):
        place = f", by somebody in {NAMES.get(message.country, message.country)}" if message.country else ""
        signal = [f"Signal: {message.signal}, {SIGNALS[message.signal]}"] if message.signal else []
        notes = [f"Also asked alone{place}", *signal]
        if message.probe:
            other = next((m.id for m in alone.values() if m.probe == message.probe and m.id != own), "")
    return {
        "id": own,
        "code": p.code,
        "severity": p.severity,
        "polarity": p.polarity,
        "standing": say.severity(p.severity, s.id[:2]),
        "clarity": p.attributes.get("clarity", "clear"),
        "register": p.attributes.get("register", "standard"),
        "notes": [*say.says(p, names), *notes, *say.own_deciding(s, p)],
        "pair": p.attributes.get("pair_of", ""),
        "probe": other,
        "turns": [{"role": t.role, "text": t.text, "judged": [say.checkpoint(c) for c in t.checks]} for t in p.turns],
    }
