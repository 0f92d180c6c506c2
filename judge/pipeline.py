"""One command's work: read a run, judge it, score it, write verdicts.jsonl, ratings.jsonl, scorecard.json, summary.md
and report.html.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from dataset_builder.files import write_whole
from dataset_builder.release import Release
from judge import schema
from judge.calibration import known as agreement_of
from judge.llm import batch
from judge.llm.questions import JudgeRequest
from judge.llm.run import ask, command, open_run
from judge.llm.run import identity as llm
from judge.offline import judge as offline
from judge.panel import Member
from judge.rated import figures, together
from judge.report.page import SAMPLES, report
from judge.report.summary import summary
from judge.scoring import ratings
from judge.scoring.messages import Asked
from judge.scoring.score import About, judge_card, scorecard
from judge.scoring.triage import triage
from judge.verdicts import Answers, JudgeIdentity, judge_messages, judge_run
from replies.errors import RunError
from replies.run import Run
from replies.schema import TRIAGE_PROMPTS

# Beside the code and outside what is hashed: the trivial policies' scores, by score_hash and tier
# (scripts/make_references.py).
REFERENCES = Path(__file__).with_name("references.json")


def score_run(options: argparse.Namespace) -> str:
    """Does what `judge score` says and returns the summary for the terminal.

    Raises:
        ReleaseError, RunError, ValueError: bad input, each named. EngineError, BudgetError, OSError: the judge, its
            cap, or the disk.
    """
    if options.repeats < 1:
        raise ValueError("--repeats: expected 1 or more")
    if "openai" in options.judge:
        sys.stderr.write(ask(options) + "\n")
    release, run, home = open_run(options)
    out: Path = options.out or home
    judges = list(dict.fromkeys(options.model if name == "openai" else name for name in options.judge))
    lacking: dict[str, int] = {}
    members = [_member(name, run, release, home, options, lacking) for name in judges]
    if lacking and not options.allow_missing:
        raise RunError("\n".join(_missing(name, n, home, options) for name, n in lacking.items()))
    agreement = agreement_of.stored([m.identity for m, _ in members], home, options.calibration, release)
    verdicts, identity, card = together([m for m, _ in members], release)
    rows, dataset = release.rows, _dataset(run, release)
    judged = judge_card(verdicts, identity.name, identity.prompt_hash, agreement, card)
    scored = scorecard(verdicts, release, About(dataset, run.model), judged, references(dataset))
    on_messages: list[schema.Verdict] = []
    if run.messages:
        decided = together([m for _, m in members], release)
        on_messages = decided.verdicts
        measured = [batch.folder(home, decided.identity.name), *(path.parent for path in options.calibration)]
        scored.appropriateness = figures(run, release, decided, measured)
        write_whole(out / ratings.FILE, "".join(v.model_dump_json() + "\n" for v in on_messages))
    scored.triage = _triage(run, release)
    write_whole(out / "verdicts.jsonl", "".join(v.model_dump_json() + "\n" for v in verdicts))
    write_whole(out / "scorecard.json", scored.model_dump_json(indent=2) + "\n")
    text = summary(scored)
    write_whole(out / "summary.md", text)
    samples = {**rows, **(release.messages if run.messages else {})}
    replies = [*run.replies, *run.messages]
    made = report(
        scored,
        [*verdicts, *on_messages],
        replies,
        samples,
        show_withheld=options.show_withheld,
        criteria=release.criteria,
    )
    write_whole(out / "report.html", made.page)
    if made.samples is None:
        (out / SAMPLES).unlink(missing_ok=True)  # an earlier report's; this page holds everything
    else:
        write_whole(out / SAMPLES, made.samples)
    return f"{text}\nreport: {out / 'report.html'}"


def _member(
    name: str, run: Run, release: Release, home: Path, options: argparse.Namespace, lacking: dict[str, int]
) -> tuple[Member, Member]:
    """One judge's verdicts, in each of its repeats, of the run's rows and of its messages; questions that could still
    be asked are counted in `lacking`.
    """
    if name == "offline":
        identity = JudgeIdentity(offline.NAME, None)  # word patterns repeat themselves
        return Member(identity, [judge_run(run, release, identity)]), Member(
            identity, [judge_messages(run, release, identity)]
        )
    unanswered: list[str] = []
    door = stored(home, name, unanswered)
    repeats = [llm(options, release, name, repeat) for repeat in range(options.repeats)]
    own = Member(llm(options, release, name), [judge_run(run, release, r, door) for r in repeats])
    on_messages = Member(llm(options, release, name), [judge_messages(run, release, r, door) for r in repeats])
    if unanswered:
        lacking[name] = len(unanswered)
    return own, on_messages


def _missing(name: str, count: int, home: Path, options: argparse.Namespace) -> str:
    again = f" --repeats {options.repeats}" if options.repeats > 1 else ""
    return (
        f"{batch.folder(home, name)}: {count} questions have no answer yet; get them with "
        f"`{command('run', options, name)}{again} "
        "--base-url URL` or write them for another engine with "
        f"`{command('requests', options, name)}{again}`; --allow-missing scores them as unscored"
    )


def references(dataset: schema.Dataset) -> list[schema.Reference]:
    """What the trivial policies score on this data and tier; empty for a build that the file does not know."""
    known = json.loads(REFERENCES.read_text(encoding="utf-8")) if REFERENCES.is_file() else {}
    rows = known.get(dataset.score_hash, {}).get(dataset.tier or "", [])
    return [schema.Reference.model_validate(row) for row in rows]


def stored(home: Path, model: str, lacking: list[str]) -> Answers:
    """The door to what an LLM judge has answered, by whatever engine. Ids of questions that could still be asked go to
    `lacking`.

    Raises:
        RunError: nothing is known of this judge, or its files can't be read.
    """
    where = batch.folder(home, model)
    if not where.is_dir():
        raise RunError(
            f"{where}: no such folder; --judge is offline, openai with --base-url and --model, or a model that "
            f"`judge run` or `judge requests` was given, not '{model}'"
        )
    replies = batch.Replies(where)

    def answer(request: JudgeRequest) -> batch.Answer:
        found = batch.read(replies.of(request.custom_id), request)
        if found.missing:
            lacking.append(request.custom_id)
        return found.answer

    return answer


def _triage(run: Run, release: Release) -> list[schema.Triage]:
    """The figures of the labels that the run's model gave, one entry per prompt."""
    whole = {m.id for m in release.messages.values() if run.messages_tier in m.tiers}
    return [
        triage(
            run.triage[prompt],
            release,
            Asked(release.messages_source, release.messages_hash, {r.id for r in run.triage[prompt]} == whole),
            prompt,
        )
        for prompt in TRIAGE_PROMPTS
        if prompt in run.triage
    ]


def _dataset(run: Run, release: Release) -> schema.Dataset:
    expected = {r.id for r in release.rows.values() if run.tier is None or run.tier in r.tiers}
    if unexpected := run.ids - expected:
        raise RunError(f"{run.path}: {len(unexpected)} samples are not of tier {run.tier}, such as {min(unexpected)}")
    manifest = release.manifest
    return schema.Dataset(
        version=manifest.version,
        score_hash=manifest.score_hash,
        tier=run.tier,
        samples=len(run.ids),
        expected=len(expected),
        complete=run.ids == expected and not run.limited,
    )
