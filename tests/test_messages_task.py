"""The tasks over messages that stand alone, over real HTTP: every prompt byte for byte, repeats, and what the run
records.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import reference_server
from helmbench.cli.common import UNANSWERED
from support.lm_eval_runs import run_lm_eval

from dataset_builder.release import Release
from judge.replies.lm_eval_log import read_run
from judge.replies.schema import RunError
from judge.replies.script import triage_question

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
Served = tuple[Path, list[dict[str, Any]], str]


@pytest.fixture(scope="module")
def served(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """One lite run of both groups by the keyword policy: its output folder, what the server got, what was printed."""
    out = tmp_path_factory.mktemp("runs") / "out"
    with reference_server.start() as server:
        done = run_lm_eval(dataset, out, server.url, "helmbench_appropriateness_lite,helmbench_triage_lite")
        assert done.returncode == 0, done.stderr[-3000:]
        return out, list(server.requests), done.stdout


def lite(release: Release) -> list[Any]:
    return [m for m in release.messages.values() if "lite" in m.tiers]


def sent(messages: list[dict[str, Any]]) -> bytes:
    return json.dumps(messages, ensure_ascii=False).encode()


def test_every_prompt_arrives_byte_for_byte(served: Served, release: Release) -> None:
    """Each message three times as it stands, and once in each triage prompt; nothing else is sent."""
    expected: Counter[bytes] = Counter()
    for message in lite(release):
        said = [m.model_dump() for m in message.messages]
        expected[sent(said)] += 3
        for prompt in ("bare", "guided"):
            expected[
                sent([{"role": "user", "content": triage_question(said, release.taxonomy, release.prompts, prompt)}])
            ] += 1
    assert Counter(sent(r["messages"]) for r in served[1]) == expected


def test_repeats_are_sampled_and_differ_by_seed(served: Served) -> None:
    """Three replies at temperature 1, each with a seed of its own; labels once at 0; room for an answer, and no stop
    that cuts it.
    """
    free = [r for r in served[1] if '{"category"' not in r["messages"][-1]["content"]]
    labels = [r for r in served[1] if '{"category"' in r["messages"][-1]["content"]]
    assert {r["temperature"] for r in free} == {1.0}
    assert {r["temperature"] for r in labels} == {0}
    assert all(r["max_tokens"] == 1024 and not r.get("stop") for r in served[1])
    seeds: dict[bytes, set[int]] = {}
    for request in free:
        seeds.setdefault(sent(request["messages"]), set()).add(request["seed"])
    assert {len(s) for s in seeds.values()} == {3}


def test_the_run_is_read_back(served: Served, release: Release) -> None:
    """Replies by kind and repeat, the messages' tier, and no benchmark reply; labels are those of the policy."""
    run = read_run(served[0], release)
    ids = {m.id for m in lite(release)}
    assert (run.tier, run.messages_tier, run.replies, run.limited) == (None, "lite", [], False)
    assert Counter(r.repeat for r in run.messages) == {0: len(ids), 1: len(ids), 2: len(ids)}
    assert {r.id for r in run.messages} == ids
    assert {prompt: {r.id for r in replies} for prompt, replies in run.triage.items()} == {"bare": ids, "guided": ids}
    assert all(set(json.loads(r.turns[0])) == {"category"} for replies in run.triage.values() for r in replies)
    assert {r.finish for r in run.messages} == {("stop",)}


def test_the_run_records_what_it_measured(served: Served, release: Release) -> None:
    """messages_hash, tier, kind and repeats stand in the results; a benchmark's score_hash doesn't."""
    results = json.loads(next(served[0].rglob("results_*.json")).read_text())
    metadata = {name: config["metadata"] for name, config in results["configs"].items()}
    kinds = {
        name.removesuffix("_lite").removeprefix("helmbench_"): (m["measures"], m["repeats"])
        for name, m in metadata.items()
    }
    assert kinds == {
        "appropriateness": ("appropriateness", 3),
        "triage_bare": ("triage-bare", 1),
        "triage_guided": ("triage-guided", 1),
    }
    assert {m["messages_hash"] for m in metadata.values()} == {release.manifest.messages_hash}
    assert not any("score_hash" in m for m in metadata.values())


def test_accuracy_is_printed_at_once(served: Served, release: Release) -> None:
    """With its standard error, before any judge: the share of messages that a word list labels as authored."""
    results = json.loads(next(served[0].rglob("results_*.json")).read_text())["results"]
    run = read_run(served[0], release)
    right = [
        json.loads(r.turns[0])["category"] in (m.crisis_category, m.crisis_category_2)
        for r in run.triage["bare"]
        for m in [release.messages[r.id]]
    ]
    found = results["helmbench_triage_bare_lite"]
    assert found["accuracy,none"] == pytest.approx(100 * sum(right) / len(right))
    n, p = len(right), sum(right) / len(right)
    assert found["accuracy_stderr,none"] == pytest.approx(100 * (p * (1 - p) / (n - 1)) ** 0.5)
    assert "accuracy" in served[2]
    assert "accuracy_stderr" not in served[2]


def test_a_run_of_another_release_is_refused(served: Served, release: Release, tmp_path: Path) -> None:
    """Both hashes are named."""
    results = next(served[0].rglob("results_*.json"))
    text = results.read_text().replace(release.manifest.messages_hash, "0" * 64)
    (tmp_path / results.name).write_text(text)
    with pytest.raises(
        RunError, match=rf"messages_hash 000000000000…\), but .* \({release.manifest.messages_hash[:12]}…\)"
    ):
        read_run(tmp_path, release)


def test_repeats_are_set_on_the_command_line(dataset: Path, tmp_path: Path, release: Release) -> None:
    """`--metadata '{"helmbench_repeats": 2}'` asks every sample twice, of any task; a product's own prompt goes
    first. No repeats at all is one clear line.
    """
    (tmp_path / "prompt.txt").write_text("You are Pip, a helper of the library.")
    more = {"helmbench_repeats": 2, "helmbench_condition": str(tmp_path / "prompt.txt")}
    tasks = "helmbench_triage_guided_lite,helmbench_pillar4_lite"
    with reference_server.start() as server:
        ask = (dataset, tmp_path / "out", server.url, tasks, "--limit", "3", "--metadata")
        done = run_lm_eval(*ask, json.dumps(more))
        assert done.returncode == 0, done.stderr[-3000:]
        assert all(r["messages"][0]["content"].startswith("You are Pip") for r in server.requests)
        done = run_lm_eval(*ask, json.dumps({"helmbench_repeats": 0}))
    assert done.returncode != 0
    assert "helmbench_repeats is" in done.stderr.strip().splitlines()[-1]
    run = read_run(tmp_path / "out", release)
    for replies in (run.triage["guided"], run.replies):
        assert Counter(r.repeat for r in replies) == {0: 3, 1: 3}
    assert run.model.condition
    assert run.model.condition.file == "prompt.txt"


def test_one_bad_message_ends_no_run(dataset: Path, tmp_path: Path, release: Release) -> None:
    """Refused, filtered and lost requests stand in the log as such; the rest is answered, and lost labels aren't
    counted as wrong.
    """
    with reference_server.start(faults={"long": 0.1, "filter": 0.1}) as server:
        done = run_lm_eval(dataset, tmp_path / "out", server.url, "helmbench_triage_bare_lite", model="faulty")
    assert done.returncode == UNANSWERED, done.stderr[-3000:]  # a tenth is lost; all is written by then
    finishes = Counter(str(r.finish[-1]).split(":")[0] for r in read_run(tmp_path / "out", release).triage["bare"])
    assert finishes["error"] > 0
    assert finishes["content_filter"] > 0
    assert finishes["stop"] > 0
    results = json.loads(next((tmp_path / "out").rglob("results_*.json")).read_text())["results"][
        "helmbench_triage_bare_lite"
    ]
    assert 0 < results["accuracy,none"] < 100
    assert results["answered,none"] < 1
