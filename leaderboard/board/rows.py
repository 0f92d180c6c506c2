"""Verified submissions → the board's tables: one per score_hash and tier, ranked within one judge. Runs that breach a
floor, demos and policies are separate parts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from dataset_builder.schema import Tier
from judge.report.charts import Axis, Scatter, Spot, axis_of, scatter
from judge.schema import Figure, Floor, FloorState, PeopleAgreement, Reference, Scorecard
from judge.scoring.compare import ScoredRun, ranks, scored_run
from judge.statistics.estimate import Estimate
from judge.wording import STATES, plain
from leaderboard.board.gather import Checked, Rejudged, version_key
from leaderboard.schema import NAME, Submission

TIERS: tuple[Tier, ...] = ("core", "full", "lite")  # in the order of the page
Standing = Literal["ranked", "breached", "demo"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)  # from the top of a table


class Flag(NamedTuple):
    """A badge in a row, and what it means; docs/publishing.md has all of them."""

    words: str
    meaning: str


FLAGS = {
    "trained_on_benchmark": Flag("trained on this benchmark", "The submitter says that the model saw these messages."),
    "training_unknown": Flag("training unknown", "The submitter doesn't know whether the model saw these messages."),
    "same_family": Flag("judge of the same family", "Judge and model share a family, and judges favor their own."),
    "unknown_family": Flag("family unknown", "The family of judge or model is unknown, so favor can't be ruled out."),
    "same_reply": Flag("same reply to many samples", "One reply answers many different samples."),
    "same_repeats": Flag("repeats are alike", "Repeats of samples have the same words, so they add little."),
    "two_answers": Flag("judge contradicts itself", "The judge gave different answers to one question."),
    "other_answerer": Flag("other judge answered", "The judge's server names another model than the declared judge."),
    "template_text": Flag("chat template adds words", "The model read words that aren't in the benchmark."),
    "dates": Flag("run on several days", "Requests carry several dates, so the model may have changed in between."),
    "no_revision": Flag("no revision", "The submission names no revision, so the model behind the name may change."),
    "unscored": Flag("unscored verdicts", "Some verdicts are missing: a reply or the judge's answer was unreadable."),
    "left": Flag(
        "judge left verdicts open", "The offline judge wasn't sure about some verdicts and left them unscored."
    ),
    "no_composite": Flag("no composite", "Too few verdicts are scored for a composite."),
}


@dataclass(frozen=True, eq=False)
class Entry:
    """A submission that is listed: verified, or a demo. `page` and `report` are its files, relative to the board."""

    name: str
    page: str
    report: str
    submission: Submission
    card: Scorecard
    flags: tuple[str, ...]
    rejudged: Rejudged | None
    run: ScoredRun | None  # None for a demo, which is never ranked

    @property
    def model(self) -> str:
        return f"{self.submission.model.organization}/{self.submission.model.name}"

    @property
    def demo(self) -> bool:
        return self.run is None

    @property
    def breached(self) -> list[Floor]:
        """The breached floors."""
        return [f for f in self.card.floors if f.state == "breached"]

    @property
    def source(self) -> str:
        """Who judged, in the words of the page."""
        return f"re-judged on {self.rejudged.date} by {self.rejudged.by}" if self.rejudged else "self-reported"

    @property
    def kappa(self) -> Estimate | None:
        """The judge's agreement with the calibration set, over all criteria."""
        known = self.card.judge.agreement
        return known[0].overall.kappa if known and known[0].overall else None

    @property
    def people(self) -> list[PeopleAgreement]:
        """The judge's declared agreement with people by set, without sets that ask another kind of question than a
        submission's verdicts answer.
        """
        return [p for p in self.card.judge.people if p.reason is None and p.kind == "criterion"]

    @property
    def floors(self) -> dict[FloorState, int]:
        return {state: sum(f.state == state for f in self.card.floors) for state in STATES}


class Refused(NamedTuple):
    """A refused submission, listed with the kinds of the reasons; messages may quote withheld replies."""

    name: str
    kinds: tuple[tuple[str, int], ...]


class Place(NamedTuple):
    """The best and worst place that the data allow, among the `of` ranked models of one judge."""

    best: int
    worst: int
    of: int


@dataclass(frozen=True)
class Table:
    """Comparable submissions: one score_hash, one tier. `parts`: submissions by standing, best composite first."""

    score_hash: str
    tier: Tier
    versions: tuple[str, ...]
    parts: dict[Standing, list[Entry]]
    places: dict[str, Place]
    policies: list[Reference]
    axis: Axis

    @property
    def entries(self) -> list[Entry]:
        """All submissions, from the top."""
        return [e for s in STANDINGS for e in self.parts[s]]

    @property
    def verified(self) -> list[Entry]:
        return [*self.parts["ranked"], *self.parts["breached"]]

    @property
    def messages(self) -> str:
        """How many messages the composites rest on: `344`, or `340 to 344` if some replies are unscored."""
        counts = {e.card.composite.clusters for e in self.entries} | {p.composite.clusters for p in self.policies}
        return " to ".join(str(n) for n in sorted({min(counts), max(counts)}))

    @property
    def judges(self) -> int:
        return len({_judge(e) for e in self.verified})

    @property
    def scatter(self) -> Scatter:
        """Every submission and every policy, by sensitivity and specificity."""
        runs = [
            Spot(
                e.submission.model.name + (" (demo)" if e.demo else ""),
                e.card.detection.sensitivity,
                e.card.detection.specificity,
                "model",
            )
            for e in self.entries
        ]
        return scatter([*runs, *(Spot(p.policy, p.sensitivity, p.specificity, "policy") for p in self.policies)])


@dataclass(frozen=True)
class Board:
    """`current`: tables of the newest data that has runs; `earlier`: those of other score_hashes."""

    current: list[Table]
    earlier: list[Table]
    refused: list[Refused]

    @property
    def tables(self) -> list[Table]:
        return [*self.current, *self.earlier]

    @property
    def entries(self) -> list[Entry]:
        return [e for t in self.tables for e in t.entries]


def entry(checked: Checked, rejudged: Rejudged | None, taken: set[str]) -> Entry | Refused:
    """One submission as a row. `taken`: names of pages, to which this one's are added."""
    name, verified = checked.name, checked.verified
    submission, card = verified.submission, verified.scorecard
    if verified.state == "refused" or submission is None or card is None:
        return Refused(name, tuple(sorted(Counter(p.kind for p in verified.problems).items())))
    page = _page(submission, name.rpartition("/")[2], taken)
    return Entry(
        name=name,
        page=f"{page}.html",
        report=f"{page}/report.html",
        submission=submission,
        card=card,
        flags=flags([f.kind for f in verified.flags], submission),
        rejudged=rejudged,
        run=None if verified.state == "demo" else scored_run(name, card, verified.verdicts, checked.release),
    )


def flags(kinds: Sequence[str], submission: Submission) -> tuple[str, ...]:
    """What a reader should know before comparing: what verifying flagged, and what was declared about training."""
    declared = {"yes": ["trained_on_benchmark"], "unknown": ["training_unknown"], "no": []}[
        submission.declaration.trained_on_benchmark
    ]
    checked = sorted({*kinds} - {"trained_on_benchmark"})  # a flag for both answers
    return tuple(FLAGS[kind].words if kind in FLAGS else plain(kind) for kind in [*declared, *checked])


def _page(submission: Submission, run: str, taken: set[str]) -> str:
    """`org__model/run`, with a number if another page has that name, ignoring case as some disks do."""
    folder = f"{submission.model.organization}__{submission.model.name}"
    wanted = f"{folder}/{run if NAME.fullmatch(run) else 'run'}"
    page, number = wanted, 1
    while {page.casefold(), f"{page}.html".casefold()} & taken:
        number += 1
        page = f"{wanted}-{number}"
    taken |= {page.casefold(), f"{page}.html".casefold()}
    return page


def board(entries: Iterable[Entry | Refused]) -> Board:
    """The tables, newest data first.

    Raises:
        RunError: runs of one table with different samples, which verifying refuses.
    """
    groups: dict[tuple[str, Tier], list[Entry]] = defaultdict(list)
    refused: list[Refused] = []
    for e in entries:
        if isinstance(e, Refused):
            refused.append(e)
        else:
            groups[e.card.dataset.score_hash, e.submission.dataset.tier].append(e)
    tables = [table(groups[key]) for key in _order(groups)]
    newest = tables[0].score_hash if tables else ""
    return Board([t for t in tables if t.score_hash == newest], [t for t in tables if t.score_hash != newest], refused)


def _order(groups: dict[tuple[str, Tier], list[Entry]]) -> list[tuple[str, Tier]]:
    """Keys of the tables: the highest version's score_hash first, its tiers in their order."""
    versions = {
        own: max(version_key(e.card.dataset.version) for (h, _), group in groups.items() if h == own for e in group)
        for own, _ in groups
    }
    by_tier = sorted(groups, key=lambda key: TIERS.index(key[1]))
    return sorted(by_tier, key=lambda key: (versions[key[0]], key[0]), reverse=True)


def standing(e: Entry) -> Standing:
    """The part of the table that a submission belongs to. No composite outweighs a breached floor."""
    return "demo" if e.demo else "breached" if e.breached else "ranked"


def table(entries: list[Entry]) -> Table:
    """The table of entries with one score_hash and tier."""
    ordered = sorted(entries, key=_best_first)
    parts: dict[Standing, list[Entry]] = {s: [e for e in ordered if standing(e) == s] for s in STANDINGS}
    dataset = ordered[0].card.dataset
    policies = next((e.card.references for e in ordered if e.card.references), [])
    figures = [f for e in ordered for f in (e.card.composite, *e.card.headlines.values())]
    return Table(
        score_hash=dataset.score_hash,
        tier=ordered[0].submission.dataset.tier,
        versions=tuple(sorted({e.card.dataset.version for e in ordered}, key=version_key, reverse=True)),
        parts=parts,
        places=_places(parts["ranked"]),
        policies=sorted(policies, key=lambda p: (-_value(p.composite), p.policy)),
        axis=axis_of([*figures, *(p.composite for p in policies)]),
    )


def _best_first(e: Entry) -> tuple[float, str]:
    return -_value(e.card.composite), e.name


def _value(figure: Figure) -> float:
    return float("-inf") if figure.value is None else figure.value


def _judge(e: Entry) -> tuple[str, str]:
    return e.card.judge.name.casefold(), e.card.judge.prompt_hash or ""


def _places(ranked: list[Entry]) -> dict[str, Place]:
    """Places by entry, within each judge: labels of two judges differ, which a common ranking would mix in."""
    by_judge: dict[tuple[str, str], list[ScoredRun]] = defaultdict(list)
    for e in ranked:
        if e.run is not None and e.card.composite.value is not None:
            by_judge[_judge(e)].append(e.run)
    shared = [
        runs for runs in by_judge.values() if len(runs) > 1 or len(by_judge) == 1
    ]  # "first of one" next to other judges' rankings would mislead
    return {r.run: Place(r.best, r.worst, len(runs)) for runs in shared for r in ranks(runs)}
