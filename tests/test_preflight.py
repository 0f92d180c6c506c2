"""What a run finds out about its server before it asks anything that costs, and what it doesn't take for a proof."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator

import pytest
from lm_eval.models.openai_completions import LocalCompletionsAPI, OpenAIChatCompletion
from support.judge_server import JudgeServer, Said, failed, said, stopped_at_the_end
from support.lm_eval_runs import free_port, model_at, request

from helmbench_common.http import retry
from helmbench_common.http.addresses import shown
from helmbench_common.http.retry import IN_A_ROW
from lm_eval_tasks.helmbench.api_models import GREETING, GREETINGS, LONGEST_NAME, models_address
from lm_eval_tasks.helmbench.layer import layer_of

HOSTS = "http://127.0.0.1"


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between attempts; how long they are is tested in test_survival.py."""
    monkeypatch.setattr(retry, "BACKOFF", 0.0)


def listing(*names: str) -> Said:
    return Said(200, {}, json.dumps({"object": "list", "data": [{"id": n, "object": "model"} for n in names]}).encode())


@pytest.fixture
def serve() -> Iterator[Callable[..., JudgeServer]]:
    """Starts servers that answer every prompt alike; `greeted`, where the greeting is answered otherwise."""
    with stopped_at_the_end() as started:

        def start(models: Said, answer: Said | None = None, greeted: Said | None = None, key: str = "") -> JudgeServer:
            def script(body: dict[str, object], attempt: int) -> Said:
                asked = body["messages"][-1]["content"]  # type: ignore[index]
                return (greeted if greeted and asked == GREETING else answer) or said("hello")

            server = JudgeServer(script)
            server.models, server.key = models, key
            started.append(server)
            return server

        yield start


def run(server: JudgeServer, name: str = "faulty") -> list[str]:
    """The replies to thirty messages, as lm-eval gets them."""
    replies: list[str] = model_layer(server, name)([request(f"message {n}") for n in range(30)])
    return replies


def model_layer(server: JudgeServer, name: str) -> Callable[..., list[str]]:
    return layer_of(model_at(server.url, name), patience=1)


def ended(server: JudgeServer, name: str = "faulty") -> str:
    """The one line with which a run ends before its first message is answered."""
    with pytest.raises(SystemExit) as caught:
        run(server, name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_server_that_works_runs_whatever_it_says_of_its_models(serve: Callable[..., JudgeServer]) -> None:
    """One look, without a greeting, and then the messages."""
    for models in (
        *(failed(status) for status in (400, 404, 501)),
        Said(307, {"Location": "http://127.0.0.1:9/"}, b""),
        Said(200, {}, b"<html>gateway</html>"),
        Said(200, {}, b'{"data": [1]}'),
        listing(),
        listing("other", "faulty"),
    ):
        server = serve(models)
        assert run(server) == ["hello"] * 30
        assert server.looks == ["/v1/models"]
        assert (server.total, GREETING in server.asked) == (30, False)


def test_a_doubt_is_settled_by_one_greeting(
    serve: Callable[..., JudgeServer], caplog: pytest.LogCaptureFixture
) -> None:
    """Lists are guarded, broken or short where completions are not: who answers a greeting is asked; a line says so."""
    for models in (*(failed(s) for s in (401, 403, 500)), listing("other")):
        server = serve(models)
        assert run(server) == ["hello"] * 30
        assert (server.asked[GREETING], server.total) == (1, 31)
        (warning,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
        assert "works, but its list of models is odd: " in warning
        assert ("it doesn't list 'faulty'" if models.status == 200 else f"HTTP {models.status}") in warning
        caplog.clear()


def test_the_look_is_had_once(serve: Callable[..., JudgeServer]) -> None:
    """A run asks in rounds, and the server was there in the first; what is cached needs no server."""
    server = serve(listing("faulty"))
    layer = model_layer(server, "faulty")
    for n in range(3):
        layer([request(f"message {n}")])
    assert len(server.looks) == 1
    assert layer_of(model_at(f"{HOSTS}:{free_port()}/v1"))([]) == []


def test_a_wrong_key_ends_at_once_and_is_not_repeated(
    serve: Callable[..., JudgeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the list is guarded as well, or completions alone; the server's own words hold the key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-wrong-wrong")
    for models in (failed(401), listing("faulty")):
        server = serve(models, key="sk-right")
        said = ended(server)
        assert "fail: HTTP 401 invalid_api_key no such key: Bearer …; is the key right" in said
        assert "sk-wrong" not in said
        assert server.total == 0  # completions that were given


def test_no_key_is_told_from_a_wrong_one(serve: Callable[..., JudgeServer], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable that lm-eval reads it from; where its model kind insists on one, before anything is sent."""
    assert "no key was sent: is OPENAI_API_KEY set?" in ended(serve(failed(401), key="sk-right"))
    with pytest.raises(SystemExit, match=r"^helmbench: API key not found. Please set the `OPENAI_API_KEY`"):
        layer_of(model_at("http://127.0.0.1:1/v1", "m", OpenAIChatCompletion))([request("a")])


def test_a_key_at_the_end_of_a_long_name_is_not_told_in_part(
    serve: Callable[..., JudgeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is cut after it was looked through; one without a key is told as far as it is cut."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-listed-0123456789")
    names = ("x" * (LONGEST_NAME + 1 - 20) + "sk-listed-0123456789", "y" * (LONGEST_NAME + 1))
    told = ended(serve(listing(*names), failed(404, "no")))
    assert f"it lists {'y' * LONGEST_NAME}" in told
    assert "sk-listed" not in told
    assert "y" * (LONGEST_NAME + 1) not in told


def test_a_key_that_no_header_can_hold_is_one_line(
    serve: Callable[..., JudgeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one read from a file with its line end: it isn't shown, and nothing is sent."""
    for odd in ("\n", "\r\nX-Other: 1", "\x1b[31m", "é"):
        monkeypatch.setenv("OPENAI_API_KEY", f"sk-odd-0123456789{odd}")
        server = serve(listing("faulty"))
        told = ended(server)
        assert "the key in the environment contains characters that a key can't have" in told
        assert "sk-odd" not in told
        assert (server.total, server.looks) == (0, [])


def test_a_wrong_model_is_told_with_those_there_are(serve: Callable[..., JudgeServer]) -> None:
    """By what the server says to a greeting, since many answer to names that they don't list; or by their first
    requests, none of which cost anything.
    """
    for status in (404, 400):
        server = serve(listing("faulty-7b", "other"), failed(status, "no such model", "model_not_found"))
        assert ended(server, "faulty-7") == (
            f"helmbench: requests to {server.url}/chat/completions fail: HTTP {status} model_not_found no such "
            "model; it lists faulty-7b, other; did you mean faulty-7b?"
        )
        assert server.asked[GREETING] == 1
        assert server.total == 1 or status == 400


def test_a_path_that_is_none_says_what_base_url_is() -> None:
    """`…/v1` alone is what other programs want."""
    with stopped_at_the_end() as started:
        started.append(JudgeServer(lambda body, attempt: failed(404, "Not Found")))
        model = model_at(started[0].url)
        model.base_url = started[0].url
        with pytest.raises(
            SystemExit, match=r"HTTP 404 Not Found; is the path of base_url right\? Give the whole address"
        ):
            layer_of(model)([request("a")])


def test_a_server_that_is_not_ready_is_told_after_a_few_attempts(serve: Callable[..., JudgeServer]) -> None:
    """Both its list and completions answer 503: up, and still loading."""
    server = serve(failed(503, "loading"), failed(503, "loading"))
    assert "fail: HTTP 503 loading; it is up, but not ready" in ended(server)
    assert server.asked == {GREETING: GREETINGS}


def test_a_403_is_everybodys_or_one_prompts(serve: Callable[..., JudgeServer]) -> None:
    """Filters answer with it, and so do servers that don't know the key: a greeting tells them apart."""
    barred = serve(listing("faulty"), failed(403, "forbidden"))
    assert "fail: HTTP 403 forbidden; " in ended(barred)
    filtering = serve(listing("faulty"), failed(403, "forbidden"), greeted=said("hello"))
    assert run(filtering) == [""] * 30
    assert filtering.asked[GREETING] == 1


def test_what_no_message_can_mend_ends_the_run(serve: Callable[..., JudgeServer]) -> None:
    """Money that is spent, and a proxy that wants a password."""
    for status, code in {402: "payment_required", 407: "proxy", 429: "insufficient_quota"}.items():
        server = serve(listing("faulty"), failed(status, "no", code))
        assert f"fail: HTTP {status} {code}" in ended(server)
        assert server.total < IN_A_ROW  # at once


def test_a_host_that_takes_no_connection_is_said_at_once() -> None:
    """No such host, nobody at the port, no TLS there, no address at all."""
    with socket.create_server(("127.0.0.1", 0)) as closing:
        port = closing.getsockname()[1]
    plain = JudgeServer(lambda body, attempt: said("hello"))
    with stopped_at_the_end() as started:
        started.append(plain)
        for url, why in (
            (f"{HOSTS}:{port}/v1", "connection refused; is the server up, and is the port right?"),
            (plain.url.replace("http:", "https:"), "it doesn't speak TLS; http instead of https?"),
            ("http://127.0.0.1:http/v1", "not a valid address"),
        ):
            with pytest.raises(SystemExit) as caught:
                layer_of(model_at(url))([request("a")])
            assert str(caught.value) == f"helmbench: nothing answers at {url}/chat/completions: {why}"
    without = LocalCompletionsAPI(model="m", tokenizer_backend=None)
    with pytest.raises(SystemExit, match="base_url is missing in --model_args"):
        layer_of(without)([request("a")])


def test_where_the_list_is() -> None:
    """Beside completions in each form that is known; what may be a secret of an address isn't shown."""
    for end in ("chat/completions", "completions", "messages", "chat/completions/"):
        assert models_address(f"https://h/v1/{end}?api-version=3") == "https://h/v1/models?api-version=3"
    assert models_address("https://h/generate") == "https://h/generate"
    assert shown("https://me:secret@h/v1/completions?key=secret") == "https://h/v1/completions"
