"""A validation in words and columns, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from helmbench_common.tables import columns
from judge.calibration.validations import Figures, Validation
from judge.wording import NONE, coefficient, percent

MEANT = {
    "mean": "the mean of the people's ratings, rounded (half a step up)",
    "settled": "the label that the raters settled on together",
    "majority": "the label that more than half of an item's raters gave",
}


def text(v: Validation) -> str:
    """All that `helmbench validate` prints, 95 % intervals in brackets."""
    blocks = [
        _head(v),
        _agreement(v),
        _groups(v),
        _classes(v),
        _confusion(v),
        f"Widest disagreements, by id: {', '.join(v.widest) or 'none'}",
        "\n".join(f"- {note}" for note in v.notes),
        _reasons(v),
    ]
    return "\n\n".join(b for b in blocks if b) + "\n"


def _head(v: Validation) -> str:
    asked = f"prompt {v.prompt_hash}" if v.prompt_hash else "no model asked"
    given = ", ".join(f"{label}: {count}" for label, count in v.answers.items())
    return (
        f"# {v.judge} against people: {v.set}, rows {v.rows} ({asked}, dataset {v.dataset})\n\n"
        f"{v.items} items, {v.decided} decided by the judge, {_unscored(v)} left unscored. "
        f"Its labels: {given or 'none'}.\n"
        f"κ is {v.statistic}, with {MEANT[v.reference]}; people among themselves: {v.among}."
    )


def _agreement(v: Validation) -> str:
    rows = [["judge with people", str(v.kappa.n), coefficient(v.kappa)]]
    rows += [[f"judge with {name}", str(k.n), coefficient(k)] for name, k in v.raters.items()]
    rows += [["people among themselves", str(v.people.n), coefficient(v.people)]]
    rows += [[f"published judge {name}", str(k.n), coefficient(k)] for name, k in v.published.items()]
    if v.coarse:
        rows += [["on fewer labels: judge with people", str(v.coarse.kappa.n), coefficient(v.coarse.kappa)]]
        rows += [["on fewer labels: people", str(v.coarse.people.n), coefficient(v.coarse.people)]]
    if v.between:
        rows += [[f"pass {n} with people", str(p.kappa.n), coefficient(p.kappa)] for n, p in enumerate(v.passes, 1)]
        rows += [[f"the {len(v.passes)} passes among themselves", str(v.between.n), coefficient(v.between)]]
    return columns(["agreement", "items", "κ"], rows)


def _groups(v: Validation) -> str:
    if not v.groups:
        return ""
    judges = list(v.published)
    head = ["of these", "items", "decided", "left unscored", "κ", "people", *judges]
    return columns(head, [_group(name, figures, judges) for name, figures in v.groups.items()])


def _group(name: str, f: Figures, judges: list[str]) -> list[str]:
    published = [coefficient(f.published.get(judge)) for judge in judges]
    figures = [str(f.items), str(f.decided), _unscored(f), coefficient(f.kappa), coefficient(f.people)]
    return [name, *figures, *published]


def _unscored(f: Figures) -> str:
    return percent(f.unscored)


def _classes(v: Validation) -> str:
    rows = [
        [label, str(k.people), str(k.judge), coefficient(k.recall), coefficient(k.precision)]
        for label, k in v.per_class.items()
    ]
    return columns(["class", "people", "judge", "found", "right of those called so"], rows)


def _confusion(v: Validation) -> str:
    k = v.confusion
    rows = [[label, *map(str, row), str(n)] for label, row, n in zip(k.labels, k.table, k.unscored, strict=True)]
    return columns(["rows: people", *k.labels, "not decided"], rows)


def _reasons(v: Validation) -> str:
    """Why a figure is missing, each reason once."""
    named: Mapping[str, Figures] = {"all": v, **v.groups}
    found = {
        f"{NONE} κ of {name}: {figures.kappa.reason}": None
        for name, figures in named.items()
        if figures.kappa.value is None and figures.kappa.reason
    }
    return "\n".join(found)
