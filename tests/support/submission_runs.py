"""Runs to submit, made in a second: lm-eval's log files, an LLM judge's batch answers and its calibration, as the real
commands leave them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import reference_policies
from helmbench.cli.app import main

from dataset_builder.composing.compose import compose
from dataset_builder.prompts import installed
from dataset_builder.reading.load import load
from dataset_builder.release import Release, open_release
from dataset_builder.schema import RULED, Row
from dataset_builder.writing.write import write
from judge.agreement.answers import JudgeLabel, ruled
from judge.agreement.calibration import calibrate
from judge.llm import batch
from judge.llm.questions import prompt_hash
from judge.llm.reader import questions
from judge.replies.lm_eval_log import read_run
from judge.replies.script import live_turns, visible
from judge.verdicts import JudgeIdentity, sample_of
from leaderboard.schema import (
    ANSWERS,
    CALIBRATIONS,
    RESPONSES,
    SUBMISSION,
    VERDICTS,
    Contact,
    Declaration,
    Subject,
)
from leaderboard.submit.about import About
from leaderboard.submit.pack import make
from leaderboard.verify import files

STAMP = "2026-11-21T23-29-28.473516"
CONFIGS = ("pillar1", "pillar2", "pillar3", "pillar4", "conversations")
ALONE = "helmbench_appropriateness_lite"
MARKER = "the words that nobody outside may read"
Say = Callable[[Row, int, int], str]  # row, turn from 0, repeat
Form = Callable[[list[dict[str, str]]], Any]  # messages → what lm-eval logs as the prompt
ABOUT = About(
    Contact(name="Ann Ortega", address="ann@example.org"),
    Subject(organization="acme", name="north-2", revision="2026-10-01", access="api", relation="independent"),
    Declaration(trained_on_benchmark="no"),
    submitted="2026-11-22",
)


def number(*parts: object) -> int:
    """A number that depends only on `parts`."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16)


def say(row: Row, turn: int, repeat: int) -> str:
    """Replies that vary: tags and ratings by the keyword policy or the opposite, elsewhere different words for every
    sample.
    """
    jobs = [c for c in row.evaluation if c.check in RULED]
    if jobs:
        policy = "keyword" if number(row.id, repeat) % 3 else "always-escalate"
        return reference_policies.reply(policy, [{"role": m.role, "content": m.content or ""} for m in row.messages], 0)
    return (
        f"I'm sorry, that sounds hard. Please talk to somebody. {MARKER.capitalize()} stand in note "
        f"{number(row.id, turn, repeat)}; shall we look at it together?"
    )


def as_api(messages: list[dict[str, str]]) -> Any:
    """The JSON of the messages, logged as a list of one, as lm-eval does for chat APIs."""
    return [json.dumps(messages, ensure_ascii=False)]


def as_chatml(messages: list[dict[str, str]]) -> Any:
    """A chat template's text."""
    return "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages) + "<|im_start|>assistant\n"


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant{{ '\\n' }}"
)
TEMPLATES: dict[Form, str] = {as_chatml: CHATML}  # what lm-eval logs as the chat template


def as_transcript(messages: list[dict[str, str]]) -> Any:
    """The text that a base model gets."""
    return "\n\n".join(f"{m['role'].capitalize()}: {m['content']}" for m in messages) + "\n\nAssistant:"


def history(row: Row, said: list[str], turn: int) -> list[dict[str, str]]:
    """The messages of the request for a live turn."""
    messages: list[dict[str, str]] = []
    replies = iter(said)
    live = 0
    for m in row.messages:
        if m.content is None:
            if live == turn:
                break
            live += 1
            messages.append({"role": "assistant", "content": visible(next(replies)) or "(no reply)"})
        else:
            messages.append({"role": m.role, "content": m.content})
    return messages


def log(
    folder: Path,
    release: Release,
    tier: str = "lite",
    speak: Say = say,
    form: Form = as_api,
    repeats: int = 1,
    finish: Callable[[Row, int], str | None] = lambda row, turn: "stop",
    settings: dict[str, Any] | None = None,
    messages: bool = False,
    **changes: Any,
) -> Path:
    """A run's files as lm-eval 0.4.13 writes them with our task. `messages`: with the appropriateness task; `changes`
    replace results.
    """
    folder.mkdir(parents=True, exist_ok=True)
    suffix = "" if tier == "core" else f"_{tier}"
    tasks = {
        f"helmbench_{config}{suffix}": [r for r in release.records(config) if tier in r["tiers"]] for config in CONFIGS
    }
    tasks = {name: docs for name, docs in tasks.items() if docs}
    metadata = {
        "version": 0.1,
        "dataset_version": release.manifest.version,
        "score_hash": release.manifest.score_hash,
        "tier": tier,
    }
    configs = {name: {"task": name, "metadata": metadata} for name in tasks}
    if messages:
        tasks[ALONE] = [r for r in release.records("messages") if "lite" in r["tiers"]]
        own = {"measures": "appropriateness", "messages_hash": release.manifest.messages_hash, "tier": "lite"}
        configs[ALONE] = {"task": ALONE, "metadata": metadata | own}
    results = {
        "results": {},
        "configs": configs,
        "versions": dict.fromkeys(tasks, 0.1),
        "n-samples": {name: {"original": len(docs), "effective": len(docs)} for name, docs in tasks.items()},
        "config": {
            "model": "local-chat-completions",
            "model_args": {"model": "north-2", "num_concurrent": 16},
            "limit": None,
        },
        "lm_eval_version": "0.4.13",
        "model_name": "north-2",
        "system_instruction": None,
        "chat_template": TEMPLATES.get(form),
        "tokenizer_bos_token": ["<s>", "1"],
        "date": datetime(2026, 7, 26, 23, 30).timestamp(),
        "total_evaluation_time_seconds": "3600.5",
    }
    (folder / f"results_{STAMP}.json").write_text(json.dumps(results | changes))
    sent = settings or {"until": [], "max_gen_toks": 1024, "temperature": 0.0}
    for name, docs in tasks.items():
        asked = sent | ({"temperature": 1.0} if name == ALONE else {})
        with (folder / f"samples_{name}_{STAMP}.jsonl").open("w") as file:
            for n, doc in enumerate(docs):
                file.write(
                    json.dumps(_sample(n, doc, sample_of(release, doc["id"]), speak, form, repeats, finish, asked))
                    + "\n"
                )
    return folder


def _sample(
    n: int,
    doc: Any,
    row: Any,
    speak: Say,
    form: Form,
    repeats: int,
    finish: Callable[[Row, int], str | None],
    settings: Any,
) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    resps: list[list[str]] = []
    for repeat in range(repeats):
        said: list[str] = []
        for turn in range(live_turns(row)):
            ended = finish(row, turn)
            asked = settings | ({"repeat": repeat} if repeat else {})
            arguments[f"gen_args_{len(resps)}"] = {
                "arg_0": form(history(row, said, turn)),
                "arg_1": asked,
                "arg_2": {"finish": ended},
            }
            said.append("" if ended and ended.startswith("error") else speak(row, turn, repeat))
            resps.append([said[-1]])
    return {"doc_id": n, "doc": doc, "arguments": arguments, "resps": resps, "filtered_resps": ["x"], "target": ""}


def score(run: Path, release: Release, *arguments: str) -> None:
    """`helmbench score`, which must succeed."""
    assert main(["score", str(run), "--dataset", str(release.path), *arguments]) == 0


def answer(
    run: Path,
    release: Release,
    model: str,
    label: Callable[[Any], str | None] | None = None,
    repeats: int = 1,
    answered_as: str | None = None,
) -> None:
    """Writes a judge's answers to all questions about a run where `helmbench score` looks for them, as another engine
    would.
    """
    read, where = read_run(run, release), batch.folder(run, model)
    where.mkdir(parents=True, exist_ok=True)
    with (where / "replies-1.jsonl").open("w", encoding="utf-8") as file:
        for repeat in range(repeats):
            for q in questions(read, release, JudgeIdentity(model, prompt_hash(installed()), repeat=repeat)):
                if (said := (label or some_label)(q)) is None:
                    continue
                content = json.dumps({"label": said, "quotes": [q.reply[:200]] if said.startswith("FAIL") else []})
                choice = {"message": {"content": content}, "finish_reason": "stop"}
                body = {"model": answered_as or model, "choices": [choice], "id": "srv-1"}
                file.write(json.dumps(batch.result(q.custom_id, None, body) | {"id": f"a-{q.custom_id}"}) + "\n")


def some_label(q: Any) -> str:
    """A label that depends on the question; every way to fail occurs."""
    return str(q.labels[number(q.custom_id) % len(q.labels)])


def measure(run: Path, release: Release, model: str, wrong: float = 0.0) -> None:
    """Writes the judge's calibration next to its answers; `wrong`: the share of replies where it disagrees."""
    by_rule = ruled(release, "criterion", release.calibration)
    labels = {
        r.id: r.label if number(r.id) % 1000 >= 1000 * wrong else release.criteria[r.criterion].labels[-1]
        for r in release.calibration
    }
    answers = {i: by_rule.get(i) or JudgeLabel(x) for i, x in labels.items()}
    found = calibrate(release, JudgeIdentity(model, prompt_hash(installed())), [answers])
    where = batch.folder(run, model)
    where.mkdir(parents=True, exist_ok=True)
    (where / "calibration.json").write_text(found.model_dump_json(), encoding="utf-8")


def build(content: Path, out: Path) -> Release:
    """A release of this content, opened."""
    loaded, errors = load(content)
    assert loaded, errors.lines()
    write(loaded, compose(loaded), out)
    return open_release(out)


def judged_by_model(home: Path, release: Release, model: str = "claude-test-1", **run: Any) -> Path:
    """A submission that a calibrated language model judged. One question got three unreadable answers, so one reply is
    withheld.
    """
    folder = log(home / "run", release, **run)
    asked = [
        q
        for q in questions(read_run(folder, release), release, JudgeIdentity(model, prompt_hash(installed())))
        if "flagged" in q.labels
    ]
    unread = min(asked, key=lambda q: number(q.custom_id)).custom_id
    answer(folder, release, model, lambda q: None if q.custom_id == unread else some_label(q))
    body = {"model": model, "choices": [{"message": {"content": f"Hard to say: {MARKER}."}, "finish_reason": "stop"}]}
    with (batch.folder(folder, model) / "replies-2.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(batch.result(unread, None, body)) + "\n" for _ in range(batch.ASKS))
    measure(folder, release, model)
    score(folder, release, "--judge", model)
    return make(folder, release, ABOUT, home / "submissions").folder


def judged_offline(home: Path, release: Release, **run: Any) -> Path:
    """A demo, judged by the offline judge."""
    folder = log(home / "run", release, **run)
    score(folder, release)
    return make(folder, release, ABOUT, home / "submissions").folder


class Opened:
    """A submission taken apart so that a test can change it; `close` puts it together again and signs it, as a forger
    would.
    """

    def __init__(self, folder: Path, release: Release | None = None) -> None:
        self.folder = folder
        self.polarity = {r.id: r.polarity for r in release.rows.values()} if release else {}
        self.submission: dict[str, Any] = json.loads((folder / SUBMISSION).read_text(encoding="utf-8"))
        self.verdicts = _records((folder / VERDICTS).read_bytes())
        self.responses = _records(unpacked(folder / RESPONSES))
        self.logged = {name: unpacked(folder / name) for name in (ANSWERS, CALIBRATIONS) if (folder / name).exists()}

    def verdict(self, **wanted: Any) -> dict[str, Any]:
        """The first verdict with these values."""
        return next(v for v in self.verdicts if all(v[k] == x for k, x in wanted.items()))

    def response(self, identity: str) -> dict[str, Any]:
        return next(r for r in self.responses if r["id"] == identity)

    def close(self) -> Path:
        (self.folder / SUBMISSION).write_text(json.dumps(self.submission), encoding="utf-8")
        (self.folder / VERDICTS).write_bytes(_lines(self.verdicts))
        files.pack(self.folder / RESPONSES, [_lines(self.responses)])
        for name in (ANSWERS, CALIBRATIONS):
            (self.folder / name).unlink(missing_ok=True)
            if name in self.logged:
                files.pack(self.folder / name, [self.logged[name]])
        files.sign(self.folder)
        return self.folder


def unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def zipped(path: Path, members: dict[str, bytes]) -> None:
    """An archive of these members, as Inspect's logs are."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)


def copied(folder: Path, home: Path) -> Path:
    """The submission's copy, with the folders above it, below `home`."""
    place = home.joinpath(*folder.parts[-3:])
    return Path(shutil.copytree(folder, place))


def _records(raw: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw.splitlines()]


def _lines(records: Iterable[Any]) -> bytes:
    return b"".join((r if isinstance(r, str) else json.dumps(r)).encode() + b"\n" for r in records)
