"""Keys and passwords: what looks like one is never packed and never verified, and what doesn't stays as it is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.submission_runs import ABOUT, Opened, judged_offline, log, score

from dataset_builder.release import Release
from judge.replies.schema import Reply, RunError
from judge.schema import Verdict
from leaderboard import secrets
from leaderboard.public import public_verdicts
from leaderboard.submit.pack import make
from leaderboard.verify.verify import verify

KEY = "hunter2hunter2"
NAMES = (
    *("pwd", "passwd", "pass", "credentials", "cookie", "bearer", "sig", "password", "api_key", "apiKey", "db_pass"),
    *("passcode", "ssh_psk", "otp", "sentry_dsn", "connection_string", "secretAccessKey", "login_cookie", "Bearer"),
    *("userPass", "X-Signature", "session_id", "jwt", "client_secret", "access_token", "OPENAI_API_KEY", "oauth"),
)
VALUES = (
    f"https://host/v1?sig={KEY}",
    f"https://host/v1#key={KEY}",
    f"https://me:{KEY}@host/v1",
    f"me:{KEY}@host/v1",
    f"host;me:{KEY}@other",
    f"pwd={KEY}",
    f"cookie={KEY}",
    f'{{"api_key": "{KEY}"}}',
    f"{{'pass': '{KEY}'}}",
    f'"{{\\"credentials\\": \\"{KEY}\\"}}"',
    "Cookie: sid=123",
    "authorization: bearer abcdefgh1",
    "Basic dXNlcjpwYXNzd29yZA==",
    f"password: {KEY}",
    f"PASSWORD={KEY}",
    f"--api-key {KEY}",
    f"--token={KEY}",
    f"X-Api-Key: {KEY}",
    f"Authorization: Token {KEY}",
    f"AccountName=x;AccountKey={KEY}",
    f"SharedAccessSignature={KEY}",
    f"aws_secret_access_key = {KEY}",
    f"mysql://root:{KEY}@host/db",
    f"redis://:{KEY}@host",
    f"https://host/?x=1&auth_token={KEY}",
    "a1B2c3D4e5F6g7H8i9J0k1L2",
    *(f"{prefix}{'a1' * 10}" for prefix in ("npm_", "gsk_", "sk_live_", "xai-", "ya29.", "hvs.", "pypi-", "r8_")),
    "ASIA" + "A1" * 8,
    "sk-" + "a1b2" * 6,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
)
HONEST_NAMES = (
    *("model", "base_url", "num_concurrent", "max_gen_toks", "max_new_tokens", "eos_token", "stop_token_ids", "dtype"),
    *("skip_special_tokens", "temperature", "until", "device_map", "compass", "bypass", "passage", "design", "monkey"),
)
HONEST_VALUES = (
    "https://api.example.com/v1/chat/completions",
    "http://127.0.0.1:8000/v1",
    "https://res.example.com/openai/deployments/gpt-4o-2024-08-06/chat/completions",
    "meta-llama/Llama-3.1-8B-Instruct",
    "llama3:70b-instruct-q4_K_M",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "ann@example.org",
    "mailto:ann@example.org",
    "https://example.org/about#contact",
    "The key: trust in people. Its signature moves: none; token: see the card",
    "Qwen2VLForConditionalGeneration",
    "NousResearch/Nous-Hermes-2-Mixtral-8x7B-DPO",
    "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "Trained on public text; it may pass: see the card.",
)
LONG = {
    "eyJ-": 250_000,
    "a:": 500_000,
    "https://": 125_000,
    "https://h/": 100_000,
    "a1B": 333_333,
    "user:": 200_000,
    "cookie": 166_666,
    "Bearer ": 142_857,
    "a1B2": 250_000,
    "password: ": 100_000,
    "--key ": 160_000,
    "key = ": 160_000,
    "-----BEGIN ": 90_000,
}


def test_names_and_values_of_keys_are_found_and_others_kept() -> None:
    """Tokens of text, addresses, models, commits and sentences aren't keys."""
    assert [n for n in (*NAMES, *HONEST_NAMES) if secrets.named_like(n)] == [*NAMES]
    assert [v for v in (*VALUES, *HONEST_VALUES) if secrets.holds(v)] == [*VALUES]


def test_a_submission_with_a_key_is_refused(small: Release, tmp_path: Path) -> None:
    """By the name of an argument or setting, or by the look of a value, which isn't repeated; a number is no key."""
    opened = Opened(judged_offline(tmp_path, small))
    opened.submission["generation"]["arguments"] |= {"db_pass": "x", "extra": f"https://host/v1?sig={KEY}"}
    opened.submission["generation"]["generation_kwargs"] |= {"session": "abc", "pass": 3}
    problems = verify(opened.close(), small).problems
    found = [f"{p.kind} {p.where.partition('generation.')[2]} {p.message}" for p in problems]
    assert [f.partition(",")[0] for f in sorted(found)] == [
        "secret arguments has db_pass",
        "secret arguments.extra contains what looks like a key",
        "secret generation_kwargs has session",
    ]
    assert KEY not in "".join(found)


def test_no_key_is_packed(small: Release, tmp_path: Path) -> None:
    """Left out or cut off where a whole value isn't a key; else nothing is written."""
    arguments = {name: KEY for name in NAMES} | {
        "pretrained": "/home/ann/models/north-2",
        "base_url": f"https://me:{KEY}@host/v1/a1B2c3D4e5F6g7H8/chat?sig={KEY}#key={KEY}",
        "proxy": f"me:{KEY}@proxy:8080",
        "dtype": "auto",
    }
    run = log(tmp_path / "run", small, config={"model": "hf", "model_args": arguments, "limit": None})
    score(run, small)
    made = make(run, small, ABOUT, tmp_path / "out")
    assert made.verified.submission is not None
    assert made.verified.submission.generation.arguments == {
        "pretrained": "north-2",
        "base_url": "https://host",
        "proxy": "proxy:8080",
        "dtype": "auto",
    }
    everything = b"".join(p.read_bytes() for p in made.folder.iterdir())
    assert KEY.encode() not in everything
    assert b"a1B2c3D4" not in everything
    assert "generation.arguments.pwd: left out, a name under which keys are passed" in made.notes
    assert "generation.arguments.pretrained: shortened to north-2" in made.notes
    assert str(tmp_path).encode() not in everything


def test_a_key_in_a_whole_value_stops_the_packing(small: Release, tmp_path: Path) -> None:
    """What can't be cut off without changing what the value says: an argument, a setting."""
    arguments, settings = {"extra": f"cookie={KEY}"}, {"until": [], "user": "sk-" + "a1b2c3d4" * 4}
    config = {"model": "hf", "model_args": arguments, "limit": None}
    run = log(tmp_path / "run", small, settings=settings, config=config)
    score(run, small)
    with pytest.raises(RunError, match=r"(?s)secret: .*generation\.arguments\.extra.*generation_kwargs\.user"):
        make(run, small, ABOUT, tmp_path / "out")
    assert list(tmp_path.glob("out/**/*")) == []


def test_a_megabyte_of_almost_a_key_is_read_in_seconds() -> None:
    """Patterns run in linear time."""
    slow: list[str] = []
    for piece, times in LONG.items():
        started = time.process_time()
        secrets.holds(piece * times)
        slow += [piece] if time.process_time() - started > 5 else []
    assert slow == []


def test_a_quote_with_a_key_a_path_or_hidden_characters_is_withheld() -> None:
    """A model may write it and a judge quote it; no public file contains it."""
    for quote in ("the key is sk-" + "a1B2" * 6, "see /home/ann/notes.txt", "so \u202ereversed", "\x1b[31m"):
        reply = Reply(id="a", turns=(f"Well, {quote}. Ring somebody.",))
        verdict = Verdict(
            id="a", repeat=0, index=0, check="criterion", behavior="P1-B1", turn=1, label="PASS", decided_by="judge"
        )
        plain, odd = (verdict.model_copy(update={"evidence": (q,)}) for q in ("Ring somebody", quote))
        assert public_verdicts([plain], [reply], {})[0].evidence == ("Ring somebody",)
        assert public_verdicts([odd], [reply], {})[0].evidence == ("[withheld]",), quote
