"""A base model behind a server, by the recipe of docs/running.md, in the default install: no chat template, no
tokenizer.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import reference_server
from support.lm_eval_runs import lm_eval_command
from support.recipes import filled, recipe, with_option

from dataset_builder.release import Release, open_release
from dataset_builder.schema import Row
from judge.replies.lm_eval_log import read_run
from judge.replies.run import Run
from lm_eval_tasks.helmbench.task import ROLES, TRANSCRIPT_STOPS

TASKS = "helmbench_pillar1_lite,helmbench_conversations_lite"


@pytest.fixture(scope="module")
def base(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, list[Any]]:
    """The recipe's run of the keyword policy, on five samples of two tasks: what was read back, what was asked."""
    folder = tmp_path_factory.mktemp("base")
    with reference_server.start() as server:
        (command,) = recipe("base-api")
        words = filled(command, {"NAME": "keyword", "http://127.0.0.1:8000/v1": server.url}, "--limit", "5")
        program, *options = with_option(words, "--tasks", TASKS)
        assert program == "lm_eval"
        done = lm_eval_command(dataset, folder, *options)
        asked = list(server.requests)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "Next: helmbench score runs/keyword"
    return read_run(folder / "runs", open_release(dataset)), asked


def transcript(row: Row, turns: tuple[str, ...], rounds: int) -> str:
    """The prompt of a sample's n-th request (from 0), as a base model reads it."""
    said, parts = iter(turns), []
    for message in row.messages:
        if message.content is None and rounds == 0:
            break
        rounds -= message.content is None
        text = message.content if message.content is not None else next(said)
        parts.append(f"{ROLES[message.role]}: {text}")
    return "\n\n".join([*parts, "Assistant:"])


def test_the_recipe_runs_without_what_the_default_install_lacks(base: tuple[Run, list[Any]]) -> None:
    """Every sample has its replies, each with how it ended; transformers is of another install."""
    assert importlib.util.find_spec("transformers") is None
    run, _ = base
    assert len(run.replies) == 10
    assert all(finish == "stop" for reply in run.replies for finish in reply.finish)


def test_each_request_is_the_transcript(base: tuple[Run, list[Any]], release: Release) -> None:
    """Of singles and of talks, in which the model's own words stand; it stops where the next speaker begins."""
    run, asked = base
    expected = [
        transcript(release.rows[reply.id], reply.turns, n) for reply in run.replies for n in range(len(reply.turns))
    ]
    assert len(expected) > 15  # talks are among them
    assert sorted(body["prompt"] for body in asked) == sorted(expected)
    assert {json.dumps(body["stop"]) for body in asked} == {json.dumps(TRANSCRIPT_STOPS)}
