"""The reference server behind lm-eval's API model, faults and all, by the recipes for an API and for a prompt of one's
own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import reference_server
from harness import (
    LM_EVAL,
    ROOT,
    SCORE,
    check_judged,
    check_shape,
    expected_requests,
    judge,
    logged,
    lost,
    run,
    succeeded,
)
from support.recipes import filled, recipe, with_option

from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge.replies.script import visible


@pytest.fixture(scope="module")
def answered(
    dataset: Path, forty: dict[str, list[int]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[dict[str, Any]], list[dict[str, Any]]]:
    """The forty samples through the model `faulty`: the run's folder, what the server got, and how it answered."""
    folder = tmp_path_factory.mktemp("api")
    with reference_server.start(faults=dict.fromkeys(reference_server.FAULTS, 0.07), slow_seconds=0.1) as server:
        values = {"NAME": "faulty", "https://HOST/v1": server.url, "OPENAI_API_KEY=KEY": "OPENAI_API_KEY=not-a-key"}
        variable, *words = filled(recipe("api")[0], values, "--samples", json.dumps(forty))
        name, _, key = variable.partition("=")
        words = with_option(with_option(words, "--tasks", ",".join(forty)), "--output_path", str(folder / "out"))
        words = with_option(words, "--use_cache", str(folder / "cache"))
        assert (name, words[0]) == ("OPENAI_API_KEY", "lm_eval")
        succeeded(run([*LM_EVAL, *words[1:]], dataset, ROOT, **{name: key}))
        return folder / "out", list(server.requests), list(server.log)


def test_the_server_gets_the_datasets_messages(answered: Any, rows: dict[str, Row]) -> None:
    """Every request that was answered well is a row's, and each row's was; faults cost repetitions and no sample."""
    out, requests, _ = answered
    expected = {
        json.dumps(m) for m in expected_requests(rows, logged(out), lambda reply: visible(reply) or "(no reply)")
    }
    assert {json.dumps(r["messages"]) for r in requests} == expected


def test_faults_happened(answered: Any) -> None:
    """The schedule did fail some attempts, in more than one way, so that the run shows something."""
    assert len({entry["fault"] for entry in answered[2]} - {None}) > 1


def test_the_log_has_every_backends_shape(answered: Any, rows: dict[str, Row]) -> None:
    """The same keys as every other backend's."""
    check_shape(logged(answered[0]), rows)


def test_the_judge_reads_all_forty(answered: Any, dataset: Path, rows: dict[str, Row]) -> None:
    """The page's command for scoring, on the run's folder: forty samples, none lost, and the key nowhere."""
    check_judged(answered[0], dataset, rows)
    assert not [p for p in answered[0].rglob("*") if p.is_file() and b"not-a-key" in p.read_bytes()]


def own_prompt(dataset: Path, folder: Path, url: str) -> Any:
    """The recipe for a product's own prompt, in `folder`; its first command."""
    command = filled(recipe("own-prompt")[0], {"NAME": "keyword", "http://127.0.0.1:8000/v1": url})
    assert command[0] == "lm_eval"
    return run([*LM_EVAL, *command[1:]], dataset, folder)


def test_a_prompt_of_ones_own_stands_where_the_condition_stood(
    dataset: Path, forty: dict[str, list[int]], opened: Release, tmp_path: Path
) -> None:
    """Each request begins with the file's text; job, user context and turns are the row's; file and hash are recorded;
    the judge reads it.
    """
    text = "You are Robin, who answers for a bakery.\n\nYou sell bread {and} %s rolls."
    (tmp_path / "prompt.txt").write_text(text + "\n", encoding="utf-8")
    with reference_server.start() as server:
        command = [*("--samples", json.dumps({task: numbers[:3] for task, numbers in forty.items()}))]
        words = with_option(
            [*filled(recipe("own-prompt")[0], {"NAME": "keyword", "http://127.0.0.1:8000/v1": server.url}), *command],
            "--tasks",
            ",".join(forty),
        )
        succeeded(run([*LM_EVAL, *words[1:]], dataset, tmp_path))
        received = [r["messages"] for r in server.requests]
    log = logged(tmp_path / "runs" / "prompt-1")
    assert len(log) == 15
    for identity in log:
        row = opened.rows[identity]
        system, first = (m.content or "" for m in row.messages[:2])
        sent = [
            m
            for m in received
            if m[1]["content"] == first
            and m[0]["content"].startswith(text)
            and system.endswith(m[0]["content"][len(text) :])
        ]
        assert sent, identity
        # What is left of the row's own message begins after its first paragraph at the latest: a condition is at least
        # that.
        kept = sent[0][0]["content"][len(text) :]
        assert kept.startswith("\n\n")
        assert system.split("\n\n")[0] not in kept
    results = json.loads(next((tmp_path / "runs").rglob("results_*.json")).read_text(encoding="utf-8"))
    expected = {"file": "prompt.txt", "sha256": hashlib.sha256(text.encode()).hexdigest()}
    assert [config["metadata"]["condition"] for config in results["configs"].values()] == [expected] * len(
        results["configs"]
    )
    folder = recipe("own-prompt")[1][len(SCORE)]
    card = judge(tmp_path / folder.replace("NAME", "keyword"), dataset)
    assert lost(card) == 0
    assert card["model"]["condition"] == expected


def test_the_recipe_for_messages_by_themselves_runs_and_is_scored(
    dataset: Path, opened: Release, tmp_path: Path
) -> None:
    """As the page has it, on the lite tier: replies and labels twice each, read back by the recipe's second command."""
    asks, scores = recipe("messages")
    with reference_server.start() as server:
        words = filled(asks, {"NAME": "keyword", "http://127.0.0.1:8000/v1": server.url})
        tasks = ",".join(f"{task}_lite" for task in words[words.index("--tasks") + 1].split(","))
        succeeded(run([*LM_EVAL, *with_option(words, "--tasks", tasks)[1:]], dataset, tmp_path))
    assert scores[: len(SCORE)] == SCORE
    card = judge(tmp_path / scores[len(SCORE)].replace("NAME", "keyword"), dataset)
    lite = sum("lite" in m.tiers for m in opened.messages.values())
    assert card["composite"]["value"] is None
    assert [(t["prompt"], t["messages"], t["runs"], t["complete"]) for t in card["triage"]] == [
        ("bare", lite, 2, True),
        ("guided", lite, 2, True),
    ]


def test_a_prompt_file_that_is_none_is_refused(dataset: Path, tmp_path: Path) -> None:
    """A missing one: one line that names the file, and nothing is asked of the model."""
    done = own_prompt(dataset, tmp_path, "http://127.0.0.1:9/v1")
    assert done.returncode != 0
    assert re.fullmatch(r"helmbench: prompt\.txt(?::1)?: .*can't be read.*", done.stderr.strip().splitlines()[-1])
    assert "Traceback" not in done.stderr


def test_counted_requests_are_those_of_the_log(answered: Any) -> None:
    """The server's answers without a fault are as many as the log's replies, one for each."""
    out, _, entries = answered
    assert Counter(e["fault"] is None or e["fault"] in ("slow", "empty", "null") for e in entries)[True] == sum(
        len(line["resps"]) for line in logged(out).values()
    )
