"""Scripts stage: the trivial policies behind a loopback OpenAI-compatible server, the same door as any model's.

Usage: `python scripts/reference_server.py --port N [--host 127.0.0.1] [--seed 0] [--log FILE]
[--fault-rate 0.2] [--fault-seed 0] [--slow-seconds 0.5]`
In a test: `with reference_server.start(fault_rate=0.5) as server:` then `server.url`, `server.requests`, `server.log`.

Models are the six policies and `faulty`, which answers as `keyword` but fails by a schedule fixed by its seed. Sampling
settings (`temperature`, `max_tokens`, `stop`, `seed`) are accepted and change nothing; no reply depends on the clock.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import signal
import socket
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError
from reference_policies import POLICIES, digest, reply

FAULTS = ("429", "500", "slow", "empty", "null", "broken")
MODELS = (*POLICIES, "faulty")
CHAT, LIST = "/v1/chat/completions", "/v1/models"
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


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
    """The fields that matter to an answer; a client may send others."""

    model: str
    messages: list[Message] = Field(min_length=1)
    n: Literal[1] | None = None
    stream: Literal[False] | None = None


class Answer(NamedTuple):
    """What goes back over the wire, and the fault that was put in."""

    status: int
    body: bytes
    model: str | None = None
    fault: str | None = None


def error(status: int, message: str, model: str | None = None, fault: str | None = None) -> Answer:
    """An OpenAI-style error object."""
    kind = {429: "rate_limit_error", 500: "server_error"}.get(status, "invalid_request_error")
    code = "model_not_found" if status == 404 and model else None
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return Answer(status, json.dumps(body).encode(), model, fault)


def decode(raw: bytes) -> Any:
    """The body's JSON, or its text where it isn't JSON, so that the log shows what came either way."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode(errors="replace")


class Faults(NamedTuple):
    """The schedule of the model `faulty`: `rate` is the share of the first three attempts that fail."""

    rate: float
    seed: int
    slow_seconds: float

    def kind(self, messages: list[dict[str, str]], attempt: int) -> str | None:
        """The fault of a conversation's n-th attempt (from 1); on nothing else, so concurrency can't change it."""
        if attempt >= 4:
            return None
        drawn = hashlib.sha256(f"{self.seed}:{attempt}:{digest(messages)}".encode()).digest()
        share = int.from_bytes(drawn[:6], "big") / 256**6
        return FAULTS[int(share / self.rate * len(FAULTS))] if share < self.rate else None


def completion(model: str, messages: list[dict[str, str]], text: str | None) -> bytes:
    """A chat completion; its id and time come from a hash, so that the same request is answered by the same bytes."""
    key = hashlib.sha256(f"{model}:{digest(messages)}".encode()).hexdigest()
    prompt, written = (len(t) // 4 for t in ("".join(m["content"] for m in messages), text or ""))
    body = {
        "id": f"chatcmpl-{key[:24]}",
        "object": "chat.completion",
        "created": 1_700_000_000 + int(key[:6], 16),
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
    }
    return json.dumps(body).encode()


class Server(ThreadingHTTPServer):
    """Answers on loopback until the `with` block ends; remembers every chat request and how it was answered."""

    request_queue_size = 1024  # the default backlog of 5 drops clients that connect all at once

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
        with self._lock:  # a kept-alive connection would go on answering after the server is gone
            for connection in self._connections:
                with suppress(OSError):  # the client was quicker
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
        if not isinstance(sys.exception(), ConnectionError):  # a client that gave up waiting is no error of ours
            super().handle_error(request, client_address)

    def answer(self, raw: bytes) -> Answer:
        """The answer to a chat request's body, recorded before it is sent: who has the answer finds it in the log."""
        try:
            answer = self._chat(ChatRequest.model_validate_json(raw))
        except ValidationError as problem:
            found = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'body'}: {e['msg']}" for e in problem.errors())
            answer = error(400, f"bad request: {found}")
        self._record(decode(raw), {"model": answer.model, "status": answer.status, "fault": answer.fault})
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
        if fault == "slow":
            time.sleep(self._faults.slow_seconds)
        body = completion("faulty", messages, "" if fault == "empty" else None if fault == "null" else text)
        return Answer(200, body[: len(body) // 2] if fault == "broken" else body, "faulty", fault)

    def _record(self, request: Any, outcome: dict[str, Any]) -> None:
        with self._lock:
            self.requests.append(request)
            self.log.append(outcome)
            if self._log_file:
                with self._log_file.open("a", encoding="utf-8") as file:  # ASCII: no U+2028 can split a line in two
                    file.write(json.dumps({"request": request, **outcome}) + "\n")


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.1, kept alive. Nagle's algorithm would hold small replies back for 40 ms."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one packet

    def do_GET(self) -> None:
        if self._path() != LIST:
            return self._send(self._no_such_path())
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "helmbench"} for name in MODELS]
        self._send(Answer(200, json.dumps({"object": "list", "data": models}).encode()))

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close_connection = True  # what follows can't be told from the next request
            return self._send(error(411, "the body's size is unknown; expected a Content-Length header"))
        raw = self.rfile.read(int(length))
        assert isinstance(self.server, Server)
        self._send(self.server.answer(raw) if self._path() == CHAT else self._no_such_path())

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the log of requests is the server's own."""

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _no_such_path(self) -> Answer:
        return error(404, f"no {self.command} {self._path()}; expected POST {CHAT} or GET {LIST}")

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
) -> Server:
    """A running server, for a `with` block; `port` 0 takes a free one. Faults happen to the model `faulty` only."""
    if not 0 <= fault_rate <= 1 or slow_seconds < 0:
        raise ValueError(f"fault rate {fault_rate}, slow seconds {slow_seconds}; expected 0 to 1, and 0 or more")
    if log:
        log.open("a").close()  # a path that can't be written fails now, not at the first request
    server = Server((_loopback(host), port), seed, log, Faults(fault_rate, fault_seed, slow_seconds))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


def _loopback(host: str) -> str:
    """The address to listen on. Prompts here speak of crises: none may leave this machine."""
    address = "127.0.0.1" if host == "localhost" else host
    try:
        allowed = IPv4Address(address).is_loopback
    except ValueError:
        allowed = False
    if not allowed:
        raise ValueError(f"host {host!r} is not a loopback address; expected 127.0.0.1 or localhost")
    return address


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, required=True, help="0 takes a free one and prints it")
    parser.add_argument("--host", default="127.0.0.1", help="loopback only")
    parser.add_argument("--seed", type=int, default=0, help="of the policy `random`")
    parser.add_argument("--log", type=Path, help="append each chat request and how it was answered, one JSON line each")
    parser.add_argument("--fault-rate", type=float, default=0.2, help="share of `faulty`'s attempts that fail")
    parser.add_argument("--fault-seed", type=int, default=0, help="of `faulty`'s schedule")
    parser.add_argument("--slow-seconds", type=float, default=0.5, help="how long a slow fault waits")
    return parser.parse_args()


def main() -> int:
    """Serves until SIGTERM or SIGINT; 2 where it can't."""
    args = _arguments()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # before any thread starts, so that only sigwait sees them
    try:
        server = start(**vars(args))
    except (OSError, OverflowError, ValueError) as problem:
        in_use = isinstance(problem, OSError) and problem.errno == errno.EADDRINUSE
        reason = f"port {args.port} is in use; expected a free one (--port 0 takes any)" if in_use else problem
        print(f"reference_server: {reason}", file=sys.stderr)
        return 2
    with server:
        print(f"reference server ready on {server.url} (models: {', '.join(MODELS)})", flush=True)
        signal.sigwait(STOP_SIGNALS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
