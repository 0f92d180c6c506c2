"""The files between questions and verdicts: `requests.jsonl` and `replies*.jsonl`, in the OpenAI batch format, any
engine's.

One folder per judge, RUN_DIR/judge/<model>/. `replies*.jsonl` may be several (our live engine's `replies.jsonl`, shards
of `vllm run-batch`, a provider's results) and may hold several lines for one question: they merge by `custom_id`, and
the first answer that can be read wins. A question without one is *missing* until ASKS answers to it could not be read.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

from helmbench_common import jsonl
from helmbench_common.formats.plain_file import open_plain, opened
from helmbench_common.formats.refused import FormatError, shown
from helmbench_common.http.bodies import error_code, tokens
from judge.llm.answers import Parsed, parse, parse_category
from judge.llm.budget import NOTHING, Tokens
from judge.llm.errors import EngineError
from judge.llm.questions import JudgeRequest
from judge.replies.schema import RunError

ASKS = 3  # one question and two re-asks; then the verdict is unscored
EXPECTED = "a JSON object with custom_id, response and error in each line"
LIVE = "replies.jsonl"  # what our engine appends to; other engines' files stand beside it
Answer = Parsed | Literal["judge_refused", "error"]


class Read(NamedTuple):
    """What a question's lines say: its answer, and whether asking again could change it (`missing`). `asks`: answers so
    far.
    """

    answer: Answer
    asks: int
    missing: bool


def folder(home: Path, model: str) -> Path:
    """Where a judge's requests and replies stand below a run or a corpus.

    Raises:
        RunError: as `own_place`.
    """
    return own_place(home, home / "judge" / safe(model))


def own_place(home: Path, path: Path) -> Path:
    """A file or folder below `home`, to be written: no link is on the way, since a run or corpus comes from elsewhere,
    and its links may lead to anybody's files. `home` itself may be one.

    Raises:
        RunError: a link.
    """
    for place in [path, *path.parents][: len(path.relative_to(home).parts)]:
        if place.is_symlink():
            kind = "folder" if place.is_dir() else "file"
            raise RunError(f"{shown(place)}: is a link; expected a {kind} of its own")
    return path


def safe(model: str) -> str:
    """A model's name as that of a folder which nothing hides."""
    return re.sub(r"^\.|[^\w.\-]+", "_", model)


def request_line(request: JudgeRequest) -> str:
    """One line of the batch input format."""
    return jsonl.line(
        {"custom_id": request.custom_id, "method": "POST", "url": "/v1/chat/completions", "body": request.body}
    )


def result(custom_id: str, request_id: str | None, body: dict[str, Any]) -> dict[str, Any]:
    """A line of the batch output format for an answer that came."""
    return _record(custom_id, {"status_code": 200, "request_id": request_id, "body": body}, None)


def failure(custom_id: str, problem: str, status: int | None = None, code: str | None = None) -> dict[str, Any]:
    """A line of the batch output format for a question that got no answer. `problem` is ours: a server's message may
    repeat a key.
    """
    response = {"status_code": status, "request_id": None, "body": None} if status else None
    return _record(custom_id, response, {"code": code or "no_answer", "message": problem})


def _record(custom_id: str, response: dict[str, Any] | None, error: dict[str, str] | None) -> dict[str, Any]:
    return {"id": f"judge_req_{uuid.uuid4().hex[:24]}", "custom_id": custom_id, "response": response, "error": error}


def trim(body: Any) -> dict[str, Any] | None:
    """What is kept of a chat completion: model, content or refusal, finish_reason, usage. None where it is no
    completion, or not one answer of a model's: an error beside it, several choices (one is asked for), another role.
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
    message = {k: v and jsonl.plain(v) for k, v in message.items()}  # half a character is in no file, and in no reply
    finish = choice.get("finish_reason")
    kept = {k: v for k in ("prompt_tokens", "completion_tokens", "total_tokens") if (v := tokens(usage, k)) is not None}
    return {
        "model": jsonl.plain(str(body.get("model"))),
        "choices": [{"message": message, "finish_reason": jsonl.plain(finish) if isinstance(finish, str) else None}],
        "usage": kept or None,
    }


def used(record: dict[str, Any]) -> Tokens:
    """The tokens that a line's answer reports."""
    body = response.get("body") if isinstance(response := record.get("response"), dict) else None
    usage = body.get("usage") if isinstance(body, dict) else None
    return Tokens(tokens(usage, "prompt_tokens") or 0, tokens(usage, "completion_tokens") or 0)


def answered_by(record: dict[str, Any]) -> str | None:
    """The model that a line's answer names."""
    response = record.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    return jsonl.plain(str(body["model"])) if isinstance(body, dict) and "model" in body else None


def read(records: Iterable[dict[str, Any]], request: JudgeRequest) -> Read:
    """What the lines of one question come to: the first readable answer, else a refusal, else why none could be
    read.
    """
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
    response = record.get("response")
    body = response.get("body") if isinstance(response, dict) else None
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
    if request.category:
        return parse_category(choice["message"]["content"], request.labels)
    return parse(choice["message"]["content"], request.labels, request.reply, request.reasoned)


class Replies:
    """Every line of a judge's `replies*.jsonl`, found by `custom_id`. Only places are indexed, on disk: memory stays
    flat.

    Raises:
        RunError: a line that is no batch result; a last line that a kill cut short is left out.
    """

    def __init__(self, where: Path) -> None:
        self.paths = sorted(where.glob("replies*.jsonl"))
        self.lines = 0
        self.live = self.elsewhere = NOTHING  # tokens reported by our engine's answers, and by other engines'
        self._index = sqlite3.connect("")  # a private file that is gone with the connection
        self._index.execute("CREATE TABLE line (id BLOB, shard INTEGER, at INTEGER)")
        for shard, path in enumerate(self.paths):
            try:
                self._index.executemany("INSERT INTO line VALUES (?, ?, ?)", self._scan(path, shard))
            except FormatError as error:
                raise RunError(str(error)) from None
        self._index.execute("CREATE INDEX by_id ON line (id)")

    def of(self, custom_id: str) -> list[dict[str, Any]]:
        """The lines of one question, in the order of files and lines."""
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
                # Without its end it is the last one, cut short, or longer than any line may be.
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
        record["custom_id"].encode()  # found by its bytes, which half a surrogate pair doesn't have
    except (ValueError, KeyError, AttributeError):
        return None
    return record if "response" in record or "error" in record else None


def missing(requests: Iterable[JudgeRequest], replies: Replies) -> Iterator[tuple[JudgeRequest, int]]:
    """The questions that another ask could still answer, each once, with how many unreadable answers they have. Holds
    none.
    """
    # A walk that is abandoned half way is closed by whichever thread collects it, and by no other at the same time.
    with closing(sqlite3.connect("", check_same_thread=False)) as seen:
        seen.execute("CREATE TABLE seen (id BLOB PRIMARY KEY) WITHOUT ROWID")
        for request in requests:
            if not seen.execute("INSERT OR IGNORE INTO seen VALUES (?)", (request.custom_id.encode(),)).rowcount:
                continue
            found = read(replies.of(request.custom_id), request) if replies.lines else Read("error", 0, True)
            if found.missing:
                yield request, found.asks


def _own(path: Path) -> int:
    """Opens a file that is no link: what stands behind one may be anybody's, and is neither mended nor made longer."""
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise RunError(f"{shown(path)}: is a link; expected a regular file") from None


class Log:
    """`replies.jsonl`, open for appending by one process at a time. A line is on the disk when `write` returns.

    Raises:
        EngineError: another process is writing it. RunError: it is a link.
    """

    def __init__(self, where: Path) -> None:
        where.mkdir(parents=True, exist_ok=True)
        self.path = where / LIVE
        self._file = os.fdopen(_own(self.path), "a+b", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel lets go of it, however the process ends
        except OSError:
            self._file.close()
            raise EngineError(f"{self.path}: another `helmbench run` is writing it; wait for it, or stop it") from None
        self._mend()
        directory = os.open(where, os.O_RDONLY)
        os.fsync(directory)  # the file's name is on the disk too
        os.close(directory)

    def write(self, lines: Iterable[str]) -> None:
        """Appends whole lines and waits until the disk has them."""
        rest = memoryview("".join(lines).encode())
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _mend(self) -> None:
        """A last line that a kill cut short is taken off, so that it is asked again; a whole one gets its line end."""
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
