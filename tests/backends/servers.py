"""A server program for the length of a test, and a recorder between it and its clients."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

READY = 600  # seconds that a server may take to start; vLLM on a busy CPU needs more than one minute


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


@contextmanager
def served(command: list[str], port: int, log: Path) -> Iterator[str]:
    """Runs the command until the block ends; gives its address once it answers.

    Raises:
        AssertionError: it ended, or wasn't ready in time; the end of its log is shown.
    """
    settings = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    with log.open("w", encoding="utf-8") as output:
        # A session of its own: vLLM's engine is another process, and both are stopped together.
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=inherited | settings, start_new_session=True
        )
    try:
        until = time.monotonic() + READY
        while not _healthy(port):
            if process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"{command} is not ready\n{log.read_text(encoding='utf-8')[-4000:]}")
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        return False


@contextmanager
def recorder(target: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A loopback address that hands every POST on to `target` and keeps its body."""
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            return

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            bodies.append(json.loads(raw))
            request = urllib.request.Request(target + self.path, raw, {"content-type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=300) as answer:
                    status, data = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, data = error.code, error.read()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", bodies
        finally:
            server.shutdown()
