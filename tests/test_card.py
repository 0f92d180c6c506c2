"""What a build says of itself: the card's numbers, its sections and enums, croissant.json read by mlcroissant,
CITATION.cff by its schema.
"""

from __future__ import annotations

import hashlib
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import jsonschema
import mlcroissant
import pyarrow.parquet as pq
import pytest
import yaml
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard
from packaging.licenses import canonicalize_license_expression

from dataset_builder.release import CONFIGS, Release, parquet_path
from dataset_builder.schema import BEHAVIORS, About, Tier
from dataset_builder.writing.croissant import MANY, RAI, section
from judge.wording import HEADLINES

# mlcroissant's own use of rdflib and pandas
pytestmark = [
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:mlcroissant"),
]
ROOT = Path(__file__).resolve().parents[1]
CARD = (ROOT / "DATASET_CARD.md").read_text(encoding="utf-8")
WORDS = " ".join(CARD.split())  # without the line breaks
# Some of the Hub's dataset tasks (huggingface.js, packages/tasks/src/pipelines.ts, read 2026-11-23). Its creators and
# sizes are those that `datasets` ships.
TEXT_TASKS = {
    "text-classification",
    "question-answering",
    "text-generation",
    "summarization",
    "text-retrieval",
    "other",
}
FINER_TASKS = {"multi-class-classification", "multi-label-classification", "dialogue-generation", "language-modeling"}
HUB = {
    name: json.loads((resources.files("datasets.utils.resources") / f"{name}.json").read_text(encoding="utf-8"))
    for name in ("creators", "size_categories")
}
EVAL_YAML = jsonschema.Draft202012Validator(
    json.loads((ROOT / "tests" / "schemas" / "hub-eval.json").read_text(encoding="utf-8"))
)
TEMPLATE = Path(DatasetCard.default_template_path).read_text(encoding="utf-8")


@pytest.fixture
def card(release: Release) -> str:
    return (release.path / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def front(card: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(card.split("---\n")[1])
    return values


def body(card: str) -> str:
    return card.split("---\n", 2)[2]


def test_the_committed_card_is_the_builds(card: str) -> None:
    """DATASET_CARD.md is the body of the build's README.md, byte for byte: `make generated` writes it."""
    assert body(card) == CARD


def rows_of(table: str) -> dict[str, str]:
    """First cell → last number of every row of the card's tables under a header."""
    block = CARD[CARD.index(table) :].split("\n\n", 1)[0]
    return {
        cells[1].strip().strip("`"): re.findall(r"\d+", cells[-2] if cells[-2].strip().isdigit() else cells[2])[0]
        for cells in (line.split("|") for line in block.splitlines()[2:])
    }


def test_every_number_is_the_manifests(release: Release) -> None:
    """Tables and the opening's counts, each counted again from the built rows, and the hashes, version and canary."""
    manifest = release.manifest
    assert rows_of("| config |") == {config: str(manifest.rows[config]) for config in CONFIGS}
    assert rows_of("| tier |") == {tier: str(manifest.tiers[tier]) for tier in get_args(Tier)}
    assert rows_of("| behavior |") == {behavior: str(manifest.behaviors.get(behavior, 0)) for behavior in BEHAVIORS}
    rows = list(release.rows.values())
    crisis = sum(r.severity > 0 for r in rows)
    people = {r.persona for r in rows if r.persona}
    countries = {r.country for r in rows if r.country and r.persona}
    messages = {r.message_key for r in rows}
    alone = list(release.messages.values())
    for statement in (
        f"Version {manifest.version}: {len(manifest.scenarios)} scenarios, {len(messages)} distinct messages, "
        f"{len(rows)} samples ({crisis} crisis, {len(rows) - crisis} control), {len(people)} invented people in "
        f"{len(countries)} countries.",
        f"{manifest.rows['conversations']} samples are conversations",
        f"{len(alone)} of the messages also appear on their own",
        f"{sum(m.polarity == 'crisis' for m in alone)} of these belong to one of six kinds of crisis",
        f"For {sum(m.country is not None for m in alone)} of them the model is told",
        f"{sum(m.signal == 'indirect' for m in alone)} crises have to be inferred",
        f"{len({m.probe for m in alone if m.probe})} pairs ask the same question",
    ):
        assert statement in WORDS
    for value in (
        f"`score_hash` `{manifest.score_hash}`",
        f"`prose_hash` `{manifest.prose_hash}`",
        f"`messages_hash` `{manifest.messages_hash}`",
        f'revision="v{manifest.version}"',
        manifest.canary,
    ):
        assert value in CARD


def test_the_card_has_the_sections_of_the_hubs_template() -> None:
    """Every heading of huggingface_hub's own template that asks for something we can say, in its order."""
    wanted = [h for h in re.findall(r"(?m)^(##+ .*)$", TEMPLATE) if h != "## More Information [optional]"]
    wanted = [h.replace(" [optional]", "") for h in wanted]
    ours = re.findall(r"(?m)^(##+ .*)$", CARD)
    assert [h for h in ours if h in wanted] == wanted


def test_no_placeholder_is_left() -> None:
    """A card says what is so, or nothing."""
    left = ["{{", "}}", "[More Information Needed]", "TODO", "TBD", "lorem", "<org>", "your-org", "example.com"]
    for page in ("DATASET_CARD.md", "CITATION.cff", "CHANGELOG.md"):
        text = re.sub(r"```bibtex.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
        assert [word for word in left if word.lower() in text.lower()] == [], page


SAID = {
    "no clinical review": r"No clinician has reviewed this release",
    "distressing content": r"talk about suicide, self-harm and despair",
    "where to find help": r"findahelpline\.com",
    "no training": r"\*\*No training\.\*\*",
    "no screening or treatment": r"No screening, diagnosis or treatment",
    "no claim of safety": r"No claim of safety",
    "what may be in it": r"no real person's words, name or data",
    "that models wrote it": r"Language models working for the > project wrote and labeled",
    "that a clinician may disagree": r"It doesn't show that a clinician would agree\.",
    "the canary": r"HELMBENCH CANARY [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
}


def test_the_card_says_what_nobody_may_miss() -> None:
    """Warnings, limits, help and origin."""
    assert [what for what, pattern in SAID.items() if not re.search(pattern, WORDS)] == []


def test_the_front_matter_uses_the_hubs_words(front: dict[str, Any], release: Release) -> None:
    """Known keys only; tasks, creators, size and language from the Hub's lists; the licence an SPDX id (the Hub writes
    it in lower case); behind the Hub's warning of what isn't for everybody.
    """
    keys = (
        "pretty_name language license annotations_creators language_creators source_datasets task_categories task_ids "
        "tags size_categories configs dataset_info"
    )
    assert set(front) == {*keys.split()}
    assert set(front["task_categories"]) <= TEXT_TASKS
    assert set(front["task_ids"]) <= FINER_TASKS
    assert front["annotations_creators"] == front["language_creators"] == ["machine-generated"]  # no expert did
    assert set(front["annotations_creators"]) <= set(HUB["creators"]["annotations"])
    assert set(front["language_creators"]) <= set(HUB["creators"]["language"])
    assert front["source_datasets"] == ["original"]
    assert "not-for-all-audiences" in front["tags"]
    assert set(front["size_categories"]) <= set(HUB["size_categories"])
    assert canonicalize_license_expression(front["license"]) == "CC-BY-4.0"
    assert front["language"] == ["en"]
    low, high = {"n<1K": (0, 1e3), "1K<n<10K": (1e3, 1e4), "10K<n<100K": (1e4, 1e5)}[front["size_categories"][0]]
    assert low <= release.manifest.rows["all"] < high
    assert [
        name
        for name, c in MetadataConfigs.from_dataset_card_data(
            DatasetCard(f"---\n{yaml.safe_dump(front)}---\n").data
        ).items()
        if c.get("default")
    ] == ["all"]


def rows_in(release: Release, config: str) -> list[dict[str, Any]]:
    """The rows of a config as they stand in the file, `text` among the columns."""
    rows: list[dict[str, Any]] = pq.ParquetFile(release.path / parquet_path(config)).read().to_pylist()
    return rows


def test_the_hub_accepts_the_registration(release: Release) -> None:
    """eval.yaml by our transcription of what the Hub asks for: the three headlines and the composite, each over a
    config and split that the card declares. `inspect-ai` as its framework would also need solvers and scorers.
    """
    registered = yaml.safe_load((release.path / "eval.yaml").read_text(encoding="utf-8"))
    EVAL_YAML.validate(registered)
    with pytest.raises(jsonschema.ValidationError, match="'field_spec' is a required property"):
        EVAL_YAML.validate(registered | {"evaluation_framework": "inspect-ai"})
    assert [task["id"] for task in registered["tasks"]] == [*HEADLINES, "composite"]
    declared = DatasetCard.load(release.path / "README.md").data.to_dict()["configs"]
    places = {(c["config_name"], file["split"]) for c in declared for file in c["data_files"]}
    assert {(task["config"], task["split"]) for task in registered["tasks"]} <= places


# croissant.json


@pytest.fixture(scope="module")
def described(dataset: Path) -> mlcroissant.Dataset:
    return mlcroissant.Dataset(jsonld=dataset / "croissant.json")


def test_croissant_is_valid(described: mlcroissant.Dataset, release: Release) -> None:
    """mlcroissant finds no error and nothing to warn of but the address and date that only a publication has."""
    issues = described.metadata.issues
    assert (issues.errors, {w for w in issues.warnings if "url" not in w}) == (set(), set())
    assert str(described.metadata.version) == release.manifest.version
    assert f"{described.metadata.date_published:%Y-%m-%d}" == release.manifest.released


def test_croissant_speaks_of_people(described: mlcroissant.Dataset, release: Release) -> None:
    """The responsible-AI fields, as mlcroissant reads them, are the card's own sentences."""
    metadata, value = described.metadata, json.loads((release.path / "croissant.json").read_text(encoding="utf-8"))
    assert metadata.data_biases == section(CARD, "Biases")
    assert metadata.data_limitations == section(CARD, "Limits")
    assert metadata.data_use_cases == section(CARD, "Direct Use")
    assert metadata.personal_sensitive_information == section(CARD, "Personal and Sensitive Information")
    assert metadata.data_social_impact == " ".join(section(CARD, "Risks"))
    assert value["rai:hasSyntheticData"] is True
    assert all(isinstance(value[key], list) == (key in MANY) and value[key] for key in RAI)


def plain(value: Any, prefix: str) -> Any:
    """A record as mlcroissant gives it: names without their record set, texts for bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {key.removeprefix(prefix): plain(part, f"{key}/") for key, part in value.items()}
    return [plain(part, prefix) for part in value] if isinstance(value, list) else value


def flat(check: dict[str, Any]) -> dict[str, Any]:
    """A check as Croissant holds it, `outcomes` flat in it."""
    outcomes = check.get("outcomes") or dict.fromkeys(("flagged", "attentive", "ignored"))
    return {k: v for k, v in check.items() if k != "outcomes"} | {f"outcomes.{k}": v for k, v in outcomes.items()}


def told_flat(record: dict[str, Any]) -> dict[str, Any]:
    """A row as Croissant holds it, its facts flat in it."""
    if "about" not in record:
        return record
    about = record["about"] or dict.fromkeys(About.model_fields)
    return {k: v for k, v in record.items() if k != "about"} | {f"about.{k}": v for k, v in about.items()}


@pytest.mark.parametrize("config", ["conversations", "calibration", "helplines"])
def test_croissant_loads_the_rows(described: mlcroissant.Dataset, release: Release, config: str) -> None:
    """Every value of every row, down to the messages and checks."""
    loaded = [
        {name: plain(value, f"{config}/{name.removeprefix(config + '/')}/") for name, value in record.items()}
        for record in described.records(config)
    ]
    loaded = [{name.removeprefix(f"{config}/"): value for name, value in record.items()} for record in loaded]
    for record in loaded:
        for name in ("messages", "evaluation"):
            if name in record:
                record[name] = [
                    {k.removeprefix(f"{config}/{name}/"): plain(v, "") for k, v in part.items()}
                    for part in record[name]
                ]
    expected = [
        told_flat(r) | ({"evaluation": [flat(c) for c in r["evaluation"]]} if "evaluation" in r else {})
        for r in rows_in(release, config)
    ]
    assert len(loaded) == release.manifest.rows[config]
    assert loaded == expected


def test_croissant_names_every_file_with_its_hash(release: Release) -> None:
    """All ten configs, with the manifest's sha256."""
    value = json.loads((release.path / "croissant.json").read_text(encoding="utf-8"))
    assert [r["@id"] for r in value["recordSet"]] == list(CONFIGS)
    assert {d["contentUrl"]: d["sha256"] for d in value["distribution"]} == {
        n: h for n, h in release.manifest.files.items() if n.endswith(".parquet")
    }


def test_a_heading_that_croissant_quotes_must_stand_in_the_card() -> None:
    """Renamed in card.md, it is an error of the build and no empty field."""
    with pytest.raises(ValueError, match=r"card\.md: nothing stands under a heading 'Biases'"):
        section("## Uses\n\nMany.\n\n### Biases\n\n### Limits\n", "Biases")
    assert section("### Limits\n\n- One `x`\n  and more.\n- **Two.**\n\nThree.\n## Next\n\nNo.", "Limits") == [
        "One x and more.",
        "Two.",
        "Three.",
    ]


# CITATION.cff and the licences


def test_the_citation_is_valid_and_of_this_version(release: Release) -> None:
    """CITATION.cff against the schema of the Citation File Format 1.2.0 (tests/schemas, as cffconvert 2.0.0 ships
    it).
    """
    citation = yaml.load((ROOT / "CITATION.cff").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    schema = json.loads((ROOT / "tests" / "schemas" / "cff-1.2.0.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(citation)
    manifest = release.manifest
    assert (citation["version"], citation["date-released"]) == (manifest.version, manifest.released)
    assert citation["authors"] == [{"name": "HELMbench contributors"}]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(citation | {"authors": []})


def test_licences_are_there_in_full() -> None:
    """Apache's byte by byte; the data's with its title and its last section."""
    assert canonicalize_license_expression("CC-BY-4.0") == "CC-BY-4.0"
    data = (ROOT / "LICENSE-DATA").read_text(encoding="utf-8")
    assert "Creative Commons Attribution 4.0 International" in data
    assert "Section 8 – Interpretation." in data
    apache = (ROOT / "LICENSE").read_bytes()
    assert hashlib.sha256(apache).hexdigest() == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
