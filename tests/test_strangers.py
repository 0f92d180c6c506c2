"""What a server that means no good, or is broken, can do to the two clients that talk to servers: the judge's and the
runner's. Each row is tried on both.
"""

from __future__ import annotations

import base64
import gzip
import html
import itertools
import json
import logging
import re
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import pytest
from lm_eval.models.openai_completions import LocalChatCompletion
from support.judge_server import GOOD, JudgeServer, Said, Serve, failed, said
from support.lm_eval_runs import request
from test_engine import questions

from helmbench_common.http import client
from helmbench_common.http.addresses import proxy, shown
from helmbench_common.http.bodies import MOST_TOKENS, tokens
from helmbench_common.http.keys import WITHHELD, Keys
from helmbench_common.http.retry import retry_after
from judge.llm.asking import collect
from judge.llm.batch import Replies
from judge.llm.budget import Budget, Prices, Terms
from judge.llm.engine import LONGEST, Endpoint
from judge.llm.errors import EngineError
from lm_eval_tasks.helmbench.api_models import LONGEST_FINISH
from lm_eval_tasks.helmbench.layer import layer_of

SECRET = "sk-strangers-Secret/0123+4567="
PRICES = Prices(1e6, 1e6)  # one unit of money per token
ANSWERED = GOOD  # a judge's answer, and as good a text as any as a reply


class Told(NamedTuple):
    """What one client made of a server. `answers`: by question, None where there is none; `words`: all that it said or
    raised; `spent`: the tokens that were counted, by whoever counts.
    """

    answers: dict[str, str | None]
    words: str
    spent: int | None = None


Client = Callable[..., Told]  # prompts, address, folder, timeout


def judging(prompts: str, url: str, where: Path, timeout: float = 2.0) -> Told:
    """The judge's engine; what it raises is among its words."""
    spent, words = None, ""
    try:
        endpoint = Endpoint(url, 2, timeout, max_retries=2)
        used = collect(lambda: iter(questions(prompts)), where, endpoint, Terms(PRICES, 1e12)).spent
        spent = used.prompt + used.completion
    except (EngineError, ValueError) as error:
        words = "".join(traceback.format_exception(error))
    found: dict[str, str | None] = {}
    replies = Replies(where)
    for question in questions(prompts):
        lines = [line for line in replies.of(question.custom_id) if line["response"] and line["response"]["body"]]
        found[question.custom_id] = lines[-1]["response"]["body"]["choices"][0]["message"]["content"] if lines else None
    return Told(found, words, spent)


def running(prompts: str, url: str, where: Path, timeout: float = 2.0) -> Told:
    """lm-eval's own model with our layer; a question `b` to which the server is kind tells one bad item from a bad
    server.
    """
    model = LocalChatCompletion(model="judge-1", base_url=f"{url}/chat/completions", num_concurrent=2, timeout=timeout)
    layer, requests = layer_of(model, patience=1), [request(p) for p in prompts]
    try:
        layer(requests)
    except SystemExit as error:
        return Told(dict.fromkeys(prompts), "".join(traceback.format_exception(error)))
    ended = [layer.completion(r) for r in requests]
    where.mkdir(parents=True, exist_ok=True)
    (where / "notes.json").write_text(json.dumps([e.note() for e in ended]))
    words = "\n".join(str(e.finish) for e in ended)
    return Told({p: None if e.failed or e.refused else e.text for p, e in zip(prompts, ended, strict=True)}, words)


@pytest.fixture(params=[judging, running], ids=["judge", "runner"])
def asking(request: pytest.FixtureRequest) -> Client:
    """Either client."""
    chosen: Client = request.param
    return chosen


@pytest.fixture
def serve(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Servers that answer each question by its script, and every other as usual."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        for written in (name, name.lower()):
            monkeypatch.delenv(written, raising=False)

    def start(**scripts: Said) -> JudgeServer:
        return serve(lambda body, _: scripts.get(body["messages"][-1]["content"], said(ANSWERED)))

    return start


def everything(told: Told, where: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> str:
    """All that a client printed, logged, raised, returned or wrote."""
    files = "".join(p.read_text(encoding="utf-8") for p in where.rglob("*") if p.is_file())
    return f"{told} {files} {''.join(capfd.readouterr())} {caplog.text}"


# --- the key


def holding(key: str) -> dict[str, Said]:
    """Answers with the key in every place that a server fills."""
    chat = json.loads(said(ANSWERED).body)

    def raw(head: str, body: bytes = b"{}") -> Said:
        text = f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        return Said(200, {}, b"", raw=lambda: [text])

    def error(**fields: Any) -> Said:
        return Said(400, {}, json.dumps({"error": {"message": "no", **fields}}).encode())

    def completion(**fields: Any) -> Said:
        return Said(200, {}, json.dumps(chat | fields).encode())

    return {
        "code": error(code=key),
        "type": error(type=key),
        "message": error(message=f"Incorrect API key provided: {key}."),
        "message in capitals": error(message=key.upper()),
        "message as it stands in an address": error(message=quote(key, safe="")),
        "message that is a list": error(message=[key]),
        "detail": Said(422, {}, json.dumps({"detail": key}).encode()),
        "page": Said(400, {}, f"<html>{key}</html>".encode()),
        "reason phrase": raw(f"HTTP/1.1 400 {key}"),
        "request's id": said(ANSWERED)._replace(headers={"x-request-id": key}),
        "cookie": said(ANSWERED)._replace(headers={"Set-Cookie": f"{key} [=\x01; Path=("}),
        "location": Said(307, {"Location": f"http://{quote(key, safe='')}.example/{key}"}, b""),
        "location's query": Said(302, {"Location": f"?key={key}"}, b""),
        "429": failed(429, key, key, Retry_After=key),
        "500": failed(500, key, key),
        "200 with an error": Said(200, {}, json.dumps({"error": {"message": key, "code": 429}}).encode()),
        "finish": said(ANSWERED, key),
        "finish that is long": said(ANSWERED, "x" * (LONGEST_FINISH + 1 - len(key)) + key),
        "model": completion(model=key),
        "content": said(f"Your key is {key}."),
        "refusal": said(None, refusal=f"No, {key}."),
        "usage": completion(usage={"prompt_tokens": key, key: 1}),
        "broken": said(key)._replace(cut=True),
        "status line": Said(200, {}, b"", raw=lambda: [f"HTTP/1.1 {key}\r\n\r\n".encode()]),
        "header line": Said(200, {}, b"", raw=lambda: [f"HTTP/1.1 200 OK\r\n{key} \x00 {key}\r\n\r\n".encode()]),
    }


def test_the_key_is_repeated_nowhere(
    asking: Client,
    serve: Serve,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Wherever a server puts it, for one question or for all: no file, message, log or error holds it, in any form that
    it was sent in.
    """
    caplog.set_level(logging.DEBUG)
    leaks = []
    for n, (place, answer) in enumerate(holding(SECRET).items()):
        for prompts in ("b", "ab"):  # one question's, or everybody's
            server = serve(**dict.fromkeys(prompts, answer))
            server.models = failed(501) if prompts == "b" else answer
            where = tmp_path / f"{n}{prompts}"
            told = asking("ab", server.url, where)
            seen = everything(told, where, capfd, caplog).lower()
            caplog.clear()
            if SECRET.lower()[:-1] in seen or quote(SECRET, safe="").lower() in seen:
                leaks.append((place, prompts))
            assert server.keys == {f"Bearer {SECRET}"}
    assert leaks == []


def ways(key: str) -> dict[str, str]:
    """A key as a server may cut, split or encode it."""
    unseen = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u061c\u200e\u202e\u2066\ufe0f\U000e0041\u0301\u00a0\x1b\x00 \n"
    split = {f"split by U+{ord(c):04X}": c.join(key) for c in unseen}
    in_base64 = [base64.b64encode(b"x" * n + key.encode()).decode() for n in range(3)]
    percents = "".join(f"%{ord(c):02x}" for c in key)
    return {
        **split,
        "its first 8": f"{key[:8]}***",
        "its last 8": f"***{key[-8:]}",
        "8 in the middle": key[10:18],
        "all but its last": key[:-1],
        "twice, each cut": f"{key[:14]}...{key[-14:]}",
        "in capitals": key.upper()[:-1],
        "percent-encoded": percents[:-1],
        "percent-encoded twice": quote(quote(key[3:-1], safe=""), safe=""),
        "percent-encoded and split": percents.replace("%", "%25").replace("%2", "\u200b%2"),
        **{f"base64, alignment {n}": encoded for n, encoded in enumerate(in_base64)},
        "base64, cut": in_base64[1][:-5],
        "base64, split": "\u200d".join(in_base64[2]),
        "base64, for addresses": base64.urlsafe_b64encode(key.encode()).decode()[3:],
        "base64, percent-encoded": quote(quote(in_base64[2], safe=""), safe=""),
        "as HTML": "".join(f"&#{ord(c)};" for c in key),
        "escaped twice": "".join(f"\\u{ord(c):04x}" for c in key),
    }


def holds_eight(text: str, key: str) -> bool:
    """Whether 8 consecutive characters of a key can be read in a text, by whoever tries every way to read it."""
    escaped = re.compile(r"\\+u([0-9a-fA-F]{4})")
    readings = [text, escaped.sub(lambda found: chr(int(found[1], 16)), text)]
    readings += [html.unescape(unquote(unquote(unquote(r)))) for r in readings]
    readings = [re.sub(r"[^!-~]", "", r) for r in readings]
    for run in {run for r in readings for run in re.findall(r"[\w+/-]{10,}", r, re.ASCII)}:
        plain = run.replace("-", "+").replace("_", "/")
        cuts = (plain[n : n + (len(plain) - n) // 4 * 4] for n in range(4))
        readings += [base64.b64decode(cut).decode("latin-1") for cut in cuts]
    everything = "\n".join(readings).lower()
    return any(key[n : n + 8].lower() in everything for n in range(len(key) - 7))


@pytest.mark.soak(short=1, full=3)
def test_no_eight_characters_of_the_key_are_repeated(
    asking: Client,
    rounds: int,
    serve: Serve,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In no file, message, log or error, however a server cuts, splits or encodes it; the other answers are kept."""
    caplog.set_level(logging.DEBUG)
    key, leaks = "sk-qZ7wRtY2mN/8pLxK+3vJ-h_5dF9gB1cS=x", []
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert len(ways(key)) == 37
    assert all(holds_eight(f"so {told} is", key) for told in ways(key).values())
    for way, told in [*ways(key).items()][:: 4 - rounds]:
        chat = json.loads(said(ANSWERED).body)
        server = serve(
            b=failed(400, f"no such key: {told}", told),
            c=failed(500, told, told),
            d=said(f"It is {told}"),
            e=said(ANSWERED, told),
            f=said(None, refusal=told),
            g=Said(200, {}, json.dumps(chat | {"model": told}).encode()),
            h=said(ANSWERED)._replace(headers={"x-request-id": quote(told, safe="/+=")}),
        )
        where = tmp_path / f"{way}, some"
        found = asking("abcdefgh", server.url, where)
        assert (found.answers["a"], found.answers["d"]) == (ANSWERED, None), way
        leaks += [f"{way}, some"] if holds_eight(everything(found, where, capfd, caplog), key) else []
        caplog.clear()
        for status in (401, 404, 307)[:rounds]:
            address = {"Location": f"http://{quote(told, safe='+=')}/"} if status == 307 else {}
            server = serve(a=failed(status, told, told, **address))
            server.models = Said(200, {}, json.dumps({"data": [{"id": told}]}).encode())
            where = tmp_path / f"{way}, {status}"
            seen = everything(asking("a", server.url, where), where, capfd, caplog)
            leaks += [f"{way}, {status}"] if holds_eight(seen, key) else []
            caplog.clear()
    assert leaks == []


def test_a_key_of_words_changes_no_answer() -> None:
    """Some local servers have such keys; in an error any part of it is withheld."""
    keys = Keys(["sk-no-key-required"])
    assert not keys.repeated("No login is required, and no-key is Required.")
    assert keys.repeated("It is sk-no-key-require")
    assert keys.quoted("a field is required") == WITHHELD


def test_a_short_key_changes_no_answer(
    asking: Client, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer in which it stands by chance is that answer; of an error the server's words are then not quoted."""
    for key in ("0", "id", "PASS", "content"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        server = serve(a=said(f"{ANSWERED} {key}"), c=failed(422, f"what was sent is {key}, planned"))
        told = asking("abc", server.url, tmp_path / key)
        assert told.answers == {"a": f"{ANSWERED} {key}", "b": ANSWERED, "c": None}
        assert "what was sent" not in told.words


def test_a_long_key_is_taken_out_of_an_error_and_the_rest_is_told() -> None:
    """So that whoever reads it can mend what is wrong."""
    keys = Keys([SECRET, "id"])
    assert keys.quoted(f"no such key:\n{SECRET}, see\x1b[31m") == "no such key: …, see[U+001B][31m"
    assert keys.quoted("a wrong ID") == "(the server's words hold the key and aren't shown)"
    assert keys.repeated("hello", None, f"it is {SECRET.lower()}")
    assert not keys.repeated("my id is id")


@pytest.mark.usefixtures("serve")
def test_a_key_in_the_address_is_shown_nowhere(
    asking: Client, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The runner refuses it, since lm-eval would write it; the judge sends it, and says where it asked without it."""
    caplog.set_level(logging.DEBUG, "helmbench")
    urls = ["http://me:{}@127.0.0.1:1/v1", "http://{}@127.0.0.1:1/v1", "http://127.0.0.1:1/v1?api_key={}"]
    urls += ["http://me:a/{}@127.0.0.1:1/v1", "ftp://me:{}@127.0.0.1/v1", "http://me:{}@[127.0.0.1/v1"]
    for n, url in enumerate(urls):
        try:
            told = asking("a", url.format("sk-in-the-address-0123456789"), tmp_path / str(n))
        except ValueError as error:
            told = Told({}, "".join(traceback.format_exception(error)))
        assert told.words
        assert "sk-in-the-address" not in f"{told} {''.join(capfd.readouterr())} {caplog.text}", url


# --- usage

ABSURD = ["-5", "1.5", '"7"', "[1]", "1" + "0" * 400, "NaN", "true", "null", "10000001"]
SHAPES = ["[1, 2]", '"many"', "-7", "NaN", "{}"]


def test_an_absurd_usage_counts_as_the_worst_case(asking: Client, serve: Serve, tmp_path: Path) -> None:
    """The server's word neither lowers what is counted nor raises it without bound; the answer is kept."""
    body = said(ANSWERED, usage=None).body.decode()
    payload, most = len(json.dumps(questions("a")[0].body, ensure_ascii=False)), questions("a")[0].body["max_tokens"]
    counts = [(f'{{"prompt_tokens": {value}, "completion_tokens": 3}}', payload + 3) for value in ABSURD]
    for n, (usage, spent) in enumerate([*counts, *((shape, payload + most) for shape in SHAPES)]):
        where = tmp_path / str(n)
        answer = body.replace('"usage": null', f'"usage": {usage}')
        told = asking("a", serve(a=Said(200, {}, answer.encode())).url, where)
        assert told.answers == {"a": ANSWERED}, usage
        assert asking is running or told.spent == spent, usage
        assert asking is running or judging("a", "http://127.0.0.1:1/v1", where).spent in (spent, 3), "after a restart"


def test_counts_are_whole_numbers_that_a_request_can_use() -> None:
    """The same for both clients, and for batch files that others wrote."""
    assert [tokens({"n": n}, "n") for n in (0, 7, MOST_TOKENS)] == [0, 7, MOST_TOKENS]
    odd = (-1, MOST_TOKENS + 1, True, 1.0, "7", None, [1], float("nan"))
    assert [tokens({"n": n}, "n") for n in odd] == [None] * 8


def test_a_ledger_with_rubbish_in_it_is_one_clear_error(tmp_path: Path) -> None:
    """Nothing is asked, and the line says what to do; the same for a folder in its place."""
    ledgers = [b"", b"[]", b"{}", b"[" * 4000, b"[" * 100_000, b"\xff\xfe\x00"]
    numbers = [b"-1", b"1e400", b"NaN", b"true", b'"7"', b"1" + b"0" * 400, b"1" + b"0" * 5000]
    ledgers += [b'{"prompt_tokens": ' + number + b', "completion_tokens": 1}' for number in numbers]
    said = r"spent\.json: is not what `helmbench judge` wrote; [^\n]*Delete it[^\n]*$"
    for ledger in ledgers:
        (tmp_path / "spent.json").write_bytes(ledger)
        with pytest.raises(ValueError, match=said):
            Budget(tmp_path)
    (tmp_path / "spent.json").unlink()
    (tmp_path / "spent.json").mkdir()
    with pytest.raises(ValueError, match=said):
        Budget(tmp_path)


# --- bodies

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
PIECE = b" " * 65536


def endless(head: bytes, piece: bytes = PIECE, chunked: bool = False) -> Said:
    framed = b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece
    return Said(200, {}, b"", raw=lambda: itertools.chain([head], itertools.repeat(framed)))


def packed(body: bytes, how: str = "gzip") -> Said:
    return Said(200, {"Content-Encoding": how}, body)


def bomb(size: int) -> bytes:
    return gzip.compress(b" " * size)


BOMB = bomb(2**28)
MONSTERS = {
    "endless": endless(HEAD + b"\r\n"),
    "endless in chunks": endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunked=True),
    "endless error": endless(HEAD.replace(b"200 OK", b"500 No") + b"\r\n"),
    "endless header": endless(HEAD + b"X: "),
    "endless headers": endless(HEAD, b"X: y\r\n" * 1000),
    "bomb": packed(BOMB),
    "bomb of bombs": packed(gzip.compress(BOMB), "gzip, gzip"),
    "bomb without end": endless(HEAD + b"Content-Encoding: gzip\r\n\r\n", gzip.compress(PIECE * 64)),
    "packed as nothing that is known": packed(b"\x00" * 1000, "br"),
    "half a pack": packed(gzip.compress(said(ANSWERED).body)[:-12]),
    "broken chunk": Said(200, {}, b"", raw=lambda: [HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"]),
    "shorter than it says": Said(200, {}, b"", raw=lambda: [HEAD + b"Content-Length: 100\r\n\r\n{"]),
    "nothing": Said(200, {}, b"", raw=lambda: []),
    "no HTTP": Said(200, {}, b"", raw=lambda: [b"\x00\x01\x02" * 100]),
    "two lengths": Said(200, {}, b"", raw=lambda: [HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"]),
    "deep": Said(200, {}, b"[" * 1_000_000),
    "digits": Said(200, {}, b'{"choices": ' + b"9" * 1_000_000 + b"}"),
    "not UTF-8": Said(200, {}, b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "choices as an object": Said(200, {}, b'{"choices": {"0": {"message": {"content": "hello"}}}}'),
    "an error beside choices": Said(200, {}, said(ANSWERED).body[:-1] + b', "error": {"message": "no", "code": 502}}'),
    "a text as an error beside choices": Said(200, {}, said(ANSWERED).body[:-1] + b', "error": "upstream broke"}'),
    "an error inside": Said(200, {}, b'{"error": {"message": "no", "code": ' + b"9" * 400 + b"}}"),
}

# aiohttp reads on and keeps nothing of these, until the attempt's time is over.
UNTIL_TIMEOUT = {"endless header"}


def test_what_is_no_answer_is_given_up_and_the_next_is_read(asking: Client, serve: Serve, tmp_path: Path) -> None:
    """No traceback and no reading on: a few attempts, each of no more than an answer may have; the other questions get
    theirs.
    """
    for n, (kind, answer) in enumerate(MONSTERS.items()):
        server = serve(b=answer)
        told = asking("abc", server.url, tmp_path / str(n), 1.0 if kind in UNTIL_TIMEOUT else 5.0)
        assert told.answers == {"a": ANSWERED, "b": None, "c": ANSWERED}, kind
        tries = server.total - 2
        assert 1 <= tries <= 20, kind
        if kind not in UNTIL_TIMEOUT:
            room = client.MOST + 16 * 2**20  # plus what the buffers of two sockets hold
            assert server.poured <= room * tries, kind


def test_an_answer_up_to_the_size_is_read(asking: Client, serve: Serve, tmp_path: Path) -> None:
    """10 MB of a reply are strange and no reason to lose it, packed or not; a judge has less to say."""
    most = LONGEST if asking is judging else client.MOST
    text = "x" * (most // 2)
    server = serve(a=said(text), b=packed(gzip.compress(said(text).body)), c=said("y" * most))
    told = asking("abc", server.url, tmp_path)
    assert {k: v and len(v) for k, v in told.answers.items()} == {"a": len(text), "b": len(text), "c": None}


def test_a_server_that_says_nothing_more_is_left_after_the_timeout(
    asking: Client, serve: Serve, tmp_path: Path
) -> None:
    """The limit is for the whole attempt: a byte now and then doesn't extend it."""
    for n, first in enumerate((b"", HEAD + b"Content-Length: 9\r\n\r\n{")):
        going = threading.Event()

        def dribble(first: bytes = first, going: threading.Event = going) -> Iterator[bytes]:
            yield first
            while not going.wait(0.05):
                yield b" " if first else b""

        told = asking("ab", serve(b=Said(200, {}, b"", raw=dribble)).url, tmp_path / str(n), 1.0)
        going.set()
        assert told.answers == {"a": ANSWERED, "b": None}, first


def test_a_second_copy_is_not_the_next_questions_answer(asking: Client, serve: Serve, tmp_path: Path) -> None:
    """Two answers to one request: the second is nobody's, in the runner as in the judge."""
    server = serve(a=said("twice")._replace(copies=2))
    assert asking("abcd", server.url, tmp_path).answers == {"a": "twice"} | dict.fromkeys("bcd", ANSWERED)


# --- waits

FAR = format_datetime(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), usegmt=True)
PAST = format_datetime(datetime(1970, 1, 1, tzinfo=UTC), usegmt=True)


def test_a_wait_of_years_is_waited_by_nobody(asking: Client, serve: Serve, tmp_path: Path) -> None:
    """The judge's run ends and says so, with what was answered on the disk; the runner's item is given up."""
    for n, value in enumerate(("315360000", "999999999999999", FAR)):
        told = asking("ab", serve(b=failed(429, Retry_After=value)).url, tmp_path / str(n))
        assert told.answers["b"] is None
        assert "HTTP 429" in told.words
        assert asking is running or "and asks to wait" in told.words


def test_a_wait_that_is_none_is_no_wait(asking: Client, serve: Serve, tmp_path: Path) -> None:
    """Anything but seconds or a date to come is as if nothing had been said."""
    odd = ["-1", "NaN", "inf", "1" + "0" * 400, "1e400", "", "soon", PAST, "Mon, 99 Foo 0000 99:99:99 GMT", "0x10", "٣"]
    for value in odd:
        assert retry_after({"Retry-After": value}) == retry_after({"Retry-After-Ms": value}) == 0, value
    told = asking("ab", serve(b=failed(429, Retry_After="1e400")).url, tmp_path)
    assert told.answers == {"a": ANSWERED, "b": None}


# --- redirects and proxies


def test_no_redirect_is_followed_anywhere(asking: Client, serve: Serve, tmp_path: Path) -> None:
    """Not to another port of the same host, not to another path, not to http; one line says that it isn't."""
    other = serve()
    places = [f"{other.url}/chat/completions", "/v1/other/completions", None, "http://["]
    places.append(f"{other.url}/chat/completions".replace("http:", "https:"))
    for status in (301, 307):
        for n, place in enumerate(places):
            server = serve(**dict.fromkeys("ab", Said(status, {"Location": place} if place else {}, b"")))
            told = asking("ab", server.url, tmp_path / f"{status}{n}")
            assert told.answers == {"a": None, "b": None}
            assert f"HTTP {status} sends elsewhere" in told.words
            assert "isn't followed" in told.words
    assert (other.total, other.looks) == (0, [])


def test_a_redirect_to_a_key_names_no_part_of_it(asking: Client, serve: Serve, tmp_path: Path) -> None:
    """What stands before a / in the key would be the host; it isn't named where the address holds a key."""
    places = ("//{}", "//{}@host.example/", "http://host.example/?{}", "//sk-strangers\t-Secret/0123+4567=")
    forms = (SECRET.upper(), quote(SECRET, safe=""))
    for n, (place, written) in enumerate(itertools.product(places, forms)):
        server = serve(a=Said(307, {"Location": place.format(written)}, b""))
        told = asking("a", server.url, tmp_path / str(n))
        assert "HTTP 307 sends elsewhere (another host), which isn't followed" in told.words, place
        assert "sk-strangers" not in told.words.lower(), place


@contextmanager
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """A proxy that writes down what it is sent and serves nobody: its port, and what came."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def listen() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        heard.append(connection.recv(65536))
                        connection.sendall(b"HTTP/1.1 403 planned\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield listener.getsockname()[1], heard
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def test_an_http_address_is_asked_directly(
    asking: Client, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a proxy it would read the key and every message."""
    with listening() as (port, heard):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
            assert asking("a", serve().url, tmp_path / name).answers == {"a": ANSWERED}
            monkeypatch.delenv(name)
    assert heard == []


@pytest.mark.usefixtures("serve")
def test_of_an_https_address_a_proxy_sees_the_host(
    asking: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """CONNECT and no word more; that it refuses is said in one line, without its own password."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        with listening() as (port, heard):
            monkeypatch.setenv(name, f"http://me:proxy-password-0123456789@127.0.0.1:{port}")
            told = asking("a", "https://judge.example/v1", tmp_path / name)
            monkeypatch.delenv(name)
        assert heard
        assert all(h.startswith(b"CONNECT judge.example:443 HTTP/1.1\r\n") for h in heard)
        assert not any(SECRET.encode() in h for h in heard)
        assert "HTTP 403" in told.words
        assert "proxy-password" not in told.words + "".join(capfd.readouterr())


@pytest.mark.usefixtures("serve")
def test_a_host_of_no_proxy_is_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """As curl and requests read it; a proxy of another kind is an error that doesn't repeat its password."""
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "judge.example,.internal")
    assert proxy("https://api.example/v1") == "http://proxy.example:3128"
    assert proxy("https://judge.example:8443/v1") is proxy("https://gpu.internal/v1") is None
    assert proxy("http://api.example/v1") is None
    for unusable in ("socks5://me:password@proxy.example:1080", "http://me:password@:1", "http://me:password@h:x"):
        monkeypatch.setenv("HTTPS_PROXY", unusable)
        with pytest.raises(ValueError, match=r"HTTPS_PROXY or ALL_PROXY names .*; expected http://HOST:PORT") as found:
            proxy("https://api.example/v1")
        assert "password" not in str(found.value)


def test_an_address_is_shown_without_what_is_secret_in_it() -> None:
    """Whatever its form; one that can't be read isn't shown at all."""
    assert shown("https://me:secret@host:8000/v1?key=secret#secret") == "https://host:8000/v1"
    assert shown("https://me:se/cret@host/v1") == shown("https://[secret") == "an address that can't be read"
