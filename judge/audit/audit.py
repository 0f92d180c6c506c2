"""`helmbench audit`: the three passes, their figures, and the files of the output folder."""

from __future__ import annotations

import os
import shutil
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from dataset_builder.release import Release
from dataset_builder.stats.surface import ALARM, matches
from helmbench_common import jsonl
from helmbench_common.errors import HelmbenchError
from helmbench_common.files import holds, write_whole
from helmbench_common.formats.refused import shown
from judge.agreement.answers import JudgeLabel, is_offline
from judge.audit.logs import NONE, Reading, Talks, read
from judge.audit.page import page, summary
from judge.audit.passes import CONTROL, Found, Judging, handled, sampled
from judge.audit.schema import Alarmed, Audit, Conversation, Counts, Group, Share, WordList
from judge.llm import batch
from judge.llm.asking import announce
from judge.llm.questions import CATEGORY, prompt_hash, taxonomy_hash
from judge.offline import judge as offline
from judge.replies.schema import RunError
from judge.statistics.coefficients import wilson
from judge.statistics.estimate import Estimate

IGNORE = "# Made by helmbench audit: conversations of real people may be below.\n*\n"
AUDIT, CONVERSATIONS, PAGE, JUDGE = "audit.json", "conversations.jsonl", "page.html", "judge"
PER = 10_000
ALARM_INCIDENT = "over_escalation"
UNREAD = "most replies are unscored"


@dataclass(frozen=True)
class Plan:
    """What to audit. `sample`: conversations not in danger to judge; `show_text`: whether the page holds conversations,
    masked; `forget`: whether what judges were sent and answered is deleted at the end.
    """

    logs: tuple[Path, ...]
    out: Path
    how: Reading
    sample: int = 200
    seed: int = 0
    strict: bool = False
    show_text: bool = False
    forget: bool = False


def default_out(log: Path) -> Path:
    """`logs.audit` for logs.jsonl, next to it."""
    name = log.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".parquet")
    return log.with_name(f"{name}.audit")


def audit(plan: Plan, judging: Judging) -> tuple[Audit, str]:
    """Runs the passes and writes audit.json, conversations.jsonl and page.html; returns the figures and their text.

    Raises:
        RunError: conversations that can't be read, or an output folder with other files.
    """
    new, url = not plan.out.exists(), judging.asker.endpoint and judging.asker.endpoint.base_url
    out = _own_folder(plan.out)
    with closing(Talks(out)) as talks:
        try:
            read(talks, plan.logs, plan.how, judging.release.helplines, _say, plan.strict)
        except HelmbenchError:
            if new:
                shutil.rmtree(out)  # bad input leaves nothing behind
            raise
        if url:
            whose = f"{len(talks):,} conversations in {', '.join(shown(path.name) for path in plan.logs)}"
            announce(talks.messages, whose, url)
        found = _passes(plan, judging, talks)
        figures = _figures(plan, judging, talks, found)
        lines = _conversations(talks, found, figures.alarmed.weight, figures.words is not None)
        write_whole(out / CONVERSATIONS, map(jsonl.line, lines))
        write_whole(out / PAGE, page(figures, talks, found, judging.release, plan.show_text))
    write_whole(out / AUDIT, figures.model_dump_json(indent=2) + "\n")  # last: the others are complete
    if plan.forget:
        shutil.rmtree(out / JUDGE, ignore_errors=True)
    kept = f"\n{out / JUDGE} holds the judge's answers, which quote conversations; --forget deletes them"
    return figures, f"{summary(figures)}\n\n{out / PAGE}{kept if (out / JUDGE).exists() else ''}"


def _passes(plan: Plan, judging: Judging, talks: Talks) -> Found:
    danger, unread = judging.danger(talks)
    others = array("q", (n for n in range(len(talks)) if talks.replied[n] and n not in danger and n not in unread))
    replies = [*handled(talks, danger, judging.release), *sampled(talks, others, plan.sample, plan.seed)]
    labels = judging.labels(talks, replies)
    return Found(danger, unread, {reply.talk: reply for reply in replies}, labels, len(others))


def _say(problem: str) -> None:
    sys.stderr.write(f"{problem}\n")


def _own_folder(out: Path) -> Path:
    """The output folder, for its owner only, kept out of repositories.

    Raises:
        RunError: it holds something that no audit wrote.
    """
    if os.path.lexists(out) and not (out.is_dir() and (holds(out / ".gitignore", IGNORE) or not any(out.iterdir()))):
        raise RunError(f"{shown(out)}: holds something else; expected a new folder or an earlier audit's (--out DIR)")
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in (AUDIT, CONVERSATIONS, PAGE, JUDGE):
        batch.own_place(out, out / name)
    write_whole(out / ".gitignore", IGNORE)
    return out


def _figures(plan: Plan, judging: Judging, talks: Talks, found: Found) -> Audit:
    release, name = judging.release, judging.name
    met = [n for n in found.danger if n in found.replies]
    alarms = [found.labels[n] for n in found.replies if n not in found.danger]
    answers = share(release, CONTROL, [own[CONTROL] for own in alarms if CONTROL in own], ALARM_INCIDENT)
    weight = found.population / len(alarms) if alarms else None
    judged = len(talks) - len(found.unread)
    whole = found.population / max(1, judged) * PER  # per 10,000 if all of these were alarmed
    used = [c for c in release.criteria if any(c in found.labels[n] for n in met)]
    by_word = is_offline(name)
    counts = Counter(d.category for d in found.danger.values())
    by = {title: _groups(title, title == plan.how.weeks, talks, found) for title in plan.how.groups}
    return Audit(
        files=[path.name for path in plan.logs],
        judge=offline.NAME if by_word else name,
        dataset=release.manifest.version,
        asked={}
        if by_word
        else {
            "taxonomy": taxonomy_hash(release)[:16],
            "category": prompt_hash(release.prompts, CATEGORY),
            "criterion": prompt_hash(release.prompts),
        },
        seed=plan.seed,
        country=judging.country,
        counts=Counts(
            lines=talks.broken + talks.silent + len(talks),
            broken=talks.broken,
            silent=talks.silent,
            conversations=len(talks),
            unanswered=len(talks) - sum(talks.replied),
            unread=len(found.unread),
            danger=len(found.danger),
            unmet=len(found.danger) - len(met),
        ),
        words=word_list(release) if by_word else None,
        per_10k=rate(len(found.danger), judged, PER),
        categories={c: rate(n, judged, PER) for c, n in counts.most_common() if c},
        failing=_any(found, met),
        handling={
            c: share(release, c, [own[c] for n in met if c in (own := found.labels[n])])
            for c in sorted(used, key=lambda c: -release.criteria[c].severity)
        },
        alarmed=Alarmed(
            population=found.population,
            weight=weight,
            answers=answers,
            per_10k=_times(answers.failing, whole),
        ),
        by=by,
        problems=talks.problems,
    )


def rate(hits: int, of: int, per: float = 1) -> Estimate:
    """A rate with its 95 % interval."""
    if not of:
        return Estimate(value=None, reason="nothing to count")
    low, high = wilson(hits / of, of)
    return _times(Estimate(value=hits / of, low=low, high=high, n=of, interval="wilson"), per)


def _times(e: Estimate, by: float) -> Estimate:
    scaled = {name: value * by for name in ("value", "low", "high") if (value := getattr(e, name)) is not None}
    return e.model_copy(update=scaled)


def share(release: Release, criterion: str, labels: Sequence[JudgeLabel], incident: str = "") -> Share:
    """Labels by a criterion. `incident`: only ways to fail that raise it count."""
    row = release.criteria[criterion]
    ways = {f"FAIL-{way.split()[0]}" for way in row.fails if way.split()[1] == incident}
    given = Counter(label.label for label in labels if label.label)
    failed = sum(n for label, n in given.items() if (label in ways if incident else label.startswith("FAIL")))
    order = dict.fromkeys([*row.labels, *given])  # a rule's FAIL names no way
    shown, open_ = {label: given[label] for label in order if given[label]}, len(labels) - given.total()
    known = rate(failed, given.total()) if open_ <= given.total() else Estimate(value=None, reason=UNREAD)
    return Share.of(row.title, shown, open_, known, failed)


def _any(found: Found, met: Iterable[int]) -> Share:
    """Replies to danger as a whole: one failing label is a failure; without one, an unscored criterion leaves it open.
    The rate is of all replies, so it is the least that it can be; `highest` is the most.
    """
    kinds = Counter(
        "fails" if found.failing(n) else "open" if any(not x.label for x in found.labels[n].values()) else "passes"
        for n in met
    )
    failed = rate(kinds["fails"], kinds.total())
    labels = {kind: kinds[kind] for kind in ("passes", "fails") if kinds[kind]}
    return Share.of("At least one criterion", labels, kinds["open"], failed, kinds["fails"])


def _groups(title: str, weeks: bool, talks: Talks, found: Found) -> dict[str, Group]:
    """Figures by the values of a field: weeks in order, other values by their number of conversations."""
    everyone, danger, met, failing = (Counter[str]() for _ in range(4))
    for n, talk in enumerate(talks):
        value = talk.groups[title]
        everyone[value] += n not in found.unread
        danger[value] += n in found.danger
        met[value] += n in found.danger and n in found.replies
        failing[value] += n in found.danger and found.failing(n)
    order = sorted(everyone, key=lambda v: (v == NONE, -everyone[v] * (not weeks), v))
    return {
        value: Group(
            conversations=everyone[value],
            danger=danger[value],
            per_10k=rate(danger[value], everyone[value], PER),
            failing=rate(failing[value], met[value]),
        )
        for value in order
    }


def word_list(release: Release) -> WordList:
    """How the word list does on the release's stand-alone messages."""
    hits: Counter[tuple[str, bool]] = Counter()
    for message in release.messages.values():
        words = [m.content for m in message.messages if m.role == "user" and m.content]
        hits[message.polarity, bool(matches(ALARM, words))] += 1
    shares = {p: rate(hits[p, True], hits[p, True] + hits[p, False]) for p in ("crisis", "control")}
    return WordList(found=shares["crisis"], false_alarms=shares["control"])


def _conversations(talks: Talks, found: Found, weight: float | None, by_word: bool) -> Iterator[Conversation]:
    for n, talk in enumerate(talks):
        danger, reply, labels = found.danger.get(n), found.replies.get(n), found.labels.get(n, {})
        unread = n in found.unread
        named = None if unread or by_word else "no_crisis"  # the word list names no category, not even this one
        yield Conversation(
            file=talk.file,
            line=talk.line,
            id=talk.id,
            danger=None if unread else danger is not None,
            category=danger.category if danger else named,
            turn=danger.turn if danger else reply.turn if reply else None,
            weight=None if not reply else 1 if danger else weight,
            labels={c: label.label for c, label in labels.items() if label.label},
            unscored={c: label.unscored or "" for c, label in labels.items() if not label.label},
        )
