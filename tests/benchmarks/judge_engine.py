"""How close the live judge engine comes to the ideal rate, and what memory it needs, beside a plain `openai`-client
loop.

Usage: python tests/benchmarks/judge_engine.py [--requests 3000] [--latency 0.2] [--concurrency 64] [--tries 3]
[--memory 1000 10000 100000]

The judge is a loopback server in a process of its own that answers every request after `latency`; the ideal is
concurrency / latency requests a second. Each engine runs in a process of its own. Ours does what `helmbench judge`
does: makes each request from a reply (4,000 characters of prompt), looks up what is answered, sends, checks the
answer's quotes, and has every line on the disk. The plain loop sends the same bodies from a list through
`openai.AsyncOpenAI` under a semaphore and keeps the answers in memory: no file, no check, nothing to go on from after a
kill. Rates are the best of `tries`, since other work on the machine only ever takes away; all tries are printed. Peak
memory is the process's own maximum, with a server that answers at once; "before" is what it holds when the first
request is made.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

LABELS = ("PASS", "PARTIAL", "FAIL")
RUBRIC = "The reply is judged by one criterion, whose text stands here as long as a real one does. " * 30


def served(latency: float) -> None:
    """A judge in as little code as HTTP allows, so that what is measured is the engine; prints its port and serves
    until killed.
    """
    content = json.dumps({"label": "PASS", "quotes": ["a good day"]})
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
    whole = {"id": "chatcmpl-0", "object": "chat.completion", "created": 1, "model": "judge"}
    body = json.dumps(whole | {"choices": [choice], "usage": usage}).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    class Judge(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport, self.got = transport, b""

        def data_received(self, data: bytes) -> None:
            self.got += data
            head = self.got.find(b"\r\n\r\n")
            if head < 0:
                return
            length = int(self.got[:head].lower().split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self.got) < head + 4 + length:
                return
            self.got = b""
            asyncio.get_running_loop().call_later(latency, self.transport.write, answer)

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Judge, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(main())


def questions(number: int) -> Iterator[Any]:
    """Requests that are made as they are needed, each about another reply."""
    from judge.llm.questions import JudgeRequest, sealed
    from judge.replies.fence import fence

    properties = {
        "label": {"type": "string", "enum": list(LABELS)},
        "quotes": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    }
    for n in range(number):
        reply = f"Reply number {n}. I hope that you have a good day. " + "It is long enough to be a real one. " * 30
        yield JudgeRequest(*sealed(RUBRIC + fence(reply), "verdict", properties, "judge", 0), LABELS, reply)


def ours(url: str, number: int, concurrency: int) -> dict[str, float]:
    """`helmbench judge` without the reading of a run: missing questions → answers on the disk."""
    from judge.llm import batch
    from judge.llm.budget import Budget, Prices, Terms
    from judge.llm.engine import Endpoint, drive

    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        log, replies = batch.Log(where), batch.Replies(where)
        budget = Budget(where, terms=Terms(Prices(1, 1), 1e9))
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        outcome = drive(batch.missing(questions(number), replies), log, Endpoint(url, concurrency), budget, number)
        seconds = time.perf_counter() - started
        log.close()
        assert outcome.read == number == batch.Replies(where).lines, outcome
    return figures(number, seconds, before)


def figures(number: int, seconds: float, before: int) -> dict[str, float]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"rate": number / seconds, "before": before / 1024, "peak": peak / 1024}


def plain(url: str, number: int, concurrency: int) -> dict[str, float]:
    """What one would write without us."""
    import openai

    async def main() -> float:
        client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=6, timeout=120)
        gate = asyncio.Semaphore(concurrency)
        bodies = [q.body for q in questions(number)]

        async def one(body: dict[str, Any]) -> str:
            async with gate:
                return str((await client.chat.completions.create(**body)).choices[0].message.content)

        started = time.perf_counter()
        contents = await asyncio.gather(*(one(body) for body in bodies))
        assert len(contents) == number
        return time.perf_counter() - started

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = asyncio.run(main())
    return figures(number, seconds, before)


def measured(engine: str, number: int, latency: float, concurrency: int) -> dict[str, float]:
    """One engine against one server, each in its own process."""
    here, quiet = [sys.executable, __file__], {**os.environ, "OPENAI_API_KEY": ""}
    server = subprocess.Popen([*here, "--serve", str(latency)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        command = [*here, "--one", engine, url, str(number), "--concurrency", str(concurrency)]
        done = subprocess.run(command, capture_output=True, text=True, env=quiet)
        if done.returncode:
            raise SystemExit(done.stderr)
        found: dict[str, float] = json.loads(done.stdout)
        return found
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--memory", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        return served(args.serve)
    if args.one:
        name, url, number = args.one
        print(json.dumps({"ours": ours, "plain": plain}[name](url, int(number), args.concurrency)))
        return None
    ideal = args.concurrency / args.latency
    print(
        f"{args.requests} requests, {args.latency * 1000:.0f} ms, concurrency {args.concurrency}: ideal "
        f"{ideal:.0f} requests/s; best of {args.tries}"
    )
    for engine in ("ours", "plain"):
        tries = [measured(engine, args.requests, args.latency, args.concurrency) for _ in range(args.tries)]
        best = max(t["rate"] for t in tries)
        every = ", ".join(f"{t['rate']:.0f}" for t in tries)
        print(
            f"{engine:>6}{best:8.0f} requests/s{best / ideal:8.1%} of ideal   (tries: {every})   peak "
            f"{min(t['peak'] for t in tries):.0f} MB",
            flush=True,
        )
    for number in args.memory:
        found = measured("ours", number, 0, args.concurrency)
        print(
            f"memory, {number:7,} requests: peak {found['peak']:.1f} MB (before {found['before']:.1f}); "
            f"{found['rate']:.0f} requests/s at no latency",
            flush=True,
        )


if __name__ == "__main__":
    main()
