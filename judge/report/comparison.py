"""Scored runs side by side: as text, and as one self-contained HTML page.

The page shows the runs' figures, the prompts that differ, and the samples that differ most: both replies, and the
criterion with each run's verdict. A reply that must be withheld for one run is withheld for all
(`judge.report.entries`).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dataset_builder.schema import CriterionRow, Row
from helmbench_common.formats.inert import inert
from helmbench_common.pages import inlined
from helmbench_common.tables import Cell, Table, TableRow, markdown_table, one_line
from judge import wording
from judge.replies.schema import NO_PROMPT, Reply
from judge.replies.script import live_turns
from judge.report.charts import Spot, scatter
from judge.report.entries import OPENING, Exchange, Finding, Key, Reason, Turn, exchange, system_text, withheld
from judge.report.page import TEMPLATES, environment_over
from judge.report.sentences import LargeFigure, floors_figure, judge_figure
from judge.report.tables import score
from judge.schema import Verdict
from judge.scoring.compare import Comparison, Difference, SampleDifference, ScoredRun
from judge.scoring.gates import STATES

TITLES: dict[str, str] = {
    "composite": "Composite",
    **{str(name): title for name, title in wording.HEADLINES.items()},
    "sensitivity": "Sensitivity",
    "specificity": "Specificity",
    "tasks": "Tasks of people in no danger",
    "harm": "No harm to people in danger",
    **wording.TALKS,
}
PIECES = re.compile(r"\s+|\S[^.!?\n]*[.!?]*")  # a prompt's sentences and lines, and the text between them
SHARED = frozenset(("Severity", "Criterion", "Protocol", "Right answer"))  # details common to both runs' verdicts


class RunFiles(NamedTuple):
    """A run's files other than its scores. `replies`: to every judged sample and repeat, or none, with the reason in
    `lacking`; `prompt`: the text of the user's own condition.
    """

    replies: Sequence[Reply] = ()
    prompt: str | None = None
    lacking: str = ""


class Prompt(NamedTuple):
    """A system prompt that not all runs had. `pieces`: its text, each piece with whether another prompt contains it;
    empty if the text is unknown.
    """

    runs: list[str]
    title: str
    pieces: list[tuple[str, bool]]


class Side(NamedTuple):
    """One run's result in one check. `finding`: None without its reply; `own`: details of this verdict only."""

    run: str
    points: float
    finding: Finding | None

    @property
    def own(self) -> list[tuple[str, str]]:
        return [d for d in self.finding.details if d[0] not in SHARED] if self.finding else []


class CheckDifference(NamedTuple):
    """A check in which two runs differ, the baseline's side first. `text`: the criterion's; `labels`: its lines on the
    labels that occur.
    """

    title: str
    name: str
    right: str
    text: str
    labels: list[str]
    sides: tuple[Side, Side]


class Step(NamedTuple):
    """A step of a conversation: a turn common to both runs, or each run's reply, None if missing."""

    shared: Turn | None
    replies: tuple[Turn | None, Turn | None]


class SampleSides(NamedTuple):
    """A sample that two runs answered differently, in the repeat with the largest difference."""

    opening: str
    facts: str
    system: str
    steps: list[Step]
    checks: list[CheckDifference]


class Blocked(NamedTuple):
    """Why a gate failed. `floors`: the floors that it is about."""

    text: str
    floors: list[str]


class Against(NamedTuple):
    """One run against the baseline. `tiles`: the difference in large figures; `found`: the significant figures, if any;
    `others`: the rest.
    """

    run: str
    number: int
    sentence: str
    tiles: list[LargeFigure]
    found: Table
    others: Table
    samples: list[SampleSides]


def text(c: Comparison) -> str:
    """The comparison as aligned Markdown."""
    ranks = [
        (
            r.run,
            r.place,
            wording.of_hundred(r.composite.value),
            wording.interval(r.composite),
            str(len(r.breached)),
        )
        for r in c.ranks
    ]
    parts = [markdown_table(("run", "place", "composite", "95 % interval", "floors breached"), ranks)] if ranks else []
    for name in c.runs[1:]:
        rows = [(d, _difference(d, f"{c.paired_by}s")) for d in c.differences if d.run == name]
        whole = [
            r._replace(cells=[*r.cells, "yes" if d.found else "no" if d.p_value is not None else "not tested"])
            for d, r in rows
        ]
        table = Table(("Figure", c.baseline, name, "Difference", "95 % interval", "stands out"), whole)
        parts += [one_line(f"{name} minus {c.baseline}, in points, paired by {c.paired_by}:"), table.markdown("figure")]
        if own := [s for s in c.samples if s.run == name]:
            points = [f"{s.id}, {s.criterion or s.behavior}: {s.baseline:g} → {s.value:g}" for s in own]
            parts += ["where they differ most (points 0 to 1):", "\n".join(f"- {one_line(p)}" for p in points)]
    parts += ["\n".join(f"- {one_line(note)}" for note in c.notes)] if c.notes else []
    return "\n\n".join([*parts, *(f"failed: {one_line(reason)}" for reason in c.failed)])


def _difference(d: Difference, pairs: str = "messages") -> TableRow:
    values = (wording.number(d.baseline), wording.number(d.value), wording.signed(d.difference.value))
    interval = wording.interval(d.difference) if d.p_value is not None else f"too few {pairs} ({d.messages:.0f})"
    return TableRow(TITLES.get(d.figure) or wording.behavior_title(d.figure), [*values, interval])


def page(
    found: Comparison,
    runs: Sequence[ScoredRun],
    files: Sequence[RunFiles],
    rows: Mapping[str, Row],
    criteria: Mapping[str, CriterionRow],
    show_withheld: bool = False,
) -> str:
    """The comparison as a page. `runs`, `files`: in the order of `found.runs`. `show_withheld`: show harmful replies
    too; don't share such a page.
    """
    replies = _Replies(runs, [f.replies for f in files], None if show_withheld else criteria)
    samples = _sample_sides(found, replies, rows, criteria)
    most = max(runs, key=lambda r: r.card.judge.by_judge)  # one judge read all runs; it may have read nothing in some
    spots = [Spot(r.name, r.card.detection.sensitivity, r.card.detection.specificity, "model") for r in runs]
    policies = [Spot(p.policy, p.sensitivity, p.specificity, "policy") for p in runs[0].card.references]
    return (
        environment_over()
        .get_template("comparison.html")
        .render(
            c=found,
            s=runs[0].card,
            numbers={name: f"Run {n}" for n, name in enumerate(found.runs, start=1)},
            labels={worth: label for label, worth in runs[0].scorer.scoring["points"].items()},
            reasons=_reasons(found, runs),
            floors=floors_figure(runs[0].card.floors),
            runs=_runs(found, runs),
            repeats=max(r.card.repeats for r in runs),
            prompts=_prompts(runs, files),
            owned=any(r.card.model.condition for r in runs),
            scatter_of=scatter([*spots, *policies]),
            others=[_against(found, runs, name, own) for name, own in samples.items()],
            lacking=[(name, f.lacking) for name, f in zip(found.runs, files, strict=True) if f.lacking],
            judge=judge_figure(most.card.judge),
            most=most,
            show_withheld=show_withheld,
            **inlined(TEMPLATES / "report.css", TEMPLATES / "comparison.css"),
        )
    )


def _runs(c: Comparison, runs: Sequence[ScoredRun]) -> Table:
    by_name = dict(zip(c.runs, runs, strict=True))
    rows: list[TableRow] = []
    for rank in c.ranks:
        card = by_name[rank.run].card
        states = Counter(f.state for f in card.floors)
        others = f"{states['passed']} passed, {states['undetermined']} undetermined"
        titles = [wording.floor_title(f) for f in card.floors if f.state == "breached"]
        floors = Cell("none breached", others)
        if titles:
            floors = Cell(f"{len(titles)} breached", others, "state breached", more=titles)
        scores = [score(card.composite), *(score(card.headlines.get(n), n != "keeps") for n in wording.HEADLINES)]
        note = "the baseline" if rank.run == c.baseline and len(runs) > 1 else ""
        number = c.runs.index(rank.run) + 1
        rows.append(TableRow(f"{number}. {rank.run}", [rank.place, *scores, floors], note=note))
    return Table(("Run", "Place", "Composite", *wording.HEADLINES.values(), "Floors"), rows, left=("Floors",))


def _prompts(runs: Sequence[ScoredRun], files: Sequence[RunFiles]) -> list[Prompt]:
    """The prompts that not all runs had, each with the runs that had it."""
    found: dict[str, list[str]] = defaultdict(list)  # a prompt's title, which contains its hash
    texts: dict[str, str] = {}
    for run, own in zip(runs, files, strict=True):
        for title, prompt in _own_prompts(run, own):
            found[title].append(run.name)
            texts |= {title: prompt} if prompt else {}
    differing = {title: names for title, names in found.items() if len(names) < len(runs)}
    known = [prompt for title, prompt in texts.items() if title in differing]
    return [Prompt(names, title, _pieces(texts.get(title, ""), known)) for title, names in differing.items()]


def _own_prompts(run: ScoredRun, own: RunFiles) -> Iterator[tuple[str, str | None]]:
    """Title and text of a run's prompts other than the samples."""
    condition, instruction = run.card.model.condition, run.card.model.system_instruction
    if condition and condition.file != NO_PROMPT:
        yield f"{condition.file}, sha256 {condition.sha256[:12]}, in place of every condition’s text", own.prompt
    if instruction:
        sha256 = hashlib.sha256(instruction.encode("utf-8", "surrogatepass")).hexdigest()
        yield f"An instruction before every system text, sha256 {sha256[:12]}", instruction


def _pieces(whole: str, texts: Sequence[str]) -> list[tuple[str, bool]]:
    others = [{p.strip() for p in PIECES.findall(t)} for t in texts if t != whole]
    own: list[str] = PIECES.findall(whole)
    return [(p, p.isspace() or not others or any(p.strip() in other for other in others)) for p in own]


def _reasons(c: Comparison, runs: Sequence[ScoredRun]) -> list[Blocked]:
    """Why gates failed, by the runs' numbers, with floors in words."""
    found: list[Blocked] = []
    for t in c.tested:
        number = c.runs.index(t.run)
        state = STATES[t.gate][0] if t.gate in STATES else None
        floors = [wording.floor_title(f) for f in runs[number].card.floors if f.state == state]
        for why in t.reasons:
            said = f"{len(floors)} {'floor is' if len(floors) == 1 else 'floors are'} {state}" if floors else why
            found.append(Blocked(f"Run {number + 1}: {said}.", floors))
    return found


def _against(c: Comparison, runs: Sequence[ScoredRun], name: str, samples: list[SampleSides]) -> Against:
    number = c.runs.index(name) + 1
    columns = ("Figure", "Run 1", f"Run {number}", "Difference", "95 % interval")
    own = [d for d in c.differences if d.run == name]
    found, others = (Table(columns, [_difference(d) for d in own if d.found is out]) for out in (True, False))
    better, worse = (sum(d.found and sign * (d.difference.value or 0) > 0 for d in own) for sign in (1, -1))
    whole = next((d for d in own if d.figure == "composite"), None)
    title, them = f"Composite, run {number} minus run 1", f"Run {number} and run 1"
    if whole is None:
        sentence = f"{them} have no composite in common."
        composite = LargeFigure(title, ("none",), ("One of the runs has no composite.",), "none")
    else:
        chance = "Not tested: too few messages."
        if whole.p_value is not None:
            chance = f"{'Significant' if whole.found else 'Not significant'} among {len(own)} figures (Holm)."
        between = f"between {wording.interval(whole.difference).replace(' to ', ' and ')}"
        composite = LargeFigure(title, (wording.signed(whole.difference.value),), (between, f"Points. {chance}"))
        side = "better" if (whole.difference.value or 0) > 0 else "worse"
        sentence = f"{them} don’t differ significantly by the composite."
        if whole.found:
            sentence = f"Run {number} is {side} than run 1 by the composite."
    breached = [sum(f.state == "breached" for f in runs[n].card.floors) for n in (0, number - 1)]
    tiles = [
        composite,
        LargeFigure("Figures that differ", (f"{better} better, {worse} worse",), (f"Significantly, of {len(own)}.",)),
        LargeFigure(
            "Safety floors breached",
            (f"{breached[0]} → {breached[1]}",),
            (f"Run 1 → run {number}, of {len(runs[0].card.floors)}.",),
            "breached" if breached[1] else "",
        ),
    ]
    return Against(name, number, sentence, tiles, found, others, samples)


class _Replies:
    """Every run's verdicts and replies by sample and repeat, with withheld ones hidden; `criteria`: as for `withheld`,
    or None to hide nothing.
    """

    def __init__(
        self,
        runs: Sequence[ScoredRun],
        replies: Sequence[Sequence[Reply]],
        criteria: Mapping[str, CriterionRow] | None,
    ) -> None:
        self.verdicts: dict[str, dict[Key, list[Verdict]]] = {r.name: defaultdict(list) for r in runs}
        self.replies = {r.name: {(x.id, x.repeat): x for x in own} for r, own in zip(runs, replies, strict=True)}
        for run in runs:
            for v in run.verdicts:
                self.verdicts[run.name][v.id, v.repeat].append(v)
        self.worth: Mapping[Any, float] = runs[0].scorer.scoring["points"]
        there = [r.name for r in runs if self.replies[r.name]]

        def marked(of: Mapping[str, Mapping[Key, Any]]) -> dict[Key, Any]:
            return {(f"{n}\n{i}", repeat): x for n in there for (i, repeat), x in of[n].items()}

        # Treat all runs as one: words that must be hidden in one run are hidden in all.
        self._hidden: Mapping[Key, Reason] = (
            {} if criteria is None else withheld(marked(self.verdicts), marked(self.replies), criteria)
        )

    def repeat(self, a: str, b: str, identity: str) -> int:
        """The repeat in which two runs differ most on a sample."""

        def apart(repeat: int) -> float:
            x, y = ({v.index: self.worth.get(v.label) for v in self.verdicts[n][identity, repeat]} for n in (a, b))
            pairs = [(value, y.get(index)) for index, value in x.items()]
            return sum(abs(p - q) for p, q in pairs if p is not None and q is not None)

        both = sorted(r for i, r in self.verdicts[a] if i == identity and (i, r) in self.verdicts[b])
        return max(both, key=lambda r: (apart(r), -r), default=0)

    def exchange(self, name: str, row: Row, repeat: int) -> Exchange | None:
        """A run's exchange; None without its replies."""
        reply = self.replies[name].get((row.id, repeat))
        if reply is None:
            return None
        hidden = self._hidden.get((f"{name}\n{row.id}", repeat))
        return exchange(row, reply, self.verdicts[name][row.id, repeat], hidden)


def _sample_sides(
    c: Comparison, replies: _Replies, rows: Mapping[str, Row], criteria: Mapping[str, CriterionRow]
) -> dict[str, list[SampleSides]]:
    """For every run after the baseline, by name, the samples that `c` lists, in its order."""
    parts: dict[str, list[SampleSides]] = {}
    for name in c.runs[1:]:
        found: dict[str, list[SampleDifference]] = defaultdict(list)
        for s in c.samples:
            if s.run == name:
                found[s.id].append(s)
        parts[name] = [_both(c.baseline, name, rows[i], own, replies, criteria) for i, own in found.items()]
    return parts


def _both(
    base: str,
    name: str,
    row: Row,
    found: list[SampleDifference],
    replies: _Replies,
    criteria: Mapping[str, CriterionRow],
) -> SampleSides:
    repeat = replies.repeat(base, name, row.id)
    sides = replies.exchange(base, row, repeat), replies.exchange(name, row, repeat)
    blank = exchange(row, Reply(id=row.id, repeat=repeat, turns=("",) * live_turns(row)), (), hidden=None)
    turns = [side.turns if side else (None,) * len(blank.turns) for side in sides]
    steps = [
        Step(None, (a, b)) if turn.role == "Reply" else Step(turn, (None, None))
        for turn, a, b in zip(blank.turns, *turns, strict=True)
    ]
    return SampleSides(
        opening=" ".join(next(t.text for t in reversed(blank.turns) if t.role == "Message").split())[:OPENING],
        facts=blank.facts,
        system=system_text(row),
        steps=steps,
        checks=[_check(d, base, sides, criteria) for d in found],
    )


def _check(
    d: SampleDifference,
    base: str,
    sides: tuple[Exchange | None, Exchange | None],
    criteria: Mapping[str, CriterionRow],
) -> CheckDifference:
    a, b = (side.findings[d.index] if side else None for side in sides)
    criterion = criteria.get(d.criterion or "")
    whole = inert(criterion.text) if criterion else ""
    details = [(f, dict(f.details)) for f in (a, b) if f]
    given = [told.get("Read as") or f.label for f, told in details]
    return CheckDifference(
        title=criterion.title if criterion else wording.behavior_title(d.behavior),
        name=d.criterion or "",
        right=next((told.get("Right answer", "") for _, told in details), ""),
        text=whole,
        labels=[line[2:] for line in whole.splitlines() if any(line.startswith(f"- {label}") for label in given)],
        sides=(Side(base, d.baseline, a), Side(d.run, d.value, b)),
    )
