"""Opens a run by its path: its replies, the release it is judged on, and the folder of its judges' answers and
scores.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, get_args

from dataset_builder.composing.condition_text import condition_texts
from dataset_builder.release import Release, open_release
from dataset_builder.schema import Sample, Tier
from helmbench_common import jsonl
from helmbench_common.formats import json_file
from helmbench_common.formats.refused import shown
from judge.replies.inspect_log import SUFFIX, first_inputs, read_log
from judge.replies.lm_eval_log import read_run
from judge.replies.run import Run
from judge.replies.schema import MOST_REPEATS, Model, OwnPrompt, Reply, RunError, run_error
from judge.replies.script import live_turns

SCORED = ".scored"  # suffix of the home of a replies file or an Inspect log
SCORES = "scores"  # in a home: one folder per judge
NO_RESULTS = "--results chooses among the results files of an lm_eval run; this isn't one"


class Place(NamedTuple):
    """The location of a run: `run_dir`, the output of lm-eval or an Inspect log, or `replies`, a file of replies
    collected elsewhere.

    `dataset`: the built dataset (None: where `dataset_builder.release.find` looks); `messages`: the labeled corpus used
    in place of the dataset's messages; `results`: which of several results files in `run_dir` to use (None: the
    newest).
    """

    run_dir: Path | None = None
    replies: Path | None = None
    dataset: Path | None = None
    messages: Path | None = None
    results: Path | None = None

    @property
    def path(self) -> Path:
        """The run's folder or file.

        Raises:
            RunError: neither `run_dir` nor `replies` is given, or both are.
        """
        if (self.run_dir is None) == (self.replies is None):
            raise RunError("expected either a RUN (output folder of lm_eval, or LOG.eval of Inspect) or --replies FILE")
        return self.run_dir or self.replies or Path()

    @property
    def words(self) -> str:
        """The command-line arguments that identify this run."""
        run = f"--replies {self.replies}" if self.replies else str(self.run_dir)
        own = {"--messages": self.messages, "--results": self.results}
        return " ".join([run, *(f"{option} {path}" for option, path in own.items() if path)])


class Opened(NamedTuple):
    """A run, its release, and its home: the folder for its judges' answers and scores."""

    run: Run
    release: Release
    home: Path
    place: Place

    @property
    def taken(self) -> str:
        """Which of several results files was read, and how to choose another; empty if there is only one."""
        said = self.run.taken
        return f"{said}; --results FILE takes another" if said and not self.place.results else said


def open_run(place: Place) -> Opened:
    """Reads a run.

    Raises:
        RunError: neither or both of `run_dir` and `replies`, or a run that can't be read. ReleaseError: no such
            dataset.
    """
    path, release = place.path, open_release(place.dataset)
    if place.messages:
        from dataset_builder.corpora.labelled import on_corpus  # 0.2 s to import

        release = on_corpus(release, place.messages)
    if place.replies and place.results:
        raise RunError(NO_RESULTS)
    run = read_replies(path, release) if place.replies else run_in(path, release, place.results)
    return Opened(run, release.of(run.tier), home_for(run), place)


# --- homes -----------------------------------------------------------------------------------------------------------


def home_for(run: Run) -> Path:
    """The folder for a run's answers and scores: lm-eval's run folder, or a folder next to the file.

    Raises:
        RunError: the folder next to the file is a link, which may lead anywhere.
    """
    if not run.path.is_file():
        return run.path
    home = run.path.with_suffix(SCORED)
    if home.is_symlink():
        raise RunError(f"{shown(home)}: is a link; expected a folder")
    return home


def run_in(folder: Path, release: Release, results: Path | None = None) -> Run:
    """The run at a path: the output of lm-eval, an Inspect log or its folder, a run's home, or the folder of its scores
    by one judge.

    Raises:
        RunError: there is none, or it is unreadable.
    """
    home = home_of(folder)
    log = log_at(home)
    beside = home.with_suffix(".jsonl")
    if log is None and (home.suffix != SCORED or not beside.is_file()):
        return read_run(home, release, results)
    if results:
        raise RunError(NO_RESULTS)
    return read_log(log, release) if log else read_replies(beside, release)


def log_at(place: Path) -> Path | None:
    """The Inspect log at a path: the path itself, the log that has this home, or the only log in the folder; else None.

    Raises:
        RunError: a folder with several logs.
    """
    if place.suffix == SUFFIX:
        return place
    if place.suffix == SCORED:
        beside = place.with_suffix(SUFFIX)
        return beside if beside.is_file() else None
    found = sorted(place.glob(f"*{SUFFIX}")) if place.is_dir() else []
    if len(found) > 1:
        raise RunError(f"{place}: holds {len(found)} logs of Inspect; name one of them, such as {found[-1]}")
    return found[0] if found else None


def run_at(home: Path, release: Release, results: Path | None = None) -> Run:
    """The run of a home: lm-eval's run in it, or the replies file or Inspect log next to it.

    Raises:
        RunError: neither exists, or it is unreadable.
    """
    if not is_home(home):
        raise RunError(
            f"{home}: holds scores and no run; scores written beside a run, without --out, are found with it"
        )
    return run_in(home, release, results)


def home_of(folder: Path) -> Path:
    """The home of the run if the folder contains its scores by one judge; returns any other folder unchanged."""
    whole = folder.absolute()
    home = folder.parent.parent if folder.parent.name == SCORES else whole.parent.parent
    return home if whole.parent.name == SCORES and is_home(home) else folder


def is_home(folder: Path) -> bool:
    """Whether a folder is a run's home: it contains lm-eval's results, or is named after a replies file or log next to
    it.
    """
    beside = [folder.with_suffix(suffix) for suffix in (".jsonl", SUFFIX)] if folder.suffix == SCORED else []
    return any(path.is_file() for path in beside) or any(folder.glob("results_*.json"))


# --- replies collected elsewhere -------------------------------------------------------------------------------------


def read_replies(path: Path, release: Release) -> Run:
    """Replies collected without a runner: JSONL of {"id", "reply"}; conversations use {"id", "replies": [one per live
    turn]}.

    An id refers to a sample, or to a standalone message, whose reply is then rated.

    Raises:
        RunError: unreadable lines, unknown ids, repeated ids, or the wrong number of turns; lists all of them.
    """
    problems: list[str] = []
    damaged = 'not a JSON object; expected one {"id", "reply"} per line'
    lines = jsonl.objects(path, lambda n, _: problems.append(f"{path}:{n}: {damaged}"))
    try:
        return collected(lines, path, path.stem, release, problems)
    except OSError as error:
        raise RunError(
            f'{path}: {str(error.strerror).lower()}; expected JSONL with one {{"id", "reply"}} per line'
        ) from None


def collected(
    records: Iterable[tuple[int, dict[str, Any]]], path: Path, model: str, release: Release, problems: list[str]
) -> Run:
    """A run from numbered records. `problems`: errors from reading `records` are appended here.

    Raises:
        RunError: as `read_replies`.
    """
    replies: dict[tuple[str, int], Reply] = {}
    for number, record in records:
        try:
            reply = _reply(record, release)
            if (reply.id, reply.repeat) in replies:
                raise ValueError(
                    f"{reply.id} repeat {reply.repeat} appears twice; expected each sample once per repeat"
                )
            replies[reply.id, reply.repeat] = reply
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")
    if problems:
        raise run_error(problems)
    if not replies:
        raise RunError(f'{path}: empty file; expected one {{"id", "reply"}} per line')

    def tier_of(own: list[Reply], samples: Mapping[str, Sample]) -> Tier | None:
        ids, tiers = {r.id for r in own}, get_args(Tier)
        return next((t for t in tiers if ids == {s.id for s in samples.values() if t in s.tiers}), None)

    rated = [r for r in replies.values() if r.id in release.messages]
    scored = [r for r in replies.values() if r.id in release.rows]
    tiers = tier_of(scored, release.rows), tier_of(rated, release.messages)
    model_ = Model(name=model, backend="collected elsewhere")
    return Run(path, model_, tiers[0], scored, False, messages=rated, messages_tier=tiers[1])


def _reply(record: dict[str, Any], release: Release) -> Reply:
    """Raises: ValueError: a record with an unknown id, or one that doesn't fit its sample."""
    identity, repeat = record.get("id"), record.get("repeat", 0)
    turns = record.get("replies", [record["reply"]] if "reply" in record else None)
    row = release.rows.get(str(identity)) or release.messages.get(str(identity))
    if row is None:
        raise ValueError(f"id {identity!r} is not in the dataset {release.manifest.version}")
    if not isinstance(turns, list) or not all(isinstance(t, str) for t in turns):
        raise ValueError(f'{identity}: expected "reply": text, or "replies": [text, …] for a conversation')
    if len(turns) != live_turns(row):
        raise ValueError(f"{identity}: has {len(turns)} replies, expected {live_turns(row)}, one per live turn")
    if not isinstance(repeat, int) or not 0 <= repeat < MOST_REPEATS:
        raise ValueError(f'{identity} repeat {repeat!r}: expected "repeat" to count from 0')
    finish = record.get("finish")
    words = [*[None] * (len(turns) - 1), finish] if isinstance(finish, str) else [] if finish is None else finish
    fits = isinstance(words, list) and all(isinstance(w, str | None) for w in words)
    if not fits or len(words) not in (0, len(turns)):
        raise ValueError(f'{identity}: expected "finish": a word for the last reply, or a list with one per reply')
    ends = tuple(w and jsonl.plain(w) for w in words)
    return Reply(id=row.id, repeat=repeat, turns=tuple(map(jsonl.plain, turns)), finish=ends)


# --- the text of a system prompt under test --------------------------------------------------------------------------

LOOKS = 3  # samples per task to search: the prompt is the same in all
STARTS = 50_000  # characters that a chat template or an instruction may put before it
HASHED = 2**27  # characters hashed per text: the log's author chose its length
# Where a prompt may begin: its first character doesn't follow a space, and no template ends in a letter.
BEGINNING = re.compile(r"(?<!\w)\S")
FOLLOWING = 40  # characters after the prompt that identify its end


def own_prompt(home: Path, condition: OwnPrompt, release: Release) -> str | None:
    """The prompt that replaced every condition's text, found in a run's requests by its recorded hash; None if no
    request in the folder contains it. A run itself records only the file's name and hash.
    """
    conditions = condition_texts(release.rows.values())
    for identity, texts in _first_requests(home):
        row = release.rows.get(identity)
        own = conditions.get((row.scenario, row.condition)) if row else None
        if row is None or own is None:
            continue
        behind = (row.messages[0].content or "").removeprefix(own)[:FOLLOWING]
        for text in texts:
            before, found, _ = text.partition(behind) if behind else ("", "", "")
            starts = islice(BEGINNING.finditer(before, 0, STARTS), HASHED // max(len(before), 1)) if found else ()
            for start in starts:
                prompt = before[start.start() :]
                if hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest() == condition.sha256:
                    return prompt
    return None


def _first_requests(home: Path) -> Iterator[tuple[str, list[str]]]:
    """The texts of a few samples' first requests, with the sample id, from either runner's log."""
    if home.suffix == SCORED and (log := log_at(home)):
        yield from first_inputs(log, LOOKS)
    for path in sorted(home.glob("samples_*.jsonl")):
        with suppress(OSError):  # reported when the replies are read
            for _, sample in islice(jsonl.objects(path, lambda *_: None), LOOKS):
                doc = sample.get("doc")
                yield str(doc.get("id") if isinstance(doc, dict) else None), _requested(sample)


def _requested(sample: dict[str, Any]) -> list[str]:
    """The texts of a sample's first request: one per message for an API, or a single text for a chat template."""
    arguments = sample.get("arguments")
    first = arguments.get("gen_args_0") if isinstance(arguments, dict) else None
    sent = first.get("arg_0") if isinstance(first, dict) else None
    found: list[str] = []
    for text in sent if isinstance(sent, list) else [sent]:
        try:
            found += [str(m["content"]) for m in json_file.lenient(str(text))]
        except (ValueError, TypeError, KeyError):  # not JSON messages: a template's text
            found.append(str(text))
    return found
