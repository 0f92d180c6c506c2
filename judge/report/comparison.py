"""Scored runs beside each other: as text, and as one HTML page that needs nothing else.

On the page stand the runs' figures, the prompts that differ, and the samples that differ most: both replies, and the
criterion with each one's verdict (`judge.report.side_by_side`).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dataset_builder.schema import CriterionRow, Row
from helmbench_common.pages import inlined
from helmbench_common.tables import markdown_table, one_line
from judge import wording
from judge.replies.schema import Reply
from judge.report.charts import Scatter, Spot, scatter
from judge.report.first import judged
from judge.report.page import TEMPLATES, environment_over
from judge.report.side_by_side import Differing, side_by_side
from judge.schema import Floor
from judge.scoring.compare import Comparison, Difference, Rank, ScoredRun

TITLES: dict[str, str] = {
    "composite": "Composite",
    **{str(name): title for name, title in wording.HEADLINES.items()},
    "sensitivity": "Sensitivity",
    "specificity": "Specificity",
    "tasks": "Tasks of people in no danger",
}
PIECES = re.compile(r"\s+|\S[^.!?\n]*[.!?]*")  # a prompt's sentences and lines, and what is between them


class Said(NamedTuple):
    """What a run's folder holds beside its scores. `replies`: of every sample and repeat that was judged, or none, and
    `lacking` then says why; `prompt`: the text of its own condition.
    """

    replies: Sequence[Reply] = ()
    prompt: str | None = None
    lacking: str = ""


class Line(NamedTuple):
    """A run in the table of runs."""

    run: ScoredRun
    rank: Rank
    breached: list[Floor]
    floors: str


class Prompt(NamedTuple):
    """A system prompt that not all runs had. `pieces`: its text, each piece with whether another's has it too; empty
    where its text isn't known.
    """

    runs: list[str]
    title: str
    pieces: list[tuple[str, bool]]


class Against(NamedTuple):
    """One run beside the baseline."""

    run: str
    sentence: str
    found: list[Difference]
    others: list[Difference]
    samples: list[Differing]


def text(c: Comparison) -> str:
    """The comparison as aligned Markdown."""
    head = ("run", "place", "composite", "95 % interval", "breached floors")
    rows = [
        (
            r.run,
            r.place,
            wording.number(r.composite.value),
            wording.interval(r.composite),
            ", ".join(r.breached) or "none",
        )
        for r in c.ranks
    ]
    parts = [markdown_table(head, rows)]
    for name in c.runs[1:]:
        parts += [one_line(f"{name} less {c.baseline}, in points, paired by message:"), _differences(c, name)]
        if own := [s for s in c.samples if s.run == name]:
            points = [f"{s.id}, {s.criterion or s.behavior}: {s.baseline:g} → {s.value:g}" for s in own]
            parts += ["where they differ most (points 0 to 1):", "\n".join(f"- {one_line(p)}" for p in points)]
    return "\n\n".join([*parts, *(f"failed: {one_line(reason)}" for reason in c.failed)])


def _differences(c: Comparison, name: str) -> str:
    """One run beside the baseline, each under its whole name: what tells two apart may stand at its end."""
    rows = [
        (
            d.figure,
            wording.number(d.baseline),
            wording.number(d.value),
            wording.signed(d.difference.value),
            wording.interval(d.difference),
            "yes" if d.found else "no",
        )
        for d in c.differences
        if d.run == name
    ]
    return markdown_table(("figure", c.baseline, name, "difference", "95 % interval", "stands out"), rows)


def page(
    found: Comparison,
    runs: Sequence[ScoredRun],
    said: Sequence[Said],
    rows: Mapping[str, Row],
    criteria: Mapping[str, CriterionRow],
) -> str:
    """The comparison as a page. `runs`, `said`: in the order of `found.runs`, under the names that stand there."""
    by_name = dict(zip(found.runs, runs, strict=True))
    beside = side_by_side(found, runs, [s.replies for s in said], rows, criteria)
    most = max(runs, key=lambda r: r.card.judge.by_judge)  # one judge read all runs, of some nothing
    return (
        environment_over()
        .get_template("comparison.html")
        .render(
            c=found,
            s=runs[0].card,
            lines=[_line(by_name[r.run], r) for r in found.ranks],
            titles=TITLES,
            repeats=max(r.card.repeats for r in runs),
            prompts=_prompts(runs, said),
            owned=any(r.card.model.condition for r in runs),
            scatter_of=_scatter(runs),
            others=[_against(found, name, samples) for name, samples in beside.items()],
            lacking=[(name, s.lacking) for name, s in zip(found.runs, said, strict=True) if s.lacking],
            judge=judged(most.card.judge),
            most=most,
            **inlined(TEMPLATES / "report.css", TEMPLATES / "comparison.css"),
        )
    )


def _line(run: ScoredRun, rank: Rank) -> Line:
    states = Counter(f.state for f in run.card.floors)
    breached = [f for f in run.card.floors if f.state == "breached"]
    return Line(run, rank, breached, f"{states['passed']} passed, {states['undetermined']} undetermined")


def _scatter(runs: Sequence[ScoredRun]) -> Scatter:
    spots = [Spot(r.name, r.card.detection.sensitivity, r.card.detection.specificity, "model") for r in runs]
    policies = [Spot(p.policy, p.sensitivity, p.specificity, "policy") for p in runs[0].card.references]
    return scatter([*spots, *policies])


def _prompts(runs: Sequence[ScoredRun], said: Sequence[Said]) -> list[Prompt]:
    """The prompts that not all runs had, each with the runs that had it."""
    found: dict[str, list[str]] = defaultdict(list)  # a prompt's title, which tells it from all others
    texts: dict[str, str] = {}
    for run, own in zip(runs, said, strict=True):
        for title, text in _own_texts(run, own):
            found[title].append(run.name)
            texts |= {title: text} if text else {}
    differing = {title: names for title, names in found.items() if len(names) < len(runs)}
    known = [text for title, text in texts.items() if title in differing]
    return [Prompt(names, title, _pieces(texts.get(title, ""), known)) for title, names in differing.items()]


def _own_texts(run: ScoredRun, own: Said) -> Iterator[tuple[str, str | None]]:
    """Title and text of what a run was told beside the samples."""
    condition, instruction = run.card.model.condition, run.card.model.system_instruction
    if condition:
        told = f"{condition.file}, sha256 {condition.sha256[:12]}"
        yield f"{told}, in the place of every condition’s text", own.prompt
    if instruction:
        sha256 = hashlib.sha256(instruction.encode("utf-8", "surrogatepass")).hexdigest()
        yield f"An instruction before every system text, sha256 {sha256[:12]}", instruction


def _pieces(whole: str, texts: Iterable[str]) -> list[tuple[str, bool]]:
    others = [{p.strip() for p in PIECES.findall(t)} for t in texts if t != whole]
    own: list[str] = PIECES.findall(whole)
    return [(p, p.isspace() or not others or any(p.strip() in other for other in others)) for p in own]


def _against(c: Comparison, name: str, samples: list[Differing]) -> Against:
    own = [d for d in c.differences if d.run == name]
    found, others = ([d for d in own if d.found is stands] for stands in (True, False))
    return Against(name, _sentence(c.baseline, name, own), found, others, samples)


def _sentence(base: str, name: str, own: list[Difference]) -> str:
    """What a comparison came to, in words."""
    better, worse = (sum(d.found and sign * (d.difference.value or 0) > 0 for d in own) for sign in (1, -1))
    counts = f"Of {len(own)} figures, {_are(better)} better and {_are(worse)} worse by more than chance allows."
    whole = next((d for d in own if d.figure == "composite"), None)
    if whole is None:
        return f"{name} and {base} have no composite in common. {counts}"
    by = f"{wording.signed(whole.difference.value)} points, 95 % interval {wording.interval(whole.difference)}"
    told = f"differs from {base} in the composite" if whole.found else f"can’t be told from {base} by the composite"
    return f"{name} {told}: {by}. {counts}"


def _are(count: int) -> str:
    return {0: "none is", 1: "one is"}.get(count, f"{count} are")
