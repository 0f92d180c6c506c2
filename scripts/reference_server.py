"""The trivial policies behind a loopback OpenAI-compatible server, the same interface as any model's.

Usage: `python scripts/reference_server.py --port N`
In a test: `with reference_server.start(faults={"429": 0.3}) as server:` then `server.url`, `server.requests`,
`server.log`.

It answers chat completions, and completions of a plain transcript (`System: …`, `User: …`, `Assistant:`) as a base
model's server would. Models are the six policies, each also with a greeting (`keyword-greeting`), and `faulty`, which
answers as `keyword` but fails at the given shares: FAULTS of attempts, ITEM_FAULTS of conversations. Sampling settings
are ignored, and no reply depends on the clock.
"""

from __future__ import annotations

import argparse
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
from typing import Any, NamedTuple

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
Messages = list[dict[str, str]]


class Answer(NamedTuple):
    """The HTTP response, sent after `delay` seconds, and the injected fault."""

    status: int
    body: bytes
    fault: str | None = None
    delay: float = 0.0


def error(status: int, message: str, fault: str | None = None, code: str | None = None) -> Answer:
    """An OpenAI-style error object."""
    kind = {429: "rate_limit_error", 500: "server_error"}.get(status, "invalid_request_error")
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return Answer(status, json.dumps(body).encode(), fault)


def completion(model: str, messages: Messages, text: str | None, finish: str = "stop") -> bytes:
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


def transcript(prompt: str) -> Messages:
    """The messages of a transcript that ends where the model continues.

    Raises:
        ValueError: it isn't one.
    """
    if not re.fullmatch(r"(?s)(System|User): .*\n\nAssistant:", prompt):
        raise ValueError("prompt: expected a transcript that ends with 'Assistant:'")
    _, *parts = SPEAKER.split(prompt.removesuffix("\n\nAssistant:"))
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [{"role": role.lower(), "content": text.removeprefix(" ")} for role, text in pairs]


class Server(ThreadingHTTPServer):
    """Answers on loopback until the `with` block ends; records every request and its answer. `port`: 0 takes a free
    one. `faults`: kind → share, of the model `faulty` alone.
    """

    request_queue_size = 1024  # the default backlog of 5 drops clients that connect all at once
    title, models = "reference server", MODELS

    def __init__(
        self,
        port: int = 0,
        *,
        seed: int = 0,
        faults: dict[str, float] | None = None,
        fault_seed: int = 0,
        slow_seconds: float = 0.5,
    ) -> None:
        if unknown := (faults or {}).keys() - {*FAULTS, *ITEM_FAULTS}:
            raise ValueError(f"no fault {min(unknown)!r}; expected {', '.join((*FAULTS, *ITEM_FAULTS))}")
        super().__init__(("127.0.0.1", port), Handler)  # prompts describe crises, so none leaves this machine
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.requests: list[Any] = []
        self.log: list[dict[str, Any]] = []
        self._seed, self._faults, self._fault_seed, self._slow = seed, faults or {}, fault_seed, slow_seconds
        self._attempts: Counter[str] = Counter()
        self._connections: set[Any] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

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

    def answer(self, path: str, raw: bytes) -> Answer:
        """The answer to a request's body, logged before it is sent: a client that has it finds it in the log."""
        request: Any = raw.decode(errors="replace")
        try:
            request = json.loads(raw)
            answer = self.respond(request) if path == CHAT else self._continue(request)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
            answer = error(400, f"bad request: {problem!r}")
        with self._lock:
            self.requests.append(request)
            model = request.get("model") if isinstance(request, dict) else None
            self.log.append({"model": model, "status": answer.status, "fault": answer.fault})
        time.sleep(answer.delay)
        return answer

    def respond(self, request: Any) -> Answer:
        model, messages = request["model"], [{**m, "content": plain(m["content"])} for m in request["messages"]]
        if model not in MODELS:
            return error(404, f"no model {model!r}; expected one of {', '.join(MODELS)}", code="model_not_found")
        if model != "faulty":
            return Answer(200, completion(model, messages, reply(model, messages, self._seed)))
        with self._lock:
            self._attempts[digest(messages)] += 1
            attempt = self._attempts[digest(messages)]
        fault = self._drawn(ITEM_FAULTS, "item", messages) or self._drawn(FAULTS, str(attempt), messages)
        if fault in ("429", "500"):
            return error(int(fault), "a planned fault; try again", fault)
        if fault in REFUSALS:
            status, code, message = REFUSALS[fault]
            return error(status, message, fault, code)
        text = reply("keyword", messages, self._seed)
        said = {"empty": "", "null": None, "filter": None, "cut": text[: len(text) // 2]}
        finish = {"filter": "content_filter", "cut": "length"}.get(str(fault), "stop")
        body = completion("faulty", messages, said.get(str(fault), text), finish)
        body = body[: len(body) // 2] if fault == "broken" else body
        return Answer(200, body, fault, self._slow if fault == "slow" else 0.0)

    def _continue(self, request: Any) -> Answer:
        return as_text(self.respond(request | {"messages": transcript(request["prompt"])}))

    def _drawn(self, kinds: tuple[str, ...], salt: str, messages: Messages) -> str | None:
        """The fault of an attempt. Nothing else matters, so concurrency can't change it."""
        drawn = hashlib.sha256(f"{self._fault_seed}:{salt}:{digest(messages)}".encode()).digest()
        share = int.from_bytes(drawn[:6], "big") / 256**6
        for kind in kinds:
            share -= self._faults.get(kind, 0.0)
            if share < 0:
                return kind
        return None


def plain(content: str | list[dict[str, str]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.1, kept alive. Nagle's algorithm would delay small replies by 40 ms."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one packet
    server: Server

    def do_GET(self) -> None:
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "helmbench"} for name in self.server.models]
        found = Answer(200, json.dumps({"object": "list", "data": models}).encode())
        self._send(found if self.path == LIST else self._no_such_path())

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        self._send(self.server.answer(self.path, raw) if self.path in (CHAT, TEXT) else self._no_such_path())

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the server has its own request log."""

    def _no_such_path(self) -> Answer:
        return error(404, f"no {self.command} {self.path}; expected POST {CHAT}, POST {TEXT} or GET {LIST}")

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.body)))
        if answer.status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(answer.body)


start = Server


def serve(description: str | None, start: Callable[..., Server]) -> int:
    """Serves at --port until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--port", type=int, required=True, help="0 takes a free one and prints it")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with start(parser.parse_args().port) as server:
        print(f"{server.title} ready on {server.url} (models: {', '.join(server.models)})", flush=True)
        stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(serve(__doc__, start))
