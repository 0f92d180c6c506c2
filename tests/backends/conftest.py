"""Models made on the spot and forty samples, for backends that really run.

Not part of `make test`: `make test-backends` makes the environments with scripts/make_backend_env.sh and runs these. A
test whose environment is missing fails, and the message says how to make it.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import ROOT, SHARE, TIMEOUT

from dataset_builder.release import Release, open_release
from dataset_builder.schema import Row

if "HELMBENCH_BACKENDS" not in os.environ:  # the folder of the environments, set by `make test-backends`
    collect_ignore_glob = ["test_*.py"]

ALWAYS = {"conversations": "long_talk", "pillar1": "acting"}  # a family of the hard part, one sample of it


@pytest.fixture(scope="session")
def opened(dataset: Path) -> Release:
    return open_release(dataset)


@pytest.fixture(scope="session")
def forty(opened: Release) -> dict[str, list[int]]:
    """For each lite task the positions of its share of forty samples: a seeded choice, with a talk of a dozen turns
    and a case in which the model acts.
    """
    rng = random.Random(6)
    chosen: dict[str, list[int]] = {}
    for config, share in SHARE.items():
        inside = [r for r in opened.records(config) if "lite" in r["tiers"]]
        hard = [n for n, r in enumerate(inside) if r["family"] == ALWAYS.get(config, "none")][:1]
        others = [n for n in range(len(inside)) if n not in hard]
        chosen[f"helmbench_{config}_lite"] = sorted(hard + rng.sample(others, share - len(hard)))
    return chosen


@pytest.fixture(scope="session")
def rows(opened: Release, forty: dict[str, list[int]]) -> dict[str, Row]:
    """The forty samples by id."""
    inside = {c: [r["id"] for r in opened.records(c) if "lite" in r["tiers"]] for c in SHARE}
    ids = [inside[task.split("_")[1]][n] for task, numbers in forty.items() for n in numbers]
    return {i: opened.rows[i] for i in ids}


@pytest.fixture(scope="session")
def corpus(opened: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that the release says, to train tokenizers on: prompts then stay short enough for small contexts."""
    texts = sorted({m.content for row in opened.rows.values() for m in row.messages if m.content})
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def make_model(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`make_model(bin, "chatml", says=None)`: a folder with a model and its tokenizer; the same arguments give the same
    folder.
    """
    made: dict[tuple[str, str | None], Path] = {}

    def make(programs: Path, template: str = "chatml", says: str | None = None) -> Path:
        if (template, says) not in made:
            out = tmp_path_factory.mktemp("models") / ("random" if says is None else "scripted")
            command = [
                str(programs / "python"),
                str(ROOT / "tests" / "backends" / "tiny_model.py"),
                str(out),
                "--corpus",
                str(corpus),
                "--template",
                template,
            ]
            subprocess.run(
                [*command, *(["--says", says] if says else [])], check=True, capture_output=True, timeout=TIMEOUT
            )
            made[template, says] = out
        return made[template, says]

    return make
