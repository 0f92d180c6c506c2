"""Of which replies scores are, by whom and on which dataset: others than these never take their place unasked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dataset_builder.release import Release
from helmbench_common.files import holds
from helmbench_common.formats.inert import clip
from judge.panel import identity_of
from judge.replies.run import Run
from judge.replies.schema import RunError
from judge.report.page import TRANSCRIPTS
from judge.schema import Scorecard, Source
from judge.scoring.stored import RATINGS, SCORECARD, SUMMARY, VERDICTS, card_in, judged_by
from judge.verdicts import JudgeIdentity

REPORT = "report.html"
EARLIER = "report.samples.json"  # an earlier build's, which this one doesn't write
WRITTEN = (SCORECARD, VERDICTS, RATINGS, SUMMARY, REPORT, TRANSCRIPTS, EARLIER)
NOTHING = "Nothing was written"
WAYS = "write elsewhere with --out DIR, or replace what is there with --replace"


class Origin(NamedTuple):
    """`source`: None in scorecards of earlier builds. `judge`: its name, its prompt's hash, how often it was asked.
    `dataset`: its version, its score_hash, and the messages_hash of messages that stand alone.
    """

    source: Source | None
    judge: tuple[str, str | None, int]
    dataset: tuple[str, str, str | None]


def source_of(run: Run) -> Source:
    """The replies of a run, as a scorecard names them."""
    return Source(file=run.file.name, samples=run.samples, sha256=run.sha256)


def of_run(run: Run, release: Release, judges: Sequence[JudgeIdentity], repeats: int) -> Origin:
    """What a run's scores by these judges are going to say of themselves, before anybody is asked."""
    whole, manifest = identity_of(judges), release.manifest
    alone = release.messages_hash if run.messages or run.triage else None
    asked = repeats if any(not j.offline for j in judges) else 1
    return Origin(
        source_of(run), (whole.name, whole.prompt_hash, asked), (manifest.version, manifest.score_hash, alone)
    )


def of_card(card: Scorecard) -> Origin:
    """What a scorecard says of itself."""
    rated = [part.messages_hash for part in (card.appropriateness,) if part]
    alone = next(iter([*rated, *(part.messages_hash for part in card.triage)]), None)
    return Origin(card.source, judged_by(card.judge), (card.dataset.version, card.dataset.score_hash, alone))


def refuse_other(out: Path, own: Origin, summary: str = "") -> None:
    """Ends where a folder holds other scores than these, the report of such, or a file of somebody's that is called as
    one of scores. `summary`: the text of theirs.

    Raises:
        RunError: scores of other replies, by another judge, on another dataset, or a scorecard that can't be read.
    """
    if not (out / SCORECARD).is_file():
        reported = bool(summary) and holds(out / SUMMARY, summary)
        if not reported and any(os.path.lexists(out / name) for name in WRITTEN):
            raise RunError(f"{out}: holds another report, without its scores. {NOTHING}: {WAYS}")
        return
    try:
        there = of_card(card_in(out))
    except RunError as error:
        raise RunError(f"{error}. {NOTHING}: {WAYS}") from None
    if there == own:
        return
    again = f"score that run with --results {there.source.file}, " if there.source and _is_log(there, own) else ""
    held, given = _in_words(there, own), _in_words(own, there)
    if held == given:
        given += ", whose replies are others now"
    raise RunError(f"{out}: holds the scores of {held}; these are of {given}. {NOTHING}: {again}{WAYS}")


def _is_log(there: Origin, own: Origin) -> bool:
    files = [o.source.file for o in (there, own) if o.source]
    return len(set(files)) == 2 and all(f.startswith("results_") for f in files)


def _in_words(origin: Origin, other: Origin) -> str:
    """The replies, and whatever else differs from another's."""
    source, (name, prompt, repeats), (version, *hashes) = origin
    parts = [f"{source.file} ({source.samples} samples)" if source else "replies that they don't name"]
    if origin.judge != other.judge:
        parts += [
            f"by {clip(name, 80)}",
            f"prompt {prompt}" if prompt else "",
            f"asked {repeats} times" if repeats > 1 else "",
        ]
    if origin.dataset != other.dataset:
        parts.append(f"on dataset {version} ({', '.join(h[:12] for h in hashes if h)})")
    return ", ".join(filter(None, parts))
