"""What the tasks over messages that stand alone cost: free replies, labels, and the judge's questions.

A message is asked once per repeat. A reply is read once for its rating and once per criterion, in every run of the
judge; replies that a rule settles (empty, cut off, a bare refusal) need no question, so the number of questions is the
most that there can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dataset_builder.reading.content_types import Content
from dataset_builder.schema import Category, CriterionRow, Tier, UserMessage
from dataset_builder.stats.cost import (
    JSON,
    LONGEST,
    MESSAGE,
    MONEY,
    PROSE,
    TOKENS,
    Asked,
    counter,
    priced,
    tokens_and_money,
)

TIERS: tuple[Tier, ...] = ("lite", "core")  # those that have tasks; core holds every message
REPEATS = 3  # of lm_eval_tasks/helmbench/_messages_yaml; a label is asked for once
JUDGE_RUNS = 3  # as the paper's
# Tokens of the questions' fixed words, dataset_builder/content/prompts/: none of ours may be imported here, so a test
# holds them to the files.
BARE, GUIDED, RATE, CRITERION = 122, 275, 285, 245
VERDICT = 60  # tokens of a judge's expected answer: a label and a quote or two
TASKS = {
    "helmbench_appropriateness": "appropriateness",
    "helmbench_triage_bare": "triage, bare",
    "helmbench_triage_guided": "triage, guided",
}


def estimate(content: Content, messages: Iterable[UserMessage], wanted: Asked) -> dict[str, Any]:
    """{judge_runs, tiers: {tier: {tasks: {task: figures}, judge: figures}}}.

    A task's figures are those of `cost.estimate`, with its `repeats`. `judge` holds the questions of one run
    (`ratings`, `criteria`) and of all (`questions`), with their tokens.

    Raises:
        CostError: the named tokenizer is not installed, not known or not to be had without network.
    """
    count, runs, found = counter(wanted.tokenizer), wanted.judge_runs or JUDGE_RUNS, list(messages)
    tiers: dict[str, Any] = {}
    for tier in TIERS:
        if own := [m for m in found if tier in m.tiers]:
            tiers[tier] = {
                "tasks": _tasks(content, own, count, wanted),
                "judge": _judge(content, own, count, wanted.reply or PROSE, runs),
            }
    return {"judge_runs": runs, "tiers": tiers}


def _tasks(content: Content, messages: list[UserMessage], count: Callable[[str], int], wanted: Asked) -> dict[str, Any]:
    free = sum(MESSAGE + count(said.content or "") for m in messages for said in m.messages)
    words = sum(MESSAGE + _words(m, count) for m in messages)
    shown = [c for c in content.taxonomy.values() if c.in_triage]
    bare, guided = (
        words + len(messages) * (BARE + sum(count(c.category) for c in shown)),
        words + len(messages) * (GUIDED + _guide(shown, count)),
    )
    found: dict[str, Any] = {}
    for task, prompt, repeats, reply in zip(
        TASKS, (free, bare, guided), (REPEATS, 1, 1), (PROSE, JSON, JSON), strict=True
    ):
        requests = repeats * len(messages)
        sums = {"samples": len(messages), "repeats": repeats, "requests": requests, "prompt_tokens": repeats * prompt}
        sums |= {"reply_tokens": requests * (wanted.reply or reply), "at_most_in": repeats * prompt}
        found[task] = priced(sums, max(LONGEST, wanted.reply or 0), wanted)
    return found


def _guide(shown: list[Category], count: Callable[[str], int]) -> int:
    return sum(count(text) for c in shown for text in (c.category, c.definition, *c.borderline, *c.examples))


def _words(message: UserMessage, count: Callable[[str], int]) -> int:
    """Tokens of what the person wrote; a judge and a labelling model aren't shown system texts."""
    return sum(count(said.content or "") for said in message.messages if said.role != "system")


def _judge(
    content: Content, messages: list[UserMessage], count: Callable[[str], int], reply: int, runs: int
) -> dict[str, int]:
    criteria: dict[str, CriterionRow] = {slug: c.row for slug, c in content.criteria.items()}
    sums = {"replies": REPEATS * len(messages), "ratings": 0, "criteria": 0, "prompt_tokens": 0}
    for message in messages:
        case = MESSAGE + _words(message, count) + reply
        for check in message.evaluation:
            if check.check == "appropriateness":
                protocol = content.protocols[check.protocol]
                sums["ratings"] += REPEATS
                rubric = RATE + sum(count(text) for text in (protocol.terms, *protocol.levels, protocol.not_judged))
            elif check.check == "criterion":
                sums["criteria"] += REPEATS
                rubric = CRITERION + count(criteria[check.criterion].text)
            else:
                continue
            sums["prompt_tokens"] += REPEATS * (rubric + case)
    questions = runs * (sums["ratings"] + sums["criteria"])
    return {
        **sums,
        "prompt_tokens": runs * sums["prompt_tokens"],
        "questions": questions,
        "reply_tokens": questions * VERDICT,
    }


def table(figures: dict[str, Any], money: bool) -> str:
    """The same figures as aligned text."""
    runs = figures["judge_runs"]
    head = f"{'tier':<6}{'task':<17}{'samples':>9}{'repeats':>9}{'requests':>10}{TOKENS}{MONEY if money else ''}"
    lines = ["messages that stand alone", head]
    for tier, own in figures["tiers"].items():
        for task, t in own["tasks"].items():
            line = f"{tier:<6}{TASKS[task]:<17}{t['samples']:>9,}{t['repeats']:>9}{t['requests']:>10,}"
            lines.append(line + tokens_and_money(t, money))
    lines += [
        "",
        f"a judge's reading of those replies, {runs} {'runs' if runs > 1 else 'run'} of it (--judge-runs); "
        "what a rule settles is not asked",
    ]
    head = f"{'tier':<6}{'replies':>9}{'ratings':>9}{'criteria':>10}{'questions':>11}"
    lines.append(f"{head}{'prompt tokens':>16}{'reply tokens':>15}")
    for tier, own in figures["tiers"].items():
        j = own["judge"]
        line = f"{tier:<6}{j['replies']:>9,}{j['ratings']:>9,}{j['criteria']:>10,}{j['questions']:>11,}"
        lines.append(f"{line}{j['prompt_tokens']:>16,}{j['reply_tokens']:>15,}")
    lines.append(
        f"ratings and criteria: questions of one run; an answer is taken for {VERDICT} tokens, and a judge "
        "has prices of its own"
    )
    return "\n".join(lines)
