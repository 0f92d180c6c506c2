"""The files between questions and verdicts: `requests.jsonl` and `replies*.jsonl`, in the OpenAI batch format, for any
engine.

One folder per judge, RUN_DIR/judge/<model>/. There may be several `replies*.jsonl` (the live engine's `replies.jsonl`,
shards of `vllm run-batch`, a provider's results), with several lines for one question: they merge by `custom_id`, and
the first readable answer wins. A question without one is *missing* until it has ASKS unreadable answers.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

from helmbench_common import jsonl
from helmbench_common.files import naming
from helmbench_common.formats.plain_file import open_plain, opened
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.http.bodies import error_code, tokens
from judge.llm.answers import Parsed, parse, parse_category
from judge.llm.budget import NOTHING, Tokens
from judge.llm.errors import EngineError
from judge.llm.questions import JudgeRequest
from judge.replies.schema import RunError

ASKS = 3  # one question and two retries; then the verdict is unscored
EXPECTED = "a JSON object with custom_id, response and error in each line"
LIVE = "replies.jsonl"  # the live engine appends to it; other engines' files are in the same folder
Answer = Parsed | Literal["judge_refused", "error"]


class Read(NamedTuple):
    """The result of a question's lines: its answer, and whether asking again could change it (`missing`). `asks`:
    answers so far.
    """

    answer: Answer
    asks: int
    missing: bool


def folder(home: Path, model: str) -> Path:
    """The folder of a judge's requests and replies in a run or corpus folder.

    Raises:
        RunError: as `own_place`.
    """
    return own_place(home, home / "judge" / safe(model))


def own_place(home: Path, path: Path) -> Path:
    """A file or folder below `home`, for writing. No part of the path may be a link: a run or corpus comes from
    elsewhere, and its links may lead to arbitrary files. `home` itself may be a link.

    Raises:
        RunError: a link.
    """
    for place in [path, *path.parents][: len(path.relative_to(home).parts)]:
        if place.is_symlink():
            kind = "folder" if place.is_dir() else "file"
            raise RunError(f"{shown(place)}: is a link; expected a {kind} of its own")
    return path


def safe(model: str) -> str:
    """A model's name as a safe, visible folder name."""
    return re.sub(r"^\.|[^\w.\-]+", "_", model)


def request_line(request: JudgeRequest) -> str:
    """One line of the batch input format."""
    return jsonl.line(
        {"custom_id": request.custom_id, "method": "POST", "url": "/v1/chat/completions", "body": request.body}
    )


def result(custom_id: str, request_id: str | None, body: dict[str, Any]) -> dict[str, Any]:
    """A line of the batch output format for a received answer."""
    return _record(custom_id, {"status_code": 200, "request_id": request_id, "body": body}, None)


def failure(custom_id: str, problem: str, status: int | None = None, code: str | None = None) -> dict[str, Any]:
    """A line of the batch output format for a question without an answer. `problem` is HelmBench's own text: a server's
    message may repeat a key.
    """
    response = {"status_code": status, "request_id": None, "body": None} if status else None
    return _record(custom_id, response, {"code": code or "no_answer", "message": problem})


def _record(custom_id: str, response: dict[str, Any] | None, error: dict[str, str] | None) -> dict[str, Any]:
    return {"id": f"judge_req_{uuid.uuid4().hex[:24]}", "custom_id": custom_id, "response": response, "error": error}


def trim(body: Any) -> dict[str, Any] | None:
    """The kept fields of a chat completion: model, content or refusal, finish_reason, usage. None if it isn't a
    completion, or isn't a single model answer: an error included, several choices (one is requested), another role.
    """
    try:
        (choice,), usage = body["choices"], body.get("usage") or {}
        message = {k: choice["message"].get(k) for k in ("content", "refusal")}
        role = choice["message"].get("role")
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    if body.get("error") or role not in (None, "assistant"):
        return None
    if not all(v is None or isinstance(v, str) for v in message.values()):
        return None
    message = {k: v and jsonl.plain(v) for k, v in message.items()}  # files can't contain unpaired surrogates
    finish = choice.get("finish_reason")
    kept = {k: v for k in ("prompt_tokens", "completion_tokens", "total_tokens") if (v := tokens(usage, k)) is not None}
    return {
        "model": jsonl.plain(str(body.get("model"))),
        "choices": [{"message": message, "finish_reason": jsonl.plain(finish) if isinstance(finish, str) else None}],
        "usage": kept or None,
    }


def _body(record: dict[str, Any]) -> Any:
    response = record.get("response")
    return response.get("body") if isinstance(response, dict) else None


def used(record: dict[str, Any]) -> Tokens:
    """The token usage that a line's answer reports."""
    body = _body(record)
    usage = body.get("usage") if isinstance(body, dict) else None
    return Tokens(tokens(usage, "prompt_tokens") or 0, tokens(usage, "completion_tokens") or 0)


def answered_by(record: dict[str, Any]) -> str | None:
    """The model that a line's answer names."""
    body = _body(record)
    return jsonl.plain(str(body["model"])) if isinstance(body, dict) and "model" in body else None


def read(records: Iterable[dict[str, Any]], request: JudgeRequest) -> Read:
    """The result of one question's lines: the first readable answer, else a refusal, else why none is readable."""
    refused, unreadable, seen = False, list[Parsed](), set[str]()
    for record in records:
        identity = record.get("id")
        if isinstance(identity, str) and identity in seen:
            continue  # the same result, delivered twice
        seen.add(str(identity))
        answer = _one(record, request)
        if isinstance(answer, Parsed) and answer.label is not None:
            return Read(answer, len(unreadable) + 1, False)
        refused = refused or answer == "judge_refused"
        if isinstance(answer, Parsed):
            unreadable.append(answer)
    if refused:
        return Read("judge_refused", len(unreadable) + 1, False)
    return Read(unreadable[0] if unreadable else "error", len(unreadable), len(unreadable) < ASKS)


def _one(record: dict[str, Any], request: JudgeRequest) -> Answer:
    response, body = record.get("response"), _body(record)
    # Some providers filter with an error instead of an answer (HTTP 400, code content_filter).
    if "content_filter" in (error_code(body), error_code(record)):
        return "judge_refused"
    if record.get("error") or not isinstance(response, dict) or response.get("status_code", 200) != 200:
        return "error"
    completion = trim(body)
    if completion is None:
        return "error"
    choice = completion["choices"][0]
    if choice["finish_reason"] == "content_filter" or choice["message"]["refusal"]:
        return "judge_refused"
    if request.text:
        said = choice["message"]["content"] or ""
        return Parsed(said) if said.strip() else Parsed(None, problem="empty answer")
    if request.category:
        return parse_category(choice["message"]["content"], request.labels)
    return parse(choice["message"]["content"], request.labels, request.reply, request.reasoned)


class Replies:
    """Every line of a judge's `replies*.jsonl`, indexed by `custom_id`. Only offsets are indexed, on disk: memory use
    stays constant.

    Raises:
        RunError: a line that isn't a batch result; a truncated last line (after a kill) is skipped.
    """

    def __init__(self, where: Path) -> None:
        self.paths = sorted(where.glob("replies*.jsonl"))
        self.lines = 0
        self.live = self.elsewhere = NOTHING  # tokens reported by the live engine's answers, and by other engines'
        self._index = sqlite3.connect("")  # a private file that disappears with the connection
        self._index.execute("CREATE TABLE line (id BLOB, shard INTEGER, at INTEGER)")
        for shard, path in enumerate(self.paths):
            try:
                self._index.executemany("INSERT INTO line VALUES (?, ?, ?)", self._scan(path, shard))
            except FormatError as error:
                raise RunError(str(error)) from None
        self._index.execute("CREATE INDEX by_id ON line (id)")

    def of(self, custom_id: str) -> list[dict[str, Any]]:
        """The lines of one question, in file and line order."""
        found: list[dict[str, Any]] = []
        for shard, at in self._index.execute(
            "SELECT shard, at FROM line WHERE id = ? ORDER BY shard, at", (custom_id.encode(),)
        ).fetchall():
            with opened(self.paths[shard]) as file:
                file.seek(at)
                found.append(jsonl.loads(file.readline()))
        return found

    def _scan(self, path: Path, shard: int) -> Iterator[tuple[bytes, int, int]]:
        at = 0
        with open_plain(path, EXPECTED) as file:
            for number, line in enumerate(iter(lambda: file.readline(jsonl.LONGEST), b""), start=1):
                record = _decoded(line)
                # Without a line end it is the last line, cut short, or exceeds the maximum line length.
                if record is None and line.strip() and (line.endswith(b"\n") or len(line) == jsonl.LONGEST):
                    raise RunError(f"{path}:{number}: not a batch result; expected {EXPECTED}")
                if record is not None:
                    self.lines += 1
                    if path.name == LIVE:
                        self.live += used(record)
                    else:
                        self.elsewhere += used(record)
                    yield record["custom_id"].encode(), shard, at
                at += len(line)


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        record = jsonl.loads(line)
        record["custom_id"].encode()  # looked up by its bytes; unpaired surrogates have none
    except (ValueError, KeyError, AttributeError):
        return None
    return record if "response" in record or "error" in record else None


def missing(requests: Iterable[JudgeRequest], replies: Replies) -> Iterator[tuple[JudgeRequest, int]]:
    """The questions that another ask could still answer, each once, with the number of unreadable answers so far. Holds
    none in memory.
    """
    # Whichever thread collects an abandoned generator closes it, but never two at the same time.
    with closing(sqlite3.connect("", check_same_thread=False)) as seen:
        seen.execute("CREATE TABLE seen (id BLOB PRIMARY KEY) WITHOUT ROWID")
        for request in requests:
            if not seen.execute("INSERT OR IGNORE INTO seen VALUES (?)", (request.custom_id.encode(),)).rowcount:
                continue
            found = read(replies.of(request.custom_id), request) if replies.lines else Read("error", 0, True)
            if found.missing:
                yield request, found.asks


def _own(path: Path) -> int:
    """Opens a file that isn't a link: a link's target may be an arbitrary file, which must not be repaired or appended
    to.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise RunError(f"{shown(path)}: is a link; expected a regular file") from None


class Log:
    """`replies.jsonl`, open for appending by one process at a time. A line is on disk when `write` returns.

    Raises:
        EngineError: another process is writing it. RunError: it is a link.
    """

    def __init__(self, where: Path) -> None:
        where.mkdir(parents=True, exist_ok=True)
        self.path = where / LIVE
        self._alone = threading.Lock()  # a write goes on in its thread after its task is canceled
        self._file = os.fdopen(_own(self.path), "a+b", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released however the process ends
        except OSError:
            self._file.close()
            raise EngineError(
                f"{self.path}: another `helmbench judge` is writing it; wait for it, or stop it"
            ) from None
        self._mend()
        directory = os.open(where, os.O_RDONLY)
        os.fsync(directory)  # makes the file's name durable too
        os.close(directory)

    def write(self, lines: Iterable[str]) -> None:
        """Appends whole lines, or none, and waits until they are on disk."""
        with self._alone:
            size = self._file.seek(0, os.SEEK_END)
            try:
                rest = memoryview("".join(lines).encode())
                with naming(self.path):
                    while rest:
                        rest = rest[self._file.write(rest) :]
                    os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(size)
                raise

    def close(self) -> None:
        self._file.close()

    def _mend(self) -> None:
        """Removes a truncated last line (after a kill), so that its question is asked again; a complete one gets its
        line end.
        """
        size = self._file.seek(0, os.SEEK_END)
        tail, at = b"", size
        while at and b"\n" not in tail:
            at = max(0, at - 65536)
            self._file.seek(at)
            tail = self._file.read(size - at)
        last = tail[tail.rfind(b"\n") + 1 :]
        if last and _decoded(last) is None:
            self._file.truncate(size - len(last))
        elif last:
            self.write(["\n"])
