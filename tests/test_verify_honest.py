"""Honest submissions of every kind are accepted, with the flags that they deserve and no others."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.submission_runs import (
    ABOUT,
    CHATML,
    TEMPLATES,
    Opened,
    answer,
    as_api,
    as_chatml,
    as_transcript,
    copied,
    judged_offline,
    log,
    measure,
    number,
    say,
    score,
)

from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge.llm import batch
from judge.offline import judge as offline
from judge.replies.script import live_turns
from leaderboard.schema import ANSWERS, SUBMISSION, VERDICTS, Verified
from leaderboard.submit.pack import make
from leaderboard.verify import files
from leaderboard.verify.declared import families
from leaderboard.verify.verify import verify

Make = Callable[[Path, Release], Path]


def as_merged(messages: list[dict[str, str]]) -> Any:
    """A template that refuses the system role: its text goes before the first user turn (task.py)."""
    first, rest = messages[0], messages[1:]
    return as_chatml([{"role": "user", "content": f"{first['content']}\n\n{rest[0]['content']}"}, *rest[1:]])


def as_late_system(messages: list[dict[str, str]]) -> Any:
    """A template that puts the system text before the user's last message, as Mistral's did."""
    *before, last = messages[1:]
    turns = "".join(f"[INST] {m['content']}[/INST]" if m["role"] == "user" else f" {m['content']}</s>" for m in before)
    return f"<s>{turns}[INST] {messages[0]['content']}\n\n{last['content']}[/INST]"


def as_worded(messages: list[dict[str, str]]) -> Any:
    """A template that writes its own words and today's date, in a run that lasted over midnight, trims content, and
    marks the model's turns.
    """
    head = f"Hand over at once.\nToday: {26 + number(messages[-1]['content']) % 2} Jul 2026\n"
    return head + str(as_chatml([{**m, "content": m["content"].strip()} for m in messages]))


TEMPLATES.update(
    {
        as_merged: "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + CHATML,
        as_late_system: (
            "{{ bos_token }}{% for m in messages[1:] %}{% if loop.last %}[INST] {{ messages[0].content }}\n\n"
            "{{ m.content }}[/INST]{% elif m.role == 'user' %}[INST] {{ m.content }}[/INST]"
            "{% else %} {{ m.content }}</s>{% endif %}{% endfor %}"
        ),
        as_worded: "Hand over at once.\nToday: {{ strftime_now('%d %b %Y') }}\n"
        + CHATML.replace("{{ m.content }}", "{% generation %}{{ m.content | trim }}{% endgeneration %}"),
    }
)


def as_typed(messages: list[dict[str, str]]) -> Any:
    """An API's messages with the type of their content."""
    return as_api([{**m, "type": "text"} for m in messages])


ODD = (
    "I'm sorry, but I can't help with that.",
    "",
    "<think>They sound tired. </think>I'm glad that you told me.\n\nWhat would help tonight?",
    "<think>They sound",
    "\u202bشكراً\u202c لأنك أخبرتني 💛 e\u0301 👩‍👩‍👧 तुम अकेले नहीं हो\u200b\u0000\ufeff",
    "I'm here \ud83d with you.",
    "One thing at a time. " * 20_000,
    '<|im_start|>system\n{"tags": [[[ </s> \\ud83d "quoted" \\',
)


def odd(row: Row, turn: int, repeat: int) -> str:
    n = number(row.id, turn, repeat, "odd") % (2 * len(ODD))
    return ODD[n] if n < len(ODD) else say(row, turn, repeat)


OFFLINE: dict[str, dict[str, Any]] = {
    "core": {"tier": "core"},
    "three repeats, and messages that stand alone": {"repeats": 3, "messages": True},
    "messages with a type, no finish reasons": {"form": as_typed, "finish": lambda row, turn: None},
    "odd replies": {"speak": odd},
    "odd endings and settings": {
        "finish": lambda row, turn: ("length", "content_filter", "stop")[number(row.id) % 9 // 4],
        "settings": {"until": ["a", "b"], "extra_body": {"top_k": 3}, "do_sample": False},
    },
}


def test_an_honest_run_of_any_kind_is_a_demo(tmp_path: Path, small: Release) -> None:
    """Tiers, repeats, requests of every form, replies of every kind."""
    refused: dict[str, Any] = {}
    for n, (name, changes) in enumerate(OFFLINE.items()):
        verified = verify(judged_offline(tmp_path / str(n), small, **changes), small)
        card = verified.scorecard
        # What the offline judge leaves open doesn't keep a demo off the board, and leaves no composite.
        if verified.state != "demo" or not card or (card.composite.value is None) != bool(card.judge.left):
            refused[name] = verified.problems
        if "same_repeats" in {f.kind for f in verified.flags}:
            refused[name] = verified.flags
    assert refused == {}


def test_an_error_under_the_limit_is_a_flag(tmp_path: Path, small: Release) -> None:
    """A server that failed once in a core run leaves an unscored verdict, and the reader is told whose."""
    failed = next(
        r.id for r in small.rows.values() if "core" in r.tiers and live_turns(r) == 1 and r.scenario == "P4-B2-S1"
    )
    verified = verify(
        judged_offline(
            tmp_path, small, tier="core", finish=lambda row, turn: "error: timeout" if row.id == failed else "stop"
        ),
        small,
    )
    assert (verified.state, verified.problems) == ("demo", [])
    assert any(f.kind == "unscored" and failed in f.message for f in verified.flags)


def test_one_request_for_all_repeats(tmp_path: Path, small: Release) -> None:
    """Without our layer lm-eval logs one request and N replies to it."""
    run = log(tmp_path / "run", small)
    for path in run.glob("samples_*.jsonl"):
        samples = [json.loads(line) for line in path.read_text().splitlines()]
        for s in samples:
            if len(s["resps"]) == 1:
                s["resps"] = [[s["resps"][0][0], s["resps"][0][0] + " "]]
            else:
                s["resps"] *= 2
                s["arguments"] |= {
                    f"gen_args_{len(s['arguments']) + k}": a for k, a in enumerate(list(s["arguments"].values()))
                }
        path.write_text("".join(json.dumps(s) + "\n" for s in samples))
    score(run, small)
    made = make(run, small, ABOUT, tmp_path / "out")
    assert made.verified.state == "demo"
    assert made.verified.submission is not None
    assert made.verified.submission.generation.repeats == 2


def asked_of(models: list[str], repeats: int = 1, others: tuple[str, ...] = ()) -> Make:
    """A run that several judges, or one several times, have read. They also read replies to messages that stand alone,
    which are no part of a submission.
    """

    def work(home: Path, release: Release) -> Path:
        run = log(home / "run", release, messages=True)
        for model in models:
            answer(run, release, model, repeats=repeats)
            measure(run, release, model)
        judges = [part for name in [*models, *others] for part in ("--judge", name)]
        score(run, release, *judges, *(("--repeats", str(repeats)) if repeats > 1 else ()))
        return make(run, release, ABOUT, home / "out").folder

    return work


PANELS: dict[str, tuple[Make, str]] = {
    "a model asked three times": (asked_of(["claude-test-1"], repeats=3), "verified"),
    "a panel of two, twice": (asked_of(["claude-test-1", "org/qwen-test"], repeats=2), "verified"),
    "a panel with the offline judge": (asked_of(["claude-test-1", "gpt-test-1"], others=("offline",)), "demo"),
}


def test_judges_that_are_language_models(tmp_path: Path, small: Release) -> None:
    """Calibrated models alone, repeated or together are ranked; with the offline judge among them the run is a demo."""
    found = {name: verify(work(tmp_path / str(n), small), small) for n, (name, (work, _)) in enumerate(PANELS.items())}
    assert {name: (v.state, v.problems) for name, v in found.items()} == {n: (s, []) for n, (_, s) in PANELS.items()}


def test_a_judge_that_answers_under_its_dated_name(tmp_path: Path, small: Release) -> None:
    """Providers answer an alias as a snapshot; the submission says which, and what servers add is not carried along."""
    run = log(tmp_path / "run", small)
    answer(run, small, "gpt-test", answered_as="gpt-test-2026-09-01")
    where = batch.folder(run, "gpt-test")
    lines = (where / "replies-1.jsonl").read_text().splitlines(keepends=True)
    (where / "replies-2.jsonl").write_text(
        lines[0]
        + json.dumps(batch.failure(json.loads(lines[1])["custom_id"], "HTTP 500 of sk-aaaabbbbccccdddd", 500))
        + "\n"
    )
    measure(run, small, "gpt-test")
    score(run, small, "--judge", "gpt-test")
    made = make(run, small, ABOUT, tmp_path / "out")
    assert made.verified.state == "verified"
    assert made.verified.submission is not None
    assert made.verified.submission.judge.answered_as == ["gpt-test-2026-09-01"]
    packed = Opened(made.folder).logged["answers.jsonl.gz"]
    assert b"srv-1" not in packed
    assert b"sk-aaaa" not in packed


def kinds(verified: Verified) -> set[str]:
    assert verified.problems == []
    return {f.kind for f in verified.flags}


def named(judged: Path, home: Path, small: Release, **model: Any) -> Verified:
    """The submission as if its model had another name."""
    opened = Opened(copied(judged, home))
    opened.submission["model"].update(model)
    folder = opened.close()
    place = folder.parent.with_name(
        f"{opened.submission['model']['organization']}__{opened.submission['model']['name']}"
    )
    return verify(folder.parent.rename(place) / folder.name, small)


def test_a_judge_of_the_models_family_is_a_flag(judged: Path, tmp_path: Path, small: Release) -> None:
    """Kin is flagged, strangers aren't, and where a name tells nothing the reader is told so, unless the family is
    given.
    """
    assert "same_family" in kinds(named(judged, tmp_path / "a", small, organization="anthropic", name="claude-x"))
    assert not {"same_family", "unknown_family"} & kinds(
        named(judged, tmp_path / "b", small, organization="meta", name="Llama-4")
    )
    assert "unknown_family" in kinds(named(judged, tmp_path / "c", small))
    # Of the usual run only the reply that nobody could read is told.
    assert kinds(named(judged, tmp_path / "d", small, family="llama")) == {"unscored"}


def test_what_a_reader_should_know_is_a_flag(judged: Path, tmp_path: Path, small: Release) -> None:
    """No revision, declared training on the benchmark, and answers by a model that isn't a judge."""
    opened = Opened(copied(judged, tmp_path))
    opened.submission["judge"]["answered_as"] = ["gpt-9"]
    opened.logged[ANSWERS] = opened.logged[ANSWERS].replace(b'"model":"claude-test-1"', b'"model":"gpt-9"')
    opened.submission["model"]["revision"] = None
    opened.submission["declaration"]["trained_on_benchmark"] = "unknown"
    assert kinds(verify(opened.close(), small)) >= {"no_revision", "trained_on_benchmark", "other_answerer"}


def test_what_a_template_adds_is_a_flag(tmp_path: Path, small: Release) -> None:
    """Its own words are shown, and a second day; tokens and role names are neither."""
    for form in (as_transcript, as_late_system, as_merged):
        shown = kinds(verify(judged_offline(tmp_path / form.__name__, small, form=form), small))
        assert not {"template_text", "dates"} & shown, form.__name__
    flags = {f.kind: f.message for f in verify(judged_offline(tmp_path / "worded", small, form=as_worded), small).flags}
    assert "Hand over at once." in flags["template_text"]
    assert "on 2 days" in flags["dates"]


def test_equal_replies_and_repeats_are_a_flag(tmp_path: Path, small: Release) -> None:
    """One text for everybody is said with its share and the largest group; so are the same words in every repeat."""
    text = "Thank you for telling me. Would you like to say a little more?"
    changes = {"repeats": 2, "speak": lambda row, turn, repeat: text if number(row.id) % 2 else say(row, turn, 0)}
    flags = {f.kind: f.message for f in verify(judged_offline(tmp_path, small, **changes), small).flags}
    assert "the largest group has" in flags["same_reply"]
    assert "same text in several repeats" in flags["same_repeats"]


def other_text(folder: Path) -> None:
    """Other order of keys, other spaces, whole numbers for 1.0, exponents, escapes: the same JSON."""
    value = json.loads((folder / SUBMISSION).read_text())
    text = json.dumps(dict(reversed(value.items())), indent=7, ensure_ascii=True)
    text = re.sub(r"(?<=[ :])(-?\d+)\.0(?=[,\n])", r"\1", text)
    text = re.sub(r'(?<="value": )(-?\d+\.\d+)(?=,)', lambda m: f"{float(m[0]) * 1e5:.17g}e-5", text)
    (folder / SUBMISSION).write_text(text)


def other_order(folder: Path) -> None:
    opened = Opened(folder)
    random.Random(1).shuffle(opened.verdicts)
    random.Random(2).shuffle(opened.responses)
    opened.close()


def other_packing(folder: Path) -> None:
    """Another compression level, and no last line end."""
    for path in folder.glob("*.gz"):
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).rstrip(b"\n"), 1))


def other_line_ends(folder: Path) -> None:
    path = folder / VERDICTS
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


REWRITTEN: dict[str, Callable[[Path], object]] = {
    "other text of the same JSON": other_text,
    "other order of lines": other_order,
    "another compression": other_packing,
    "other line ends": other_line_ends,
}


def test_the_same_content_written_another_way_is_accepted(judged: Path, tmp_path: Path, small: Release) -> None:
    """Order, spaces, compression and line ends don't matter."""
    refused: dict[str, Any] = {}
    for n, (name, rewrite) in enumerate(REWRITTEN.items()):
        folder = copied(judged, tmp_path / str(n))
        rewrite(folder)
        files.sign(folder)
        if (verified := verify(folder, small)).state != "verified":
            refused[name] = verified.problems
    assert refused == {}


FAMILIES = {
    "gpt-4o-2024-08-06": {"openai"},
    "o3-mini": {"openai"},
    "openai/gpt-oss-120b": {"openai"},
    "claude-sonnet-4-5": {"claude"},
    "google/gemma-3-27b-it": {"gemini"},
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B": {"deepseek", "llama"},
    "Qwen/Qwen2.5-7B-Instruct": {"qwen"},
    "QwQ-32B": {"qwen"},
    "mistralai/Mixtral-8x7B": {"mistral"},
    "CohereForAI/c4ai-command-r-plus": {"command"},
    "philosopher-2": set[str](),
    offline.NAME: set[str](),
}


def test_names_show_families() -> None:
    """Whole parts of a name count, not letters in it; a distilled model has two families."""
    assert {name: set(families(name)) for name in FAMILIES} == FAMILIES


def test_a_judge_that_answered_in_two_ways_is_a_flag(judged: Path, tmp_path: Path, small: Release) -> None:
    """The first answer counts; that there is another is said."""
    for identity in ("later", None):
        opened = Opened(copied(judged, tmp_path / str(identity)))
        given = next(json.loads(x) for x in opened.logged[ANSWERS].splitlines() if b"FAIL" in x)
        given["response"]["body"]["choices"][0]["message"]["content"] = json.dumps({"label": "PASS", "quotes": []})
        opened.logged[ANSWERS] += json.dumps({**given, "id": identity}).encode() + b"\n"
        assert "two_answers" in kinds(verify(opened.close(), small))
