"""What one run costs: samples, requests, tokens and money, per tier (`helmbench stats --cost`).

A conversation is sent once per live turn, each time with all earlier turns; the model's earlier replies count at the
expected reply length. A stand-alone message is sent once per repeat. In every judge run, each reply to it is judged
once for its rating and once per criterion; replies that a rule decides (empty, truncated, a bare refusal) need no
judge request, so the judge's figures are upper bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, get_args

from dataset_builder.composing.compose import compose
from dataset_builder.composing.messages import messages
from dataset_builder.reading.content_types import Content
from dataset_builder.schema import Row, Tier, UserMessage
from helmbench_common.errors import HelmbenchError
from helmbench_common.tables import columns

BYTES_PER_TOKEN = 4  # UTF-8 bytes, for English; other languages and small vocabularies need more tokens
MESSAGE = 4  # tokens of role and delimiters around a message, in common chat templates
PROSE, JSON = 350, 40  # tokens of an expected reply: two or three paragraphs, or an object with tags or a number
LONGEST = 1024  # max_gen_toks of the tasks, lm_eval_tasks/helmbench/_helmbench_yaml
ESTIMATE = f"bytes ÷ {BYTES_PER_TOKEN}"
REPEATS = 3  # free replies per message, lm_eval_tasks/helmbench/_messages_yaml; a label is requested once
JUDGE_RUNS = 3  # as in the paper
# Tokens of the fixed text in dataset_builder/content/prompts/, which can't be imported here; a test compares them.
BARE, GUIDED, RATE, CRITERION = 122, 275, 285, 245
VERDICT = 60  # tokens in a judge's expected answer: a label and a quote or two
TASKS = {
    "helmbench_appropriateness": "appropriateness",
    "helmbench_triage_bare": "triage, bare",
    "helmbench_triage_guided": "triage, guided",
}
Count = Callable[[str], int]


class CostError(HelmbenchError, ValueError):
    """A tokenizer that can't be loaded, or one price without the other."""


@dataclass(frozen=True)
class CostOptions:
    """Prices per million tokens in any currency (both or neither), and overrides of the defaults.

    `tokenizer`: None estimates from bytes. `reply`: tokens per reply, for prose and JSON. `judge_runs`: how often a
    judge reads each reply.

    Raises:
        CostError: one price is given without the other.
    """

    tokenizer: str | None = None
    price_in: float | None = None
    price_out: float | None = None
    reply: int | None = None
    judge_runs: int | None = None

    def __post_init__(self) -> None:
        if (self.price_in is None) != (self.price_out is None):
            raise CostError("--price-in and --price-out must be given together")


def estimate(content: Content, options: CostOptions) -> dict[str, Any]:
    """The figures of `benchmark_cost`, with those of `message_cost` under `messages`.

    Raises:
        CostError: the named tokenizer is unknown, not installed, or can't be downloaded.
    """
    return benchmark_cost(compose(content), options) | {"messages": message_cost(content, messages(content), options)}


def benchmark_cost(rows: Iterable[Row], options: CostOptions) -> dict[str, Any]:
    """{tokenizer, estimated, prices per million tokens, tiers}.

    `tiers`: tier → {samples, requests, rounds, prompt_tokens, reply_tokens, reply_tokens_at_most, cost, cost_at_most,
    hard_tokens, window}. Tokens are totals over all requests, `hard_tokens` over those of the hard part; `rounds` is
    the longest chain of sequential requests; `window` is the longest request plus the longest reply; costs are null
    without prices.
    """
    count = counter(options.tokenizer)
    names = ("samples", "requests", "rounds", "prompt_tokens", "reply_tokens", "at_most_in", "hard_tokens", "window")
    tiers: tuple[Tier, ...] = get_args(Tier)
    sums = {tier: dict.fromkeys(names, 0) for tier in tiers}
    for row in rows:
        reply = options.reply or (PROSE if any(c.check in ("graded", "criterion") for c in row.evaluation) else JSON)
        longest = max(LONGEST, reply)
        prompts, at_most = prompt_sizes(row, count, reply), prompt_sizes(row, count, longest)
        for tier in row.tiers:
            own = sums[tier]
            own["samples"] += 1
            own["requests"] += len(prompts)
            own["rounds"] = max(own["rounds"], len(prompts))
            own["prompt_tokens"] += sum(prompts)
            own["reply_tokens"] += len(prompts) * reply
            own["at_most_in"] += sum(at_most)
            own["hard_tokens"] += sum(prompts) + len(prompts) * reply if row.family else 0
            own["window"] = max(own["window"], at_most[-1] + longest)
    prices = None if options.price_in is None else {"in": options.price_in, "out": options.price_out}
    return {
        "tokenizer": options.tokenizer or ESTIMATE,
        "estimated": options.tokenizer is None,
        "prices per million tokens": prices,
        "tiers": {tier: _priced(own, options) for tier, own in sums.items() if own["samples"]},
    }


def prompt_sizes(row: Row, count: Count, reply: int) -> list[int]:
    """Tokens of each request's prompt, in order. Each includes all earlier messages, so the last is the longest."""
    sizes, so_far = list[int](), 0
    for message in row.messages:
        if message.content is None:
            sizes.append(so_far)
        so_far += MESSAGE + (reply if message.content is None else count(message.content))
    return [*sizes, so_far]


def message_cost(content: Content, found: Iterable[UserMessage], options: CostOptions) -> dict[str, Any]:
    """{judge_runs, tiers: {tier: {tasks: {task: figures}, judge: figures}}} for stand-alone messages.

    A task's figures are those of `benchmark_cost`, plus its `repeats`. `judge` holds the questions of one run
    (`ratings`, `criteria`) and of all runs (`questions`), with their tokens.
    """
    count, runs, everything = counter(options.tokenizer), options.judge_runs or JUDGE_RUNS, list(found)
    tiers = {
        tier: {
            "tasks": _task_costs(content, own, count, options),
            "judge": _judge_cost(content, own, count, options.reply or PROSE, runs),
        }
        for tier in ("lite", "core")  # the tiers with tasks; core holds every message
        if (own := [m for m in everything if tier in m.tiers])
    }
    return {"judge_runs": runs, "tiers": tiers}


def _task_costs(content: Content, own: list[UserMessage], count: Count, options: CostOptions) -> dict[str, Any]:
    free = sum(MESSAGE + count(said.content or "") for m in own for said in m.messages)
    words = sum(MESSAGE + _words(m, count) for m in own)
    labels = [c for c in content.taxonomy.values() if c.in_triage]
    bare = BARE + sum(count(c.category) for c in labels)
    texts = [text for c in labels for text in (c.category, c.definition, *c.borderline, *c.examples)]
    guided = GUIDED + sum(map(count, texts))
    tasks = {
        "helmbench_appropriateness": (free, REPEATS, PROSE),
        "helmbench_triage_bare": (words + len(own) * bare, 1, JSON),
        "helmbench_triage_guided": (words + len(own) * guided, 1, JSON),
    }
    found: dict[str, Any] = {}
    for task, (prompt, repeats, reply) in tasks.items():
        requests = repeats * len(own)
        sums = {"samples": len(own), "repeats": repeats, "requests": requests, "prompt_tokens": repeats * prompt}
        sums |= {"reply_tokens": requests * (options.reply or reply), "at_most_in": repeats * prompt}
        found[task] = _priced(sums, options)
    return found


def _words(message: UserMessage, count: Count) -> int:
    """Tokens of the person's text; judges and labeling models don't see system messages."""
    return sum(count(said.content or "") for said in message.messages if said.role != "system")


def _judge_cost(content: Content, own: list[UserMessage], count: Count, reply: int, runs: int) -> dict[str, int]:
    asked: Counter[str] = Counter()
    prompts = 0
    for message in own:
        case = MESSAGE + _words(message, count) + reply
        for check in message.evaluation:
            asked[check.check] += REPEATS
            if check.check == "appropriateness":
                protocol = content.protocols[check.protocol]
                texts = (protocol.terms, *protocol.levels, protocol.not_judged)
                prompts += REPEATS * (RATE + sum(map(count, texts)) + case)
            elif check.check == "criterion":
                prompts += REPEATS * (CRITERION + count(content.criteria[check.criterion].row.text) + case)
    questions = runs * (asked["appropriateness"] + asked["criterion"])
    return {
        "replies": REPEATS * len(own),
        "ratings": asked["appropriateness"],
        "criteria": asked["criterion"],
        "prompt_tokens": runs * prompts,
        "questions": questions,
        "reply_tokens": questions * VERDICT,
    }


def _priced(own: dict[str, int], options: CostOptions) -> dict[str, Any]:
    """Token totals, their maximum if all replies have full length, and costs."""
    most = own["requests"] * max(LONGEST, options.reply or 0)
    at_most_in = own.pop("at_most_in")
    cost = cost_at_most = None
    if options.price_in is not None and options.price_out is not None:
        cost = round((own["prompt_tokens"] * options.price_in + own["reply_tokens"] * options.price_out) / 1e6, 4)
        cost_at_most = round((at_most_in * options.price_in + most * options.price_out) / 1e6, 4)
    return {**own, "reply_tokens_at_most": most, "cost": cost, "cost_at_most": cost_at_most}


def counter(tokenizer: str | None) -> Count:
    """A cached function that counts a text's tokens; thousands of samples share the same texts.

    `tokenizer`: a tiktoken encoding; else a tokenizer.json or Hub id, through `tokenizers` (helmbench[hf] or [vllm]).
    """
    encode = _encoder(tokenizer) if tokenizer else None
    known: dict[str, int] = {}

    def count(text: str) -> int:
        if text not in known:
            known[text] = len(encode(text)) if encode else math.ceil(len(text.encode()) / BYTES_PER_TOKEN)
        return known[text]

    return count


def _encoder(name: str) -> Callable[[str], list[int]]:
    import tiktoken

    try:
        if name in tiktoken.list_encoding_names():
            encoding = tiktoken.get_encoding(name)
            return lambda text: encoding.encode(text, disallowed_special=())
        from tokenizers import Tokenizer

        loaded = Tokenizer.from_file(name) if name.endswith(".json") else Tokenizer.from_pretrained(name)
        return lambda text: list(loaded.encode(text, add_special_tokens=False).ids)
    except ImportError:
        known = ", ".join(tiktoken.list_encoding_names())
        raise CostError(
            f"--tokenizer {name}: not a tiktoken encoding ({known}), and `tokenizers` is not installed; pip install "
            "tokenizers"
        ) from None
    except Exception as problem:  # both libraries raise their network layers' errors, or bare Exceptions
        reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise CostError(
            f"--tokenizer {name}: can't be loaded ({reason}); leave it out for an estimate by {ESTIMATE}"
        ) from None


def table(figures: dict[str, Any]) -> str:
    """The figures of `estimate` as text."""
    named = f"the tokenizer {figures['tokenizer']}"
    if figures["estimated"]:
        named = f"{figures['tokenizer']}, an estimate; name a tokenizer with --tokenizer"
    prices, alone = figures["prices per million tokens"], figures["messages"]
    tokens = ["prompt tokens", "reply tokens", "at most", *(["cost", "at most"] if prices else [])]

    def last(own: dict[str, Any]) -> list[str]:
        cells = [f"{own[name]:,}" for name in ("prompt_tokens", "reply_tokens", "reply_tokens_at_most")]
        return cells + ([f"{own['cost']:,.2f}", f"{own['cost_at_most']:,.2f}"] if prices else [])

    benchmark = [
        [tier, f"{own['samples']:,}", f"{own['requests']:,}", str(own["rounds"]), *last(own)]
        for tier, own in figures["tiers"].items()
    ]
    tasks = [
        [tier, TASKS[task], f"{t['samples']:,}", str(t["repeats"]), f"{t['requests']:,}", *last(t)]
        for tier, own in alone["tiers"].items()
        for task, t in own["tasks"].items()
    ]
    judged = ["replies", "ratings", "criteria", "questions", "prompt_tokens", "reply_tokens"]
    judge = [[tier, *(f"{own['judge'][name]:,}" for name in judged)] for tier, own in alone["tiers"].items()]
    lines = [
        f"cost of one run; tokens by {named}",
        columns(["tier", "samples", "requests", "rounds", *tokens], benchmark),
        f"expected replies: {PROSE} tokens of prose or {JSON} of JSON unless --reply-tokens says otherwise; at most: "
        f"{LONGEST:,}, where a run truncates them",
        *(
            f"{tier}: the hard part takes {own['hard_tokens']:,} of these tokens; the longest request and reply need a "
            f"window of {own['window']:,}"
            for tier, own in figures["tiers"].items()
        ),
    ]
    if prices:
        lines.append(
            f"prices per million tokens: {prices['in']:g} in, {prices['out']:g} out; repeats multiply. A judge of "
            "tags, replies and conversations costs extra: `helmbench score RUN` names its requests and tokens"
        )
    runs = alone["judge_runs"]
    return "\n".join([
        *lines,
        "",
        "messages that stand alone",
        columns(["tier", "task", "samples", "repeats", "requests", *tokens], tasks),
        "",
        f"a judge's reading of those replies in {runs} run{'s' * (runs > 1)} (--judge-runs); replies that a rule "
        "settles need no question",
        columns(["tier", *(name.replace("_", " ") for name in judged)], judge),
        f"ratings and criteria: questions of one run; an answer counts as {VERDICT} tokens, and a judge has its own "
        "prices",
    ])  # fmt: skip
