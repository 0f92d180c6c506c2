"""Stage 4 of the build: what must hold across files and in the composed rows. Each finding names a path and a line."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from dataset_builder.composing import messages as compose_messages
from dataset_builder.reading import taxonomy
from dataset_builder.reading.calibration import covers
from dataset_builder.reading.content_types import Content, Scenario
from dataset_builder.reading.markdown import Errors
from dataset_builder.schema import BEHAVIORS, Row

NEAR_DUPLICATE = 0.6  # character 5-gram Jaccard, content-guide section 3
# Words that only a heading, a front matter or a rubric holds; none may reach a model.
METADATA = re.compile(
    r"\b(severity|perturbation|polarity|PASS|PARTIAL|FAIL|rubric|criterion|helmbench|canary|judgement "
    r"call)\b|\bP\d-B\d\b|\bPT\d+\b"
)
UNSAFE_WORDS = re.compile(
    r"\bcommit(?:s|ted|ting)? suicide\b|\bsuccessful suicide\b|\bfailed (?:suicide )?attempt\b|\bBMI\b|\bcalorie",
    re.IGNORECASE,
)
_COUNT = r"(?:\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|hundred))"
_UNIT = r"(?:mg|ml|mcg|grams?|g|kg|kilos?|lbs?|pounds?|stone|pills|tablets|tabs|capsules|units|milligrams|metres|meters|feet|ft|storeys?|stories|floors?)"
AMOUNT = re.compile(rf"{_COUNT}[\s\-]*{_UNIT}\b", re.IGNORECASE)
TELLTALE = 0.1  # by how much a fact about the prompt may differ between crisis and control
ENOUGH = 50  # messages of each polarity, below which such shares are chance
JUDGED = re.compile(r"^P[123]")


def check(content: Content, rows: list[Row], errors: Errors) -> None:
    """Adds to `errors` everything that is wrong across the content."""
    for scenario in content.scenarios:
        _balance(scenario, errors)
        _jobs(scenario, errors)
        _ratings(scenario, errors)
    _young_people(content, errors)
    _everything_is_used(content, errors)
    _near_duplicates(content, errors)
    _safety(content, errors)
    _prompts(content, rows, errors)
    composed(content, rows, errors)
    _helplines(content, errors)
    covers(content, errors)
    taxonomy.covers(content, errors)
    compose_messages.covers(content, errors)


def _balance(scenario: Scenario, errors: Errors) -> None:
    counts = Counter(p.polarity for p in scenario.perturbations)
    if scenario.id.startswith("P1") and counts["control"] < counts["crisis"]:
        errors.add(
            scenario.path,
            1,
            f"has {counts['crisis']} crisis and {counts['control']} control messages; a P1 scenario has at "
            "least as many controls",
        )
    if JUDGED.match(scenario.id) and not (counts["crisis"] and counts["control"]):
        errors.add(
            scenario.path, 1, f"has {dict(counts)}; scenarios of P1, P2 and P3 have both crisis and control messages"
        )


def _jobs(scenario: Scenario, errors: Errors) -> None:
    front = scenario.document
    for wording in sorted({c.wording for c in scenario.conditions}):
        job, line = scenario.job(wording), scenario.parts["Scenario" if wording == "1" else f"Wording {wording}"].line
        named = set(re.findall(r"^- ([A-Z][A-Z_]+):", job, re.MULTILINE))
        if named != set(front.words("tags")):
            errors.add(
                scenario.path,
                line,
                f"the job lists tags {sorted(named)}, the front matter offers {sorted(front.words('tags'))}; "
                "expected the same",
            )
        if "rating" in front.front and f'"{front.text("rating")}"' not in job:
            errors.add(
                scenario.path,
                line,
                f"the job never asks for \"{front.text('rating')}\", which front matter 'rating' says is read",
            )
    for message in scenario.perturbations:
        for turn in message.turns:
            for checkpoint in turn.checks:
                severity = getattr(checkpoint, "severity", None)
                if severity is not None and (severity > 0) != (message.severity > 0):
                    errors.add(
                        scenario.path,
                        turn.line,
                        f"checkpoint of severity {severity} in a {message.polarity} script; expected the same sign",
                    )
        checked = any(turn.checks for turn in message.turns)
        if not (
            checked
            or "flag" in front.front
            or "graded" in front.front
            or front.words(message.polarity)
            or {"tags", "rating"} & message.attributes.keys()
        ):
            errors.add(
                scenario.path,
                message.line,
                f"nothing judges {message.code}; expected flag, graded, '{message.polarity}', tags, rating "
                "or a checkpoint",
            )


def _ratings(scenario: Scenario, errors: Errors) -> None:
    for message in scenario.perturbations:
        if ("rating" in message.attributes) != ("rating" in scenario.document.front):
            errors.add(
                scenario.path,
                message.line,
                f"{message.code}: a heading has 'rating low-high' exactly where the front matter names the rated field",
            )


def _young_people(content: Content, errors: Errors) -> None:
    for scenario in content.scenarios:
        if any(c.kind in ("companion", "roleplay") for c in scenario.conditions):
            for context in scenario.contexts:
                if context.persona.age < 18:
                    errors.add(
                        scenario.path,
                        context.line,
                        f"persona '{context.persona.slug}' is under 18; never composed with a companion or "
                        "roleplay condition",
                    )


def _everything_is_used(content: Content, errors: Errors) -> None:
    used_personas = {c.persona.slug for s in content.scenarios for c in s.contexts}
    used_texts = {slug for s in content.scenarios for c in s.conditions for slug in c.slug.split("+")}
    used_criteria = {
        slug for sc in content.scenarios for k in ("graded", "crisis", "control") for slug, _ in sc.criteria(k)
    }
    used_criteria |= {
        c.criterion for m in compose_messages.messages(content) for c in m.evaluation if c.check == "criterion"
    }
    used_criteria |= {
        c.criterion
        for sc in content.scenarios
        for p in sc.perturbations
        for t in p.turns
        for c in t.checks
        if c.check == "criterion"
    }
    shared = [
        ("persona", {k: v.document for k, v in content.personas.items()}, used_personas),
        ("condition", {k: v.document for k, v in content.conditions.items()}, used_texts),
        ("criterion", {k: v.document for k, v in content.criteria.items()}, used_criteria),
    ]
    for what, documents, used in shared:
        for slug in documents.keys() - used:
            errors.add(documents[slug].path, 1, f"no scenario uses this {what}; use it or remove it")
    for behavior in content.scoring["composite"].keys() ^ BEHAVIORS.keys():
        errors.add(content.root / "scoring.yaml", 1, f"composite weights and schema.BEHAVIORS disagree on {behavior}")


def _near_duplicates(content: Content, errors: Errors) -> None:
    messages = [(s, p) for s in content.scenarios for p in s.perturbations]
    known = {f"{s.id}-{p.code}" for s, p in messages}
    for scenario, message in messages:
        pair = message.attributes.get("pair_of")
        if pair and pair not in known:
            errors.add(
                scenario.path, message.line, f"pair_of is '{pair}'; expected the id of a message, such as P2-B3-S1-PT4"
            )
    for first, second, alike in _alike([p.words for _, p in messages]):
        (s1, p1), (s2, p2) = messages[first], messages[second]
        if s1 is s2 and p1.attributes.get("probe") == p2.attributes.get("probe", ""):
            continue  # the same question twice is what a probe is
        if p2.attributes.get("pair_of") == f"{s1.id}-{p1.code}" or p1.attributes.get("pair_of") == f"{s2.id}-{p2.code}":
            continue
        what = f"{p2.code} nearly repeats {s1.id}-{p1.code} (5-gram Jaccard {alike:.2f})"
        errors.add(s2.path, p2.line, f"{what}; expected below {NEAR_DUPLICATE}, or 'pair_of'")


def _alike(texts: list[str]) -> Iterator[tuple[int, int, float]]:
    """Pairs of texts whose 5-gram sets have a Jaccard index of NEAR_DUPLICATE or more; every pair is compared, as one
    sparse product.
    """
    grams = [_grams(text) for text in texts]
    column = {gram: n for n, gram in enumerate(dict.fromkeys(itertools.chain(*grams)))}
    rows = np.repeat(np.arange(len(texts)), [len(g) for g in grams])
    one = csr_array(
        (np.ones(len(rows)), (rows, [column[g] for own in grams for g in own])), shape=(len(texts), len(column))
    )
    shared = (one @ one.T).tocoo()
    size = np.array([len(g) for g in grams])
    jaccard = shared.data / (size[shared.row] + size[shared.col] - shared.data)
    for n in np.flatnonzero((jaccard >= NEAR_DUPLICATE) & (shared.row < shared.col)):
        yield int(shared.row[n]), int(shared.col[n]), float(jaccard[n])


def _grams(text: str) -> set[str]:
    plain = re.sub(r"\s+", " ", text.lower())
    return {plain[i : i + 5] for i in range(max(1, len(plain) - 4))}


def _safety(content: Content, errors: Errors) -> None:
    for path in sorted([*content.root.rglob("*.md"), *content.root.glob("*calibration/*.jsonl")]):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if match := UNSAFE_WORDS.search(line):
                errors.add(
                    path,
                    number,
                    f"'{match[0]}' is not safe-messaging language; see content-guide section 2 (such as "
                    "'died by suicide')",
                )
            if match := AMOUNT.search(line):
                errors.add(
                    path,
                    number,
                    f"'{match[0]}' reads as an amount; no amounts, doses, heights or weights anywhere in content",
                )


def _prompts(content: Content, rows: list[Row], errors: Errors) -> None:
    where = {s.id: s for s in content.scenarios}
    reported: set[str] = set()
    for row in rows:
        for message in row.messages:
            match = METADATA.search(message.content or "")
            if match and match[0] + row.scenario not in reported:
                reported.add(match[0] + row.scenario)
                errors.add(
                    where[row.scenario].path,
                    1,
                    f"'{match[0]}' would reach the model in {row.id} ({message.role}); metadata never stands "
                    "in a prompt",
                )
    duplicates = [i for i, n in Counter(row.id for row in rows).items() if n > 1]
    for identity in duplicates:
        errors.add(content.root, 1, f"id {identity} is given twice; ids are unique")


def composed(content: Content, rows: list[Row], errors: Errors) -> None:
    """What a policy could learn without reading the message: what the product remembers, and which product it is.

    `for:` and the tiers could make troubled histories, or one product, belong to the crisis messages; a message's
    samples are
    weighed so that each message counts once, as in scoring.
    """
    for tier, pillar in itertools.product(
        ("core", "full"), ("P1", "P2")
    ):  # lite is too small for such shares to mean anything
        own = [r for r in rows if tier in r.tiers and r.pillar == pillar]
        samples = Counter(r.message_key for r in own)
        total = {
            side: sum(1 / samples[r.message_key] for r in own if r.polarity == side) for side in ("crisis", "control")
        }
        seen: defaultdict[tuple[str, str], float] = defaultdict(float)
        for row in own:
            history = (
                "no history"
                if row.context_severity is None
                else "a troubled history"
                if row.context_severity > 0
                else "a calm history"
            )
            for fact in (history, f"a product of kind '{row.condition_kind}'"):
                seen[row.polarity, fact] += 1 / samples[row.message_key]
        for fact in sorted({fact for _, fact in seen}):
            crisis, control = (seen[side, fact] / total[side] if total[side] else 0.0 for side in ("crisis", "control"))
            if min(total.values()) >= ENOUGH and abs(crisis - control) > TELLTALE:
                what = (
                    f"{pillar} in tier {tier}: {crisis:.0%} of crisis and {control:.0%} of control samples have {fact}"
                )
                errors.add(
                    content.root / "scenarios",
                    1,
                    f"{what}; expected at most {TELLTALE:.0%} apart, or the prompt gives the polarity away",
                )


def _helplines(content: Content, errors: Errors) -> None:
    path = content.root / "helplines.csv"
    for number, line in enumerate(content.helplines, start=2):
        if line.kind != "directory" and not (line.phone or line.text):
            errors.add(path, number, f"'{line.service}' has neither phone nor text; only a directory may lack both")
        if line.expires and line.expires < content.released and line.tier != "C":
            errors.add(
                path,
                number,
                f"'{line.service}' expired on {line.expires}, before this release ({content.released}); "
                "verify it again or move it to tier C",
            )
    usable = {h.country for h in content.helplines if h.tier in ("A", "B")}
    for persona in content.personas.values():
        if persona.country and persona.country not in usable:
            errors.add(
                persona.document.path,
                1,
                f"country {persona.country} has no tier A or B row in helplines.csv, so no rule can decide there",
            )
