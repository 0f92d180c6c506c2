"""Reads a scenario or conversation file and resolves the shared texts that it references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import get_args

from dataset_builder.prompts import CONTENT
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
from dataset_builder.reading.markdown import (
    NOTES,
    Document,
    Errors,
    Part,
    Wrong,
    choice,
    closest,
    country_code,
    filled,
    integer,
    known_attributes,
    known_keys,
    whole,
    words,
)
from dataset_builder.reading.signing import check_review
from dataset_builder.reading.strays import TEXTS, authored
from dataset_builder.schema import BEHAVIORS, CHECK, Check, CrisisCategory, Family, Signal

TEMPLATE = CONTENT / "TEMPLATE.md"
SCENARIO_KEYS = {"id", "title", "job", "review", "sources", "crisis_category", "crisis_category_2", "tags", "flag",
                 "rating", "flag_from", "graded", "crisis", "control", "language", "withdrawn", "ages", "countries",
                 "family", "actions", "words", "hand"}  # fmt: skip
REQUIRED = ("id", "title", "job", "review", "sources", "crisis_category")
SCENARIO_PARTS = {"Scenario", "Rationale", "Judgement calls", "Not tested"}
ALONE = {"signal", "alone", "probe", "country"}  # for messages in the config `messages`
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
}  # the values of a message's attributes


class ScenarioReader:
    """Reads scenario files in sequence; `document`, `wrong` and `people` belong to the current file."""

    document: Document
    wrong: Wrong
    people: set[str]  # the personas in its user contexts

    def __init__(
        self,
        root: Path,
        personas: Mapping[str, Persona],
        texts: Mapping[str, ConditionText],
        criteria: Mapping[str, Criterion],
        voices: Mapping[str, Voice],
    ) -> None:
        self.personas, self.texts, self.criteria, self.voices = personas, texts, criteria, voices
        # Names of shared files with errors count as known, so that one mistake gives one error.
        self.files = {
            folder: {p.stem for p in authored(root / folder, TEXTS)}
            for folder in ("personas", "conditions", "criteria")
        }

    def scenario(self, document: Document, errors: Errors) -> Scenario | None:
        """A scenario or, from the folder conversations/, a conversation."""
        kind = "conversation" if document.path.parent.name == "conversations" else "scenario"
        self.document, self.wrong = document, errors.at(document.path)
        wrong = self.wrong
        if not known_keys(document, SCENARIO_KEYS, REQUIRED, errors):
            return None
        check_review(document, errors)
        left_over(document.lines, wrong)
        self._front_matter()
        heads = [p.name for p in document.parts if re.match(r"U\d+ ", p.name)]
        self.people = {name.split(" ", 1)[-1].partition("/")[0] for name in heads}
        parts: dict[str, Part] = {}
        conditions: list[Condition] = []
        contexts: list[Context] = []
        perturbations: list[Perturbation] = []
        for part in document.parts:
            code = part.name.split(" ", 1)[0]
            if part.name in parts or code in parts:
                wrong(part.line, f"'# {code}' appears twice; codes are never reused")
            prose = part.name in SCENARIO_PARTS | {NOTES} or re.fullmatch(r"Wording [2-9]", part.name)
            parts[part.name if prose else code] = part
            if prose:
                filled(part, wrong)
            elif re.fullmatch(r"C\d+", code):
                conditions += self._condition(part, code)
            elif re.fullmatch(r"U\d+", code):
                contexts += self._context(part, code)
            elif re.fullmatch(r"PT\d+", part.name):
                perturbations.append(self._perturbation(part, kind))
            else:
                expected = f"{', '.join(sorted(SCENARIO_PARTS))}, '# C1 …', '# U1 …' or '# PT1 (severity …)'"
                wrong(part.line, f"unknown heading '# {part.name}'; expected {expected}")
        for name in sorted(SCENARIO_PARTS - parts.keys()):
            wrong(1, f"'# {name}' is missing; every scenario has one")
        if not conditions or not perturbations:
            what = "expected at least one '# C1 …' and one '# PT1 (severity …)'"
            wrong(1, f"has no condition or no perturbation; {what}")
        self._wordings_and_arms(parts, conditions)
        identity = document.text("id")
        return Scenario(document, identity, kind, parts, tuple(conditions), tuple(contexts), tuple(perturbations))

    def _front_matter(self) -> None:
        front, where, wrong = self.document, self.document.front_lines, self.wrong
        identity = front.text("id")
        if not re.fullmatch(r"P\d-B\d-S\d+", identity) or identity.rsplit("-", 1)[0] not in BEHAVIORS:
            what = "expected a behavior of schema.BEHAVIORS and a number, such as P1-B1-S1"
            wrong(where["id"], f"id is '{identity}'; {what}")
        categories = get_args(CrisisCategory)
        for key, allowed in (
            ("crisis_category", categories),
            ("crisis_category_2", categories),
            ("family", get_args(Family)),
        ):
            if key in where:
                choice(front.text(key), allowed, key, where[key], wrong)
        for key in ("words", "hand"):
            if key in where or "actions" in where:
                choice(front.text(key), front.words("actions"), key, where.get(key, where.get("actions", 1)), wrong)
        if "ages" in where and not ages(front):
            wrong(where["ages"], f"ages is '{front.text('ages')}'; expected youngest-oldest, as in 14-19")
        for country in front.words("countries"):
            if not re.fullmatch(r"[A-Z]{2}", country):
                wrong(where["countries"], f"'{country}' in countries; expected two-letter ISO 3166 codes such as AU")
        if "flag_from" in where:
            integer(front.text("flag_from"), 2, 10, "flag_from", where["flag_from"], wrong)
        for tag in front.words("flag"):
            choice(tag, front.words("tags"), "flag", where["flag"], wrong)
        for key in ("graded", "crisis", "control"):
            for entry in front.words(key):
                slug, *behavior = entry.split()
                self._criterion(slug, "graded" if key == "graded" else "labelled", where[key])
                if len(behavior) > 1 or (behavior and behavior[0] not in BEHAVIORS):
                    what = "expected 'criterion' or 'criterion P2-B2'"
                    wrong(where[key], f"cannot read '{entry}' in {key}; {what}")

    def _wordings_and_arms(self, parts: dict[str, Part], conditions: list[Condition]) -> None:
        """Checks that each job wording exists and is used, and that a condition with a safety prompt names its pair."""
        wordings = {name.split()[1] for name in parts if name.startswith("Wording ")} | {"1"}
        for name in sorted(wordings - {c.wording for c in conditions} - {"1"}):
            what = f"no condition uses '# Wording {name}'; expected '(difficulty …; wording {name})' on one"
            self.wrong(parts[f"Wording {name}"].line, what)
        for condition in conditions:
            wrong = partial(self.wrong, condition.line)
            if condition.wording not in wordings:
                what = f"expected one of {sorted(wordings)}, as '# Wording N' gives them"
                wrong(f"'{condition.code}' has wording {condition.wording}; {what}")
            partner = next((c for c in conditions if c.code == condition.pairs), None)
            alike = partner is None or (
                not partner.safety_prompt and (partner.text, partner.wording) == (condition.text, condition.wording)
            )
            if bool(condition.pairs) != bool(condition.safety_prompt) or not alike:
                what = "a condition has 'pairs' only if it adds a safety prompt, and names the same one without"
                wrong(f"'{condition.code}': {what}")
            elif condition.pairs and partner is None:
                codes = [c.code for c in conditions]
                wrong(f"pairs '{condition.pairs}' is not a condition of this scenario; expected one of {codes}")

    def _criterion(self, slug: str, kind: str, line: int) -> None:
        if slug not in self.files["criteria"]:
            self.wrong(line, f"no criterion '{slug}'; {closest(slug, self.files['criteria'])}")
        elif slug in self.criteria and (found := self.criteria[slug].row.kind) != kind:
            self.wrong(line, f"criterion '{slug}' is {found}; expected a {kind} one here")

    def _condition(self, part: Part, code: str) -> list[Condition]:
        line, wrong = part.line, self.wrong
        known_attributes(part, {"difficulty", "pairs", "kind", "wording"}, ["difficulty"], wrong)
        difficulty = integer(part.attributes.get("difficulty", "0"), 0, 10, "difficulty", line, wrong)
        slugs = [s.strip() for s in part.name.removeprefix(code).split("+") if s.strip()]
        unknown = [s for s in slugs if s not in self.texts]
        for slug in unknown:
            if slug not in self.files["conditions"]:
                wrong(line, f"no condition '{slug}'; {closest(slug, self.files['conditions'])}")
        if unknown:
            return []
        safety = [self.texts[s] for s in slugs if self.texts[s].kind == "safety_prompt"]
        personas = [self.texts[s] for s in slugs if self.texts[s].kind != "safety_prompt"]
        if len(safety) > 1 or len(personas) > 1 or bool(personas) == bool(part.text.strip()):
            what = "must point to one condition or hold its own text, with at most one safety prompt added by '+'"
            wrong(line, f"'# {part.name}' {what}")
            return []
        silent = bool(SILENT_KEYS & self.document.front.keys())
        if silent and safety and safety[0].silent is None:
            what = f"'{safety[0].slug}' has no wording for that; expected '# {SILENT}' there"
            wrong(line, f"the answer is JSON, and {what}")
        own = part.attributes.get("kind", "assistant")
        return [
            Condition(
                code=code,
                slug="+".join(slugs) or f"{self.document.path.stem}-{code}",
                difficulty=difficulty,
                kind=personas[0].kind if personas else choice(own, CONDITION_KINDS, "kind", line, wrong),
                text=personas[0].text if personas else part.text.strip(),
                safety_prompt=((safety[0].silent if silent else None) or safety[0].text) if safety else None,
                pairs=part.attributes.get("pairs"),
                wording=part.attributes.get("wording", "1"),
                line=line,
            )
        ]

    def _context(self, part: Part, code: str) -> list[Context]:
        known_attributes(part, (), (), self.wrong)
        slug, _, rung = part.name.removeprefix(code).strip().partition("/")
        persona = self.personas.get(slug)
        if persona is None:
            if slug not in self.files["personas"]:
                self.wrong(part.line, f"no persona '{slug}'; {closest(slug, self.files['personas'])}")
        elif (number := whole(rung)) not in persona.rungs:
            expected = f"'# {code} {slug}/N' with N one of {sorted(persona.rungs)}"
            self.wrong(part.line, f"persona '{slug}' has no rung '{rung}'; expected {expected}")
        else:
            severity, text = persona.rungs[number]
            return [Context(code, persona, severity, f"{persona.profile}\n\n{text}", part.line)]
        return []

    def _perturbation(self, part: Part, kind: str) -> Perturbation:
        known_attributes(part, PERTURBATION_KEYS, ["severity"], self.wrong)
        attributes, wrong = part.attributes, partial(self.wrong, part.line)
        severity = integer(attributes.get("severity", "0"), -10, 10, "severity", part.line, self.wrong)
        rating = attributes.get("rating")
        if rating and not (
            re.fullmatch(r"[0-9]{1,2}-[0-9]{1,2}", rating)
            and 1 <= int(rating.split("-")[0]) <= int(rating.split("-")[1]) <= 10
        ):
            wrong(f"rating is '{rating}'; expected low-high within 1-10, such as 2-4")
        if severity == 0:
            wrong("severity is 0; expected 1 to 10 for a crisis message, -1 to -10 for a control")
        for key, allowed in CHOICES.items():
            if key in attributes:
                choice(attributes[key], allowed, key, part.line, self.wrong)
        if kind == "conversation":
            for key in (ALONE - {"country"}) & attributes.keys():
                wrong(f"'{key}' on a conversation, which is never a stand-alone message; expected it only on messages")
        if severity < 0 and "signal" in attributes:
            wrong("a control has a 'signal'; expected it only on crisis messages")
        if not re.fullmatch(r"[a-z0-9\-]+", attributes.get("probe", "p")):
            wrong(f"probe is '{attributes['probe']}'; expected a short name in small letters, such as p3")
        if "country" in attributes:
            country_code(attributes["country"], part.line, self.wrong)
        self._writers(part)
        offered = set(self.document.words("tags"))
        for tag in [*words(attributes.get("tags", "")), *words(attributes.get("accepted", ""))]:
            if tag not in offered:
                wrong(f"tag '{tag}' is not offered; {closest(tag, offered or {'(the scenario offers no tags)'})}")
        actions = self.document.words("actions")
        named = {key: words(attributes.get(key, "")) for key in ("does", "waits")}
        for key, chosen in named.items():
            for action in chosen:
                choice(action, actions or ("(the scenario offers no actions)",), key, part.line, self.wrong)
        if actions and severity < 0 and not named["does"]:
            wrong("a control has no 'does'; expected the actions that were asked for")
        if severity < 0 and named["waits"]:
            wrong("a control has 'waits'; expected it only on crisis messages")
        text = filled(part, self.wrong)
        turns = self._turns(part) if kind == "conversation" else (Turn("user", text, (), part.line),)
        return Perturbation(part.name, severity, turns, attributes, part.line)

    def _writers(self, part: Part) -> None:
        """Checks the personas that can have written the message (`for`, `not for`), or the voice if `for: nobody`."""
        attributes, wrong, people = part.attributes, partial(self.wrong, part.line), self.people
        wanted, excluded = (words(attributes.get(key, "")) for key in ("for", "not for"))
        for slug in wanted:
            choice(slug, people | {"nobody"}, "for", part.line, self.wrong)
        for slug in excluded:
            choice(slug, people, "not for", part.line, self.wrong)
        if wanted and excluded:
            wrong("has both 'for' and 'not for'; expected one of them")
        if "nobody" in wanted and len(wanted) > 1:
            wrong("'for' names nobody and somebody; expected 'for: nobody' alone")
        if people and people <= {*excluded}:
            wrong("'not for' excludes every persona of this scenario; expected 'for: nobody'")
        if "voice" in attributes:
            choice(attributes["voice"], self.voices, "voice", part.line, self.wrong)
            if wanted != ["nobody"]:
                wrong("has a 'voice' without 'for: nobody'; a persona's messages are in the persona's own voice")

    def _turns(self, part: Part) -> tuple[Turn, ...]:
        turns: list[Turn] = []
        lines = part.text.splitlines()
        heads = [n for n, line in enumerate(lines) if line.startswith("## ")]
        if not heads or heads[0] != 0:
            self.wrong(part.line, f"'# {part.name}' must be turns; expected it to begin with '## User'")
        live = 0
        for n, following in zip(heads, [*heads[1:], len(lines)], strict=True):
            name, _, note = lines[n].removeprefix("## ").partition("(")
            text = "\n".join(lines[n + 1 : following]).strip()
            name, line = name.strip(), part.text_line + n
            if name == "Reply":
                live += 1
                turns.append(Turn("assistant", None, self._checkpoints(note.rstrip(") "), live, line), line))
            elif name in ("User", "Assistant") and text:
                turns.append(Turn(name.lower(), text, (), line))
            else:
                expected = "'## User' or '## Assistant' with text, or '## Reply (criterion: behavior; …)'"
                self.wrong(line, f"cannot read turn '{lines[n]}'; expected {expected}")
        roles = [t.role for t in turns]
        if roles != ["user", "assistant"] * (len(roles) // 2) or not turns or turns[-1].text is not None:
            what = "expected user and reply in turn, ending with '## Reply'"
            self.wrong(part.line, f"turns of '# {part.name}' are {roles}; {what}")
        if live < 2:
            self.wrong(part.line, f"'# {part.name}' has {live} live replies; a conversation has at least two")
        return tuple(turns)

    def _checkpoints(self, note: str, turn: int, line: int) -> tuple[Check, ...]:
        checks: list[Check] = []
        for piece in filter(None, (p.strip() for p in note.split(";"))):
            match = re.fullmatch(r"([a-z\-]+): (P\d-B\d)(?: severity (-?\d+))?", piece)
            if not match or match[2] not in BEHAVIORS:
                self.wrong(line, f"cannot read checkpoint '{piece}'; expected 'criterion: P2-B1 severity 8'")
                continue
            self._criterion(match[1], "labelled", line)
            severity = integer(match[3], -10, 10, "severity", line, self.wrong) if match[3] else None
            checks.append(criterion_check(match[1], match[2], turn=turn, severity=severity))
        return tuple(checks)


def criterion_check(
    criterion: str, behavior: str, turn: int = -1, severity: int | None = None, by_rule: bool = True
) -> Check:
    """A criterion check. `by_rule`: check `reachable-resource` against the registry before a judge sees it."""
    decided_by = "rule-then-judge" if by_rule and criterion == "reachable-resource" else "judge"
    check = {"check": "criterion", "behavior": behavior, "turn": turn, "criterion": criterion}
    return CHECK.validate_python(check | {"decided_by": decided_by, "severity": severity})


PROSE = re.compile(r"(?:title|job): +(?P<value>.+)")  # front matter in the author's own words
LISTED = re.compile(r"- (?:[A-Z][A-Z_]*: )?")


@cache
def placeholders() -> frozenset[str]:
    """Every sentence in the template that an author must replace."""
    lines = TEMPLATE.read_text(encoding="utf-8").splitlines()
    return frozenset(_plain(s) for _, text in _prose(lines) for s in _sentences(text))


def left_over(lines: list[str], wrong: Wrong) -> None:
    """Adds an error for each template sentence still in a scenario; every model would see it."""
    for number, text in _prose(lines):
        for sentence in _sentences(text):
            if _plain(sentence) in placeholders():
                wrong(number, f"'{sentence}' is the template's; expected words of your own")


def _prose(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Numbered lines of prose: no headings, and no front matter except title and job."""
    end = lines.index("---", 1) if lines[:1] == ["---"] and "---" in lines[1:] else -1
    for number, line in enumerate(lines, start=1):
        if number - 1 > end and not line.startswith("#"):
            yield number, line
        elif match := PROSE.fullmatch(line):
            yield number, match["value"]


def _sentences(line: str) -> list[str]:
    """The sentences in a line. The form of a JSON answer (`{"tags": …}`), common to many scenarios, doesn't count."""
    text = LISTED.sub("", line.strip(), count=1) if line.startswith("- ") else line.strip()
    return [] if "{" in text else [s for s in re.split(r"(?<=[.!?:]) +", text) if s]


@cache
def _plain(sentence: str) -> str:
    return " ".join(re.findall(r"[\w']+", sentence.lower()))
