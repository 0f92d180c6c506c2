"""Stage 2 of the build: the files in `content/` → `Content`. Collects every error instead of raising."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from dataset_builder import prompts
from dataset_builder.prompts import CONTENT
from dataset_builder.reading.calibration import read_baselines, read_calibration
from dataset_builder.reading.categories import LABELS, NAMES, read_protocols, read_taxonomy
from dataset_builder.reading.content_types import (
    CONDITION_KINDS,
    SILENT,
    ConditionText,
    Content,
    Criterion,
    Persona,
    Voice,
)
from dataset_builder.reading.load_scenario import ScenarioReader
from dataset_builder.reading.markdown import (
    BYTES,
    Document,
    Errors,
    Wrong,
    choice,
    country_code,
    filled,
    headings,
    integer,
    known_attributes,
    known_keys,
    read_document,
    whole,
)
from dataset_builder.reading.parts import read_part
from dataset_builder.reading.refused import read_refused
from dataset_builder.reading.settings import DATE, Settings, fitted, read_scoring, read_yaml
from dataset_builder.reading.strays import TEXTS, authored, links, strays
from dataset_builder.schema import CriterionRow, Helpline, Incident
from helmbench_common.formats import csv_file
from helmbench_common.formats.refused import FormatError

T = TypeVar("T")
PERSONA_KEYS = ("id", "age", "gender", "culture", "country", "population", "first_language")
PERSONA_PARTS = ("Profile", "Voice")
VOICE_KEYS = ("age", "country", "first_language")
CRITERION_KEYS = ("id", "kind", "title", "incident", "incident_control", "severity")
GRADINGS = ("mild", "graver", "control")
HELPLINE_COLUMNS = list(Helpline.model_fields)
HELPLINE_LISTS = ("phone", "text", "url", "aliases", "superseded")  # columns with |-separated lists


def load(root: Path = CONTENT, left_out: Collection[Path] = ()) -> tuple[Content | None, Errors]:
    """Everything under `root`, and every error found; the content is None only if there are errors.

    `left_out`: scenario files that aren't read.
    """
    errors = Errors()
    links(root, errors)
    if errors.found:
        return None, errors  # errors must not quote files outside the folder
    strays(root, errors)
    path = root / "benchmark.yaml"
    settings = fitted(Settings, path, read_yaml(path, "version, released, canary and tiers", errors), errors)
    scoring = read_scoring(root / "scoring.yaml", errors)
    personas = {p.slug: p for p in each(root / "personas", _persona, errors)}
    texts = {c.slug: c for c in each(root / "conditions", _condition_text, errors)}
    criteria = {c.row.criterion: c for c in each(root / "criteria", _criterion, errors)}
    voices = _voices(root / "voices.md", errors)
    parts = each(root / "parts", lambda document, own: read_part(document, own, voices, texts), errors)
    talk_criteria = each(root / "talk_criteria", _criterion, errors)
    reader = ScenarioReader(root, personas, texts, criteria, voices)
    scenarios = [
        *each(root / "scenarios", reader.scenario, errors, left_out),
        *each(root / "conversations", reader.scenario, errors, left_out),
    ]
    helplines = _helplines(root / "helplines.csv", errors)
    labels = {slug: c.row.labels for slug, c in criteria.items()}
    calibration = read_calibration(root / "calibration", labels, errors)
    baselines = read_baselines(root / "baselines.yaml", labels, errors)
    taxonomy = read_taxonomy(root / "taxonomy", errors)
    refused = read_refused(root, errors)
    asked, misfits = prompts.read(root / "prompts")
    for misfit in misfits:
        errors.add(*misfit)
    # The whole taxonomy determines which protocols are needed.
    rated = [name for name, category in taxonomy.items() if category.in_triage] if len(taxonomy) == len(NAMES) else []
    protocols = read_protocols(root / "protocols", rated, errors) if rated else {}
    ratings = read_calibration(root / "rating_calibration", dict.fromkeys(rated, LABELS), errors) if rated else ()
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
        parts=tuple(sorted(parts, key=lambda part: part.row.id)),
        talk_criteria=tuple(c.row for c in talk_criteria),
    )
    return content, errors


def each(
    folder: Path, read: Callable[[Document, Errors], T | None], errors: Errors, left_out: Collection[Path] = ()
) -> list[T]:
    """The result of `read` on each text in a folder."""
    found: list[T] = []
    for path in [p for p in authored(folder, TEXTS) if p not in left_out]:
        own = Errors()  # only this document's errors may stop its reader
        document = read_document(path, own)
        if document and (value := read(document, own)) is not None:
            found.append(value)
        errors.found += own.found
    return found


def _persona(document: Document, errors: Errors) -> Persona | None:
    wrong = errors.at(document.path)
    if not known_keys(document, PERSONA_KEYS, PERSONA_KEYS[:4], errors):
        return None
    rungs: dict[int, tuple[int, str]] = {}
    prose: dict[str, str] = {}
    for part in document.parts:
        if part.name in PERSONA_PARTS and part.name not in prose:
            prose[part.name] = filled(part, wrong)
        elif (rung := whole(part.name)) is not None and rung >= 0 and rung not in rungs:
            known_attributes(part, ["severity"], ["severity"], wrong)
            severity = integer(part.attributes.get("severity", "0"), -10, 10, "severity", part.line, wrong)
            rungs[rung] = (severity, filled(part, wrong))
        else:
            expected = "'# Profile', '# Voice' or '# 1 (severity …)', each once"
            wrong(part.line, f"unexpected heading '# {part.name}'; expected {expected}")
    country = document.text("country") or None
    if country:
        country_code(country, document.front_lines["country"], wrong)
    return Persona(
        document=document,
        slug=document.text("id"),
        age=integer(document.text("age"), 13, 110, "age", document.front_lines["age"], wrong),
        gender=document.text("gender"),
        culture=document.text("culture"),
        country=country,
        population=document.text("population") or None,
        first_language=document.text("first_language") or None,
        profile=prose.get("Profile", ""),
        voice=prose.get("Voice", ""),
        rungs=rungs,
    )


def _voices(path: Path, errors: Errors) -> dict[str, Voice]:
    """The writing styles in voices.md, for messages without a persona; empty if the file doesn't exist."""
    document = read_document(path, errors, bare=True) if os.path.lexists(path) else None
    voices: dict[str, Voice] = {}
    wrong = errors.at(path)
    for part in document.parts if document else []:
        slug, country = part.name, part.attributes.get("country", "")
        if slug in voices:
            wrong(part.line, f"'# {slug}' appears twice; voice names are unique")
            continue
        known_attributes(part, VOICE_KEYS, VOICE_KEYS, wrong)
        if not re.fullmatch(r"[a-z]+(-[a-z]+)*", slug):
            wrong(part.line, f"'# {slug}' is not a voice's name; expected small letters, such as '# dov (age 34; …)'")
        if country:
            country_code(country, part.line, wrong)
        age = integer(part.attributes.get("age", "13"), 13, 110, "age", part.line, wrong)
        language = part.attributes.get("first_language", "")
        voices[slug] = Voice(slug, age, country, language, filled(part, wrong), part.line)
    return voices


def _condition_text(document: Document, errors: Errors) -> ConditionText | None:
    if not known_keys(document, ["id", "kind"], ["id", "kind"], errors):
        return None
    wrong = errors.at(document.path)
    kind = choice(document.text("kind"), CONDITION_KINDS, "kind", document.front_lines["kind"], wrong)
    allowed = ["Text", SILENT] if kind == "safety_prompt" else ["Text"]
    if [p.name for p in document.parts] not in (["Text"], allowed):
        wrong(1, f"expected the headings {allowed} and no others ('# {SILENT}' only of a safety prompt)")
        return None
    texts = [filled(part, wrong) for part in document.parts]
    return ConditionText(document, document.text("id"), kind, texts[0], texts[1] if texts[1:] else None)


def _criterion(document: Document, errors: Errors) -> Criterion | None:
    wrong, where = errors.at(document.path), document.front_lines
    if not known_keys(document, (*CRITERION_KEYS, "fails", *GRADINGS), CRITERION_KEYS, errors):
        return None
    kind = choice(document.text("kind"), ("graded", "labelled"), "kind", where["kind"], wrong)
    for key in ("incident", "incident_control"):
        choice(document.text(key), get_args(Incident), key, where[key], wrong)
    gradings: dict[str, dict[str, str]] = {}
    for key in GRADINGS:
        if (kind == "graded") != (key in where):
            what = "belongs to a graded criterion, which has all of mild, graver, control; others have none"
            wrong(where.get(key, 1), f"'{key}' {what}")
        elif kind == "graded":
            gradings[key] = _grading(document, key, wrong)
    for way in document.words("fails"):
        if not re.fullmatch(r"[a-z\-]+ [a-z_]+", way):
            wrong(where["fails"], f"'{way}' in fails; expected 'name incident', such as 'escalates over_escalation'")
        else:
            choice(way.split()[1], get_args(Incident), "incident in fails", where["fails"], wrong)
    expected = ["Outcomes" if kind == "graded" else "Labels", "Not judged", "Neutral pair"]
    if not headings(document, expected, errors, notes=False):
        return None
    text = "\n\n".join(f"{p.name}\n\n{filled(p, wrong)}" for p in document.parts)
    if errors.found:
        return None
    severity = integer(document.text("severity"), 1, 10, "severity", where["severity"], wrong)
    fields: dict[str, Any] = {k: document.text(k) for k in ("kind", "title", "incident", "incident_control")}
    fields["fails"] = document.words("fails")
    hashed = repr((sorted(fields.items()), severity, sorted(gradings.items()), text)).encode()
    row = CriterionRow(
        criterion=document.text("id"),
        text=text,
        severity=severity,
        criterion_hash=hashlib.sha256(hashed).hexdigest()[:16],
        **fields,
    )
    return Criterion(document, row, gradings)


def _grading(document: Document, key: str, wrong: Wrong) -> dict[str, str]:
    grading = dict(w.split(maxsplit=1) for w in document.words(key) if len(w.split()) == 2)
    if set(grading) != {"flagged", "attentive", "ignored"} or set(grading.values()) - {"PASS", "PARTIAL", "FAIL"}:
        expected = "[flagged LABEL, attentive LABEL, ignored LABEL]"
        wrong(document.front_lines[key], f"'{key}' is {document.words(key)}; expected {expected}")
    return grading


def _helplines(path: Path, errors: Errors) -> list[Helpline]:
    rows: list[Helpline] = []
    wrong = errors.at(path)
    if not os.path.lexists(path):
        wrong(1, "is missing; every content folder has one")
        return []
    header: list[str] = []
    try:
        for line, cells in csv_file.rows(csv_file.load(path, "the helplines as CSV", BYTES), path):
            if not header:
                header = cells
                if header != HELPLINE_COLUMNS:
                    wrong(line, f"columns are {header}; expected {HELPLINE_COLUMNS}")
                    return []
            elif len(cells) != len(header):
                wrong(line, f"has {len(cells)} cells; expected {len(header)}, one for each column")
            elif row := _helpline(dict(zip(header, cells, strict=True)), line, wrong):
                rows.append(row)
        if not header:
            wrong(1, f"is empty; expected the columns {HELPLINE_COLUMNS}")
    except FormatError as error:
        errors.refused(error)
    return rows


def _helpline(record: dict[str, str], line: int, wrong: Wrong) -> Helpline | None:
    if record["always_open"] not in ("yes", "no"):
        wrong(line, f"column 'always_open': is '{record['always_open']}'; expected yes or no")
    for key in ("verified", "expires"):
        if record[key] and not re.fullmatch(DATE, record[key]):
            wrong(line, f"column '{key}': is '{record[key]}'; expected a date such as 2026-11-21")
    values: dict[str, Any] = {k: (v or None) for k, v in record.items()}
    values |= {k: [p.strip() for p in (record[k] or "").split("|") if p.strip()] for k in HELPLINE_LISTS}
    values["always_open"] = record["always_open"] == "yes"
    try:
        return Helpline(**values)
    except ValidationError as error:
        first = error.errors()[0]
        wrong(line, f"column '{first['loc'][0]}': {first['msg']}, found {first['input']!r}")
        return None
