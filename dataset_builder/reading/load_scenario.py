"""Reads a scenario or conversation file against the shared texts it points to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from dataset_builder.reading.content_types import (
    CONDITION_KINDS,
    DISCLOSURES,
    PERSUASIONS,
    REGISTERS,
    SILENT,
    SILENT_KEYS,
    Condition,
    ConditionText,
    Context,
    Criterion,
    Persona,
    Perturbation,
    Scenario,
    Turn,
    Voice,
    ages,
)
from dataset_builder.reading.fields import (
    choice,
    country_code,
    filled,
    integer,
    known_attributes,
    known_keys,
    whole,
    words,
)
from dataset_builder.reading.markdown import Document, Errors, Part, closest
from dataset_builder.reading.signing import NOTES, check_review
from dataset_builder.reading.strays import TEXTS, authored
from dataset_builder.reading.template import left_over
from dataset_builder.schema import BEHAVIORS, CHECK, Check, CrisisCategory, Family, Signal

SCENARIO_KEYS = {"id", "title", "job", "review", "sources", "crisis_category", "crisis_category_2", "tags", "flag",
                 "rating", "graded", "crisis", "control", "language", "withdrawn", "ages", "countries", "family",
                 "actions", "words", "hand"}  # fmt: skip
SCENARIO_PARTS = {"Scenario", "Rationale", "Judgement calls", "Not tested"}
ALONE = {"signal", "alone", "probe", "country"}  # what is said of a message for the config `messages`
PERTURBATION_KEYS = {"severity", "register", "clarity", "disclosure", "persuasion", "tags", "accepted", "rating",
                     "crisis_category", "crisis_category_2", "pair_of", "for", "not for", "voice", "does",
                     "waits", "reach", *ALONE}  # fmt: skip

CHOICES: dict[str, tuple[str, ...]] = {
    "register": REGISTERS,
    "clarity": ("clear", "ambiguous"),
    "disclosure": DISCLOSURES,
    "persuasion": PERSUASIONS,
    "crisis_category": get_args(CrisisCategory),
    "crisis_category_2": get_args(CrisisCategory),
    "signal": get_args(Signal),
    "alone": ("yes", "no"),
    "reach": ("no_call",),
}  # what an attribute of a message may be


class ScenarioReader:
    """Reads scenario files against the shared texts they point to."""

    def __init__(
        self,
        root: Path,
        personas: dict[str, Persona],
        texts: dict[str, ConditionText],
        criteria: dict[str, Criterion],
        voices: dict[str, Voice],
    ) -> None:
        self.personas, self.texts, self.criteria, self.voices = personas, texts, criteria, voices
        self.errors = Errors()
        # A shared file with errors of its own is known all the same: one slip is one error.
        self.files = {
            folder: {p.stem for p in authored(root / folder, TEXTS)}
            for folder in ("personas", "conditions", "criteria")
        }

    def scenario(self, document: Document, errors: Errors) -> Scenario | None:
        return self._read(document, "scenario", errors)

    def conversation(self, document: Document, errors: Errors) -> Scenario | None:
        return self._read(document, "conversation", errors)

    def _read(self, document: Document, kind: str, errors: Errors) -> Scenario | None:
        path, self.errors = document.path, errors
        required = ["id", "title", "job", "review", "sources", "crisis_category"]
        if not known_keys(document, SCENARIO_KEYS, required, errors):
            return None
        check_review(document, errors)
        left_over(path, document.lines, errors)
        self._front_matter(document)
        parts: dict[str, Part] = {}
        conditions: list[Condition] = []
        contexts: list[Context] = []
        perturbations: list[Perturbation] = []
        for part in document.parts:
            code = part.name.split(" ", 1)[0]
            if part.name in parts or code in parts:
                errors.add(path, part.line, f"'# {code}' appears twice; codes are never reused")
            prose = part.name in SCENARIO_PARTS | {NOTES} or re.fullmatch(r"Wording [2-9]", part.name)
            parts[part.name if prose else code] = part
            if prose:
                filled(part, path, errors)
            elif re.fullmatch(r"C\d+", code):
                conditions += self._condition(part, code, document)
            elif re.fullmatch(r"U\d+", code):
                contexts += self._context(part, code, path)
            elif re.fullmatch(r"PT\d+", part.name):
                perturbations.append(self._perturbation(part, kind, document))
            else:
                expected = f"{', '.join(sorted(SCENARIO_PARTS))}, '# C1 …', '# U1 …' or '# PT1 (severity …)'"
                errors.add(path, part.line, f"unknown heading '# {part.name}'; expected {expected}")
        self._wordings(parts, conditions, path)
        for name in sorted(SCENARIO_PARTS - parts.keys()):
            errors.add(path, 1, f"'# {name}' is missing; every scenario has one")
        if not conditions or not perturbations:
            what = "expected at least one '# C1 …' and one '# PT1 (severity …)'"
            errors.add(path, 1, f"has no condition or no perturbation; {what}")
        self._arms(conditions, path)
        identity = document.text("id")
        return Scenario(document, identity, kind, parts, tuple(conditions), tuple(contexts), tuple(perturbations))

    def _front_matter(self, document: Document) -> None:
        path, errors, where = document.path, self.errors, document.front_lines
        identity = document.text("id")
        if not re.fullmatch(r"P\d-B\d-S\d+", identity) or identity.rsplit("-", 1)[0] not in BEHAVIORS:
            errors.add(
                path,
                where["id"],
                f"id is '{identity}'; expected a behavior of schema.BEHAVIORS and a number, such as P1-B1-S1",
            )
        for key in ("crisis_category", "crisis_category_2"):
            if key in document.front:
                choice(document.text(key), get_args(CrisisCategory), key, path, where[key], errors)
        if "family" in document.front:
            choice(document.text("family"), get_args(Family), "family", path, where["family"], errors)
        for key in ("words", "hand"):
            if key in document.front or "actions" in document.front:
                line = where.get(key, where.get("actions", 1))
                choice(document.text(key), document.words("actions"), key, path, line, errors)
        if "ages" in document.front and not ages(document):
            errors.add(path, where["ages"], f"ages is '{document.text('ages')}'; expected youngest-oldest, as in 14-19")
        for country in document.words("countries"):
            if not re.fullmatch(r"[A-Z]{2}", country):
                errors.add(
                    path, where["countries"], f"'{country}' in countries; expected two-letter ISO 3166 codes such as AU"
                )
        for tag in document.words("flag"):
            choice(tag, document.words("tags"), "flag", path, where["flag"], errors)
        for key in ("graded", "crisis", "control"):
            for entry in document.words(key):
                slug, *behavior = entry.split()
                self._criterion(slug, "graded" if key == "graded" else "labelled", path, where[key])
                if len(behavior) > 1 or (behavior and behavior[0] not in BEHAVIORS):
                    what = "expected 'criterion' or 'criterion P2-B2'"
                    errors.add(path, where[key], f"cannot read '{entry}' in {key}; {what}")

    def _wordings(self, parts: dict[str, Part], conditions: list[Condition], path: Path) -> None:
        """Every condition's wording is given, and every wording that is given is used."""
        wordings = {name.split()[1] for name in parts if name.startswith("Wording ")} | {"1"}
        for condition in conditions:
            if condition.wording not in wordings:
                what = f"'{condition.code}' has wording {condition.wording}"
                self.errors.add(
                    path, condition.line, f"{what}; expected one of {sorted(wordings)}, as '# Wording N' gives them"
                )
        for name in sorted(wordings - {c.wording for c in conditions} - {"1"}):
            line = parts[f"Wording {name}"].line
            self.errors.add(
                path, line, f"no condition uses '# Wording {name}'; expected '(difficulty …; wording {name})' on one"
            )

    def _arms(self, conditions: list[Condition], path: Path) -> None:
        """A condition with a safety prompt names the one that is the same without it."""
        for condition in conditions:
            partner = next((c for c in conditions if c.code == condition.pairs), None)
            alike = partner is None or (
                not partner.safety_prompt and (partner.text, partner.wording) == (condition.text, condition.wording)
            )
            if bool(condition.pairs) != bool(condition.safety_prompt) or not alike:
                self.errors.add(
                    path,
                    condition.line,
                    f"'{condition.code}': a condition has 'pairs' exactly where it adds a safety prompt, and "
                    "names the same one without",
                )
            elif condition.pairs and partner is None:
                self.errors.add(
                    path,
                    condition.line,
                    f"pairs '{condition.pairs}' is not a condition of this scenario; expected one of "
                    f"{[c.code for c in conditions]}",
                )

    def _criterion(self, slug: str, kind: str, path: Path, line: int) -> None:
        if slug not in self.files["criteria"]:
            self.errors.add(path, line, f"no criterion '{slug}'; {closest(slug, self.files['criteria'])}")
        elif slug not in self.criteria:
            return
        elif self.criteria[slug].row.kind != kind:
            self.errors.add(
                path, line, f"criterion '{slug}' is {self.criteria[slug].row.kind}; expected a {kind} one here"
            )

    def _condition(self, part: Part, code: str, document: Document) -> list[Condition]:
        path, errors = document.path, self.errors
        known_attributes(part, {"difficulty", "pairs", "kind", "wording"}, ["difficulty"], path, errors)
        difficulty = integer(part.attributes.get("difficulty", "0"), 0, 10, "difficulty", path, part.line, errors)
        slugs = [s.strip() for s in part.name.removeprefix(code).split("+") if s.strip()]
        unknown = [s for s in slugs if s not in self.texts]
        for slug in unknown:
            if slug not in self.files["conditions"]:
                errors.add(path, part.line, f"no condition '{slug}'; {closest(slug, self.files['conditions'])}")
        if unknown:
            return []
        safety = [self.texts[s] for s in slugs if self.texts[s].kind == "safety_prompt"]
        personas = [self.texts[s] for s in slugs if self.texts[s].kind != "safety_prompt"]
        if len(safety) > 1 or len(personas) > 1 or bool(personas) == bool(part.text.strip()):
            errors.add(
                path,
                part.line,
                f"'# {part.name}' must point to one condition or hold its own text, with at most one safety "
                "prompt added by '+'",
            )
            return []
        silent = bool(SILENT_KEYS & document.front.keys())
        if silent and safety and safety[0].silent is None:
            errors.add(
                path,
                part.line,
                f"the answer is JSON, and '{safety[0].slug}' has no wording for that; expected '# {SILENT}' there",
            )
        kind = (
            personas[0].kind
            if personas
            else choice(part.attributes.get("kind", "assistant"), CONDITION_KINDS, "kind", path, part.line, errors)
        )
        return [
            Condition(
                code=code,
                slug="+".join(slugs) or f"{path.stem}-{code}",
                difficulty=difficulty,
                kind=kind,
                text=personas[0].text if personas else part.text.strip(),
                safety_prompt=((safety[0].silent if silent else None) or safety[0].text) if safety else None,
                pairs=part.attributes.get("pairs"),
                wording=part.attributes.get("wording", "1"),
                line=part.line,
            )
        ]

    def _context(self, part: Part, code: str, path: Path) -> list[Context]:
        known_attributes(part, set(), [], path, self.errors)
        slug, _, rung = part.name.removeprefix(code).strip().partition("/")
        persona = self.personas.get(slug)
        if persona is None:
            if slug not in self.files["personas"]:
                self.errors.add(path, part.line, f"no persona '{slug}'; {closest(slug, self.files['personas'])}")
        elif (number := whole(rung)) not in persona.rungs:
            self.errors.add(
                path,
                part.line,
                f"persona '{slug}' has no rung '{rung}'; expected '# {code} {slug}/N' with N one of "
                f"{sorted(persona.rungs)}",
            )
        else:
            severity, text = persona.rungs[number]
            return [Context(code, persona, severity, f"{persona.profile}\n\n{text}", part.line)]
        return []

    def _perturbation(self, part: Part, kind: str, document: Document) -> Perturbation:
        path, errors = document.path, self.errors
        known_attributes(part, PERTURBATION_KEYS, ["severity"], path, errors)
        attributes = part.attributes
        severity = integer(attributes.get("severity", "0"), -10, 10, "severity", path, part.line, errors)
        rating = attributes.get("rating")
        if rating and not (
            re.fullmatch(r"[0-9]{1,2}-[0-9]{1,2}", rating)
            and 1 <= int(rating.split("-")[0]) <= int(rating.split("-")[1]) <= 10
        ):
            errors.add(path, part.line, f"rating is '{rating}'; expected low-high within 1-10, such as 2-4")
        if severity == 0:
            errors.add(path, part.line, "severity is 0; expected 1 to 10 for a crisis message, -1 to -10 for a control")
        for key, allowed in CHOICES.items():
            if key in attributes:
                choice(attributes[key], allowed, key, path, part.line, errors)
        self._standing_alone(part, kind, severity, path)
        self._whose(part, document)
        offered = set(document.words("tags"))
        for tag in [*words(attributes.get("tags", "")), *words(attributes.get("accepted", ""))]:
            if tag not in offered:
                errors.add(
                    path,
                    part.line,
                    f"tag '{tag}' is not offered; {closest(tag, offered or {'(the scenario offers no tags)'})}",
                )
        self._acts(part, severity, document)
        text = filled(part, path, errors)
        turns = self._turns(part, path) if kind == "conversation" else (Turn("user", text, (), part.line),)
        return Perturbation(part.name, severity, turns, attributes, part.line)

    def _acts(self, part: Part, severity: int, document: Document) -> None:
        """What was asked for, where the model acts, and what of it waits for a person."""
        named = {key: words(part.attributes.get(key, "")) for key in ("does", "waits")}
        offered = document.words("actions")
        for key, actions in named.items():
            for action in actions:
                choice(
                    action, offered or ("(the scenario offers no actions)",), key, document.path, part.line, self.errors
                )
        if offered and severity < 0 and not named["does"]:
            self.errors.add(
                document.path, part.line, "a control has no 'does'; expected the actions that were asked for"
            )
        if severity < 0 and named["waits"]:
            self.errors.add(document.path, part.line, "a control has 'waits'; expected it only on crisis messages")

    def _whose(self, part: Part, document: Document) -> None:
        """Whose message it can be, of those whom the product remembers; of `for: nobody`, whose hand wrote it."""
        path, line, attributes, errors = document.path, part.line, part.attributes, self.errors
        people = {p.name.split(" ", 1)[-1].partition("/")[0] for p in document.parts if re.match(r"U\d+ ", p.name)}
        named = {key: words(attributes.get(key, "")) for key in ("for", "not for")}
        for slug in named["for"]:
            choice(slug, people | {"nobody"}, "for", path, line, errors)
        for slug in named["not for"]:
            choice(slug, people, "not for", path, line, errors)
        if named["for"] and named["not for"]:
            errors.add(path, line, "has both 'for' and 'not for'; expected one of them")
        if "nobody" in named["for"] and len(named["for"]) > 1:
            errors.add(path, line, "'for' names nobody and somebody; expected 'for: nobody' alone")
        if people and people <= {*named["not for"]}:
            errors.add(path, line, "'not for' leaves nobody of this scenario; expected 'for: nobody'")
        if "voice" not in attributes:
            return
        choice(attributes["voice"], self.voices, "voice", path, line, errors)
        if named["for"] != ["nobody"]:
            errors.add(
                path,
                line,
                "has a 'voice' and isn't 'for: nobody'; the voice of whom the product remembers is the persona's own",
            )

    def _standing_alone(self, part: Part, kind: str, severity: int, path: Path) -> None:
        """What a heading says of the message by itself, without job or product."""
        attributes, line = part.attributes, part.line
        # Where somebody is, a conversation may tell as well as a message.
        for key in (ALONE - {"country"}) & attributes.keys() if kind == "conversation" else set():
            self.errors.add(
                path,
                line,
                f"'{key}' stands on a conversation, which is never a message by itself; expected it only on "
                "a scenario's messages",
            )
        if severity < 0 and "signal" in attributes:
            self.errors.add(path, line, "a control has a 'signal'; expected it only on crisis messages")
        if not re.fullmatch(r"[a-z0-9\-]+", attributes.get("probe", "p")):
            self.errors.add(
                path, line, f"probe is '{attributes['probe']}'; expected a short name in small letters, such as p3"
            )
        if "country" in attributes:
            country_code(attributes["country"], path, line, self.errors)

    def _turns(self, part: Part, path: Path) -> tuple[Turn, ...]:
        turns: list[Turn] = []
        lines = part.text.splitlines()
        heads = [n for n, line in enumerate(lines) if line.startswith("## ")]
        if not heads or heads[0] != 0:
            self.errors.add(path, part.line, f"'# {part.name}' must be turns; expected it to begin with '## User'")
        live = 0
        for n, following in zip(heads, [*heads[1:], len(lines)], strict=True):
            name, _, note = lines[n].removeprefix("## ").partition("(")
            text = "\n".join(lines[n + 1 : following]).strip()
            name, line = name.strip(), part.text_line + n
            if name == "Reply":
                live += 1
                turns.append(Turn("assistant", None, self._checkpoints(note.rstrip(") "), live, path, line), line))
            elif name in ("User", "Assistant") and text:
                turns.append(Turn(name.lower(), text, (), line))
            else:
                self.errors.add(
                    path,
                    line,
                    f"cannot read turn '{lines[n]}'; expected '## User' or '## Assistant' with text, or '## "
                    "Reply (criterion: behavior; …)'",
                )
        roles = [t.role for t in turns]
        if roles != ["user", "assistant"] * (len(roles) // 2) or not turns or turns[-1].text is not None:
            self.errors.add(
                path,
                part.line,
                f"turns of '# {part.name}' are {roles}; expected user and reply in turn, ending with '## Reply'",
            )
        if live < 2:
            self.errors.add(
                path, part.line, f"'# {part.name}' has {live} live replies; a conversation has at least two"
            )
        return tuple(turns)

    def _checkpoints(self, note: str, turn: int, path: Path, line: int) -> tuple[Check, ...]:
        checks: list[Check] = []
        for piece in filter(None, (p.strip() for p in note.split(";"))):
            match = re.fullmatch(r"([a-z\-]+): (P\d-B\d)(?: severity (-?\d+))?", piece)
            if not match or match[2] not in BEHAVIORS:
                self.errors.add(path, line, f"cannot read checkpoint '{piece}'; expected 'criterion: P2-B1 severity 8'")
                continue
            self._criterion(match[1], "labelled", path, line)
            severity = integer(match[3], -10, 10, "severity", path, line, self.errors) if match[3] else None
            checks.append(criterion_check(match[1], match[2], turn=turn, severity=severity))
        return tuple(checks)


def criterion_check(
    criterion: str, behavior: str, turn: int = -1, severity: int | None = None, by_rule: bool = True
) -> Check:
    """A criterion check; `reachable-resource` is read against the registry before a judge sees it, unless not
    `by_rule`.
    """
    decided_by = "rule-then-judge" if by_rule and criterion == "reachable-resource" else "judge"
    return CHECK.validate_python(
        {
            "check": "criterion",
            "behavior": behavior,
            "turn": turn,
            "criterion": criterion,
            "decided_by": decided_by,
            "severity": severity,
        }
    )
