"""What was counted on the way → the summaries that stand in a manifest. Both forms of the build end here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from dataset_builder.corpora.licences import normal
from dataset_builder.corpora.read import Opened
from dataset_builder.corpora.recipe import Loaded
from dataset_builder.corpora.rows import licence_reading
from dataset_builder.corpora.schema import STEPS, CorpusError, Dropped, SourceSummary
from dataset_builder.corpora.write import Finished


@dataclass
class Counts:
    """Documents by source (`read`, `kept`), by what was changed, and by the step and reason for which they went.

    `licences`: every licence of a source's cleaned documents.
    """

    read: Counter[str] = field(default_factory=Counter[str])
    kept: Counter[str] = field(default_factory=Counter[str])
    changed: Counter[str] = field(default_factory=Counter[str])
    licences: dict[str, set[str | None]] = field(default_factory=dict[str, set[str | None]])
    dropped: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])

    def drop(self, documents: Iterable[Dropped]) -> None:
        for document in documents:
            self.dropped.setdefault(document.step, Counter())[document.reason] += 1


def finished(loaded: Loaded, opened: list[Opened], hashes: dict[str, str], counts: Counts) -> Finished:
    """What is known before a row is written; no samples are drawn yet. `hashes`: of every source.

    Raises:
        CorpusError: nothing is left.
    """
    # In one order, whichever came first: a manifest is the same however the work was cut.
    dropped: dict[str, dict[str, int]] = {
        step: dict(sorted(counts.dropped[step].items())) for step in STEPS if step in counts.dropped
    }
    if not counts.kept.total():
        raise CorpusError(
            f"{loaded.path}:1: nothing is left of {counts.read.total()} documents: {_reasons(dropped)}; see `limits`"
        )
    summaries = [_summary(source, hashes[source.source.name], counts) for source in opened]
    return Finished(loaded, summaries, dropped, dict(sorted(counts.changed.items())), (set(), set()))


def _reasons(dropped: dict[str, dict[str, int]]) -> str:
    by_reason = Counter({(step, reason): n for step, reasons in dropped.items() for reason, n in reasons.items()})
    most = (f"{n} {step} ({reason})" for (step, reason), n in by_reason.most_common(5))
    return ", ".join(most) or "the sources are empty"


def _summary(opened: Opened, sha256: str, counts: Counts) -> SourceSummary:
    source = opened.source
    licences = counts.licences.get(source.name, {source.licence})
    readings = {licence_reading(licence) for licence in licences}
    return SourceSummary(
        name=source.name,
        place=opened.place,
        revision=opened.revision,
        date=source.date,
        sha256=sha256,
        licences=sorted({normal(licence) or "none stated" for licence in licences}),
        redistributable=all(r.redistributable for r in readings),
        why="; ".join(sorted({r.why for r in readings if not r.redistributable} or {r.why for r in readings})),
        read=counts.read[source.name],
        kept=counts.kept[source.name],
    )
