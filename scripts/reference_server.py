"""The trivial policies behind a loopback OpenAI-compatible server, the same interface as any model's.

Usage: `python scripts/reference_server.py --port N [--host 127.0.0.1] [--seed 0] [--log FILE]
[--fault-rate 0.2 | --faults 429=0.05,slow=0.05,400=0.01] [--fault-seed 0] [--slow-seconds 0.5]`
In a test: `with reference_server.start(fault_rate=0.5) as server:` then `server.url`, `server.requests`, `server.log`.

It answers chat completions, and completions of a plain transcript (`System: …`, `User: …`, `Assistant:`) as a base
model's server would. Models are the six policies, each also with a greeting (`keyword-greeting`), and `faulty`, which
answers as `keyword` but fails on a schedule fixed by its seed: with `--fault-rate` the six kinds of FAULTS equally
often, at most three times per conversation; with `--faults` each kind at the given share of attempts, or for
ITEM_FAULTS of conversations. Sampling settings (`temperature`, `max_tokens`, `stop`, `seed`) are accepted and ignored;
no reply depends on the clock.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import re
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError
from reference_policies import GREETING, POLICIES, digest, reply

FAULTS = ("429", "500", "slow", "empty", "null", "broken")  # of one attempt; the next may succeed
# Of a conversation, on every attempt, as (status, code, message). `filter` is an answer with that finish reason, `cut`
# one that stops short.
REFUSALS = {
    "400": (400, "invalid_value", "a planned fault; this request is not accepted"),
    "403": (403, "moderation", "your input was flagged"),
    "413": (413, None, "the body is too large"),
    "422": (422, None, "a planned fault; this can't be processed"),
    "451": (451, None, "a planned fault; unavailable for legal reasons"),
    "blocked": (400, "content_filter", "the prompt triggered the content management policy"),
    "long": (400, "context_length_exceeded", "this model's maximum context length is 10 tokens"),
}
ITEM_FAULTS = (*REFUSALS, "filter", "cut")
MODELS = (*POLICIES, *GREETING, "faulty")
CHAT, TEXT, LIST = "/v1/chat/completions", "/v1/completions", "/v1/models"
SPEAKER = re.compile(r"(?:^|\n\n)(System|User|Assistant):")  # of a plain transcript


class Part(BaseModel):
    type: Literal["text"]
    text: str


class Message(BaseModel):
    role: Literal["system", "user", "assistant"]
    content: str | list[Part]

    def plain(self) -> dict[str, str]:
        text = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {"role": self.role, "content": text}


class ChatRequest(BaseModel):
    """The fields that affect an answer; a client may send others."""

    model: str
    messages: list[Message] = Field(min_length=1)
    n: Literal[1] | None = None
    stream: Literal[False] | None = None


class TextRequest(BaseModel):
    """The same for a completion: the prompt is a transcript that ends where the model continues."""

    model: str
    prompt: str = Field(pattern=r"(?s)\A(System|User): .*\n\nAssistant:\z")
    n: Literal[1] | None = None
    stream: Literal[False] | None = None

    def chat(self) -> ChatRequest:
        _, *parts = SPEAKER.split(self.prompt.removesuffix("\n\nAssistant:"))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        messages = [{"role": role.lower(), "content": text.removeprefix(" ")} for role, text in pairs]
        return ChatRequest.model_validate({"model": self.model, "messages": messages})


class Answer(NamedTuple):
    """The HTTP response, sent after `delay` seconds, and the injected fault."""

    status: int
    body: bytes
    model: str | None = None
    fault: str | None = None
    delay: float = 0.0


def error(
    status: int, message: str, model: str | None = None, fault: str | None = None, code: str | None = None
) -> Answer:
    """An OpenAI-style error object."""
    kind = {429: "rate_limit_error", 500: "server_error"}.get(status, "invalid_request_error")
    code = "model_not_found" if status == 404 and model else code
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return Answer(status, json.dumps(body).encode(), model, fault)


def decode(raw: bytes) -> Any:
    """The body's JSON, or its text if it isn't JSON, so that the log shows either."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode(errors="replace")


class Faults(NamedTuple):
    """The schedule of the model `faulty`: kind → share, and the number of attempts after which a conversation never
    fails.
    """

    shares: dict[str, float]
    seed: int
    slow_seconds: float
    attempts: int | None = None

    def kind(self, messages: list[dict[str, str]], attempt: int) -> str | None:
        """The fault of a conversation's n-th attempt (from 1). Nothing else matters, so concurrency can't change it."""
        if self.attempts is not None and attempt > self.attempts:
            return None
        return self._drawn(ITEM_FAULTS, "item", messages) or self._drawn(FAULTS, str(attempt), messages)

    def _drawn(self, kinds: tuple[str, ...], salt: str, messages: list[dict[str, str]]) -> str | None:
        drawn = hashlib.sha256(f"{self.seed}:{salt}:{digest(messages)}".encode()).digest()
        share = int.from_bytes(drawn[:6], "big") / 256**6
        for kind in kinds:
            share -= self.shares.get(kind, 0.0)
            if share < 0:
                return kind
        return None


def completion(model: str, messages: list[dict[str, str]], text: str | None, finish: str = "stop") -> bytes:
    """A chat completion; its id and time come from a hash, so the same request gets the same bytes."""
    key = hashlib.sha256(f"{model}:{digest(messages)}".encode()).hexdigest()
    prompt, written = (len(t) // 4 for t in ("".join(m["content"] for m in messages), text or ""))
    body = {
        "id": f"chatcmpl-{key[:24]}",
        "object": "chat.completion",
        "created": 1_700_000_000 + int(key[:6], 16),
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
    }
    return json.dumps(body).encode()


def as_text(answer: Answer) -> Answer:
    """A chat completion as a text completion; faults stay unchanged."""
    if answer.status != 200 or answer.fault == "broken":
        return answer
    body = json.loads(answer.body)
    for choice in body["choices"]:
        choice["text"] = choice.pop("message")["content"]
    return answer._replace(body=json.dumps(body | {"object": "text_completion"}).encode())


class Server(ThreadingHTTPServer):
    """Answers on loopback until the `with` block ends; records every chat request and its answer."""

    request_queue_size = 1024  # the default backlog of 5 drops clients that connect all at once
    title, models = "reference server", MODELS

    def __init__(self, address: tuple[str, int], seed: int, log: Path | None, faults: Faults) -> None:
        super().__init__(address, Handler)
        self.url = f"http://{self.server_address[0]!s}:{self.server_port}/v1"
        self.requests: list[Any] = []
        self.log: list[dict[str, Any]] = []
        self._seed, self._log_file, self._faults = seed, log, faults
        self._attempts: Counter[str] = Counter()
        self._connections: set[Any] = set()
        self._lock = threading.Lock()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        with self._lock:  # a kept-alive connection would still answer after the server stops
            for connection in self._connections:
                with suppress(OSError):  # the client closed it first
                    connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that gave up waiting isn't a server error
            super().handle_error(request, client_address)

    def answer(self, raw: bytes) -> Answer:
        """The answer to a chat request's body, logged before it is sent: a client that has it finds it in the log."""
        return self._recorded(raw, lambda: self._chat(ChatRequest.model_validate_json(raw)))

    def go_on(self, raw: bytes) -> Answer:
        """The same for a completion request."""
        return self._recorded(raw, lambda: as_text(self._chat(TextRequest.model_validate_json(raw).chat())))

    def _recorded(self, raw: bytes, made: Callable[[], Answer]) -> Answer:
        try:
            answer = made()
        except ValidationError as problem:
            found = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'body'}: {e['msg']}" for e in problem.errors())
            answer = error(400, f"bad request: {found}")
        # Before a slow answer's wait, so that the log lists a conversation's attempts in order.
        self._record(decode(raw), {"model": answer.model, "status": answer.status, "fault": answer.fault})
        time.sleep(answer.delay)
        return answer

    def _chat(self, chat: ChatRequest) -> Answer:
        model, messages = chat.model, [message.plain() for message in chat.messages]
        if model not in MODELS:
            return error(404, f"no model {model!r}; expected one of {', '.join(MODELS)}", model)
        if model != "faulty":
            return Answer(200, completion(model, messages, reply(model, messages, self._seed)), model)
        return self._faulty(messages, reply("keyword", messages, self._seed))

    def _faulty(self, messages: list[dict[str, str]], text: str) -> Answer:
        with self._lock:
            self._attempts[digest(messages)] += 1
            fault = self._faults.kind(messages, self._attempts[digest(messages)])
        if fault in ("429", "500"):
            return error(int(fault), "a planned fault; try again", "faulty", fault)
        if fault in REFUSALS:
            status, code, message = REFUSALS[fault]
            return error(status, message, "faulty", fault, code)
        said = {"empty": "", "null": None, "filter": None, "cut": text[: len(text) // 2]}
        finish = {"filter": "content_filter", "cut": "length"}.get(str(fault), "stop")
        body = completion("faulty", messages, said.get(str(fault), text), finish)
        return Answer(
            200,
            body[: len(body) // 2] if fault == "broken" else body,
            "faulty",
            fault,
            self._faults.slow_seconds if fault == "slow" else 0.0,
        )

    def _record(self, request: Any, outcome: dict[str, Any]) -> None:
        with self._lock:
            self.requests.append(request)
            self.log.append(outcome)
            if self._log_file:
                with self._log_file.open("a", encoding="utf-8") as file:  # ASCII: no U+2028 can split a line in two
                    file.write(json.dumps({"request": request, **outcome}) + "\n")


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.1, kept alive. Nagle's algorithm would delay small replies by 40 ms."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one packet

    def do_GET(self) -> None:
        if self._path() != LIST:
            return self._send(self._no_such_path())
        assert isinstance(self.server, Server)
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "helmbench"} for name in self.server.models]
        self._send(Answer(200, json.dumps({"object": "list", "data": models}).encode()))

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close_connection = True  # the rest of the body can't be told from the next request
            return self._send(error(411, "the body's size is unknown; expected a Content-Length header"))
        raw = self.rfile.read(int(length))
        assert isinstance(self.server, Server)
        asked = {CHAT: self.server.answer, TEXT: self.server.go_on}.get(self._path())
        self._send(asked(raw) if asked else self._no_such_path())

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the server has its own request log."""

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _no_such_path(self) -> Answer:
        return error(404, f"no {self.command} {self._path()}; expected POST {CHAT}, POST {TEXT} or GET {LIST}")

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.body)))
        if answer.status == 429:
            self.send_header("Retry-After", "1")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)


def start(
    port: int = 0,
    *,
    host: str = "127.0.0.1",
    seed: int = 0,
    log: Path | None = None,
    fault_rate: float = 0.2,
    fault_seed: int = 0,
    slow_seconds: float = 0.5,
    faults: dict[str, float] | None = None,
) -> Server:
    """A running server, for a `with` block; `port` 0 takes a free one. Faults affect the model `faulty` only."""
    if not 0 <= fault_rate <= 1 or slow_seconds < 0:
        raise ValueError(f"fault rate {fault_rate}, slow seconds {slow_seconds}; expected 0 to 1, and 0 or more")
    if unknown := set(faults or {}) - {*FAULTS, *ITEM_FAULTS}:
        raise ValueError(f"no fault {sorted(unknown)[0]!r}; expected {', '.join((*FAULTS, *ITEM_FAULTS))}")
    if faults and (
        min(faults.values()) < 0 or any(sum(faults.get(k, 0) for k in kinds) > 1 for kinds in (FAULTS, ITEM_FAULTS))
    ):
        raise ValueError(f"fault shares {faults}; expected 0 to 1, and at most 1 together")
    if log:
        log.open("a").close()  # fail now, not at the first request, if the path can't be written
    schedule = Faults(dict.fromkeys(FAULTS, fault_rate / len(FAULTS)), fault_seed, slow_seconds, attempts=3)
    if faults is not None:
        schedule = Faults(faults, fault_seed, slow_seconds)
    server = Server((loopback(host), port), seed, log, schedule)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


def loopback(host: str) -> str:
    """The address to listen on. Prompts describe crises, so none may leave this machine."""
    address = "127.0.0.1" if host == "localhost" else host
    try:
        allowed = IPv4Address(address).is_loopback
    except ValueError:
        allowed = False
    if not allowed:
        raise ValueError(f"host {host!r} is not a loopback address; expected 127.0.0.1 or localhost")
    return address


def _shares(text: str) -> dict[str, float]:
    try:
        return {kind: float(share) for kind, _, share in (part.partition("=") for part in text.split(","))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; expected KIND=SHARE,…, such as 429=0.05,slow=0.05") from None


def serve(parser: argparse.ArgumentParser, start: Callable[..., Server], seeded: str) -> int:
    """Serves what the command line asks for until SIGTERM or SIGINT; returns 2 if it can't. `seeded`: what --seed
    changes.
    """
    parser.add_argument("--port", type=int, required=True, help="0 takes a free one and prints it")
    parser.add_argument("--host", default="127.0.0.1", help="loopback only")
    parser.add_argument("--seed", type=int, default=0, help=f"of {seeded}")
    parser.add_argument("--log", type=Path, help="append each request and how it was answered, one JSON line each")
    args = parser.parse_args()
    try:
        server = start(**vars(args))
    except (OSError, OverflowError, ValueError) as problem:
        in_use = isinstance(problem, OSError) and problem.errno == errno.EADDRINUSE
        reason = f"port {args.port} is in use; expected a free one (--port 0 takes any)" if in_use else problem
        print(f"{Path(sys.argv[0]).stem}: {reason}", file=sys.stderr)
        return 2
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with server:
        print(f"{server.title} ready on {server.url} (models: {', '.join(server.models)})", flush=True)
        stop.wait()
    return 0


def main() -> int:
    """Serves until SIGTERM or SIGINT; returns 2 if it can't."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fault-rate", type=float, default=0.2, help="share of `faulty`'s attempts that fail")
    parser.add_argument(
        "--faults", type=_shares, help="KIND=SHARE,… instead of --fault-rate: " + ", ".join((*FAULTS, *ITEM_FAULTS))
    )
    parser.add_argument("--fault-seed", type=int, default=0, help="of `faulty`'s schedule")
    parser.add_argument("--slow-seconds", type=float, default=0.5, help="how long a slow fault waits")
    return serve(parser, start, "the policy `random`")


if __name__ == "__main__":
    sys.exit(main())
