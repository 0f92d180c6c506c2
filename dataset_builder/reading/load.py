"""Stage 2 of the build: the files of `content/` → `Content`. Collects every error; raises none for a bad file."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from dataset_builder import prompts
from dataset_builder.prompts import CONTENT, Prompts
from dataset_builder.reading.baselines import read_baselines
from dataset_builder.reading.calibration import read_calibration
from dataset_builder.reading.content_types import CONDITION_KINDS, SILENT, ConditionText, Content, Criterion, Persona
from dataset_builder.reading.fields import choice, country_code, filled, integer, known_attributes, known_keys, whole
from dataset_builder.reading.load_scenario import ScenarioReader
from dataset_builder.reading.markdown import BYTES, Document, Errors, read_document
from dataset_builder.reading.protocols import LABELS, read_protocols
from dataset_builder.reading.refused import read_refused
from dataset_builder.reading.settings import DATE, read_scoring, read_settings
from dataset_builder.reading.strays import TEXTS, authored, links, strays
from dataset_builder.reading.taxonomy import NAMES, read_taxonomy
from dataset_builder.reading.voices import read_voices
from dataset_builder.schema import (
    CalibrationRow,
    Category,
    CrisisCategory,
    CriterionRow,
    Helpline,
    Incident,
    ProtocolRow,
)
from helmbench_common.formats import csv_file
from helmbench_common.formats.refused import FormatError

T = TypeVar("T")
PERSONA_KEYS = {"id", "age", "gender", "culture", "country", "population", "first_language"}
PERSONA_PARTS = ("Profile", "Voice")
CRITERION_KEYS = {
    "id",
    "kind",
    "title",
    "incident",
    "incident_control",
    "severity",
    "fails",
    "mild",
    "graver",
    "control",
}
HELPLINE_COLUMNS = list(Helpline.model_fields)
HELPLINE_LISTS = ("phone", "text", "url", "aliases", "superseded")  # of these columns a cell holds several, parted by |


def load(root: Path = CONTENT) -> tuple[Content | None, Errors]:
    """Everything under `root`, and every error found; the content is None only when there are errors."""
    errors = Errors()
    links(root, errors)
    if errors.found:
        return None, errors  # what lies elsewhere isn't even quoted in an error
    strays(root, errors)
    settings = read_settings(root / "benchmark.yaml", errors)
    scoring = read_scoring(root / "scoring.yaml", errors)
    personas = {p.slug: p for p in _each(root / "personas", _persona, errors)}
    texts = {c.slug: c for c in _each(root / "conditions", _condition_text, errors)}
    criteria = {c.row.criterion: c for c in _each(root / "criteria", _criterion, errors)}
    voices = read_voices(root / "voices.md", errors)
    reader = ScenarioReader(root, personas, texts, criteria, voices)
    scenarios = [
        *_each(root / "scenarios", reader.scenario, errors),
        *_each(root / "conversations", reader.conversation, errors),
    ]
    helplines = _helplines(root / "helplines.csv", errors)
    labels = {slug: c.row.labels for slug, c in criteria.items()}
    calibration = read_calibration(root / "calibration", labels, errors)
    baselines = read_baselines(root / "baselines.yaml", labels, errors)
    taxonomy = read_taxonomy(root / "taxonomy", errors)
    refused = read_refused(root, errors)
    asked = _prompts(root / "prompts", errors)
    protocols, ratings = _rating(root, taxonomy, errors)
    if errors.found or settings is None:
        return None, errors
    content = Content(
        root=root,
        version=settings.version,
        released=settings.released,
        canary=settings.canary,
        tiers=settings.tiers.model_dump(),
        scoring=scoring,
        baselines=baselines,
        personas=personas,
        voices=voices,
        conditions=texts,
        criteria=criteria,
        scenarios=tuple(sorted(scenarios, key=lambda s: s.id)),
        helplines=tuple(helplines),
        calibration=calibration,
        taxonomy=taxonomy,
        prompts=asked,
        protocols=protocols,
        rating_calibration=ratings,
        refused=refused,
    )
    return content, errors


def _rating(
    root: Path, taxonomy: dict[CrisisCategory, Category], errors: Errors
) -> tuple[dict[CrisisCategory, ProtocolRow], tuple[CalibrationRow, ...]]:
    """The protocols and the replies written to be rated; none where the taxonomy can't be read whole: nobody knows then
    which protocols it needs.
    """
    wanted = [name for name, category in taxonomy.items() if category.in_triage]
    if not wanted or len(taxonomy) < len(NAMES):
        return {}, ()
    protocols = read_protocols(root / "protocols", wanted, errors)
    return protocols, read_calibration(root / "rating_calibration", dict.fromkeys(wanted, LABELS), errors)


def _prompts(folder: Path, errors: Errors) -> Prompts:
    found, misfits = prompts.read(folder)
    for misfit in misfits:
        errors.add(*misfit)
    return found


def _each(folder: Path, read: Callable[[Document, Errors], T | None], errors: Errors) -> list[T]:
    found: list[T] = []
    for path in authored(folder, TEXTS):
        own = Errors()  # a reader may stop at its own document's errors, not at another's
        document = read_document(path, own)
        if document and (value := read(document, own)) is not None:
            found.append(value)
        errors.found += own.found
    return found


def _persona(document: Document, errors: Errors) -> Persona | None:
    path = document.path
    if not known_keys(document, PERSONA_KEYS, ["id", "age", "gender", "culture"], errors):
        return None
    rungs: dict[int, tuple[int, str]] = {}
    prose: dict[str, str] = {}
    for part in document.parts:
        if part.name in PERSONA_PARTS and part.name not in prose:
            prose[part.name] = filled(part, path, errors)
        elif (rung := whole(part.name)) is not None and rung >= 0 and rung not in rungs:
            known_attributes(part, {"severity"}, ["severity"], path, errors)
            severity = integer(part.attributes.get("severity", "0"), -10, 10, "severity", path, part.line, errors)
            rungs[rung] = (severity, filled(part, path, errors))
        else:
            errors.add(
                path,
                part.line,
                f"unexpected heading '# {part.name}'; expected '# Profile', '# Voice' or '# 1 (severity …)', each once",
            )
    age = integer(document.text("age"), 13, 110, "age", path, document.front_lines["age"], errors)
    country = document.text("country") or None
    if country:
        country_code(country, path, document.front_lines["country"], errors)
    return Persona(document, document.text("id"), age, document.text("gender"), document.text("culture"), country,
                   document.text("population") or None, document.text("first_language") or None,
                   prose.get("Profile", ""), prose.get("Voice", ""), rungs)  # fmt: skip


def _condition_text(document: Document, errors: Errors) -> ConditionText | None:
    if not known_keys(document, {"id", "kind"}, ["id", "kind"], errors):
        return None
    path = document.path
    kind = choice(document.text("kind"), CONDITION_KINDS, "kind", path, document.front_lines["kind"], errors)
    allowed = ["Text", SILENT] if kind == "safety_prompt" else ["Text"]
    if [p.name for p in document.parts] not in (["Text"], allowed):
        errors.add(path, 1, f"expected the headings {allowed} and no others ('# {SILENT}' only of a safety prompt)")
        return None
    texts = [filled(part, path, errors) for part in document.parts]
    return ConditionText(document, document.text("id"), kind, texts[0], texts[1] if texts[1:] else None)


def _criterion(document: Document, errors: Errors) -> Criterion | None:
    path = document.path
    required = ["id", "kind", "title", "incident", "incident_control", "severity"]
    if not known_keys(document, CRITERION_KEYS, required, errors):
        return None
    where = document.front_lines
    kind = choice(document.text("kind"), ("graded", "labelled"), "kind", path, where["kind"], errors)
    for key in ("incident", "incident_control"):
        choice(document.text(key), get_args(Incident), key, path, where[key], errors)
    gradings = _gradings(document, kind, errors)
    _ways_to_fail(document, errors)
    expected = ["Outcomes" if kind == "graded" else "Labels", "Not judged", "Neutral pair"]
    if [p.name for p in document.parts] != expected:
        errors.add(path, 1, f"headings are {[p.name for p in document.parts]}; expected {expected}, in this order")
        return None
    text = "\n\n".join(f"{p.name}\n\n{filled(p, path, errors)}" for p in document.parts)
    if errors.found:
        return None
    severity = integer(document.text("severity"), 1, 10, "severity", path, where["severity"], errors)
    fields: dict[str, Any] = {k: document.text(k) for k in ("kind", "title", "incident", "incident_control")}
    fields["fails"] = document.words("fails")
    digest = hashlib.sha256(
        repr((sorted(fields.items()), severity, sorted(gradings.items()), text)).encode()
    ).hexdigest()
    return Criterion(
        document,
        CriterionRow(criterion=document.text("id"), text=text, severity=severity, criterion_hash=digest[:16], **fields),
        gradings,
    )


def _gradings(document: Document, kind: str, errors: Errors) -> dict[str, dict[str, str]]:
    gradings: dict[str, dict[str, str]] = {}
    for key in ("mild", "graver", "control"):
        if (kind == "graded") != (key in document.front):
            errors.add(
                document.path,
                document.front_lines.get(key, 1),
                f"'{key}' belongs to a graded criterion, which has all of mild, graver, control; others have none",
            )
        elif kind == "graded":
            gradings[key] = _grading(document, key, errors)
    return gradings


def _ways_to_fail(document: Document, errors: Errors) -> None:
    for way in document.words("fails"):
        path, line = document.path, document.front_lines["fails"]
        if not re.fullmatch(r"[a-z\-]+ [a-z_]+", way):
            errors.add(path, line, f"'{way}' in fails; expected 'name incident', such as 'escalates over_escalation'")
        else:
            choice(way.split()[1], get_args(Incident), "incident in fails", path, line, errors)


def _grading(document: Document, key: str, errors: Errors) -> dict[str, str]:
    grading = dict(w.split(maxsplit=1) for w in document.words(key) if len(w.split()) == 2)
    if set(grading) != {"flagged", "attentive", "ignored"} or set(grading.values()) - {"PASS", "PARTIAL", "FAIL"}:
        errors.add(
            document.path,
            document.front_lines[key],
            f"'{key}' is {document.words(key)}; expected [flagged LABEL, attentive LABEL, ignored LABEL]",
        )
    return grading


def _helplines(path: Path, errors: Errors) -> list[Helpline]:
    rows: list[Helpline] = []
    if not os.path.lexists(path):
        errors.add(path, 1, "is missing; every content folder has one")
        return []
    header: list[str] = []
    try:
        for line, cells in csv_file.rows(csv_file.load(path, "the helplines as CSV", BYTES), path):
            if not header:
                header = cells
                if header != HELPLINE_COLUMNS:
                    errors.add(path, line, f"columns are {header}; expected {HELPLINE_COLUMNS}")
                    return []
            elif len(cells) != len(header):
                errors.add(path, line, f"has {len(cells)} cells; expected {len(header)}, one for each column")
            elif row := _helpline(dict(zip(header, cells, strict=True)), path, line, errors):
                rows.append(row)
        if not header:
            errors.add(path, 1, f"is empty; expected the columns {HELPLINE_COLUMNS}")
    except FormatError as error:
        errors.refused(error)
    return rows


def _helpline(record: dict[str, str], path: Path, line: int, errors: Errors) -> Helpline | None:
    if record["always_open"] not in ("yes", "no"):
        errors.add(path, line, f"column 'always_open': is '{record['always_open']}'; expected yes or no")
    for key in ("verified", "expires"):
        if record[key] and not re.fullmatch(DATE, record[key]):
            errors.add(path, line, f"column '{key}': is '{record[key]}'; expected a date such as 2026-11-21")
    values: dict[str, Any] = {k: (v or None) for k, v in record.items()}
    values |= {k: [p.strip() for p in (record[k] or "").split("|") if p.strip()] for k in HELPLINE_LISTS}
    values["always_open"] = record["always_open"] == "yes"
    try:
        return Helpline(**values)
    except ValidationError as error:
        first = error.errors()[0]
        errors.add(path, line, f"column '{first['loc'][0]}': {first['msg']}, found {first['input']!r}")
        return None
