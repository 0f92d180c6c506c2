"""The batch format between questions and verdicts: files of any engine are read by one reader, and nothing is asked
twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helmbench.cli.app import main
from support.judge_server import GOOD, JudgeServer, Serve, by_hash, failed, said
from support.scores import scores

from dataset_builder.release import Release
from helmbench_common.jsonl import LONGEST
from judge.llm.answers import Parsed
from judge.llm.batch import Answer, Replies, missing, read
from judge.llm.budget import NOTHING
from judge.llm.questions import JudgeRequest
from judge.replies.schema import RunError

LABELS = ("PASS", "PARTIAL", "FAIL")
PASSED = Parsed("PASS", ("good day",))
SECRET = "sk-batch-secret-0123456789"


def question(identity: str = "q1") -> JudgeRequest:
    return JudgeRequest(identity, {"model": "judge-1"}, LABELS, "Have a good day.")


def completion(content: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion as a server gives it, with all that isn't read."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **message},
        "logprobs": None,
        "finish_reason": finish,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "judge-1",
        "choices": [choice],
        "usage": {"prompt_tokens": 9},
    }


def openai_line(
    identity: str, body: Any, status: int = 200, error: Any = None, line: str = "batch_req_1"
) -> dict[str, Any]:
    """A line of an OpenAI batch's output or error file."""
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": line, "custom_id": identity, "response": response, "error": error}


def vllm_line(identity: str, content: str, line: str = "vllm-1") -> dict[str, Any]:
    """A line as `vllm run-batch` writes it (its BatchRequestOutput of a ChatCompletionResponse)."""
    body = completion(content, reasoning_content=None, tool_calls=[], annotations=None)
    body |= {"prompt_logprobs": None, "service_tier": None, "kv_transfer_params": None}
    return openai_line(identity, body, line=line)


def vllm_error(identity: str) -> dict[str, Any]:
    """What `vllm run-batch` writes where its server gave an error."""
    said = {"error": {"message": "too long", "type": "BadRequestError", "param": None, "code": 400}}
    return openai_line(identity, None, 400, said, "vllm-2")


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


def test_every_engines_line_is_read_by_one_reader(tmp_path: Path) -> None:
    """What OpenAI, Azure and vLLM write comes to a label, a refusal or an error."""
    good = completion(GOOD)
    expired = {"code": "batch_expired", "message": "expired"}
    cases: list[tuple[dict[str, Any], Answer]] = [
        (openai_line("q1", good), PASSED),
        (vllm_line("q1", GOOD), PASSED),
        (openai_line("q1", good | {"error": None}), PASSED),
        (openai_line("q1", completion(GOOD, role=None)), PASSED),
        (openai_line("q1", completion(None, refusal="No.")), "judge_refused"),
        (openai_line("q1", completion("", "content_filter")), "judge_refused"),
        (openai_line("q1", {"error": {"code": "content_filter", "message": "filtered"}}, 400), "judge_refused"),
        (openai_line("q1", {"error": {"code": "rate_limit_exceeded"}}, 429), "error"),
        (vllm_error("q1"), "error"),
        ({"id": "x", "custom_id": "q1", "response": None, "error": expired}, "error"),
        (openai_line("q1", {"choices": []}), "error"),
        (openai_line("q1", "a page"), "error"),
        (openai_line("q1", good | {"choices": [{"message": {"content": [1]}}]}), "error"),
        (openai_line("q1", completion(GOOD, "error") | {"error": {"message": "upstream"}}), "error"),
        (openai_line("q1", good | {"choices": 2 * good["choices"]}), "error"),
        (openai_line("q1", good | {"choices": "x"}), "error"),
        (openai_line("q1", completion(GOOD, role="user")), "error"),
        (openai_line("q1", completion(GOOD, role=["assistant"])), "error"),
    ]
    odd: list[Any] = [[], "text", 7, [1], {"body": []}, {"body": {"usage": []}}, {"body": {"usage": 7}}]
    cases += [({"id": "l1", "custom_id": "q1", "response": response, "error": None}, "error") for response in odd]
    for n, (record, expected) in enumerate(cases):
        write(tmp_path / "replies-1.jsonl", record)
        replies = Replies(tmp_path)
        assert read(replies.of("q1"), question()).answer == expected, n
        assert replies.live == NOTHING


def test_shards_merge_and_the_first_readable_answer_wins(tmp_path: Path) -> None:
    """Lines of one question may stand in several files; errors and unreadable ones don't hide an answer."""
    write(
        tmp_path / "replies-1.jsonl",
        vllm_error("q1"),
        openai_line("q2", completion("?")),
        openai_line("other", completion(GOOD)),
    )
    write(
        tmp_path / "replies-2.jsonl",
        openai_line("q1", completion('{"label": "FAIL", "quotes": []}')),
        openai_line("q2", completion(GOOD), line="l2"),
    )
    write(tmp_path / "replies.jsonl", openai_line("q1", completion(GOOD)))
    replies = Replies(tmp_path)
    assert read(replies.of("q1"), question()).answer == Parsed("FAIL")
    assert read(replies.of("q2"), question("q2")).answer == PASSED
    assert read(replies.of("q3"), question("q3")) == ("error", 0, True)
    assert list(missing([question("q1"), question("q2"), question("q3")], replies)) == [(question("q3"), 0)]


def test_half_a_character_in_another_engines_file_is_read_or_named(tmp_path: Path) -> None:
    """In an answer it is replaced; in an id, which then is no question's, its line is named."""
    path = tmp_path / "replies-1.jsonl"
    answer = completion('{"label": "PASS", "quotes": ["good day"]}\ud800')
    path.write_text(json.dumps(openai_line("q1", answer | {"model": "\ud800"})) + "\n")
    found = read(Replies(tmp_path).of("q1"), question())
    assert isinstance(found.answer, Parsed)
    str(found.answer).encode()
    path.write_text(json.dumps(openai_line("q\ud800", completion(GOOD))) + "\n")
    with pytest.raises(RunError, match=r"replies-1\.jsonl:1: not a batch result; expected a JSON object"):
        Replies(tmp_path)


def test_whatever_stands_in_the_place_of_answers_is_named(tmp_path: Path) -> None:
    """A pipe isn't waited for, a device isn't read without end, and a line has a longest length."""
    path = tmp_path / "replies-1.jsonl"
    puts: dict[Callable[[], Any], str] = {
        path.mkdir: "is a folder",
        lambda: os.mkfifo(path): "is not a regular file",
        lambda: path.symlink_to("/dev/zero"): "is not a regular file",
        lambda: path.symlink_to(path): "can't be read",
    }
    for put, why in puts.items():
        put()
        with pytest.raises(RunError, match=rf"replies-1\.jsonl: {why}.*; expected a JSON object"):
            Replies(tmp_path)
        path.rmdir() if path.is_dir() else path.unlink()
    write(path, openai_line("q1", completion(GOOD)))
    with path.open("r+b") as file:
        file.truncate(LONGEST + 1000)  # zero bytes that take no room on the disk
    with pytest.raises(RunError, match=r"replies-1\.jsonl:2: not a batch result"):
        Replies(tmp_path)


def test_three_different_unreadable_answers_are_enough(tmp_path: Path) -> None:
    """A result file that was copied beside itself counts once; after three answers the question isn't asked again."""
    lines = [openai_line("q1", completion("?"), line=f"l{n}") for n in range(3)]
    write(tmp_path / "replies.jsonl", *lines[:2])
    write(tmp_path / "replies-copy.jsonl", *lines[:2])
    assert list(missing([question()], Replies(tmp_path))) == [(question(), 2)]
    write(tmp_path / "replies-copy.jsonl", lines[2])
    assert list(missing([question()], Replies(tmp_path))) == []
    found = read(Replies(tmp_path).of("q1"), question())
    assert isinstance(found.answer, Parsed)
    assert found.answer.problem == "not the asked JSON: Expecting value: line 1 column 1 (char 0)"


def test_a_damaged_line_is_named_and_a_cut_last_one_is_left_out(tmp_path: Path) -> None:
    """In the middle it is an error, at the end it is what a kill leaves."""
    good = json.dumps(openai_line("q1", completion(GOOD)))
    path = tmp_path / "replies.jsonl"
    path.write_text(good + "\n" + good[:50])
    assert Replies(tmp_path).lines == 1
    for damaged in (good[:50], '{"label": "PASS"}', "[]", '{"custom_id": 1, "response": null}', "[" * 100_000):
        path.write_text(good + "\n\n" + damaged + "\n" + good)
        with pytest.raises(RunError, match=r"replies\.jsonl:3: not a batch result"):
            Replies(tmp_path)
    path.write_text(good)  # without a line end
    assert Replies(tmp_path).lines == 1


class Run:
    """A few collected replies and the judge's folder beside them."""

    def __init__(self, release: Release, dataset: Path, where: Path) -> None:
        self.replies, self.dataset = where / "collected.jsonl", dataset
        rows = [
            r
            for r in release.rows.values()
            if any(c.check == "graded" for c in r.evaluation) and all(m.content is not None for m in r.messages)
        ][:6]
        self.replies.write_text(
            "".join(
                json.dumps({"id": r.id, "reply": f"Have a good day, number {n}, and tell me more."}) + "\n"
                for n, r in enumerate(rows)
            )
        )
        self.home = where / "collected.scored"
        self.folder = self.home / "judge" / "org_judge-1"

    def call(self, command: str, *more: str | Path) -> int:
        return main([command, "--replies", str(self.replies), "--dataset", str(self.dataset), *map(str, more)])

    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "requests.jsonl").read_text().splitlines()]

    def ends(self) -> int:
        """What scoring ends with: of so few replies, one that the server refuses or garbles is too many."""
        return 5 if any(v["unscored"] for v in self.verdicts()) else 0

    def verdicts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (scores(self.home) / "verdicts.jsonl").read_text().splitlines()]


@pytest.fixture
def run(release: Release, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    return Run(release, dataset, tmp_path)


@pytest.fixture
def server(serve: Serve) -> JudgeServer:
    return serve(by_hash)


MODEL = ("--model", "org/judge-1")


def answered_by_file(
    requests: list[dict[str, Any]], content: str = '{"label": "%s", "quotes": []}'
) -> list[dict[str, Any]]:
    """What an engine writes for each request: its first label."""
    labels = [r["body"]["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"] for r in requests]
    return [
        vllm_line(r["custom_id"], content.replace("%s", own[0]), line=f"v-{r['custom_id']}-{content}")
        for r, own in zip(requests, labels, strict=True)
    ]


class TestByFile:
    """`helmbench requests` → another engine → `helmbench score`."""

    def test_requests_are_the_batch_format(self, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
        """Each line has what OpenAI's and vLLM's batch need; count, tokens and cost are printed."""
        assert run.call("requests", *MODEL, "--price-in", "2", "--price-out", "10") == 0
        lines = run.requests()
        assert len(lines) == len({r["custom_id"] for r in lines}) >= 6
        assert {(r["method"], r["url"], r["body"]["model"]) for r in lines} == {
            ("POST", "/v1/chat/completions", "org/judge-1")
        }
        assert {tuple(r) for r in lines} == {("custom_id", "method", "url", "body")}
        sizes = [len(line) + 1 for line in (run.folder / "requests.jsonl").read_bytes().splitlines()]
        shown = capsys.readouterr().out
        assert (
            f"{len(lines)} requests, about {sum(size // 4 for size in sizes):,} tokens in and {80 * len(lines):,} out"
            in shown
        )
        assert f"at most {(sum(sizes) * 2 + 600 * len(lines) * 10) / 1e6:.2f}" in shown
        assert "helmbench score --replies" in shown

    def test_repeats_and_wordings_are_questions_of_their_own(self, run: Run, tmp_path: Path) -> None:
        """Every repeat of every question has an id; --reason-first asks for a reason before the label."""
        run.call("requests", *MODEL)
        first = {r["custom_id"] for r in run.requests()}
        run.call("requests", *MODEL, "--repeats", "3")
        assert len({r["custom_id"] for r in run.requests()}) == 3 * len(first)
        assert first < {r["custom_id"] for r in run.requests()}
        out = tmp_path / "reasoned.jsonl"
        assert run.call("requests", *MODEL, "--reason-first", "--out", out) == 0
        reasoned = [json.loads(line) for line in out.read_text().splitlines()]
        assert not first & {r["custom_id"] for r in reasoned}
        schema = reasoned[0]["body"]["response_format"]["json_schema"]["schema"]
        assert list(schema["properties"]) == schema["required"] == ["reason", "label", "quotes"]

    def test_answers_of_a_file_are_scored(self, run: Run) -> None:
        """The labels that stand in replies*.jsonl are the verdicts', under the judge's own name and prompt."""
        run.call("requests", *MODEL)
        lines = answered_by_file(run.requests())
        write(run.folder / "replies-0.jsonl", *lines[:3])
        write(run.folder / "replies-1.jsonl", *lines[3:])
        assert run.call("score", "--judge", "org/judge-1") == 0
        read_by_judge = [v for v in run.verdicts() if v["decided_by"] == "judge"]
        assert {v["judge"] for v in read_by_judge} == {"org/judge-1"}
        assert {v["outcome"] or v["label"] for v in read_by_judge} <= {"flagged", "PASS"}
        assert len(read_by_judge) == len(lines)

    def test_missing_answers_are_an_error_that_says_what_to_do(
        self, run: Run, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """They are counted, the command that gets them is named, and nothing is written; --allow-missing leaves them
        unscored.
        """
        run.call("requests", *MODEL)
        lines = answered_by_file(run.requests())
        write(run.folder / "replies.jsonl", *lines[2:])
        capsys.readouterr()
        assert run.call("score", "--judge", "org/judge-1") == 2
        told = capsys.readouterr().err
        assert "2 questions have no answer yet" in told
        assert f"helmbench judge --replies {run.replies} --model org/judge-1" in told
        assert len(told.splitlines()) == 1
        assert not (run.home / "scores").exists()
        assert run.call("score", "--judge", "org/judge-1", "--allow-missing") == 5  # written, but too much is missing
        assert [v["unscored"] for v in run.verdicts() if v["unscored"]] == ["error"] * 2

    def test_a_second_round_asks_only_what_could_not_be_read(
        self, run: Run, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Up to three rounds; then the answer is unscored with its reason, and there is nothing left to ask."""
        run.call("requests", *MODEL)
        everything = run.requests()
        write(
            run.folder / "replies-1.jsonl", *answered_by_file(everything[1:]), *answered_by_file(everything[:1], "PASS")
        )
        for n in (2, 3):
            assert run.call("requests", *MODEL) == 0
            assert run.requests() == everything[:1]
            write(run.folder / f"replies-{n}.jsonl", *answered_by_file(everything[:1], f"PASS {n}"))
        assert run.call("requests", *MODEL) == 0
        assert run.requests() == []
        assert "nothing is missing" in capsys.readouterr().out
        assert run.call("score", "--judge", "org/judge-1") == 5  # one lost of six is more than may be
        (unscored,) = [v for v in run.verdicts() if v["unscored"]]
        assert unscored["unscored"] == "unparsable"
        assert "not the asked JSON" in unscored["evidence"][0]

    def test_a_number_that_is_no_amount_is_one_line(
        self, run: Run, server: JudgeServer, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Nothing compares with nan: a cap or a price of it would hold nothing back."""
        given = {"--price-in": "1", "--price-out": "1", "--max-cost": "5", "--timeout": "9"}
        for option, value in (*((o, "nan") for o in given), ("--max-cost", "inf"), ("--timeout", "-1")):
            words = [word for pair in (given | {option: value}).items() for word in pair]
            assert run.call("judge", *MODEL, "--base-url", server.url, *words) == 2
            (told,) = capsys.readouterr().err.splitlines()
            assert option in told
        assert server.total == 0

    def test_bad_input_is_one_line(self, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
        """An unknown judge, a panel with one, a damaged file, half of the prices."""
        assert run.call("score", "--judge", "oracle") == 2
        assert run.call("score", "--judge", "a", "--judge", "b") == 2
        assert run.call("requests", *MODEL, "--price-in", "1") == 2
        assert run.call("requests", *MODEL, "--repeats", "0") == 2
        assert run.call("judge", *MODEL, "--base-url", "localhost:8000") == 2
        assert run.call("judge", *MODEL, "--base-url", "http://localhost:8000", "--max-cost", "1") == 2
        assert main(["requests", *MODEL]) == 2
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / "replies.jsonl").write_text("{}\n")
        assert run.call("score", "--judge", "org/judge-1") == 2
        told = capsys.readouterr().err.splitlines()
        named = ("oracle", "a", "--price-out", "--repeats", "--base-url", "--max-cost", "a RUN", "replies.jsonl:1:")
        assert [word in line for word, line in zip(named, told, strict=True)] == [True] * len(named)


class TestLive:
    """`helmbench judge` → `helmbench score`, or both at once."""

    def test_run_then_score(self, run: Run, server: JudgeServer, capsys: pytest.CaptureFixture[str]) -> None:
        """What the engine wrote is scored, and the shorthand finds it instead of asking again."""
        assert run.call("judge", *MODEL, "--base-url", server.url) == 0
        assert run.call("score", "--judge", "org/judge-1") == run.ends()
        verdicts, asked = run.verdicts(), server.total
        assert run.call("score", "--judge", "openai", *MODEL, "--base-url", server.url) == run.ends()
        assert (run.verdicts(), server.total) == (verdicts, asked)
        assert run.call("judge", *MODEL, "--base-url", server.url) == 0
        shown = capsys.readouterr()
        assert "nothing is missing" in shown.out
        written = "".join(p.read_text() for p in run.home.rglob("*") if p.is_file())
        assert SECRET not in shown.out + shown.err + written

    def test_the_cap_stops_with_its_own_exit_code(
        self, run: Run, serve: Serve, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Exit 4, how to go on, and what was answered is kept. The cap pays for one worst case and the usage of two
        answers.
        """
        run.call("requests", *MODEL)
        worst = [len(json.dumps(r["body"], ensure_ascii=False).encode()) for r in run.requests()]
        replies = [json.loads(line) for line in run.replies.read_text().splitlines()]
        run.replies.write_text(
            "".join(
                json.dumps(r | {"reply": r["reply"] + "." * (max(worst) - n)}) + "\n"
                for r, n in zip(replies, worst, strict=True)
            )
        )  # all worst cases are alike now, whatever the messages say, so the fourth is what the cap doesn't pay for
        run.call("requests", *MODEL)
        everything = run.requests()
        cap = (max(len(json.dumps(r["body"], ensure_ascii=False).encode()) for r in everything) + 600 + 2 * 110) / 1e6
        priced = ("--price-in", "1", "--price-out", "1", "--concurrency", "1")
        server = serve(lambda body, attempt: said(None, refusal="No."))
        assert run.call("judge", *MODEL, "--base-url", server.url, *priced, "--max-cost", str(cap)) == 4
        told = capsys.readouterr().err.splitlines()[-1]
        assert f"--max-cost {cap:g}" in told
        assert "higher --max-cost" in told
        assert 3 <= len((run.folder / "replies.jsonl").read_text().splitlines()) < len(everything)
        assert server.total * 110 / 1e6 < cap
        assert run.call("judge", *MODEL, "--base-url", server.url, *priced, "--max-cost", "1") == 0
        assert server.total == len(everything)

    def test_unanswered_questions_are_exit_code_3(
        self, run: Run, serve: Serve, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The run says how many and why; the same command asks them again."""
        down = serve(
            lambda body, attempt: (
                failed(400) if "number 0" in body["messages"][0]["content"] else said(None, refusal="No.")
            )
        )
        assert run.call("judge", *MODEL, "--base-url", down.url) == 3
        assert "got no answer (the last: HTTP 400 planned)" in capsys.readouterr().err.splitlines()[-1]
