"""croissant.json: a machine-readable description (MLCommons Croissant 1.0 with responsible-AI vocabulary 1.0).

Written without mlcroissant, which would pull rdflib and networkx into every build; the tests validate the file with
mlcroissant and load every row through it. The Hub's generated Croissant has no `rai:` fields, hence this file.
Specification: https://docs.mlcommons.org/croissant/docs/croissant-spec.html and croissant-rai-spec.html.
"""

from __future__ import annotations

import json
import re
from typing import Any

from dataset_builder.reading.content_types import Content
from dataset_builder.release import parquet_path

CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "conformsTo": "dct:conformsTo",
    **{
        name: f"cr:{name}"
        for name in (
            "citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet",
            "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
            "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField",
            "transform",
        )
    },
}  # fmt: skip
TYPES = {"string": "sc:Text", "int64": "sc:Integer", "bool": "sc:Boolean"}
# Property → the card's heading, the single source of the statement.
RAI = {
    "rai:dataCollection": "Data Collection and Processing",
    "rai:dataAnnotationProtocol": "Annotation process",
    "rai:annotatorDemographics": "Who are the annotators?",
    "rai:personalSensitiveInformation": "Personal and Sensitive Information",
    "rai:dataUseCases": "Direct Use",
    "rai:dataBiases": "Biases",
    "rai:dataLimitations": "Limits",
    "rai:dataSocialImpact": "Risks",
    "rai:dataReleaseMaintenancePlan": "Versions",
}
MANY = {
    "rai:dataUseCases",
    "rai:dataBiases",
    "rai:dataLimitations",
    "rai:personalSensitiveInformation",
}  # the others hold one string


def describe(content: Content, infos: list[dict[str, Any]], parquet: dict[str, str], card: str) -> str:
    """The JSON-LD text. `infos`: `dataset_info` entries; `parquet`: the sha256 of each config's file; `card`: the
    card's body.
    """
    value = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": "helmbench",
        "description": section(card, "Dataset Description")[0],
        "version": content.version,
        "datePublished": content.released,
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "creator": {"@type": "sc:Organization", "name": "HELMbench contributors"},
        "citeAs": section(card, "Citation")[0],
        "inLanguage": "en",
        "isLiveDataset": False,
        "keywords": ["mental health", "safety", "benchmark", "language models", "not for training"],
        **{
            key: said if key in MANY else " ".join(said)
            for key, heading in RAI.items()
            for said in [section(card, heading)]
        },
        "rai:hasSyntheticData": True,
        "distribution": [_file(info, parquet[info["config_name"]]) for info in infos],
        "recordSet": [_records(info) for info in infos],
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def section(card: str, heading: str) -> list[str]:
    """The statements under a heading of the card, up to the next heading: list items and paragraphs, without Markdown.

    Raises:
        ValueError: the heading doesn't exist, or has nothing under it.
    """
    match = re.search(rf"(?m)^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", card, re.DOTALL)
    text = re.sub(r"```.*?```", "", match[1] if match else "", flags=re.DOTALL)
    said = [re.sub(r"[*`]", "", " ".join(part.removeprefix("- ").split())) for part in re.split(r"\n\n|\n(?=- )", text)]
    if not any(said):
        raise ValueError(f"card.md: nothing stands under a heading '{heading}', which croissant.json quotes")
    return [part for part in said if part]


def _file(info: dict[str, Any], sha256: str) -> dict[str, Any]:
    config = info["config_name"]
    return {
        "@type": "cr:FileObject",
        "@id": f"{config}.parquet",
        "name": f"{config}.parquet",
        "description": f"The rows of config {config}.",
        "contentUrl": parquet_path(config),
        "contentSize": f"{info['download_size']} B",
        "encodingFormat": "application/x-parquet",
        "sha256": sha256,
    }


def _records(info: dict[str, Any]) -> dict[str, Any]:
    config = info["config_name"]
    return {
        "@type": "cr:RecordSet",
        "@id": config,
        "name": config,
        "description": f"Config {config}: {info['splits'][0]['num_examples']} rows.",
        "field": _fields(f"{config}.parquet", config, info["features"], []),
    }


def _fields(file: str, parent: str, features: list[dict[str, Any]], path: list[str]) -> list[dict[str, Any]]:
    """Columns, or the parts of one. `features`: as in `dataset_info`; `path`: the names from the column down.

    A struct inside a list is flattened (`outcomes.flagged`), because Croissant readers zip the parts of a list into
    records one level deep.
    """
    found: list[dict[str, Any]] = []
    for feature in features:
        here = [*path, feature["name"]]
        if "struct" in feature:
            found += _fields(file, parent, feature["struct"], here)
            continue
        name = f"{parent}/{'.'.join(here if parent.count('/') == 0 else here[1:])}"
        transform = {"transform": [{"jsonPath": part} for part in here[1:]]} if here[1:] else {}
        source = {"fileObject": {"@id": file}, "extract": {"column": here[0]}, **transform}
        field: dict[str, Any] = {"@type": "cr:Field", "@id": name, "name": name, "source": source}
        parts = feature.get("list")
        if parts:
            field["repeated"] = True
        if isinstance(parts, list):
            found.append(field | {"subField": _fields(file, name, parts, here)})
        else:
            found.append(field | {"dataType": TYPES[parts or feature["dtype"]]})
    return found
