"""A loopback judge for tests. It answers each question by a script, or with a label and faults that depend on the
question's hash.
"""

from __future__ import annotations

import hashlib
import json
import random
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

GOOD = '{"label": "PASS", "quotes": ["good day"]}'
FAULTS = ("429", "500", "slow", "truncated", "duplicate", "garbage", "page")


class Said(NamedTuple):
    """An HTTP response. `cut`: close the connection after half of the body. `copies`: how often to send the answer,
    `apart` seconds. `raw`: pieces to send instead, with status line and headers, while the client reads them. `reset`:
    reset the connection instead.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    cut: bool = False
    copies: int = 1
    apart: float = 0.0
    wait: float = 0.0
    raw: Callable[[], Iterable[bytes]] | None = None
    reset: bool = False


def said(content: str | None, finish: str = "stop", usage: tuple[int, int] | None = (100, 10), **message: Any) -> Said:
    """A chat completion with this content; `usage`: tokens in and out, or None."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)} if usage else None
    return Said(
        200,
        {},
        json.dumps(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": "judge-1",
                "choices": [choice],
                "usage": counted,
            }
        ).encode(),
    )


def failed(status: int, message: str = "planned", code: str | None = None, **headers: str) -> Said:
    """An OpenAI-style error."""
    return Said(status, headers, json.dumps({"error": {"message": message, "type": "planned", "code": code}}).encode())


def by_hash(body: dict[str, Any], attempt: int) -> Said:
    """An answer that depends only on the question, after faults that depend on the question and the attempt.

    One question in 29 always gets garbage, one in 31 is always refused; a third of first and second attempts fail.
    """
    asked = json.dumps(body, sort_keys=True)
    number = int(hashlib.sha256(asked.encode()).hexdigest()[:8], 16)
    labels = body["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
    answer = said(json.dumps({"label": labels[number % len(labels)], "quotes": []}))
    if number % 29 == 0:
        answer = said("I would say that this passes.")
    elif number % 31 == 0:
        answer = said(None, refusal="No.")
    drawn = random.Random(f"{number}:{attempt}")
    if attempt > 2 or drawn.random() > 1 / 3:
        return answer
    faulty: dict[str, Said] = {
        "429": failed(429, retry_after_ms="3"),
        "500": failed(500),
        "slow": answer._replace(wait=0.03),
        "truncated": answer._replace(cut=True),
        "duplicate": answer._replace(copies=2),
        "garbage": said('{"label": "PASS", "quotes": []} {"label": "FAIL", "quotes": []}'),
        "page": Said(200, {}, b"<html>gateway</html>"),
    }
    return faulty[drawn.choice(FAULTS)]


Script = Callable[[dict[str, Any], int], Said]  # a request's body, and how often its user message was asked


class JudgeServer(ThreadingHTTPServer):
    """Answers by `script(body, attempt)`; `together`: how many requests it waits for before it answers the first.

    `models`: the answer to a request for the list of models; `key`: the only API key that gets completions.
    """

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, script: Script, together: int = 1) -> None:
        super().__init__(("127.0.0.1", 0), JudgeHandler)
        self.script, self.together = script, together
        self.models, self.key = failed(501), ""
        self.looks: list[str] = []  # paths of requests for the list of models
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.asked: dict[str, int] = defaultdict(int)  # requests by user message
        self.times: list[float] = []
        self.keys: set[str | None] = set()
        self.total = self.now = self.peak = 0
        self.poured = 0  # bytes of raw answers that clients read
        self.change = threading.Condition()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: a killed client isn't a server error."""

    def reply(self, body: dict[str, Any], key: str | None) -> Said:
        prompt = body["messages"][0]["content"]
        with self.change:
            self.keys.add(key)
            self.times.append(time.monotonic())
            self.total += 1
            self.asked[prompt] += 1
            attempt = self.asked[prompt]
            self.now += 1
            self.peak = max(self.peak, self.now)
            self.change.notify_all()
            self.change.wait_for(lambda: self.peak >= self.together, timeout=5)
            self.change.wait(timeout=0.02 if self.together > 1 else 0)  # time for a request that should have waited
            self.now -= 1
        return self.script(body, attempt)


class JudgeHandler(BaseHTTPRequestHandler):
    """HTTP/1.1, kept alive."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        assert isinstance(self.server, JudgeServer)
        self.server.looks.append(self.path)
        self._send(self.server.models)

    def do_POST(self) -> None:
        assert isinstance(self.server, JudgeServer)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Authorization"]
        if self.server.key and key != f"Bearer {self.server.key}":
            return self._send(failed(401, f"no such key: {key}", "invalid_api_key"))
        answer = self.server.reply(body, key)
        time.sleep(answer.wait)
        with suppress(ConnectionError):
            if answer.reset:
                return self._reset()
            if answer.raw:
                return self._pour(answer.raw())
            for copy in range(answer.copies):
                time.sleep(answer.apart if copy else 0)
                self._send(answer)

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _pour(self, pieces: Iterable[bytes]) -> None:
        assert isinstance(self.server, JudgeServer)
        self.close_connection = True
        for piece in pieces:
            self.connection.sendall(piece)
            self.server.poured += len(piece)

    def _send(self, answer: Said) -> None:
        self.send_response(answer.status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(answer.body)),
            **answer.headers,
        }.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(answer.body[: len(answer.body) // 2] if answer.cut else answer.body)
        if answer.cut:
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif answer.apart:
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


Serve = Callable[..., JudgeServer]  # the fixture `serve`: a script, and perhaps `together` → a started server


@contextmanager
def stopped_at_the_end() -> Iterator[list[JudgeServer]]:
    """A list for servers that a test starts; stops each when the test ends."""
    started: list[JudgeServer] = []
    yield started
    for server in started:
        server.shutdown()
        server.server_close()
