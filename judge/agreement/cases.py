"""Replies for human raters to label: from calibration rows, from a run, or from any JSONL of replies.

A rater sees what a judge sees: what the model was told about its job and the user, the conversation without the system
prompt, the reply, the criterion, and for resources the user's country and its registered helplines. Labels, authors,
model names and ids are hidden.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from dataset_builder.release import Release
from dataset_builder.schema import About
from helmbench_common import jsonl
from helmbench_common.hashing import canonical
from judge.agreement.labels import are_authors, records, reply_key
from judge.llm.questions import said_before
from judge.replies.inspect_log import SUFFIX
from judge.replies.opening import home_of, is_home, read_replies, run_in
from judge.replies.run import Run
from judge.replies.schema import RunError, run_error
from judge.replies.script import visible
from judge.rules.answers import words_said
from judge.rules.resources import usable
from judge.wording import told

RESOURCES = "reachable-resource"  # the only criterion that needs facts to judge
TOLD = (
    "What the product told the model about its job and about the user. A reply that uses these facts doesn't invent "
    "anything."
)
FORM = '{"id", "criterion", "said": [user, assistant, …, user], "reply"}'


class Case(NamedTuple):
    """One reply to label by one criterion. `said` alternates and ends with the user; `about`: what the model was told.
    `system`: who replied. `family`: cases that count as one observation.
    """

    id: str
    criterion: str
    said: tuple[str, ...]
    reply: str
    country: str | None = None
    about: About | None = None
    system: str = ""
    family: str = ""

    def code(self, seed: int) -> str:
        """The case's code on a sheet. It depends on the text, so that labels of an edited case are detected."""
        # Without facts, the code is the one from before facts existed: such sheets are in use.
        words = [seed, *self[:5], *([self.about.model_dump()] if self.about else [])]
        return hashlib.sha256(canonical(words).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def facts(self, release: Release) -> list[str]:
        """The facts that the judge gets in addition to the conversation."""
        facts: list[str] = []
        if self.criterion == RESOURCES:
            lines = [
                f"{h.service}: {', '.join(dict.fromkeys([*h.phone, *h.text, *h.url]))}"
                for h in usable(self.country, release.helplines)
            ]
            country = self.country or "not known"
            facts += [f"The user's country: {country}.", "Always-open help on the registry:", *(lines or ["none"])]
        known = told(self.about)
        return [*facts, *([TOLD, *known] if known else [])]


CASE = TypeAdapter(Case)


class Cases(NamedTuple):
    """`of_a_model`: the replies come from a real model and are unreviewed. `run`: the run they come from."""

    cases: list[Case]
    of_a_model: bool
    run: Run | None = None


def read_cases(source: Path, release: Release, criteria: Iterable[str] = ()) -> Cases:
    """The cases in `source`, for these criteria or all. `source`: the word `calibration` (the dataset's own rows),
    calibration files or their folder, a run folder, collected replies, or JSONL of {"id", "criterion", "said",
    "reply"}.
    """
    if unknown := sorted({*criteria} - {*release.criteria}):
        expected = ", ".join(sorted(release.criteria))
        raise RunError(f"--criterion {unknown[0]}: unknown criterion; expected one of {expected}")
    found = _read(source, release)
    wanted = {*criteria} or {*release.criteria}
    cases = [case for case in found.cases if case.criterion in wanted]
    if not cases:
        raise RunError(f"{source}: no reply to label by {', '.join(sorted(wanted))}")
    return found._replace(cases=cases)


def _read(source: Path, release: Release) -> Cases:
    if are_authors(source):
        rows = [Case(r.id, r.criterion, tuple(r.said), r.reply, r.country, r.about) for r in release.calibration]
        return Cases(rows, of_a_model=False)
    if source.suffix == SUFFIX or (
        source.is_dir() and (is_home(home_of(source)) or any(source.rglob("results_*.json")))
    ):
        run = run_in(source, release)
        return Cases(_of_run(run, release), of_a_model=True, run=run)
    if source.is_dir():
        files = sorted(source.glob("*.jsonl"))
        if not files:
            raise RunError(f"{source}: neither a run nor *.jsonl files; expected {FORM} per line")
        return Cases(_rows(files, release), of_a_model=False)
    if not source.is_file():
        expected = f"`calibration`, a run's folder, or JSONL with {FORM} per line"
        raise RunError(f"{source}: no such file or folder; expected {expected}")
    first = next((record for _, record in records(source, [])), {})
    if "criterion" not in first and ("reply" in first or "replies" in first):
        return Cases(_of_run(read_replies(source, release), release), of_a_model=True)
    return Cases(_rows([source], release), of_a_model="author" not in first)


def _rows(files: list[Path], release: Release) -> list[Case]:
    problems: list[str] = []
    cases: dict[tuple[str, str], Case] = {}
    for path in files:
        for number, record in records(path, problems):
            where = f"{path}:{number}"
            try:
                case = CASE.validate_python({name: record[name] for name in Case._fields if name in record})
            except ValidationError as error:
                problems.append(f"{where}: {': '.join(jsonl.first_problem(error))}; expected {FORM}")
                continue
            if len(case.said) % 2 == 0:
                problems.append(f"{where}: `said` must alternate user and assistant and end with the user")
            elif case.criterion not in release.criteria:
                known = ", ".join(sorted(release.criteria))
                problems.append(f"{where}: criterion is {case.criterion!r}; expected one of {known}")
            elif cases.setdefault((case.id, case.criterion), case) is not case:
                problems.append(f"{where}: duplicate case {case.id} ({case.criterion})")
    if problems:
        raise run_error(problems)
    return list(cases.values())


def _of_run(run: Run, release: Release) -> list[Case]:
    """Each reply once per criterion that its row is checked against; empty replies are skipped."""
    cases: dict[tuple[str, str], Case] = {}
    for reply in run.replies:
        row = release.rows[reply.id]
        for check in row.evaluation:
            if check.check not in ("graded", "criterion"):
                continue
            turn = len(reply.turns) if check.turn == -1 else check.turn
            if text := visible(words_said(row, reply.turns[turn - 1])):
                case = Case(
                    reply_key(row.id, reply.repeat, check.turn),
                    check.criterion,
                    tuple(text for _, text in said_before(row, reply.turns, turn)),
                    text,
                    row.country,
                    row.about,
                )
                cases[case.id, case.criterion] = case
    return [case for _, case in sorted(cases.items())]
