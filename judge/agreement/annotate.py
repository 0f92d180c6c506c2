"""A sheet for human raters: `helmbench annotate export` writes one blinded page, `annotate import` reads its labels.

The page contains no label, author, model, sample id or polarity; its order depends on the seed and the rater. Replies
come in blocks of one criterion, so that a rater learns each rubric once; blocks and their contents are shuffled.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from dataset_builder.release import Release
from helmbench_common import jsonl
from helmbench_common.files import write_whole
from helmbench_common.formats.inert import escaped, inert
from helmbench_common.pages import environment, inlined
from judge.agreement.cases import Case, Cases
from judge.agreement.labels import AUTHORS, are_authors, records, write_once
from judge.replies.schema import SHOWN, run_error

TEMPLATES = Path(__file__).with_name("templates")
FORMAT = "helmbench-sheet-1"
SHUFFLES = 30
MANY = 60  # replies: more than one person reads carefully in one sitting


class Imported(NamedTuple):
    """Labels with their ids restored. `missing`: cases on the sheet without a label; `unknown`: lines whose label
    matches no case.
    """

    labels: list[dict[str, str]]
    missing: list[str]
    unknown: list[str]


def sampled(found: Cases, size: int | None, seed: int) -> Cases:
    """Returns all cases, or at most `size` per criterion, sampled with the seed; every rater gets the same sample."""
    if size is None:
        return found
    draw, drawn = random.Random(f"{seed} sample"), []
    ordered = sorted(found.cases, key=lambda c: (c.criterion, c.id))
    for _, group in groupby(ordered, key=lambda c: c.criterion):
        own = list(group)
        drawn += draw.sample(own, min(size, len(own)))
    return Cases(drawn, found.of_a_model)


def write_sheet(found: Cases, release: Release, source: Path, out: Path, rater: str = "", seed: int = 0) -> str:
    """Writes the page of cases from `source`; returns a message for the user, with the next step."""
    write_whole(out, page(found, release, rater, seed))
    criteria = len({c.criterion for c in found.cases})
    name = "-".join(re.findall(r"[^\W_]+", rater)) or "NAME"  # as the page's script names its file
    said = [
        f"{out}: {len(found.cases)} replies, {criteria} criteri{'on' if criteria == 1 else 'a'}; open it in a browser, "
        "it works offline" + ("; --criterion and --sample make it shorter" if len(found.cases) > MANY else "")
    ]
    if found.of_a_model:
        kept = "give it to the rater only, and don't publish it."
        said.append(f"It holds a model's full replies, harmful ones included: {kept}")
    said.append(f"Its Download button saves labels-{name}.jsonl. Once you have that file:")
    said.append(f"  helmbench annotate import labels-{name}.jsonl --cases {source} --out {name}.jsonl")
    return "\n".join(said)


def write_labels(found: Imported, source: Path, out: Path) -> str:
    """Writes the labels of a sheet whose cases came from `source`; returns a message for the user."""
    write_once(out, jsonl.lines(found.labels))
    missing = ", ".join(found.missing[:SHOWN]) + (" …" if len(found.missing) > SHOWN else "")
    return "\n".join(
        [
            f"{out}: {len(found.labels)} labels; {len(found.missing)} replies of the sheet without a label; "
            f"{len(found.unknown)} labels that match no case",
            *([f"without a label: {missing}"] if missing else []),
            *(
                f"{where}: does not match any case in {source} (was the text edited, or is this another sheet?)"
                for where in found.unknown[:SHOWN]
            ),
            f"To compare with another rater:  helmbench agreement {out} OTHER.jsonl",
            *([f"To compare with the authors:    helmbench agreement {out} {AUTHORS}"] if are_authors(source) else []),
        ]
    )


def order(cases: list[Case], rater: str, seed: int) -> list[Case]:
    """Shuffles blocks of one criterion, and the cases in each; every rater gets a different order."""
    draw = random.Random(f"{seed} {rater}".encode("utf-8", "surrogatepass"))
    ordered = sorted(cases, key=lambda c: (c.criterion, c.code(seed)))
    by_criterion = [list(own) for _, own in groupby(ordered, key=lambda c: c.criterion)]
    draw.shuffle(by_criterion)

    def neighbors(cases: list[Case]) -> int:
        return sum(a.said[-1] == b.said[-1] for a, b in pairwise(cases))

    # Two replies to one message side by side invite a comparison; of several shuffles, take the one with the fewest.
    shuffles = [[draw.sample(block, len(block)) for _ in range(SHUFFLES)] for block in by_criterion]
    return [case for tries in shuffles for case in min(tries, key=neighbors)]


def page(found: Cases, release: Release, rater: str = "", seed: int = 0) -> str:
    """The sheet: one self-contained HTML page with the cases embedded as data."""
    ordered = order(found.cases, rater, seed)
    criteria = {
        name: {"title": inert(own.title), "labels": own.labels, "text": blocks(inert(own.text))}
        for name, own in release.criteria.items()
        if any(case.criterion == name for case in ordered)
    }
    items = [
        {
            "item": case.code(seed),
            "criterion": case.criterion,
            "said": [inert(text) for text in case.said],
            "reply": inert(case.reply),
            "facts": [inert(fact) for fact in case.facts(release)],
        }
        for case in ordered
    ]
    identity = hashlib.sha256(json.dumps([FORMAT, rater, seed, [i["item"] for i in items]]).encode()).hexdigest()[:16]
    data = {"format": FORMAT, "sheet": identity, "seed": seed, "rater": rater, "criteria": criteria, "items": items}
    # No text in the data may close the script element, as `</script` would.
    in_html = escaped(json.dumps(data, ensure_ascii=False))
    in_html = in_html.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return (
        environment(TEMPLATES)
        .get_template("annotate.html.j2")
        .render(
            replies=len(items),
            criteria=len(criteria),
            of_a_model=found.of_a_model,
            asks_name=not rater,
            **inlined(TEMPLATES / "annotate.css", TEMPLATES / "annotate.js"),
            data=Markup(in_html),
        )
    )


def blocks(text: str) -> list[dict[str, Any]]:
    """Splits a criterion's text into headings, paragraphs and lists, for a page without a Markdown renderer."""
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
    """Reads the labels of a sheet's file and restores the ids of their cases."""
    problems: list[str] = []
    found = Imported([], [], [])
    by_code: dict[int, dict[str, Case]] = {}
    seen: dict[str, int] = {}
    for number, record in records(path, problems):
        where = f"{path}:{number}"
        item, seed, label = record.get("item"), record.get("seed"), record.get("label")
        if not isinstance(item, str) or not isinstance(seed, int) or "label" not in record:
            problems.append(f"{where}: not a label-sheet row; expected the file saved by the sheet's Download button")
            continue
        if item in seen:
            problems.append(f"{where}: duplicate item {item}, first at line {seen[item]}")
            continue
        seen[item] = number
        if seed not in by_code:
            by_code[seed] = {c.code(seed): c for c in cases}
        case = by_code[seed].get(item)
        if case is None:
            found.unknown.extend([where] if label is not None else [])
        elif label is None:
            found.missing.append(f"{case.id} ({case.criterion})")
        elif label not in (allowed := release.criteria[case.criterion].labels):
            problems.append(f"{where}: label is {label!r}; expected one of {', '.join(allowed)}")
        else:
            extra = {"rater": rater or str(record.get("rater") or ""), "note": str(record.get("note") or "")}
            own = {"id": case.id, "criterion": case.criterion, "label": label, **extra}
            found.labels.append({name: value for name, value in own.items() if value})
    if problems:
        raise run_error(problems)
    found.labels.sort(key=lambda r: (r["criterion"], r["id"]))
    found.missing.sort()
    return found
