"""What a run will cost: counted as the run itself sends it, and never a figure whose origin isn't said."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from helmbench.cli.app import main

from dataset_builder.reading.content_types import Content
from dataset_builder.release import Release
from dataset_builder.stats.cost import (
    JSON,
    LONGEST,
    MESSAGE,
    PROSE,
    REPEATS,
    CostOptions,
    benchmark_cost,
    counter,
    message_cost,
    prompt_sizes,
)
from judge.llm.questions import build
from judge.replies.schema import TRIAGE_PROMPTS
from judge.replies.script import triage_question

TASKS = Path(__file__).resolve().parents[1] / "lm_eval_tasks" / "helmbench"


def test_each_request_holds_all_before(release: Release) -> None:
    """One request per live turn and one more; replies count at their expected length, texts at a quarter of their UTF-8
    bytes, rounded up.
    """
    assert [counter(None)(text) for text in ("", "abcd", "abcde", "ééé")] == [0, 1, 2, 2]
    for live in (0, 2):
        row = next(r for r in release.rows.values() if sum(m.content is None for m in r.messages) == live)
        sizes = [MESSAGE + (100 if m.content is None else math.ceil(len(m.content.encode()) / 4)) for m in row.messages]
        places = [n for n, m in enumerate(row.messages) if m.content is None] + [len(row.messages)]
        assert prompt_sizes(row, counter(None), 100) == [sum(sizes[:n]) for n in places]


def test_tiers_add_up(release: Release) -> None:
    """Samples as in the dataset, requests as a run makes them, prices per million tokens, and no reply longer than a
    run allows.
    """
    figures = benchmark_cost(release.rows.values(), CostOptions(price_in=2.0, price_out=8.0))
    for tier, own in figures["tiers"].items():
        rows = [r for r in release.rows.values() if tier in r.tiers]
        assert own["samples"] == len(rows)
        assert own["requests"] == sum(1 + sum(m.content is None for m in r.messages) for r in rows)
        assert own["rounds"] == max(1 + sum(m.content is None for m in r.messages) for r in rows)
        assert own["cost"] == pytest.approx((own["prompt_tokens"] * 2 + own["reply_tokens"] * 8) / 1e6, abs=1e-4)
        assert (
            JSON * own["requests"]
            < own["reply_tokens"]
            < PROSE * own["requests"]
            < own["reply_tokens_at_most"]
            == LONGEST * own["requests"]
        )
        assert own["cost"] < own["cost_at_most"]
    assert list(figures["tiers"]) == ["detect", "lite", "core", "full"]
    own = benchmark_cost(list(release.rows.values())[:50], CostOptions(reply=5000))["tiers"]["full"]
    assert own["reply_tokens"] == own["reply_tokens_at_most"] == 5000 * own["requests"]
    assert own["cost"] is None


def test_a_named_tokenizer_counts(tmp_path: Path, release: Release) -> None:
    """A tokenizer.json is used as it is, and its name stands beside the figures."""
    tokenizers = pytest.importorskip("tokenizers")  # comes with helmbench[hf]
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    path = tmp_path / "tokenizer.json"
    words.save(str(path))
    rows = list(release.rows.values())[:20]
    figures = benchmark_cost(rows, CostOptions(tokenizer=str(path)))
    assert (figures["estimated"], figures["tokenizer"]) == (False, str(path))
    singles = [r for r in rows if all(m.content for m in r.messages)]
    assert singles
    for row in singles:
        assert prompt_sizes(row, counter(str(path)), 1) == [
            sum(MESSAGE + len((m.content or "").split()) for m in row.messages)
        ]


# Messages that stand alone.


def test_messages_are_asked_as_their_tasks_ask(release: Release, shipped: Content) -> None:
    """Three free replies each, one label per prompt; the numbers are those of the tasks' files, and money follows the
    tokens.
    """
    shared = (TASKS / "_messages_yaml").read_text(encoding="utf-8")
    assert f"\nrepeats: {REPEATS} " in shared
    assert "repeats:" not in (TASKS / "_triage_yaml").read_text(encoding="utf-8")
    figures = message_cost(shipped, release.messages.values(), CostOptions(price_in=2.0, price_out=8.0))
    for tier, own in figures["tiers"].items():
        messages = [m for m in release.messages.values() if tier in m.tiers]
        assert all((TASKS / f"{task}{'_lite' if tier == 'lite' else ''}.yaml").is_file() for task in own["tasks"])
        free = own["tasks"]["helmbench_appropriateness"]
        assert (free["samples"], free["repeats"], free["requests"]) == (len(messages), 3, 3 * len(messages))
        assert free["prompt_tokens"] == 3 * sum(
            MESSAGE + math.ceil(len((said.content or "").encode()) / 4) for m in messages for said in m.messages
        )
        assert free["reply_tokens"] == PROSE * free["requests"]
        assert free["reply_tokens_at_most"] == LONGEST * free["requests"]
        assert free["cost"] == pytest.approx((free["prompt_tokens"] * 2 + free["reply_tokens"] * 8) / 1e6, abs=1e-4)
    assert list(figures["tiers"]) == ["lite", "core"]


def test_triage_prompts_are_as_long_as_those_that_are_sent(release: Release, shipped: Content) -> None:
    """Within two in a hundred of the real questions, counted the same way."""
    count, found = counter(None), list(release.messages.values())
    tasks = message_cost(shipped, found, CostOptions())["tiers"]["core"]["tasks"]
    for prompt in TRIAGE_PROMPTS:
        own = tasks[f"helmbench_triage_{prompt}"]
        turns = ([said.model_dump() for said in m.messages] for m in found)
        sent = sum(MESSAGE + count(triage_question(t, release.taxonomy, release.prompts, prompt)) for t in turns)
        assert own["prompt_tokens"] == pytest.approx(sent, rel=0.02)
        assert (own["requests"], own["reply_tokens"]) == (len(found), JSON * len(found))


def test_a_judges_questions_are_counted_and_as_long_as_those_that_are_asked(release: Release, shipped: Content) -> None:
    """A rating and its criteria for each reply, as the judge would build them; runs multiply, and prompts are within
    two in a hundred.
    """
    count, messages, reply = counter(None), list(release.messages.values()), "word" * PROSE
    # A message has ratings and criteria only.
    asked = [build(m, check, (reply,), release, "x") for m in messages for check in m.evaluation]  # type: ignore[arg-type]
    once, thrice = (
        message_cost(shipped, messages, CostOptions(judge_runs=n))["tiers"]["core"]["judge"] for n in (1, 3)
    )
    assert (once["ratings"], once["criteria"]) == (3 * len(messages), 3 * (len(asked) - len(messages)))
    assert once["questions"] == 3 * len(asked)
    assert (thrice["questions"], thrice["prompt_tokens"], thrice["reply_tokens"]) == tuple(
        3 * once[k] for k in ("questions", "prompt_tokens", "reply_tokens")
    )
    assert once["prompt_tokens"] == pytest.approx(
        3 * sum(MESSAGE + count(a.body["messages"][0]["content"]) for a in asked), rel=0.02
    )


def test_the_command_prints_a_table_and_json(
    release: Release, shipped: Content, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same figures twice, with money where prices are given, and the tokens named as an estimate."""
    prices = ["--price-in", "2.5", "--price-out", "10"]
    assert main(["stats", "--cost", *prices]) == 0
    printed = capsys.readouterr()
    assert (main(["stats", "--cost", *prices, "--json"]), printed.err) == (0, "")
    figures = json.loads(capsys.readouterr().out)
    options = CostOptions(price_in=2.5, price_out=10)
    alone = message_cost(shipped, release.messages.values(), options)
    assert figures == benchmark_cost(release.rows.values(), options) | {"messages": alone}
    free = alone["tiers"]["core"]["tasks"]["helmbench_appropriateness"]
    words = printed.out.split()
    assert {f"{free['requests']:,}", f"{free['cost']:,.2f}", f"{figures['tiers']['core']['cost']:,.2f}"} <= {*words}
    assert figures["estimated"]
    assert "bytes ÷ 4, an estimate" in printed.out


def test_bad_options_are_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, nothing on standard output, and the option by name."""
    for arguments, words in (
        (["--cost", "--price-in", "1"], "--price-in and --price-out must be given together"),
        (["--price-in", "1", "--price-out", "2"], "need --cost"),
        (["--cost", "--judge-runs", "0"], "0; expected 1 or more"),
        (["--cost", "--price-in", "-1", "--price-out", "2"], "-1; expected 0 or more"),
        (["--cost", "--tokenizer", "absent.json"], "--tokenizer absent.json: "),  # never another one in its place
    ):
        assert main(["stats", *arguments]) == 2, arguments
        printed = capsys.readouterr()
        assert printed.out == ""
        assert words in printed.err, arguments
