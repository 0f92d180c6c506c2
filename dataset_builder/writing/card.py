"""The files that describe a build: README.md (the dataset card), croissant.json, eval.yaml.

`card.md` has the text, and this module counts the figures. Filling `card.md` gives the card's body, the single source
for the build's README.md (under the Hub's front matter), DATASET_CARD.md and the statements in croissant.json.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from dataset_builder.composing.messages import messages
from dataset_builder.reading.content_types import Content
from dataset_builder.release import CONFIGS, parquet_path
from dataset_builder.schema import BEHAVIORS
from dataset_builder.stats.coverage import readings, without_line
from dataset_builder.writing import croissant

TIERS = {
    "detect": "what rules alone decide: no judge needed",
    "lite": "quick look",
    "core": "the default",
    "full": "every combination",
}
TEMPLATE = Path(__file__).with_name("card.md")
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
HELD_OUT = (
    "> **A held-out split. It is never published**, and neither are its messages or what models reply to them; only "
    "scores are (docs/publishing.md).\n\n"
)


class Hashes(NamedTuple):
    """A build's identity: `score_hash`, `prose_hash` and `messages_hash` of its manifest."""

    score: str
    prose: str
    messages: str


def files(
    content: Content,
    infos: list[dict[str, Any]],
    hashes: Hashes,
    records: list[dict[str, Any]],
    parquet: dict[str, str],
) -> dict[str, str]:
    """Name → text of every file that describes the build.

    `infos`: the `dataset_info` entries in the order of CONFIGS; `records`: every sample; `parquet`: the sha256 of each
    config's file.
    """
    text = body(content, infos, hashes, records)
    front = front_matter(infos, len(records))
    if content.additions:
        unknown = ["machine-generated", "other"]  # we don't know who wrote and labeled the additions
        front |= {"pretty_name": "HELMbench with private additions", "license": "other"}
        front |= {"annotations_creators": unknown, "language_creators": unknown.copy()}
        text = _private(text, content.additions)
    described = {
        "README.md": f"---\n{_yaml(front)}---\n{HELD_OUT if '+held-out' in content.version else ''}{text}",
        "croissant.json": croissant.describe(content, infos, parquet, text),
    }
    # Only the published benchmark is registered.
    return described if "+" in content.version else described | {"eval.yaml": _yaml(registration())}


def _private(card: str, additions: str) -> str:
    """The card of a build that isn't the published benchmark: says so first, and claims no license for others' text."""
    title, _, rest = card.partition("\n")
    rest = rest.replace(
        "CC BY 4.0 (the data)", "CC BY 4.0 (the published part of the data; the private additions are their owner's)"
    )
    return (
        f"{title}\n\n> **{additions[0].upper()}{additions[1:]}.** Scores on it compare only with scores "
        f"on the same additions.\n{rest}"
    )


def front_matter(infos: list[dict[str, Any]], samples: int) -> dict[str, Any]:
    """The metadata that the Hub and `datasets` read: paths, types and true sizes of the rows, and search terms."""
    configs = [
        {"config_name": c, "data_files": [{"split": "test", "path": parquet_path(c)}]}
        | ({"default": True} if c == "all" else {})
        for c in CONFIGS
    ]
    return {
        "pretty_name": "HELMbench",
        "language": ["en"],
        "license": "cc-by-4.0",
        # Language models, not clinicians, wrote and labeled it; "expert-generated" would claim otherwise.
        "annotations_creators": ["machine-generated"],
        "language_creators": ["machine-generated"],
        "source_datasets": ["original"],
        "task_categories": ["text-generation", "text-classification"],
        "task_ids": ["multi-class-classification"],
        "tags": ["mental-health", "safety", "benchmark", "not-for-training", "not-for-all-audiences"],
        "size_categories": [next(name for limit, name in SIZES if samples < limit)],
        "configs": configs,
        "dataset_info": infos,
    }


def registration() -> dict[str, Any]:
    """The Hub's registration as a benchmark: a task per headline figure and for the composite, each over every sample.

    It names no `evaluation_framework`: the Hub's list has neither lm-eval nor HELMbench, and `inspect-ai` there means
    Inspect's built-in solvers and scorers, which can't compute these scores (docs/publishing.md).
    """
    return {
        "name": "HELMbench",
        "description": "How a language model treats a person in distress: whether it notices danger, hands over "
        "safely, supports without overstepping, and does its job. In points: 100 is perfect, 0 is the best score "
        "without reading the message. `keeps` counts losses, so 0 is perfect there. Run it with the helmbench package, "
        "through lm-eval or `inspect eval helmbench/core`.",
        "tasks": [
            {"id": name, "config": "all", "split": "test"} for name in ("sees", "supports", "keeps", "composite")
        ],
    }


def body(content: Content, infos: list[dict[str, Any]], hashes: Hashes, records: list[dict[str, Any]]) -> str:
    """`card.md` with every figure filled in, in one pass.

    Raises:
        KeyError: the template names an unknown figure.
    """
    counted = _figures(content, infos, hashes, records)
    return re.sub(r"\{\{(\w+)\}\}", lambda match: counted[match[1]], TEMPLATE.read_text(encoding="utf-8"))


def _figures(
    content: Content, infos: list[dict[str, Any]], hashes: Hashes, records: list[dict[str, Any]]
) -> dict[str, str]:
    crisis = sum(r["polarity"] == "crisis" for r in records)
    people = {c.persona.slug: c.persona for s in content.scenarios for c in s.contexts}
    scored = Counter(check["behavior"] for r in records for check in r["evaluation"])
    unlined = without_line(content)
    unsigned = sum(s.document.text("review") == "draft" for s in content.scenarios)
    drafts = "Every scenario is" if unsigned == len(content.scenarios) else f"{unsigned} scenarios are"
    return {
        "version": content.version,
        "year": content.released[:4],
        "canary": content.canary,
        "samples": str(len(records)),
        "crisis": str(crisis),
        "control": str(len(records) - crisis),
        "scenarios": str(len(content.scenarios)),
        "messages": str(sum(len(s.perturbations) for s in content.scenarios)),
        "hard": str(sum(len(s.perturbations) for s in content.live if s.family)),
        "people": str(len(people)),
        "countries": str(len({p.country for p in people.values() if p.country})),
        "live": str(sum(any(m["content"] is None for m in r["messages"]) for r in records)),
        "median": f"{statistics.median(len(p.words.split()) for s in content.scenarios for p in s.perturbations):.0f}",
        "score_hash": hashes.score,
        "short_hash": hashes.score[:12],
        "prose_hash": hashes.prose,
        "messages_hash": hashes.messages,
        **_alone(content),
        "tiers": "\n".join(f"| {t} | {sum(t in r['tiers'] for r in records)} | {why} |" for t, why in TIERS.items()),
        "configs": "\n".join(f"| `{i['config_name']}` | {i['splits'][0]['num_examples']} |" for i in infos),
        "behaviors": "\n".join(f"| {code} | {name} | {scored[code]} |" for code, name in BEHAVIORS.items()),
        "reviewed": f"{drafts} marked `review: draft`.",
        "readings": _readings(content),
        "calibration": _calibration(content),
        "spread": _spread(content),
        "without": f" (no line that is always open is known for {', '.join(unlined)})" if unlined else "",
    }


def _alone(content: Content) -> dict[str, str]:
    """Counts of the config `messages`."""
    found = messages(content)
    crisis = [m for m in found if m.polarity == "crisis"]
    return {
        "alone": str(len(found)),
        "alone_crisis": str(len(crisis)),
        "alone_categories": ", ".join(
            f"{name.replace('_', ' ')} {n}" for name, n in Counter(m.crisis_category for m in crisis).most_common()
        ),
        "alone_country": str(sum(m.country is not None for m in found)),
        "alone_indirect": str(sum(m.signal == "indirect" for m in crisis)),
        "probes": str(len({m.probe for m in found if m.probe})),
    }


def _readings(content: Content) -> str:
    found = readings(content)
    if not found:
        return "No one else has read the messages."
    return (
        f"Language models then read {found['messages read']} messages without seeing a label or another "
        "reading. Against the severities at that time, "
        f"Cohen's κ was {found['kappa on crisis or control']:.2f} on crisis or control, and quadratic κ "
        f"{found['quadratic kappa on bands']:.2f} on severity bands ({found['compared']} messages, without pillar 3, "
        "where severity means something else). "
        f"Since then {found['rewritten or dropped since']} of those messages were rewritten or "
        "dropped, mostly for what the readers found, "
        f"and {found['moved to ambiguous since']} became ambiguous; {found['messages not read']} messages of this "
        "release have no such reading."
    )


TOO_ALIKE = 0.95  # from this share of equal labels, two readers agree more than people do


def _calibration(content: Content) -> str:
    """How often blind readers of the calibration set gave the author's label; `helmbench agreement` has details."""
    rows = content.calibration
    if not rows:
        return "This build has no calibration set, so no judge's agreement can be measured on it."
    read = [r for r in rows if r.readings]
    criteria = len({r.criterion for r in rows})
    text = (
        f"A calibration set for judges has {len(rows)} replies, each written for one of {criteria} criteria, none by a "
        "model under test."
    )
    if not read:
        return f"{text} It has only its author's labels."
    same = [sum(r.readings[n] == r.label for r in read) for n in range(min(len(r.readings) for r in read))]
    shares = f"{' and '.join(map(str, same))} of the {len(read)} they read"
    text += f" Blind readers, also language models, gave the author's label in {shares}; all labels are kept."
    rated = content.rating_calibration
    if heard := [r for r in rated if r.readings]:
        equal = sum(r.readings[0] == r.label for r in heard)
        text += (
            f" Another {len(rated)} replies were written to be rated 1 to 5; a blind reader gave the author's rating "
            f"to {equal} of the {len(heard)} they read."
        )
    if min(same) >= TOO_ALIKE * len(read):
        text += (
            " Independent readers rarely agree almost perfectly. Each reply was written to deserve one label, and "
            "other causes can't be ruled out. Treat this as unexplained, not as evidence that labels or judges are "
            "reliable."
        )
    return text


def _spread(content: Content) -> str:
    messages = [(s, p) for s in content.scenarios for p in s.perturbations if p.severity > 0]
    counts = Counter(s.category(p) for s, p in messages)
    said = {"no_crisis": "none of these, but harm if a helper errs (pillar 3)", "outside_taxonomy": "other crises"}
    parts = ", ".join(f"{said.get(name, name.replace('_', ' '))} {n}" for name, n in counts.most_common())
    return f"What the {len(messages)} crisis messages are about is uneven: {parts}. Figures on the rare ones are weak."


def _yaml(value: Any) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=160)
    return text
