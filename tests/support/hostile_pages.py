"""Every page that we write, with hostile text in every field that takes any, and the same with harmless text."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from dataset_builder.book.page import book
from dataset_builder.reading.load import load
from dataset_builder.release import Release
from dataset_builder.schema import About, AppropriatenessCheck, CriterionRow, Row, Sample
from judge.agreement.annotate import page as sheet
from judge.agreement.cases import Case, Cases
from judge.offline.reader import OfflineReader
from judge.replies.run import Run
from judge.replies.schema import Model, OwnPrompt, Reply
from judge.replies.script import live_turns
from judge.report.comparison import RunFiles
from judge.report.comparison import page as comparison
from judge.report.page import report
from judge.report.summary import summary
from judge.schema import Judge, Panel, PanelMember, Scorecard, Verdict
from judge.score import score
from judge.scoring.compare import Comparison, ScoredRun, compare, scored_run
from judge.statistics.estimate import Estimate
from judge.verdicts import Case as Judged
from judge.verdicts import Given
from support.hostile import SMALL, TEXTS, Poison, harmless, in_turn
from support.reports import people

Change = Callable[[str], str]
KINDS: dict[str, Change] = {"hostile": str, "harmless": harmless}
CARD = {name: text for name, text in TEXTS.items() if len(text) < 15_000}  # texts that pages don't truncate
IDS = frozenset(("id", "scenario", "evaluation", "behavior", "criterion", "turns", "samples", "high_risk_misses"))
ALL = "\n".join(text for text in SMALL.values() if "\n" not in text)
EVERYTHING = 100_000_000


class Made(NamedTuple):
    """The pages of one run, and the fields that contain a hostile text."""

    pages: dict[str, str]
    summary: str
    found: Comparison
    fields: set[str]


class Strict(OfflineReader):
    """Gives the worst label to whatever it reads, so that a text doesn't decide which samples a page shows."""

    def read(self, case: Judged, release: Release) -> Given:
        if isinstance(case.check, AppropriatenessCheck):
            return Given("1")
        return Given(release.criteria[case.read_check.criterion].labels[-1])


class Ran(NamedTuple):
    """A small run with a sample of every kind, scored."""

    run: Run
    card: Scorecard
    verdicts: list[Verdict]
    samples: dict[str, Sample]


def ran(release: Release, said: Callable[[], str], every: int = 25) -> Ran:
    """A few samples of the lite tier and stand-alone messages, each answered with the next text."""
    lite = [r for r in release.rows.values() if "lite" in r.tiers]
    talks = [r for r in lite if live_turns(r) > 1][:2]
    rows: dict[str, Row] = {r.id: r for r in [*lite[::every], *talks]}
    alone = {m.id: m for m in [m for m in release.messages.values() if "lite" in m.tiers][:: 2 * every]}

    def reply(sample: Sample) -> Reply:
        turns = live_turns(sample)
        return Reply(
            id=sample.id, turns=tuple(said() for _ in range(turns)), finish=tuple(said() for _ in range(turns))
        )

    model = Model(
        name="name",
        backend="backend",
        arguments={f"argument-{n}": "value" for n in range(45)},
        system_instruction="told",
        condition=OwnPrompt(file="own.txt", sha256="0" * 64),
    )
    replies, messages = [*map(reply, rows.values())], [*map(reply, alone.values())]
    run = Run(
        Path("run"), model, "lite", replies, True, messages=messages, messages_tier="lite", triage={"bare": messages}
    )
    made = score(run, release, [[Strict()]])
    verdicts = [v.model_copy(update={"evidence": ("first", "second")}) for v in [*made.verdicts, *made.ratings]]
    return Ran(run, made.scorecard, verdicts, {**rows, **alone})


def poisoned_card(card: Scorecard, poison: Poison) -> Scorecard:
    """The scorecard with a panel and people's labels, whose names are also untrusted."""
    member = PanelMember(judge="a", prompt_hash="p", approximate=False, repeats=1, given=2, unscored=0, dissents=1)
    nothing = Estimate(value=0.5, low=0.4, high=0.6, n=9)
    panel = Panel(
        members=[member] * 3,
        verdicts=3,
        unanimous=2,
        ties=0,
        unscored=0,
        alpha=nothing,
        alpha_ordinal=nothing,
        criteria={},
    )
    known = people("bhh-ratings", 0.5, passes=2, between=nothing)
    labels = [known, known.model_copy(update={"reason": "because"})]
    judge: Judge = card.judge.model_copy(update={"panel": panel, "people": labels, "by_judge": 9})
    return poison(card.model_copy(update={"judge": judge}))


def written(release: Release, content: Path, folder: Path, change: Change) -> Made:
    """All pages, as strings by name."""
    texts = in_turn(change)
    made = ran(release, lambda: next(texts))
    card = Poison(in_turn(change, CARD), IDS)
    rows, verdicts, criteria = (Poison(texts, IDS) for _ in range(3))
    samples = {i: rows(s) for i, s in made.samples.items()}
    judged = [verdicts(v) for v in made.verdicts]
    known = {name: criteria(c) for name, c in release.criteria.items()}
    whole = poisoned_card(made.card, card)
    replies = [*made.run.replies, *made.run.messages]
    both = report(whole, judged, replies, samples, "withheld", EVERYTHING, known)
    alone = whole.model_copy(update={"dataset": whole.dataset.model_copy(update={"samples": 0})})
    ids = {m.id for m in made.run.messages}
    rated = [v for v in judged if v.id in ids]
    pages = {
        "report.html": both.page,
        "transcripts.html": "".join(both.transcripts),
        "alone.html": report(alone, rated, made.run.messages, samples, "withheld", EVERYTHING, known).page,
        "sheet.html": annotated(release, change),
        "book.html": booked(content, folder, change),
    }
    pages["comparison.html"], found = compared(release, made, known, change)
    fields = {f"report: {f}" for p in (card, rows, verdicts, criteria) for f in p.fields}
    return Made(pages, summary(whole), found, fields)


def compared(
    release: Release, made: Ran, criteria: Mapping[str, CriterionRow], change: Change
) -> tuple[str, Comparison]:
    """The page of three runs with hostile names, prompts and reasons; one run has no replies."""
    texts = in_turn(change)
    poison = Poison(texts, IDS)
    ids = {r.id for r in made.run.replies}
    own = [v for v in made.verdicts if v.id in ids]
    names = [change("\n".join([*SMALL.values()][n::3])) for n in range(3)]
    runs: list[ScoredRun] = []
    said: list[RunFiles] = []
    for n, name in enumerate(names):
        turned = [
            v.model_copy(update={"label": "PASS", "incident": None}) if n and v.label == "FAIL" else v for v in own
        ]
        card = made.card.model_copy(update={"model": poison(made.card.model)})
        runs.append(scored_run(name, card, [poison(v) for v in turned], release))
        replies = [r.model_copy(update={"turns": tuple(next(texts) for _ in r.turns)}) for r in made.run.replies]
        said.append(RunFiles(replies, change("\n".join(SMALL.values()))) if n < 2 else RunFiles(lacking=change(ALL)))
    found = compare(runs, ["floor", "regression", "unscored"], samples=12)
    rows = {i: Poison(texts, IDS)(s) for i, s in made.samples.items() if isinstance(s, Row)}
    return comparison(found, runs, said, {**release.rows, **rows}, criteria), found


def annotated(release: Release, change: Change) -> str:
    """A sheet without a rater's name, with a reply for every text, hostile contexts, and custom criteria."""
    texts = in_turn(change)
    poison = Poison(texts, IDS | {"labels", "fails"})
    own = copy.copy(release)
    own.__dict__["criteria"] = {name: poison(c) for name, c in release.criteria.items()}
    names = sorted(release.criteria)[:2]
    cases = [
        Case(
            f"case-{n}",
            names[n % 2],
            (next(texts), next(texts), next(texts)),
            next(texts),
            about=About.model_construct(job=next(texts), profile=next(texts), safety_prompt=True),
        )
        for n in range(len(TEXTS) // 4)
    ]
    return sheet(Cases(cases, of_a_model=True), own)


def booked(content: Path, folder: Path, change: Change) -> str:
    """The book of a content in which every text continues with a hostile one."""
    root = Path(shutil.copytree(content, folder / "content"))
    # Only texts that a file can contain, changed so that they add no headings.
    texts = {n: t.replace("\n#", "\n #").replace("\r", " ") for n, t in TEXTS.items() if n != "half characters"}
    turn = in_turn(change, {n: t for n, t in texts.items() if len(t) < 50_000})
    titles = in_turn(change, {n: " ".join(t.split()) for n, t in SMALL.items() if t.isprintable()})
    for kind in ("scenarios", "conversations", "personas", "conditions", "criteria", "protocols", "taxonomy"):
        for path in sorted((root / kind).glob("*.md")):
            lines = path.read_bytes().decode().split("\n")
            path.write_text("\n".join(_continued(lines, turn, titles)), encoding="utf-8", newline="\n")
    found, errors = load(root)
    assert found, errors.lines()[:5]
    return book(found)


def _continued(lines: list[str], turn: Iterator[str], titles: Iterator[str]) -> Iterator[str]:
    """The lines with a hostile title, and a hostile paragraph after each part that is prose."""
    prose = ("# Rationale", "# Judgement", "# Not tested", "# PT", "# Persona", "# Profile", "# Voice", "# Text")
    inside = False
    for line in lines:
        if line.startswith("# "):
            if inside:
                yield from ("", next(turn), "")
            inside = line.startswith(prose)
        yield f"title: {json.dumps(next(titles), ensure_ascii=False)}" if line.startswith("title: ") else line
