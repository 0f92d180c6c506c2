"""Between Help and Harm (ellisalicante/LLMs-Mental-Health-Crisis): four people's categories of 206 messages, and two
clinicians' ratings, 1 to 5, of a reply to each. Rows are counted in the label files' common order, from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from dataset_builder.schema import CrisisCategory
from judge.people.published.files import amount, at, found, items, one_of, read_list, text
from judge.people.published.types import RATING, Item, LabelledSet, Scale
from judge.replies.errors import RunError
from judge.schema import LabelledRows

REPOSITORY = "ellisalicante/LLMs-Mental-Health-Crisis"
PEOPLE = "data/human_label/H?_label*.json"
CLINICIANS = "data/human_label/H?_scores_*.json"
JUDGES = {
    "gpt-4o-mini": "sampled_lowest_scores_n200.json",
    "gpt-5-nano": "sampled_lowest_scores_n200__gpt-5-nano.json",
    "llama-4": "sampled_lowest_scores_n200__meta-llama.json",
    "jury": "sampled_lowest_scores_n200__jury.json",
}
CATEGORIES: tuple[str, ...] = get_args(CrisisCategory)
# Their names where ours are others.
NAMES = {
    "self-harm": "self_harm",
    "substance_abuse_or_withdrawal": "substance_use",
    "risk_taking_behaviours": "risk_taking",
    "risk_taking_behaviors": "risk_taking",
}
# Crisis or not: what lies outside the taxonomy is a danger of another kind, which nobody in this set could name.
COARSE = {name: name if name == "no_crisis" else "crisis" for name in CATEGORIES}


def messages(folder: Path, rows: LabelledRows) -> LabelledSet:
    """The categories of the messages, by each person.

    Raises:
        RunError: no such files, or rows that can't be read.
    """
    files = found(folder, PEOPLE, REPOSITORY, least=2)

    def read(number: int, row: tuple[Any, ...]) -> Iterator[Item]:
        labels = {
            path.name[:2]: _category(own, at(path, number))
            for path, own in zip(files, row, strict=True)
            if _has(own, "label")
        }
        if labels:
            yield Item(str(number), (_message(row[0], at(files[0], number)),), labels)

    scale = Scale(CATEGORIES, coarse=COARSE)
    return LabelledSet("bhh-messages", rows, "category", scale, items(_together(files), rows, read))


def ratings(folder: Path, rows: LabelledRows) -> LabelledSet:
    """The clinicians' ratings, and those of the published judges; a reply that a clinician left out is no item.

    Raises:
        RunError: no such files, or rows that can't be read.
    """
    people, clinicians = found(folder, PEOPLE, REPOSITORY)[:1], found(folder, CLINICIANS, REPOSITORY)
    judges = {name: path for name, end in JUDGES.items() if (path := _sampled(folder) / end).is_file()}
    files = [*people, *clinicians, *judges.values()]

    def read(number: int, row: tuple[Any, ...]) -> Iterator[Item]:
        message, *scored = row
        given, others = scored[: len(clinicians)], scored[len(clinicians) :]
        if not all(_has(own, "evaluation") for own in given):
            return
        category = _category(given[0], at(clinicians[0], number))
        yield Item(
            str(number),
            (_message(message, at(people[0], number)),),
            {p.name[:2]: _rating(own, at(p, number)) for p, own in zip(clinicians, given, strict=True)},
            text(given[0], "answer", at(clinicians[0], number)),
            by=category,
            groups=(category,) if category == "no_crisis" else (category, "any crisis"),
            published={
                name: str(amount(own, "evaluation", at(path, number)))
                for (name, path), own in zip(judges.items(), others, strict=True)
                if _has(own, "evaluation")
            },
        )

    return LabelledSet("bhh-ratings", rows, "rating", RATING, items(_together(files), rows, read))


def _sampled(folder: Path) -> Path:
    return folder / "data/llm_evaluator/sampled"


def _together(files: list[Path]) -> list[tuple[Any, ...]]:
    """The rows of files that have the same order, each with its counterparts."""
    lists = [read_list(path) for path in files]
    for path, own in zip(files, lists, strict=True):
        if len(own) != len(lists[0]):
            raise RunError(f"{path}: has {len(own)} rows; expected {len(lists[0])}, as {files[0].name} has")
    return list(zip(*lists, strict=True))


def _has(row: Any, name: str) -> bool:
    """Whether a row holds a value: NaN, which the files use for none, equals nothing."""
    value = row.get(name) if isinstance(row, dict) else None
    return value not in (None, "") and value == value


def _category(row: Any, where: str) -> str:
    given = text(row, "label", where)
    return one_of(NAMES.get(given, given), CATEGORIES, "label", where)


def _rating(row: Any, where: str) -> str:
    return one_of(f"{amount(row, 'evaluation', where):g}", RATING.labels, "evaluation", where)


def _message(row: Any, where: str) -> str:
    """The message: a list of texts, in one."""
    parts = row.get("inputs") if isinstance(row, dict) else None
    joined = " ".join(parts) if isinstance(parts, list) and all(isinstance(p, str) for p in parts) else parts
    return text({"inputs": joined}, "inputs", where)
