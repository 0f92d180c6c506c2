"""A held-out split: private scenarios with the public conditions, people, criteria, helplines and weights.

It must pass every check together with the public content, so that public and held-out scores differ only in whether
a model could have seen the messages before (docs/publishing.md).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from dataset_builder.checking.checks import check, tells
from dataset_builder.composing.compose import compose
from dataset_builder.reading.content_types import Content, Scenario
from dataset_builder.reading.load import each
from dataset_builder.reading.load_scenario import ScenarioReader
from dataset_builder.reading.markdown import Errors
from dataset_builder.reading.opening import SCENARIOS
from dataset_builder.reading.settings import Day, fitted, read_yaml
from dataset_builder.reading.strays import links, strays, unasked
from dataset_builder.schema import Strict

SETTINGS = "held-out.yaml"
KNOWN = {SETTINGS, "README.md", "scenarios", "conversations", ".git", ".gitignore"}


class _Settings(Strict):
    """held-out.yaml: the split's name, when it was closed, and its canary."""

    split: str = Field(pattern=r"^[a-z0-9]{1,16}$")
    released: Day
    canary: str = Field(min_length=20)


def held_out(public: Content, root: Path, out: Path | None, errors: Errors) -> Content | None:
    """The split in `root` as content, version `1.2.3+held-out.<split>`; None if there are errors.

    `public` has already been checked. `out`: the build's destination; like `root`, never in the public repository.
    """
    for what, place in (("the split", root), ("--out", out)):
        if place is not None and (repository := _repository(place)):
            where = f"{what} lies in the public repository {repository}"
            errors.add(place, 1, f"{where}, from where a held-out message could be committed; keep it elsewhere")
    links(root, errors)
    if errors.found:
        return None
    settings = _settings(root, public, errors)
    for path in sorted(root.glob("*")):
        if path.name not in KNOWN and not unasked(path):
            expected = f"expected {SETTINGS}, scenarios/ and conversations/, all else is the public content's"
            errors.add(path, 1, f"not part of a held-out split; {expected}")
    strays(root, errors, *SCENARIOS)
    scenarios = _scenarios(public, root, errors)
    if not errors.found and not scenarios:
        errors.add(root, 1, "has no scenario; expected files in scenarios/ or conversations/")
    if errors.found or settings is None:
        return None
    # Public first, so that the error for a near-duplicate pair names the private file.
    together = replace(public, root=root, scenarios=(*public.scenarios, *scenarios))
    check(together, compose(together), errors)
    split = replace(
        public,
        version=f"{public.version}+held-out.{settings.split}",
        released=settings.released,
        canary=settings.canary,
        scenarios=tuple(sorted(scenarios, key=lambda s: s.id)),
    )
    # Check the split alone too: public rows could mask a tell in the private ones.
    tells(replace(split, root=root), compose(split), errors)
    return None if errors.found else split


def _repository(place: Path) -> Path | None:
    """The checkout of this project that contains a folder."""
    above = [place.resolve(), *place.resolve().parents]
    return next((p for p in above if (p / "dataset_builder" / "content" / "benchmark.yaml").is_file()), None)


def _settings(root: Path, public: Content, errors: Errors) -> _Settings | None:
    path = root / SETTINGS
    if not os.path.lexists(path):
        errors.add(path, 1, "is missing; a held-out split has one with split, released and its own canary")
        return None
    found = read_yaml(path, "the keys split, released and canary", errors)
    settings = fitted(_Settings, path, found, errors)
    if settings and settings.canary == public.canary:
        what = "a split has its own, or a leak can't be told from the public release"
        errors.add(path, found.line(("canary",)), f"canary is the public one; {what}")
    return settings


def _scenarios(public: Content, root: Path, errors: Errors) -> list[Scenario]:
    reader = ScenarioReader(public.root, public.personas, public.conditions, public.criteria, public.voices)
    taken = {s.id for s in public.scenarios}
    found: list[Scenario] = []
    for folder in SCENARIOS:
        for scenario in each(root / folder, reader.scenario, errors):
            if scenario.id in taken:
                what = "is a public scenario's or duplicate; codes are given once and never reused"
                errors.add(scenario.path, scenario.document.front_lines["id"], f"id '{scenario.id}' {what}")
            else:
                taken.add(scenario.id)
                found.append(scenario)
    return found
