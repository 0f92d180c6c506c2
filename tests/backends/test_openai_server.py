"""vLLM's own OpenAI-compatible server on loopback: generating for lm-eval, and then judging, by the recipes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import (
    LM_EVAL,
    ROOT,
    SCORE,
    check_judged,
    check_shape,
    environment,
    expected_requests,
    judge,
    logged,
    run,
    succeeded,
)
from helmbench.cli.common import UNANSWERED
from local_backends import SAID, THOUGHT, chatml
from servers import free_port, post, recorder, served
from support.recipes import filled, recipe, with_option

from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge.replies.script import visible

CPU = ["--dtype", "float32", "--enforce-eager", "--gpu-memory-utilization", "0.2"]
Messages = list[dict[str, str]]


@pytest.fixture(scope="module")
def generated(
    make_model: Callable[..., Path],
    dataset: Path,
    forty: dict[str, list[int]],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, list[dict[str, Any]], list[str]]:
    """A run against the server: its folder, what the server was sent, and each request as the server's template renders
    it.
    """
    programs, folder, port = environment("vllm"), tmp_path_factory.mktemp("server"), free_port()
    model = make_model(programs, "chatml", THOUGHT + SAID)
    serve, evaluate = recipe("data-parallel")
    serve = with_option(filled(serve, {"ORG/NAME": str(model), "8000": str(port)}, *CPU), "--data-parallel-size", "1")
    with (
        served([str(programs / serve[0]), *serve[1:]], port, folder / "server.log") as url,
        recorder(url) as (address, bodies),
    ):
        words = filled(
            evaluate,
            {"ORG/NAME": str(model), "http://127.0.0.1:8000": address},
            "--samples",
            json.dumps(forty),
            "--gen_kwargs",
            "max_gen_toks=24",
        )
        words = with_option(with_option(words, "--tasks", ",".join(forty)), "--output_path", str(folder / "out"))
        assert words[0] == "lm_eval"
        succeeded(run([*LM_EVAL, *words[1:]], dataset, ROOT))
        sent = list(bodies)
        tokens = [
            post(f"{url}/tokenize", {"model": str(model), "messages": body["messages"]})["tokens"] for body in sent
        ]
        rendered = [post(f"{url}/detokenize", {"model": str(model), "tokens": t})["prompt"] for t in tokens]
    return folder / "out", sent, rendered


def test_the_server_gets_the_datasets_messages(generated: Any, rows: dict[str, Row]) -> None:
    """The requests are the rows' messages, once each, in every round; the model's own turns stand in them without its
    reasoning.
    """
    out, sent, _ = generated
    log = logged(out)
    assert {r[0] for line in log.values() for r in line["resps"]} == {THOUGHT + SAID}
    expected = expected_requests(rows, log, visible)
    assert Counter(json.dumps(body["messages"]) for body in sent) == Counter(json.dumps(m) for m in expected)


def test_the_servers_template_keeps_every_message(generated: Any) -> None:
    """What the server makes of a request, tokenized and back, is the messages in the model's template."""
    _, sent, rendered = generated
    assert rendered == [chatml(body["messages"]) for body in sent]


def test_the_log_has_every_backends_shape(generated: Any, rows: dict[str, Row]) -> None:
    """The same keys as hf's and vLLM's; an API's prompt is the JSON of its messages."""
    log = logged(generated[0])
    check_shape(log, rows)
    sent = Counter(json.dumps(body["messages"]) for body in generated[1])
    assert (
        Counter(json.dumps(json.loads(a["arg_0"][0])) for line in log.values() for a in line["arguments"].values())
        == sent
    )


def test_the_judge_reads_all_forty(generated: Any, dataset: Path, rows: dict[str, Row]) -> None:
    """The page's command for scoring, on the run's folder: forty samples, none lost."""
    check_judged(generated[0], dataset, rows)


def test_an_open_weights_judge_on_the_same_machine_answers_in_the_asked_shape(
    generated: Any, make_model: Callable[..., Path], dataset: Path, opened: Release, tmp_path: Path
) -> None:
    """The recipe's second half, on random weights: what they say means nothing, but the server holds them to JSON with
    an offered label.
    """
    programs, port = environment("vllm"), free_port()
    model = make_model(programs)
    serve, score = recipe("judge")
    serve = filled(serve, {"ORG/JUDGE": str(model), "8001": str(port)}, *CPU)
    with served([str(programs / serve[0]), *serve[1:]], port, tmp_path / "server.log") as url:
        words = filled(score, {"http://127.0.0.1:8001": url, "ORG/JUDGE": str(model)})
        at = words.index("runs/ORG__NAME")
        assert words[:at] == SCORE
        card = judge(generated[0], dataset, *words[at + 1 :], code=UNANSWERED)  # most of it can't be read
    assert card["judge"]["name"] == str(model)
    answers = [
        json.loads(line)
        for line in next(generated[0].rglob("judge/*/replies.jsonl")).read_text(encoding="utf-8").splitlines()
    ]
    assert len(answers) > 20
    assert not [a for a in answers if a["error"] or a["response"]["status_code"] != 200]
    said = [a["response"]["body"]["choices"][0]["message"]["content"] for a in answers]
    # Random weights seldom end a string, so a quotation may run until the room is used up; what came before it is the
    # server's to get right.
    labels = {label for criterion in opened.criteria.values() for label in criterion.labels}
    begun = re.compile(
        r'\{\s*"label"\s*:\s*"(?:' + "|".join(map(re.escape, sorted(labels))) + r')"\s*,\s*"quotes"\s*:\s*\['
    )
    assert [text[:80] for text in said if not begun.match(text)] == []
