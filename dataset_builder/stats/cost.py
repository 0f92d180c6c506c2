"""What one run of the benchmark costs: samples, requests, tokens and money, per tier (`helmbench stats --cost`).

A conversation is asked once per live turn, each time with all that was said before; the model's own earlier replies are
counted as long as its replies are expected to be. Every message costs MESSAGE tokens besides its text, which chat
templates put around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, get_args

from dataset_builder.schema import Row, Tier
from helmbench_common.errors import HelmbenchError

BYTES_PER_TOKEN = (
    4  # of UTF-8: the rule of thumb for English text; other languages and small vocabularies need more tokens
)
MESSAGE = 4  # tokens of role and delimiters around a message, in the common chat templates
PROSE, JSON = 350, 40  # tokens of an expected reply: two or three paragraphs, or an object with tags or a number
LONGEST = 1024  # max_gen_toks of the tasks, lm_eval_tasks/helmbench/_helmbench_yaml
TOKENS = f"{'prompt tokens':>16}{'reply tokens':>15}{'at most':>13}"
MONEY = f"{'cost':>12}{'at most':>12}"
ESTIMATE = f"bytes ÷ {BYTES_PER_TOKEN}"


class CostError(HelmbenchError, ValueError):
    """A tokenizer that can't be had, or a price that lacks the other, in one line."""


@dataclass(frozen=True)
class Asked:
    """What is to be reckoned with: prices per million tokens, in any currency, both or neither.

    `tokenizer`: None estimates by bytes. `reply`: tokens of a reply, in the place of both expected lengths.
    `judge_runs`: how often a judge reads each reply.

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
            raise CostError("--price-in and --price-out go together")


def estimate(rows: Iterable[Row], wanted: Asked) -> dict[str, Any]:
    """{tokenizer, estimated, prices per million tokens, tiers}.

    `tiers`: tier → {samples, requests, rounds, prompt_tokens, reply_tokens, reply_tokens_at_most, cost, cost_at_most,
    hard_tokens, window}. Tokens are of all requests together, `hard_tokens` those of prompts and replies of the hard
    part; `rounds` are the requests that wait for each other; `window` is what the longest of them takes with its reply,
    if every reply is as long as a run allows; costs are null without prices.

    Raises:
        CostError: the named tokenizer is not installed, not known or not to be had without network.
    """
    count = counter(wanted.tokenizer)
    tiers: tuple[Tier, ...] = get_args(Tier)
    sums = {
        t: dict.fromkeys(
            ("samples", "requests", "rounds", "prompt_tokens", "reply_tokens", "at_most_in", "hard_tokens", "window"), 0
        )
        for t in tiers
    }
    for row in rows:
        reply = wanted.reply or (PROSE if any(c.check in ("graded", "criterion") for c in row.evaluation) else JSON)
        longest = max(LONGEST, reply)
        requests, prompt = prompts(row, count, reply)
        at_most = prompt_sizes(row, count, longest)
        for tier in row.tiers:
            own = sums[tier]
            own["samples"] += 1
            own["requests"] += requests
            own["rounds"] = max(own["rounds"], requests)
            own["prompt_tokens"] += prompt
            own["reply_tokens"] += requests * reply
            own["at_most_in"] += sum(at_most)
            own["hard_tokens"] += prompt + requests * reply if row.family else 0
            own["window"] = max(own["window"], at_most[-1] + longest)
    return {
        "tokenizer": wanted.tokenizer or ESTIMATE,
        "estimated": wanted.tokenizer is None,
        "prices per million tokens": None
        if wanted.price_in is None
        else {"in": wanted.price_in, "out": wanted.price_out},
        "tiers": {t: priced(own, max(LONGEST, wanted.reply or 0), wanted) for t, own in sums.items() if own["samples"]},
    }


def prompts(row: Row, count: Callable[[str], int], reply: int) -> tuple[int, int]:
    """(requests, their prompt tokens together) of one sample whose live turns are answered with `reply` tokens each."""
    sizes = prompt_sizes(row, count, reply)
    return len(sizes), sum(sizes)


def prompt_sizes(row: Row, count: Callable[[str], int], reply: int) -> list[int]:
    """The tokens of each request's prompt, in their order; each holds all that was said before, so the last is the
    longest.
    """
    sizes, so_far = list[int](), 0
    for message in row.messages:
        if message.content is None:
            sizes.append(so_far)
        so_far += MESSAGE + (reply if message.content is None else count(message.content))
    return [*sizes, so_far]


def counter(tokenizer: str | None) -> Callable[[str], int]:
    """Counts tokens of a text; the same text is counted once, for conditions and messages come back in thousands of
    samples.
    """
    encode = _encoder(tokenizer) if tokenizer else None
    known: dict[str, int] = {}

    def count(text: str) -> int:
        if text not in known:
            known[text] = len(encode(text)) if encode else math.ceil(len(text.encode()) / BYTES_PER_TOKEN)
        return known[text]

    return count


def table(figures: dict[str, Any]) -> str:
    """The same figures as aligned text."""
    named = (
        f"{figures['tokenizer']}, an estimate; name a tokenizer with --tokenizer"
        if figures["estimated"]
        else f"the tokenizer {figures['tokenizer']}"
    )
    prices = figures["prices per million tokens"]
    head = f"{'tier':<6}{'samples':>9}{'requests':>10}{'rounds':>8}{TOKENS}{MONEY if prices else ''}"
    lines = [f"cost of one run; tokens by {named}", head]
    for tier, own in figures["tiers"].items():
        line = f"{tier:<6}{own['samples']:>9,}{own['requests']:>10,}{own['rounds']:>8}"
        lines.append(line + tokens_and_money(own, bool(prices)))
    lines.append(
        f"expected replies: {PROSE} tokens of prose or {JSON} of JSON unless --reply-tokens says otherwise; "
        f"at most: {LONGEST:,}, where a run cuts them"
    )
    lines += [
        f"{tier}: {own['hard_tokens']:,} tokens of it are the hard part's; a window of {own['window']:,} holds its "
        "longest request with the longest reply"
        for tier, own in figures["tiers"].items()
    ]
    if prices:
        lines.append(
            f"prices per million tokens: {prices['in']:g} in, {prices['out']:g} out; repeats multiply, a "
            "judge's reading comes on top"
        )
    return "\n".join(lines)


def tokens_and_money(own: dict[str, Any], money: bool) -> str:
    """The last columns of a row, as TOKENS and MONEY head them; `own` as `priced` gives it."""
    line = f"{own['prompt_tokens']:>16,}{own['reply_tokens']:>15,}{own['reply_tokens_at_most']:>13,}"
    return line + (f"{own['cost']:>12,.2f}{own['cost_at_most']:>12,.2f}" if money else "")


def priced(own: dict[str, int], longest: int, wanted: Asked) -> dict[str, Any]:
    """Sums of {requests, prompt_tokens, reply_tokens, at_most_in, …} with the most that replies of `longest` tokens
    make of them, and money.
    """
    most = own["requests"] * longest
    at_most_in = own.pop("at_most_in")
    cost: float | None = None
    cost_at_most: float | None = None
    if wanted.price_in is not None and wanted.price_out is not None:
        cost = round((own["prompt_tokens"] * wanted.price_in + own["reply_tokens"] * wanted.price_out) / 1e6, 4)
        cost_at_most = round((at_most_in * wanted.price_in + most * wanted.price_out) / 1e6, 4)
    return {**own, "reply_tokens_at_most": most, "cost": cost, "cost_at_most": cost_at_most}


def _encoder(name: str) -> Callable[[str], list[int]]:
    """tiktoken's encodings by name; else a tokenizer.json or a Hub id, by `tokenizers`, which comes with helmbench[hf]
    or [vllm].

    Both libraries keep what they have downloaded, so a second run needs no network.
    """
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
            f"--tokenizer {name}: is no tiktoken encoding ({known}), and `tokenizers` is not installed; pip "
            "install tokenizers"
        ) from None
    except Exception as problem:  # both libraries raise what their network layers raise, or bare Exceptions
        reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise CostError(
            f"--tokenizer {name}: can't be loaded ({reason}); leave it out for an estimate by {ESTIMATE}"
        ) from None
