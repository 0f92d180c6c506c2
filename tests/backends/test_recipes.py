"""The page of recipes is what the tests run: no block without a test, no test of a block that is gone; what can't be
run is parsed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from harness import ROOT, SCORE, environment
from support.recipes import PAGE, names, recipe

PARSE = """
import json, sys
from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = FlexibleArgumentParser()
ServeSubcommand().subparser_init(parser.add_subparsers())
for words in json.loads(sys.argv[1]):
    print(vars(parser.parse_args(words))["tensor_parallel_size"])
"""
FIELDS = """
import dataclasses, json, sys
from vllm.engine.arg_utils import EngineArgs
print(sorted(json.loads(sys.argv[1]).keys() - {f.name for f in dataclasses.fields(EngineArgs)}))
"""


def test_every_block_is_run_or_parsed() -> None:
    """A recipe that no test names is one that nobody tried."""
    folders = Path(__file__).parent, Path(__file__).parents[1]
    tests = "".join(p.read_text(encoding="utf-8") for folder in folders for p in sorted(folder.glob("test_*.py")))
    unnamed = {name for name in names() if f'"{name}"' not in tests}
    assert unnamed == set()
    assert len(names()) == len(set(names()))


def test_score_is_the_command_that_the_harness_runs() -> None:
    """What the page says of scoring is what `harness.judge` does."""
    (command,) = recipe("score")
    assert command[:2] == SCORE == ["helmbench", "score"]
    assert len(command) == 3


@pytest.mark.parametrize("name", names())
def test_files_and_programs_that_the_page_names_exist(name: str) -> None:
    """Every command starts with a program that the environments have."""
    for command in recipe(name):
        program = next(word for word in command if not re.fullmatch(r"[A-Z_]+=\S+", word))
        assert program in ("lm_eval", SCORE[0], "vllm", "ray")


def test_arguments_are_ones_that_vllm_knows() -> None:
    """What needs many GPUs is read by vLLM's own parser: servers' options by its command line, lm-eval's by the
    engine's signature.
    """
    programs = environment("vllm")
    serve = [
        command[1:] for name in ("ray", "data-parallel", "judge") for command in recipe(name) if command[0] == "vllm"
    ]
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(programs / "python"), "-c", PARSE, json.dumps(serve)],
        capture_output=True,
        text=True,
        env=clean,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-3:] == ["8", "1", "1"]
    (command,) = recipe("tensor-parallel")
    settings = dict(pair.split("=") for pair in command[command.index("--model_args") + 1].split(","))
    known = subprocess.run(
        [str(programs / "python"), "-c", FIELDS, json.dumps(settings)],
        capture_output=True,
        text=True,
        env=clean,
        timeout=300,
    )
    assert known.stdout.strip().splitlines()[-1] == "['pretrained']", known.stderr[-2000:]


@pytest.mark.parametrize("path", re.findall(r"`((?:scripts|tests|docs)/[\w./]+)`", PAGE.read_text(encoding="utf-8")))
def test_paths_on_the_page_exist(path: str) -> None:
    """What the page points to is there."""
    assert (ROOT / path.split(" ")[0]).exists()
