"""The live engine against a real loopback judge: bounded, resumable, within its budget, and silent about its key."""

from __future__ import annotations

import json
import resource
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.judge_server import GOOD, JudgeServer, Said, Serve, failed, said

from judge.llm import engine
from judge.llm.answers import Parsed
from judge.llm.asking import Collected, collect
from judge.llm.batch import Answer, Log, Replies, read
from judge.llm.budget import Prices, Terms
from judge.llm.engine import Endpoint
from judge.llm.errors import EngineError
from judge.llm.questions import JudgeRequest

SECRET = "sk-loopback-secret-0123456789"
LABELS = ("PASS", "PARTIAL", "FAIL")
PASSED = Parsed("PASS", ("good day",), None)
PRICES = Prices(1e6, 1e6)  # one unit of money per token


@pytest.fixture
def serve(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Starts judges that answer each prompt by its own script, whose last answer repeats."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    def start(together: int = 1, **scripts: list[Said]) -> JudgeServer:
        def script(body: dict[str, Any], attempt: int) -> Said:
            answers = scripts.get(body["messages"][0]["content"], [said(GOOD)])
            return answers[min(attempt, len(answers)) - 1]

        return serve(script, together)

    return start


def questions(prompts: str) -> list[JudgeRequest]:
    """Requests whose ids are their prompts, one letter each, about a reply that says `Have a good day.`"""
    body = {"model": "judge-1", "max_tokens": 10}
    return [
        JudgeRequest(p, {**body, "messages": [{"role": "user", "content": p}]}, LABELS, "Have a good day.")
        for p in prompts
    ]


def ask(
    prompts: str, where: Path, url: str, concurrency: int = 1, timeout: float = 5.0, cap: float | None = None
) -> Collected:
    return collect(lambda: iter(questions(prompts)), where, Endpoint(url, concurrency, timeout), Terms(PRICES, cap))


def answers(prompts: str, where: Path) -> dict[str, Answer]:
    """What stands on the disk, as `helmbench score` reads it."""
    replies = Replies(where)
    return {r.custom_id: read(replies.of(r.custom_id), r).answer for r in questions(prompts)}


def test_answers_arrive_under_the_id_of_their_question(serve: Serve, tmp_path: Path) -> None:
    """Each question gets its own answer, whatever the order they come in; the same question twice is asked once."""
    server = serve(b=[said('{"label": "FAIL", "quotes": []}')])
    done = ask("abca", tmp_path / "new", server.url, concurrency=3)
    assert answers("abc", tmp_path / "new") == {"a": PASSED, "b": Parsed("FAIL"), "c": PASSED}
    assert server.asked == {"a": 1, "b": 1, "c": 1}
    assert server.keys == {f"Bearer {SECRET}"}
    assert (done.asked, done.left, done.outcome.read) == (3, 0, 3)


def test_a_base_url_may_name_the_whole_path(serve: Serve, tmp_path: Path) -> None:
    """lm-eval wants `…/v1/chat/completions`, others `…/v1`; both reach the judge."""
    for n, end in enumerate(("", "/", "/chat/completions")):
        ask("a", tmp_path / str(n), serve().url + end)
        assert answers("a", tmp_path / str(n)) == {"a": PASSED}


STUMBLES: dict[str, tuple[list[Said], Answer, int]] = {
    "bad JSON twice": ([said("no JSON"), said('{"label": "MAYBE", "quotes": []}'), said(GOOD)], PASSED, 3),
    "429": ([failed(429, Retry_After="0"), said(GOOD)], PASSED, 2),
    "5xx twice": ([failed(500), failed(503), said(GOOD)], PASSED, 3),
    "null": ([said(None), said(GOOD)], PASSED, 2),
    "length": ([said(GOOD[:-1], "length"), said(GOOD)], PASSED, 2),
    "content filter": ([said(None, "content_filter")], "judge_refused", 1),
    "refusal": ([said(None, refusal="I'd rather not.")], "judge_refused", 1),
    "filtered with 400": ([failed(400, code="content_filter")], "judge_refused", 1),
    "400": ([failed(400)], "error", 1),
    "500 for good": ([failed(500)], "error", 7),
    "cut connection": ([said(GOOD)._replace(cut=True), said(GOOD)], PASSED, 2),
    "a page": ([Said(200, {}, b"<html>gateway</html>"), said(GOOD)], PASSED, 2),
    "no choices": ([Said(200, {}, b'{"choices": null}'), said(GOOD)], PASSED, 2),
    "a list for good": ([Said(200, {}, b"[]")], "error", 7),
    "sent twice": ([said(GOOD)._replace(copies=2)], PASSED, 1),
}


def test_a_judge_that_stumbles_is_asked_again_and_one_that_declines_is_not(serve: Serve, tmp_path: Path) -> None:
    """Unreadable answers get two re-asks, wire faults six retries; refusals and bad requests stand at once. Others are
    unharmed.
    """
    for name, (script, expected, asks) in STUMBLES.items():
        server = serve(a=script)
        ask("ab", tmp_path / name, server.url)
        assert answers("ab", tmp_path / name) == {"a": expected, "b": PASSED}, name
        assert server.asked == {"a": asks, "b": 1}, name


def test_half_a_character_in_an_answer_blocks_nothing(serve: Serve, tmp_path: Path) -> None:
    """JSON can hold one and no file can. The answer is stored with a replacement, read, and never asked for again."""
    body = json.loads(said(GOOD, "stop\ud800").body) | {"model": "judge\ud800"}
    refused = said(None, refusal="\ud800")
    unread = said('{"label": "PASS", "quotes": ["good \ud800day"]}')
    server = serve(a=[Said(200, {}, json.dumps(body).encode())], b=[refused], c=[unread])
    ask("abc", tmp_path, server.url)
    found = answers("abc", tmp_path)
    assert (found["a"], found["b"]) == (PASSED, "judge_refused")
    assert isinstance(found["c"], Parsed)
    assert found["c"].label is None
    assert "judge\ufffd" in (tmp_path / "replies.jsonl").read_text(encoding="utf-8")
    assert not ask("abc", tmp_path, server.url).asked
    assert server.asked == {"a": 1, "b": 1, "c": 3}


def test_a_slow_answer_is_given_up_and_asked_again(serve: Serve, tmp_path: Path) -> None:
    """--timeout holds for one attempt."""
    server = serve(a=[said(GOOD)._replace(wait=1.0), said(GOOD)])
    ask("a", tmp_path, server.url, timeout=0.2)
    assert answers("a", tmp_path) == {"a": PASSED}
    assert server.asked == {"a": 2}


def test_a_late_second_copy_is_not_the_next_questions_answer(serve: Serve, tmp_path: Path) -> None:
    """An answer that comes again over the idle connection belongs to nobody; the connection isn't used again."""
    twice = said('{"label": "FAIL", "quotes": []}')._replace(wait=0.05, copies=2, apart=0.05)
    # The 429 keeps c from being asked until the second copy has come over the connection that a used.
    server = serve(a=[twice], b=[failed(429, retry_after_ms="300"), said(GOOD)])
    ask("abc", tmp_path, server.url, concurrency=2)
    assert answers("abc", tmp_path) == {"a": Parsed("FAIL"), "b": PASSED, "c": PASSED}


def test_retry_after_holds_back_every_question(serve: Serve, tmp_path: Path) -> None:
    """A limit is the key's, not the question's: after a 429 nobody asks before the time that the server named."""
    for header, value, least in (("Retry_After", "1", 0.95), ("retry_after_ms", "300", 0.28)):
        server = serve(a=[failed(429, **{header: value}), said(GOOD)])
        ask("abc", tmp_path / header, server.url)
        assert server.times[1] - server.times[0] >= least
        assert set(answers("abc", tmp_path / header).values()) == {PASSED}


def test_waits_of_one_question_end_with_patience(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that asks for a wait with each attempt is asked until they come to more than one may be."""
    monkeypatch.setattr(engine, "PATIENCE", 0.25)
    server = serve(a=[failed(429, retry_after_ms="100")])
    ask("ab", tmp_path, server.url)
    assert answers("ab", tmp_path) == {"a": "error", "b": PASSED}
    assert server.asked == {"a": 3, "b": 1}


def test_an_answer_that_never_parses_is_unscored_after_three_asks(serve: Serve, tmp_path: Path) -> None:
    """No endless loop, and no label from the last attempt; a later run doesn't ask again, and counts earlier asks."""
    contents = {"a": "PASS", "b": "", "c": None, "d": '{"label": "pass", "quotes": []}'}
    server = serve(**{p: [said(content)] for p, content in contents.items()})
    for asked in (4, 0):
        assert ask("abcd", tmp_path, server.url).asked == asked
        for found in answers("abcd", tmp_path).values():
            assert isinstance(found, Parsed)
            assert found.label is None
            assert found.problem
    assert server.asked == dict.fromkeys("abcd", 3)
    path = tmp_path / "replies.jsonl"
    lines = [line for line in path.read_bytes().splitlines(keepends=True) if json.loads(line)["custom_id"] == "a"]
    path.write_bytes(b"".join(lines[:2]))
    ask("a", tmp_path, server.url)
    assert server.asked["a"] == 4


def test_a_second_run_asks_nothing_that_is_answered(serve: Serve, tmp_path: Path) -> None:
    """Answers are read from disk; only the one question that is new goes out."""
    server, path = serve(), tmp_path / "replies.jsonl"
    ask("ab", tmp_path, server.url, concurrency=2)
    before = path.read_bytes()
    assert ask("ba", tmp_path, server.url, concurrency=2).asked == 0
    assert path.read_bytes() == before
    assert len((tmp_path / "requests.jsonl").read_text().splitlines()) == 2, "the record of what was asked stays"
    ask("ac", tmp_path, server.url)
    assert server.asked == {"a": 1, "b": 1, "c": 1}
    assert path.read_bytes().startswith(before)


def test_a_line_cut_at_any_byte_is_asked_again(serve: Serve, tmp_path: Path) -> None:
    """After a kill in the middle of a line, only that line's question goes out again, and no line is damaged."""
    server, path = serve(), tmp_path / "replies.jsonl"
    ask("abc", tmp_path, server.url)
    *kept, last = path.read_bytes().splitlines(keepends=True)
    for n, cut in enumerate([1, 2, len(last) // 3, len(last) // 2, len(last) - 2], start=2):
        path.write_bytes(b"".join(kept) + last[:cut])
        ask("abc", tmp_path, server.url)
        assert set(answers("abc", tmp_path).values()) == {PASSED}
        assert server.asked == {"a": 1, "b": 1, "c": n}
        assert path.read_bytes().startswith(b"".join(kept))
    path.write_bytes(path.read_bytes()[:-1])  # only the line's end is lost: the answer is whole
    ask("abcd", tmp_path, server.url)
    assert server.asked["c"] == n
    assert [json.loads(line)["custom_id"] for line in path.read_text().splitlines()] == ["a", "b", "c", "d"]


def test_a_question_that_ended_in_an_error_is_asked_again_by_the_next_run(serve: Serve, tmp_path: Path) -> None:
    """An outage is no answer: once the judge is back, the same command gets what the outage left out."""
    done = ask("a", tmp_path, serve(a=[failed(500)]).url)
    assert (done.outcome.failed, done.left, done.outcome.problem) == (1, 1, "HTTP 500 planned")
    ask("a", tmp_path, serve().url)
    assert answers("a", tmp_path) == {"a": PASSED}


def test_an_endpoint_that_turns_everybody_away_is_an_error_at_the_first_answer(serve: Serve, tmp_path: Path) -> None:
    """In one line that names the address; test_strangers.py looks for the key."""
    rejected = {401: None, 402: None, 403: None, 404: None, 307: None, 429: "insufficient_quota"}
    for status, code in rejected.items():
        server = serve(a=[failed(status, "no", code)])
        with pytest.raises(EngineError, match=f"judge at {server.url}: HTTP {status}"):
            ask("abcdef", tmp_path, server.url)
        assert server.total == 1


def test_a_connection_that_is_refused_is_an_error_and_loses_nothing(serve: Serve, tmp_path: Path) -> None:
    """What was answered before the judge went away is still there; a password in the address isn't shown."""
    server = serve()
    ask("a", tmp_path, server.url)
    server.shutdown()
    server.server_close()
    with pytest.raises(EngineError, match="connection refused; is the server up") as caught:
        ask("ab", tmp_path, server.url.replace("//", f"//user:{SECRET}@"))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert answers("a", tmp_path) == {"a": PASSED}


def test_an_endpoint_that_fails_everybody_is_given_up(serve: Serve, tmp_path: Path) -> None:
    """When 20 questions in a row get no answer, the 80 after them aren't sent."""
    prompts = "".join(chr(0x4E00 + n) for n in range(100))
    server = serve(**{p: [failed(400)] for p in prompts})
    with pytest.raises(EngineError, match="20 questions in a row got no answer, the last: HTTP 400"):
        ask(prompts, tmp_path, server.url)
    assert server.total == 20


def test_no_more_questions_are_under_way_than_asked_for(serve: Serve, tmp_path: Path) -> None:
    """The bound is reached and never passed."""
    for bound in (1, 4):
        server = serve(together=bound)
        ask("abcdefgh", tmp_path / str(bound), server.url, concurrency=bound)
        assert set(answers("abcdefgh", tmp_path / str(bound)).values()) == {PASSED}
        assert server.peak == bound


def test_two_runs_can_not_write_one_file(serve: Serve, tmp_path: Path) -> None:
    """A second process would ask everything twice; it is told to wait."""
    with (
        closing(Log(tmp_path)),
        pytest.raises(EngineError, match=r"replies\.jsonl: another `helmbench judge` is writing it"),
    ):
        ask("a", tmp_path, serve().url)


def test_a_write_that_fails_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    """What comes after it is whole too."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(Log(tmp_path)) as log:
        log.write(["first\n"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
        try:
            with pytest.raises(OSError, match=r"File too large.*replies\.jsonl"):
                log.write(["never whole\n"])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        log.write(["last\n"])
        assert log.path.read_text() == "first\nlast\n"


class TestCap:
    """With one unit of money per token, a question's worst case is its request's bytes + 10."""

    WORST = len(json.dumps(questions("a")[0].body, ensure_ascii=False)) + 10

    def test_the_cap_is_never_passed(self, serve: Serve, tmp_path: Path) -> None:
        """Every answer uses its worst case: exactly as many questions go out as the cap pays for, at any
        concurrency.
        """
        for concurrency in (1, 4):
            server = serve(**{p: [said(GOOD, usage=(self.WORST - 10, 10))] for p in "abcdefgh"})
            done = ask("abcdefgh", tmp_path / str(concurrency), server.url, concurrency, cap=5 * self.WORST + 3)
            assert (server.total, done.outcome.read, done.outcome.capped) == (5, 5, True)
            assert done.spent.prompt + done.spent.completion == 5 * self.WORST

    def test_reported_usage_makes_room(self, serve: Serve, tmp_path: Path) -> None:
        """A reservation is given back as far as it wasn't used: 8 × 11 tokens and one worst case fit where 8 worst
        cases don't.
        """
        server = serve(**{p: [said(GOOD, usage=(10, 1))] for p in "abcdefgh"})
        done = ask("abcdefgh", tmp_path, server.url, 4, cap=7 * 11 + self.WORST)
        assert (server.total, done.outcome.capped, done.spent.prompt, done.spent.completion) == (8, False, 80, 8)

    def test_what_nobody_reported_counts_as_the_worst(self, serve: Serve, tmp_path: Path) -> None:
        """After a timeout, a cut connection or an answer without usage the tokens may have been billed; no provider
        bills a 429 or a 500.
        """
        known, unknown = said(GOOD, usage=(10, 1)), said(GOOD, usage=None)
        for n, (script, spent) in enumerate(
            [
                (known._replace(wait=0.5), self.WORST + 11),
                (known._replace(cut=True), self.WORST + 11),
                (unknown, self.WORST),
                (failed(504), self.WORST + 11),
                (failed(429, Retry_After="0"), 11),
                (failed(500), 11),
            ]
        ):
            url = serve(a=[script, known]).url
            done = ask("a", tmp_path / str(n), url, timeout=0.2, cap=10 * self.WORST)
            assert done.spent.prompt + done.spent.completion == spent, n

    def test_one_answer_does_not_use_up_the_cap(self, serve: Serve, tmp_path: Path) -> None:
        """A prompt of more tokens than bytes can't be, nor an answer of many times max_tokens; a bit more can. A later
        run that has the replies alone counts the same.
        """
        absurd = {(10_000_000, 1): self.WORST - 9, (1, 10_000_000): 41, (1, 40): 41, (1, 11): 12}
        for n, (usage, counted) in enumerate(absurd.items()):
            where = tmp_path / str(n)
            server = serve(**{p: [said(GOOD, usage=usage)] for p in "ab"})
            done = ask("ab", where, server.url, cap=10 * self.WORST)
            assert (done.outcome.read, done.spent.prompt + done.spent.completion) == (2, 2 * counted)
            (where / "spent.json").unlink()
            assert ask("ab", where, server.url, cap=10 * self.WORST).spent == done.spent

    def test_a_later_run_knows_what_was_spent(self, serve: Serve, tmp_path: Path) -> None:
        """The cap holds over restarts, timeouts included; a higher one goes on where it stopped."""
        full = said(GOOD, usage=(self.WORST - 10, 10))
        server = serve(a=[full._replace(wait=0.5), full], **{p: [full] for p in "bcd"})
        assert ask("abcd", tmp_path, server.url, timeout=0.2, cap=3 * self.WORST).outcome.read == 2
        before = server.total
        assert ask("abcd", tmp_path, server.url, cap=3 * self.WORST).outcome.capped
        assert server.total == before
        done = ask("abcd", tmp_path, server.url, cap=5 * self.WORST)
        assert (server.total, done.outcome.capped) == (before + 2, False)

    def test_without_its_ledger_the_replies_tell(self, serve: Serve, tmp_path: Path) -> None:
        """Answers of any engine carry what they used."""
        full = said(GOOD, usage=(self.WORST - 10, 10))
        server = serve(**{p: [full] for p in "abc"})
        ask("ab", tmp_path, server.url)
        (tmp_path / "spent.json").unlink()
        (tmp_path / "replies.jsonl").rename(tmp_path / "replies-batch.jsonl")
        assert ask("abc", tmp_path, server.url, cap=2 * self.WORST).outcome.capped
        assert server.total == 2
