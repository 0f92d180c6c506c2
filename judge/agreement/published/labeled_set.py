"""Replies or messages with a question about each, and people's labels where there are any; and the mapping file (YAML)
that reads them from other people's files. Every error names the file and the row but never quotes a message.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from dataset_builder.corpora.read import Loaded, Opened, RowError, check_fields, document, labels_of, open_source
from dataset_builder.corpora.schema import Asks, CorpusError, Turn
from dataset_builder.release import Release
from dataset_builder.schema import CriterionRow
from helmbench_common.formats.refused import FormatError
from helmbench_common.formats.refused import shown as named
from helmbench_common.hashing import digest
from helmbench_common.jsonl import plain
from judge.panel import base
from judge.replies.schema import RunError, run_error
from judge.schema import RATINGS, VERDICTS, LabelKind, LabelledRows

REFUSAL, ANSWER = "refusal", "answer"
HALVES = {"all": slice(0, None, 1), "even": slice(0, None, 2), "odd": slice(1, None, 2)}


class Item(NamedTuple):
    """A labeled item: a reply, or a standalone message.

    `said` alternates assistant and user and ends with the user. `by`: the criterion, or the protocol's category.
    `labels`: by rater, on the set's scale; raters who skipped the item are absent. `family`: items that share a prompt
    are one observation in every interval. `groups`: subgroups that also count the item. `settled`: the raters'
    consensus label, if the set publishes one. `published`: other judges' labels, by judge. `system`: who replied.
    `country`: the user's.
    """

    id: str
    said: tuple[str, ...]
    labels: Mapping[str, str]
    reply: str = ""
    by: str = ""
    family: str = ""
    groups: tuple[str, ...] = ()
    settled: str | None = None
    published: Mapping[str, str] = {}
    system: str = ""
    country: str | None = None


class Scale(NamedTuple):
    """The labels available to people. `numbers`: the labels are consecutive numbers, lowest first, and the people's
    common label is their mean, rounded. `coarse`: maps the labels to fewer, for a second figure.
    """

    labels: tuple[str, ...]
    numbers: bool = False
    coarse: Mapping[str, str] = {}

    def common(self, item: Item) -> str | None:
        """The people's common label: their mean, their consensus label, or their majority; None if there is none."""
        if self.numbers and item.labels:
            return self.labels[nearest(mean(self.labels.index(x) for x in item.labels.values()))]
        if self.numbers or item.settled is not None:
            return item.settled
        ranked = Counter(item.labels.values()).most_common(1)
        return ranked[0][0] if ranked and 2 * ranked[0][1] > len(item.labels) else None


class LabeledSet(NamedTuple):
    """A set, or half of it. `reads`: maps a judge's label to this scale, if it differs; a way to fail (FAIL-misses)
    becomes FAIL first. `notes`: caveats about the figures. `question`: the set's own, which some items are judged `by`.
    `source`: the repository and commit, or the hash of what was read. `shown`: whether a page may show the texts.
    """

    name: str
    rows: LabelledRows
    kind: LabelKind
    scale: Scale
    items: tuple[Item, ...]
    reads: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()
    question: CriterionRow | None = None
    source: str = ""
    shown: bool = False

    def reading(self, label: str | None) -> str | None:
        """Maps a judge's label to this scale."""
        if label is None:
            return None
        label = base(label) if self.kind == "criterion" else label
        return self.reads.get(label, label)


def nearest(mean: float) -> int:
    """Rounds a mean of ratings to a rating, half up: 1.5 → 2."""
    return math.floor(mean + 0.5)


def crisis_or_not(categories: Iterable[str]) -> dict[str, str]:
    """Maps categories to two labels: no_crisis, and crisis for all others."""
    return {name: name if name == "no_crisis" else "crisis" for name in categories}


RATING = Scale(RATINGS, numbers=True)
REFUSALS = Scale((REFUSAL, ANSWER))


# --- mapping files: docs/own-data.md

OWN = "own-question"  # what an item judged by the mapping's `question` is judged by


def read_mapping(loaded: Loaded, folder: Path, rows: LabelledRows, release: Release) -> LabeledSet:
    """What a mapping file with `asks` describes. Its paths and queries are relative to `folder`. Rows without a label
    are left out if the mapping names `labels`. Lists every bad row.
    """
    asks, path = loaded.recipe.asks, named(loaded.path)
    if asks is None:
        raise RunError(f"{path}: has no `asks`; expected what a judge is asked about each row, see docs/own-data.md")
    question = _question(asks)
    scale = _scale(asks, release)
    if question and asks.by is None and not any(s.fields.by for s in loaded.recipe.sources):
        asks = asks.model_copy(update={"by": OWN})
    known = _known(asks, release) | ({OWN} if question else set())
    if asks.by is None and known and not all(s.fields.by for s in loaded.recipe.sources):
        raise RunError(f"{path}: nothing says what judges a row; expected `by` under `asks` or under `fields`")
    if asks.by is not None and asks.by not in known:
        raise RunError(f"{path}: asks.by is '{named(asks.by)}'; expected one of {', '.join(sorted(known))}")
    if grouped := [s.name for s in loaded.recipe.sources if s.fields.conversation]:
        raise RunError(
            f"{path}: source '{grouped[0]}' has `conversation`, which only `helmbench corpus` reads; expected `turns`, "
            "or a query that makes one row of a conversation"
        )
    found: list[Item] = []
    problems: list[str] = []
    number = 0
    for source in loaded.recipe.sources:
        try:
            opened = open_source(source, folder)
            place = named(folder / opened.place) if source.path else opened.place
            for n, (line, row) in enumerate(opened.rows):
                if n == 0:
                    check_fields(source.fields, row)  # every other row would lack the field too
                try:
                    check_fields(source.fields, row)
                    own = number if source.fields.row is None else _number(source.fields.row, row)
                    number += 1
                    if own in range(own + 1)[HALVES[rows]]:
                        found += _item(opened, line, row, asks, scale, known, own)
                except (RowError, ValueError) as error:
                    problems.append(f"{place}:{line}: {error}")
        except RowError as error:
            problems.append(f"{place}:{line}: {error}")
        except (CorpusError, FormatError) as error:
            problems.append(str(error))
    if problems:
        raise run_error(problems)
    if not found:
        raise RunError(f"{path}: --rows {rows}: no item among {number} rows")
    if repeated := [name for name, n in Counter(i.id for i in found).items() if n > 1]:
        raise RunError(
            f"{path}: several rows have the id '{named(repeated[0])[:60]}'; expected a different one per row"
        )
    content = digest([[list(item.said), item.reply, dict(item.labels)] for item in found])[:16]
    pinned = f"{loaded.recipe.repository}@{loaded.recipe.commit}" if loaded.recipe.commit else content
    shown = loaded.recipe.repository is None or loaded.recipe.may != "ask"
    return LabeledSet(
        loaded.recipe.name,
        rows,
        asks.kind,
        scale,
        tuple(found),
        asks.reads,
        tuple(asks.notes),
        question,
        pinned,
        shown,
    )


def _item(
    opened: Opened, line: int, row: Mapping[str, Any], asks: Asks, scale: Scale, known: set[str], number: int
) -> Iterator[Item]:
    fields = opened.source.fields

    def text(field: str | None) -> str:
        value = row[field] if field else None
        if isinstance(value, list | dict):
            raise ValueError(f"'{field}' is a {type(value).__name__}; expected text")
        return "" if value is None else plain(str(value))

    def given(columns: Mapping[str, str] | str) -> dict[str, str]:
        found = labels_of(opened.source, columns, row, scale.labels)
        return {who: label for who, label in found.items() if label is not None}

    labels = given(fields.labels)
    settled = given({"": fields.settled} if fields.settled else {}).get("")
    if (fields.labels or fields.settled) and not labels and settled is None:
        return
    said, reply = _conversation(document(opened.source, line, dict(row)).turns), text(fields.reply)
    if asks.kind != "category" and fields.reply is None:
        if said[-1:] and said[-1].role == "assistant":
            *said, last = said
            reply = last.text
        else:
            raise ValueError(
                f"'{fields.text or fields.turns}' ends without a reply; expected one, or the field `reply`"
            )
    if not said or said[-1].role != "user":
        field = fields.text or fields.turns
        wrong = "doesn't end with the user" if said else "is empty"
        raise ValueError(f"'{field}' {wrong}; expected the user's words last")
    by = text(fields.by) or asks.by or ""
    if known and by not in known:
        raise ValueError(f"'{fields.by}' is {by[:40]!r}; expected one of {', '.join(sorted(known))}")
    yield Item(
        text(fields.id) or str(number),
        tuple(turn.text for turn in said),
        labels,
        reply,
        by,
        text(fields.family),
        tuple(filter(None, text(fields.group).split("|"))),
        settled,
        given(fields.models),
        text(fields.system),
        text(fields.country) or opened.source.country,
    )


def _number(field: str, row: Mapping[str, Any]) -> int:
    try:
        return int(row[field])
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"'{field}' is {named(str(row[field]))[:40]!r}; expected the row's number") from None


def _conversation(turns: Iterable[Turn]) -> list[Turn]:
    """Turns that alternate: without the system's and blank ones, and with several of one role in a row as one."""
    found: list[Turn] = []
    for turn in turns:
        if turn.role == "system" or not turn.text.strip():
            continue
        if found and found[-1].role == turn.role:
            found[-1] = Turn(turn.role, f"{found[-1].text}\n\n{turn.text}")
        else:
            found.append(turn)
    return found


def _known(asks: Asks, release: Release) -> set[str]:
    """What the kind's items can be judged by; empty if nothing is to be named."""
    if asks.kind == "criterion":
        return {*release.criteria, *release.talk_criteria}
    return {str(p.category) for p in release.protocols.values()} if asks.kind == "rating" else set()


class OwnQuestion(CriterionRow):
    """A criterion that a mapping file brings, with its own answers."""

    answers: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.answers


def _question(asks: Asks) -> CriterionRow | None:
    if asks.question is None:
        return None
    q = asks.question
    text = f"The authors of these replies asked this question about them.\n\n{q.text}"
    return OwnQuestion(
        answers=tuple(q.labels),
        criterion=OWN,
        kind="labelled",
        title=q.title,
        text=text,
        incident="task_degraded",
        incident_control="task_degraded",
        fails=[],
        severity=1,
        criterion_hash=digest([q.title, text, list(q.labels)]),
    )


def _scale(asks: Asks, release: Release) -> Scale:
    coarse = asks.coarse or (crisis_or_not(release.taxonomy) if asks.kind == "category" else {})
    if asks.labels or asks.question:
        return Scale(tuple(asks.labels or asks.question.labels), asks.numbers, coarse)  # type: ignore[union-attr]
    if asks.kind == "rating":
        return RATING
    if asks.kind == "refusal":
        return REFUSALS
    if asks.kind == "category":
        return Scale(tuple(release.taxonomy), coarse=coarse)
    own = release.criteria.get(str(asks.by))
    return Scale(tuple(own.labels) if own and own.kind == "graded" else VERDICTS)
