"""The live engine: judge requests → any OpenAI-compatible endpoint → `replies.jsonl`, one appended, fsynced line per answer.

A second run sends only what is missing. Keys come from the environment (OPENAI_API_KEY) and are written nowhere.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonlines
import openai
from tqdm import tqdm

from judge.errors import EngineError
from judge.parse import Parsed, parse
from judge.requests import JudgeRequest

ASKS = 3  # one question and two re-asks; then the verdict is unscored


def answer(requests: Iterable[JudgeRequest], path: Path, base_url: str, concurrency: int, timeout: float = 120.0) -> dict[str, Parsed | str]:
    """custom_id → what the judge said (or `judge_refused`, `error`), read from `path` where it already stands there."""
    known = stored(path)
    wanted = {r.custom_id: r for r in requests}
    # An error is no answer: once the judge is back, the same command asks again.
    missing = [r for i, r in wanted.items() if "error" in known.get(i, {"error": ""})]
    if missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        asyncio.run(_send(missing, path, base_url, concurrency, timeout))
        known = stored(path)
    return {i: _read(known.get(i), r) for i, r in wanted.items()}


def stored(path: Path) -> dict[str, dict[str, Any]]:
    """The answers already on disk. A last line that a kill cut short is dropped from the file, so that it is asked again."""
    if not path.is_file():
        return {}
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        path.write_bytes(data[: data.rfind(b"\n") + 1])
    with jsonlines.open(path) as reader:
        return {record["custom_id"]: record for record in reader.iter(type=dict)}


async def _send(missing: list[JudgeRequest], path: Path, base_url: str, concurrency: int, timeout: float) -> None:
    # The client retries 429, 5xx and dropped connections with backoff and honours Retry-After.
    client = openai.AsyncOpenAI(base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"), max_retries=6, timeout=timeout)
    gate = asyncio.Semaphore(concurrency)
    with path.open("a", encoding="utf-8") as log, tqdm(total=len(missing), desc="judging", unit="reply", mininterval=1.0) as progress:

        async def one(request: JudgeRequest) -> None:
            async with gate:
                record = await _ask(client, request)
            log.write(json.dumps({"custom_id": request.custom_id, **record}, ensure_ascii=False) + "\n")
            log.flush()
            os.fsync(log.fileno())
            progress.update()

        tasks = [asyncio.ensure_future(one(r)) for r in missing]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await client.close()


async def _ask(client: openai.AsyncOpenAI, request: JudgeRequest) -> dict[str, Any]:
    """Asks until an answer can be read, `ASKS` times at most; the last answer is kept as it came."""
    record: dict[str, Any] = {}
    for _ in range(ASKS):
        try:
            completion = await client.chat.completions.create(**request.body)
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError, openai.APIConnectionError) as error:
            raise EngineError(f"judge {request.body['model']} at {client.base_url}: {_reason(error)}; nothing already answered is lost") from None
        except (openai.APIError, ValueError, AttributeError, TypeError) as error:
            # The last three: status 200 with a body that is no completion, such as a proxy's page.
            return {"error": _reason(error)}
        if not getattr(completion, "choices", None):
            record = {"error": "no choices in the answer"}
            continue
        choice = completion.choices[0]
        if choice.finish_reason == "content_filter" or getattr(choice.message, "refusal", None):
            return {"refused": True}
        record = {"answer": choice.message.content}
        if parse(choice.message.content, request.labels, request.reply).label is not None:
            break
    return record


def _reason(error: Exception) -> str:
    """What went wrong, without headers or keys."""
    status = getattr(error, "status_code", None)
    return f"HTTP {status}" if status else type(error).__name__


def _read(record: dict[str, Any] | None, request: JudgeRequest) -> Parsed | str:
    if record is None or "error" in record:
        return "error"
    if record.get("refused"):
        return "judge_refused"
    return parse(record.get("answer"), request.labels, request.reply)
