"""A sheet for human raters: `helmbench annotate export` writes one blinded page, `annotate import` reads its labels
back.

Blinded: the page holds no label, author, model, sample id or polarity, and its order follows from the seed and the
rater. Replies come in blocks of one criterion, so that a rater learns a rubric once; the blocks and what is in them are
shuffled.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from dataset_builder.release import Release
from helmbench_common import jsonl
from helmbench_common.files import holds, write_whole
from helmbench_common.formats.inert import escaped, inert
from helmbench_common.pages import environment, inlined
from judge.people.cases import Case, Cases
from judge.people.labels import AUTHORS, are_authors, records
from judge.replies.errors import SHOWN, RunError, run_error

TEMPLATES = Path(__file__).with_name("templates")
FORMAT = "helmbench-sheet-1"
SHUFFLES = 30
SEEDS = 100  # of the sheets in one file; for each, every case's code is made
MANY = 60  # replies; more than anybody reads with care in one go


class Imported(NamedTuple):
    """Labels with their ids restored. `missing`: on the sheet and not labelled; `unknown`: of no case, each with its
    line.
    """

    labels: list[dict[str, str]]
    missing: list[str]
    unknown: list[str]


def write_sheet(found: Cases, release: Release, out: Path, rater: str = "", seed: int = 0) -> str:
    """Writes the page; returns what to tell the user."""
    write_whole(out, page(found, release, rater, seed))
    criteria = len({c.criterion for c in found.cases})
    said = (
        f"{out}: {len(found.cases)} replies, {criteria} criteri{'on' if criteria == 1 else 'a'}; "
        "open it in a browser, no network is needed"
        + ("; --criterion and --sample make it shorter" if len(found.cases) > MANY else "")
    )
    kept = "It holds a model's replies in full, harmful ones too: give it to the rater only, and publish it nowhere."
    return f"{said}\n{kept}" if found.of_a_model else said


def next_step(source: Path, rater: str) -> str:
    """What to do with the file that the page's Download button gives. `source`: where the cases are from."""
    name = "-".join(re.findall(r"[^\W_]+", rater)) or "NAME"  # as the page's script names its file
    return (
        f"Its Download button saves labels-{name}.jsonl. Once you have that file:\n"
        f"  helmbench annotate import labels-{name}.jsonl --cases {source} --out {name}.jsonl"
    )


def sampled(found: Cases, size: int | None, seed: int) -> Cases:
    """The cases, or `size` of each criterion drawn by the seed.

    Raises:
        RunError: a size below 1.
    """
    if size is None:
        return found
    if size < 1:
        raise RunError(f"--sample {size}: expected 1 or more")
    return Cases(sample(found.cases, size, seed), found.of_a_model)


def write_labels(found: Imported, source: Path, out: Path) -> str:
    """Writes the labels of a sheet whose cases came from `source`; returns what to tell the user.

    Raises:
        RunError: `out` holds other labels.
    """
    lines = jsonl.lines(found.labels)
    # A rater's hours are in such a file: it is never written over by another's labels.
    if os.path.lexists(out) and not holds(out, lines):
        raise RunError(f"{out}: is there already, with other labels; name another file, or move it away")
    write_whole(out, lines)
    said = [
        f"{out}: {len(found.labels)} labels; {len(found.missing)} replies of the sheet without one; "
        f"{len(found.unknown)} labels of no case"
    ]
    if found.missing:
        said.append(f"without a label: {', '.join(found.missing[:SHOWN])}{' …' if len(found.missing) > SHOWN else ''}")
    said += [
        f"{where}: is of no case in {source}; was its text changed since the export, or is it another sheet's?"
        for where in found.unknown[:SHOWN]
    ]
    said.append(f"Compared with somebody else's: helmbench agreement {out} OTHER.jsonl")
    if are_authors(source):
        said.append(f"Compared with the authors':     helmbench agreement {out} {AUTHORS}")
    return "\n".join(said)


def sample(cases: list[Case], size: int, seed: int) -> list[Case]:
    """At most `size` cases of each criterion, the same for every rater."""
    draw = random.Random(f"{seed} sample")
    return [
        c
        for _, own in groupby(sorted(cases, key=lambda c: (c.criterion, c.id)), key=lambda c: c.criterion)
        for c in _drawn(draw, list(own), size)
    ]


def _drawn(draw: random.Random, cases: list[Case], size: int) -> list[Case]:
    return draw.sample(cases, min(size, len(cases)))


def order(cases: list[Case], rater: str, seed: int) -> list[Case]:
    """Blocks of one criterion, shuffled, and shuffled within; each rater has an order of their own."""
    draw = random.Random(f"{seed} {rater}".encode("utf-8", "surrogatepass"))  # as of the text itself
    ordered = sorted(cases, key=lambda c: (c.criterion, c.code(seed)))
    blocks = [list(own) for _, own in groupby(ordered, key=lambda c: c.criterion)]
    draw.shuffle(blocks)
    # Two replies to one message side by side invite a comparison; of some shuffles the one with the fewest such
    # neighbours is taken.
    shuffles = [[draw.sample(block, len(block)) for _ in range(SHUFFLES)] for block in blocks]
    return [case for tries in shuffles for case in min(tries, key=_neighbours)]


def _neighbours(cases: list[Case]) -> int:
    return sum(a.said[-1] == b.said[-1] for a, b in pairwise(cases))


def page(found: Cases, release: Release, rater: str = "", seed: int = 0) -> str:
    """The sheet: one HTML page that fetches nothing, with the cases as data in it."""
    ordered = order(found.cases, rater, seed)
    items = [_shown(c, release, seed) for c in ordered]
    criteria = {name: _criterion(name, release) for name, _ in groupby(c.criterion for c in ordered)}
    identity = hashlib.sha256(json.dumps([FORMAT, rater, seed, [i["item"] for i in items]]).encode()).hexdigest()[:16]
    data = {"format": FORMAT, "sheet": identity, "seed": seed, "rater": rater, "criteria": criteria, "items": items}
    return (
        environment(TEMPLATES)
        .get_template("annotate.html.j2")
        .render(
            replies=len(items),
            criteria=len(criteria),
            of_a_model=found.of_a_model,
            asks_name=not rater,
            **inlined(TEMPLATES / "annotate.css", TEMPLATES / "annotate.js"),
            data=Markup(_inside_html(data)),
        )
    )


def _shown(case: Case, release: Release, seed: int) -> dict[str, Any]:
    """What a rater sees of a case."""
    said = [inert(s) for s in case.said]
    facts = [inert(fact) for fact in case.facts(release)]
    return {
        "item": case.code(seed),
        "criterion": case.criterion,
        "said": said,
        "reply": inert(case.reply),
        "facts": facts,
    }


def _criterion(name: str, release: Release) -> dict[str, Any]:
    criterion = release.criteria[name]
    return {"title": inert(criterion.title), "labels": criterion.labels, "text": blocks(inert(criterion.text))}


def blocks(text: str) -> list[dict[str, Any]]:
    """A criterion's text as headings, paragraphs and lists, for a page that may read no Markdown."""
    found: list[dict[str, Any]] = []
    for block in filter(None, (b.strip() for b in text.split("\n\n"))):
        lines = block.split("\n")
        if all(line.startswith("- ") for line in lines):
            found.append({"list": [line[2:] for line in lines]})
        elif len(lines) == 1 and len(block.split()) <= 3 and block[-1].isalpha():
            found.append({"heading": block})
        else:
            found.append({"text": block})
    return found


def restore(path: Path, cases: list[Case], release: Release, rater: str = "") -> Imported:
    """The labels of a sheet's file with the ids of the cases they were given to.

    Raises:
        RunError: damaged lines, a label outside the criterion's, an item given twice, no line at all; all named at
            once. Lines of more seeds than anybody's sheets have.
    """
    problems: list[str] = []
    codes: dict[int, dict[str, Case]] = {}
    labels: list[dict[str, str]] = []
    missing: list[str] = []
    unknown: list[str] = []
    seen: dict[str, int] = {}
    for number, record in records(path, problems):
        where = f"{path}:{number}"
        item, seed, label = record.get("item"), record.get("seed"), record.get("label")
        if not isinstance(item, str) or not isinstance(seed, int) or "label" not in record:
            problems.append(
                f'{where}: is no line of a sheet; expected {{"item", "label", "seed", …}} as its Download button writes'
            )
            continue
        if item in seen:
            problems.append(f"{where}: item {item} stands at line {seen[item]} already")
            continue
        seen[item] = number
        if seed not in codes:
            if len(codes) == SEEDS:
                raise RunError(
                    f"{where}: is of a seed beside {SEEDS} others; expected the labels of a sheet, which has one"
                )
            codes[seed] = {c.code(seed): c for c in cases}
        case = codes[seed].get(item)
        if case is None:
            unknown += [where] if label is not None else []
        elif label is None:
            missing.append(f"{case.id} ({case.criterion})")
        elif label not in (allowed := release.criteria[case.criterion].labels):
            problems.append(f"{where}: label is {label!r}; expected one of {', '.join(allowed)}")
        else:
            who, note = rater or str(record.get("rater") or ""), str(record.get("note") or "")
            labels.append(
                {
                    "id": case.id,
                    "criterion": case.criterion,
                    "label": label,
                    **({"rater": who} if who else {}),
                    **({"note": note} if note else {}),
                }
            )
    if problems:
        raise run_error(problems)
    return Imported(sorted(labels, key=lambda r: (r["criterion"], r["id"])), sorted(missing), unknown)


def _inside_html(data: dict[str, Any]) -> str:
    """JSON that no text in it can end: a script element ends at `</script`, whatever stands around it."""
    text = escaped(json.dumps(data, ensure_ascii=False))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
