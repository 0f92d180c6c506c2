"""The live engine against a real loopback judge that answers by a script: bounded, resumable, and silent about its key."""

from __future__ import annotations

import json
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from judge.engine import EngineError, answer, stored
from judge.parse import Parsed
from judge.requests import JudgeRequest

SECRET = "sk-loopback-secret-0123456789"
LABELS = ("PASS", "PARTIAL", "FAIL")
GOOD = '{"label": "PASS", "quotes": ["good day"]}'
PASSED = Parsed("PASS", ("good day",), None)


def said(content: str | None, finish: str = "stop", **message: Any) -> tuple[int, dict[str, str], bytes]:
    """A chat completion with this content."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "judge-1", "choices": [choice]}
    return 200, {}, json.dumps(body).encode()


def failed(status: int, message: str = "planned", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """An OpenAI-style error."""
    return status, headers, json.dumps({"error": {"message": message, "type": "planned", "code": None}}).encode()


class JudgeServer(ThreadingHTTPServer):
    """Answers each prompt by its own script; the last answer of a script repeats. `together`: how many it waits for."""

    daemon_threads = True

    def __init__(self, scripts: dict[str, list[Any]], together: int) -> None:
        super().__init__(("127.0.0.1", 0), JudgeHandler)
        self.scripts, self.together = scripts, together
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.asked: dict[str, int] = defaultdict(int)
        self.keys: set[str] = set()
        self.now = self.peak = 0
        self.change = threading.Condition()

    def reply(self, prompt: str, key: str) -> tuple[int, dict[str, str], bytes]:
        with self.change:
            self.keys.add(key)
            script = self.scripts.get(prompt, [said(GOOD)])
            at = self.asked[prompt]
            self.asked[prompt] += 1
            self.now += 1
            self.peak = max(self.peak, self.now)
            self.change.notify_all()
            self.change.wait_for(lambda: self.peak >= self.together, timeout=5)
            self.change.wait(timeout=0.02 if self.together > 1 else 0)  # room for one that should have waited
            self.now -= 1
        return script[min(at, len(script) - 1)]


class JudgeHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        assert isinstance(self.server, JudgeServer)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, headers, raw = self.server.reply(body["messages"][0]["content"], self.headers["Authorization"])
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(raw)), "Connection": "close", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


Serve = Callable[..., JudgeServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts judges on free ports and stops them; the client's waits between tries are cut from seconds to nothing."""
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.001)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    started: list[JudgeServer] = []

    def start(together: int = 1, **scripts: list[Any]) -> JudgeServer:
        started.append(JudgeServer(scripts, together))
        threading.Thread(target=started[-1].serve_forever, args=(0.01,), daemon=True).start()
        return started[-1]

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def ask(*prompts: str) -> list[JudgeRequest]:
    """Requests whose ids are their prompts, about a reply that says `Have a good day.`"""
    return [JudgeRequest(p, {"model": "judge-1", "messages": [{"role": "user", "content": p}]}, LABELS, "Have a good day.") for p in prompts]


def test_answers_arrive_under_the_id_of_their_question(serve: Serve, tmp_path: Path) -> None:
    """Each question gets its own answer, whatever the order they come in."""
    server = serve(b=[said('{"label": "FAIL", "quotes": []}')])
    found = answer(ask("a", "b", "c"), tmp_path / "new" / "replies.jsonl", server.url, concurrency=3)
    assert found == {"a": PASSED, "b": Parsed("FAIL", (), None), "c": PASSED}
    assert server.asked == {"a": 1, "b": 1, "c": 1}
    assert server.keys == {f"Bearer {SECRET}"}


@pytest.mark.parametrize(
    ("script", "expected", "asks"),
    [
        ([said("no JSON"), said('{"label": "MAYBE", "quotes": []}'), said(GOOD)], PASSED, 3),
        ([failed(429, Retry_After="0"), said(GOOD)], PASSED, 2),
        ([failed(500), failed(503), said(GOOD)], PASSED, 3),
        ([said(None), said(GOOD)], PASSED, 2),
        ([said(GOOD[:-1], "length"), said(GOOD)], PASSED, 2),
        ([said(None, "content_filter")], "judge_refused", 1),
        ([said(None, refusal="I'd rather not.")], "judge_refused", 1),
        ([failed(400)], "error", 1),
        ([failed(500)], "error", 7),
    ],
    ids=["bad JSON twice", "429", "5xx twice", "null", "cut off", "content filter", "refusal", "400", "500 for good"],
)
def test_a_judge_that_stumbles_is_asked_again_and_one_that_declines_is_not(
    serve: Serve, tmp_path: Path, script: list[Any], expected: Parsed | str, asks: int
) -> None:
    """Unreadable answers get two re-asks, wire faults six retries; refusals and bad requests stand at once."""
    server = serve(a=script)
    assert answer(ask("a"), tmp_path / "replies.jsonl", server.url, concurrency=1) == {"a": expected}
    assert server.asked == {"a": asks}


@pytest.mark.parametrize("content", ["PASS", "", None, '{"label": "pass", "quotes": []}'])
def test_an_answer_that_never_parses_is_unscored_after_three_asks(serve: Serve, tmp_path: Path, content: str | None) -> None:
    """No endless loop, and no label from the last attempt; a later run doesn't ask again."""
    server = serve(a=[said(content)])
    for _ in range(2):
        read = answer(ask("a"), tmp_path / "replies.jsonl", server.url, concurrency=1)["a"]
        assert isinstance(read, Parsed)
        assert read.label is None
        assert read.problem
    assert server.asked == {"a": 3}


@pytest.mark.parametrize("raw", [b"<html>gateway</html>", b'{"choices": [{"index": 0, "mess', b'{"choices": null}', b'"ok"', b"[]"])
def test_an_answer_that_is_no_completion_costs_one_verdict_and_not_the_run(serve: Serve, tmp_path: Path, raw: bytes) -> None:
    """A proxy's page with status 200 is an error of the wire; the other questions are still answered."""
    server = serve(a=[(200, {}, raw)])
    assert answer(ask("a", "b"), tmp_path / "replies.jsonl", server.url, concurrency=1) == {"a": "error", "b": PASSED}


def test_a_second_run_asks_nothing_that_is_answered(serve: Serve, tmp_path: Path) -> None:
    """Answers are read from disk; the same question twice in one run is asked once."""
    server, path = serve(), tmp_path / "replies.jsonl"
    first = answer(ask("a", "b", "a"), path, server.url, concurrency=2)
    before = path.read_bytes()
    assert answer(ask("b", "a"), path, server.url, concurrency=2) == first
    assert path.read_bytes() == before
    assert server.asked == {"a": 1, "b": 1}
    assert answer(ask("a", "c"), path, server.url, concurrency=1)["c"] == PASSED
    assert server.asked == {"a": 1, "b": 1, "c": 1}


def test_a_line_that_was_cut_short_is_asked_again(serve: Serve, tmp_path: Path) -> None:
    """After a kill in the middle of a line, only that line's question goes out again."""
    server, path = serve(), tmp_path / "replies.jsonl"
    answer(ask("a", "b", "c"), path, server.url, concurrency=1)
    whole = path.read_bytes()
    lost = json.loads(whole.splitlines()[-1])["custom_id"]
    path.write_bytes(whole[:-20])
    assert set(stored(path)) == {"a", "b", "c"} - {lost}
    assert answer(ask("a", "b", "c"), path, server.url, concurrency=1) == {"a": PASSED, "b": PASSED, "c": PASSED}
    assert server.asked == {p: 2 if p == lost else 1 for p in "abc"}
    assert path.read_bytes() == whole


def test_a_question_that_ended_in_an_error_is_asked_again_by_the_next_run(serve: Serve, tmp_path: Path) -> None:
    """An outage is no answer: once the judge is back, the same command scores what the outage left out."""
    path = tmp_path / "replies.jsonl"
    assert answer(ask("a"), path, serve(a=[failed(500)]).url, concurrency=1) == {"a": "error"}
    assert answer(ask("a"), path, serve().url, concurrency=1) == {"a": PASSED}


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_endpoint_that_turns_everybody_away_is_an_error_without_the_key(
    serve: Serve, tmp_path: Path, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Servers repeat the key in their message; neither ours, the traceback, the terminal nor the disk does."""
    server, path = serve(a=[failed(status, f"Incorrect API key provided: {SECRET}")]), tmp_path / "replies.jsonl"
    with pytest.raises(EngineError, match=f"judge-1 .*HTTP {status}") as caught:
        answer(ask("a"), path, server.url, concurrency=1)
    written = "".join(p.read_text() for p in tmp_path.rglob("*") if p.is_file())
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + written + "".join(capfd.readouterr())


def test_a_connection_that_is_refused_is_an_error_and_loses_nothing(serve: Serve, tmp_path: Path) -> None:
    """What was answered before the judge went away is still there."""
    server, path = serve(), tmp_path / "replies.jsonl"
    answer(ask("a"), path, server.url, concurrency=1)
    server.shutdown()
    server.server_close()
    with pytest.raises(EngineError, match="APIConnectionError") as caught:
        answer(ask("a", "b"), path, server.url, concurrency=1)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert answer(ask("a"), path, server.url, concurrency=1) == {"a": PASSED}


def test_the_key_is_in_no_file(serve: Serve, tmp_path: Path) -> None:
    """Answers and errors are kept, headers are not, even where the judge's error repeats the key."""
    server = serve(a=[said(GOOD)], b=[failed(400, f"key {SECRET}")], c=[said(None, "content_filter")])
    answer(ask("a", "b", "c"), tmp_path / "replies.jsonl", server.url, concurrency=3)
    written = (tmp_path / "replies.jsonl").read_text()
    assert len(written.splitlines()) == 3
    assert SECRET not in written


@pytest.mark.parametrize("bound", [1, 2, 4])
def test_no_more_questions_are_under_way_than_asked_for(serve: Serve, tmp_path: Path, bound: int) -> None:
    """The bound is reached and never passed."""
    server = serve(together=bound)
    found = answer(ask(*"abcdefgh"), tmp_path / "replies.jsonl", server.url, concurrency=bound)
    assert set(found.values()) == {PASSED}
    assert server.peak == bound
