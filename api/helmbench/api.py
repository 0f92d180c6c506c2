"""The Python API behind `import helmbench`. The commands `build`, `compare` and `verify` run these functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dataset_builder.corpora.labelled import on_corpus
from dataset_builder.prompts import CONTENT, PLAIN, RATE
from dataset_builder.release import Release, open_release
from dataset_builder.schema import AppropriatenessCheck
from judge.judges import NONE_GIVEN, bench, known, references
from judge.llm.asking import Stored
from judge.llm.local import is_local, model_of
from judge.llm.questions import prompt_hash
from judge.llm.reader import llm, question, readers
from judge.replies.inspect_log import SUFFIX
from judge.replies.opening import Opened, Place, collected, home_for, read_replies, run_in
from judge.replies.run import Run
from judge.replies.schema import RunError
from judge.replies.script import play
from judge.schema import Scorecard, Verdict
from judge.score import Judge as Repeats
from judge.score import Known, source_of
from judge.score import Scored as JudgedAndScored
from judge.score import score as score_with
from judge.scoring import compare as comparing
from judge.scoring.compare_talks import compare_talks, scored_talks
from judge.scoring.gates import Gate
from judge.scoring.stored import SCORECARD, TALKS, card_in, find, verdicts_in
from judge.verdicts import Case, Given, JudgeIdentity, sample_of
from leaderboard.schema import Verified
from leaderboard.verify.verify import verify as verify_folder

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Comparison",
    "Question",
    "Scored",
    "build",
    "compare",
    "load",
    "play",
    "read_run",
    "replies",
    "score",
    "verify",
]

PathLike = str | Path
Labeler = Callable[["Question"], str | int | None]
Judge = str | Path | Labeler | None


class Question(NamedTuple):
    """What a judge function is asked: one criterion, or one rating, of one reply.

    `id`: the sample's id. `criterion`: the criterion's name, or the crisis category whose protocol rates the reply.
    `labels`: the labels to choose from, such as `("PASS", "PARTIAL", "FAIL")`, or `("1", …, "5")`. `reply`: the text to
    judge. `prompt`: the complete question, with criterion and conversation, as a language-model judge reads it.
    """

    id: str
    criterion: str
    labels: tuple[str, ...]
    reply: str
    prompt: str


@dataclass(frozen=True)
class Scored:
    """A scored run.

    `scorecard`: every figure, as in scorecard.json; scores are at most 100 and may be negative, rates run from 0 to 1.
    `verdicts`: one per check of each reply to a benchmark sample. `ratings`: one per rating (1 to 5) of each reply to a
    stand-alone message. `talks`: one per check of each talk with a simulated user.
    """

    scorecard: Scorecard
    verdicts: list[Verdict]
    ratings: list[Verdict]
    talks: list[Verdict]
    run: Run
    release: Release

    def to_frame(self) -> pd.DataFrame:
        """One row per verdict, benchmark samples first and talks last, as a pandas DataFrame.

        Columns: the verdict's own (`id`, `repeat`, `index`, `check`, `behavior`, `criterion`, `label`, `unscored`,
        `decided_by`, …), then the sample's `pillar`, `scenario`, `condition`, `polarity`, `severity` (-10 to 10),
        `difficulty` (0 to 10), `crisis_category` and `country`. A rating's sample has no pillar, scenario, condition,
        severity or difficulty, a talk's part no scenario, severity or difficulty.

        Raises:
            ImportError: pandas isn't installed.
        """
        of_sample = (
            "pillar",
            "scenario",
            "condition",
            "polarity",
            "severity",
            "difficulty",
            "crisis_category",
            "country",
        )
        rows = []
        for verdict in (*self.verdicts, *self.ratings, *self.talks):
            sample = self.release.parts.get(verdict.id) or sample_of(self.release, verdict.id)
            rows.append(verdict.model_dump() | {name: getattr(sample, name, None) for name in of_sample})
        return _frame(rows, [*Verdict.model_fields, *of_sample])

    def save(self, folder: PathLike, *, show_withheld: bool = False) -> Path:
        """Writes what `helmbench score` writes into `folder`, and returns the path of report.html.

        The files replace those of an earlier scoring: scorecard.json, verdicts.jsonl, ratings.jsonl where there are
        ratings, summary.md, report.html and transcripts.html. `show_withheld`: show everything that the
        pages withhold: replies with means or encouragement, replies that no judge has checked for them, and a corpus's
        messages with the replies to them.
        """
        from judge.pipeline import write_scored

        folder, judged = Path(folder), JudgedAndScored(self.scorecard, self.verdicts, self.ratings, self.talks)
        write_scored(judged, Opened(self.run, self.release, folder, Place(folder)), folder, show_withheld)
        return folder / "report.html"


@dataclass(frozen=True)
class Comparison:
    """Scored runs, paired by message; the first is the baseline.

    `result`: every figure, as `helmbench compare --json` prints it. `runs`: the runs as they were compared; empty for
    runs of talks.
    """

    result: comparing.Comparison
    runs: list[comparing.ScoredRun]

    @property
    def regressions(self) -> list[str]:
        """What `helmbench compare --fail-on regression` fails on, one sentence per run; empty if no run lost points. Of
        runs of talks, which have no gates: what they lost.
        """
        if not self.runs:
            lost = {name: comparing.losses(name, self.result.differences) for name in self.result.runs[1:]}
            return [f"{name} {what}" for name, what in lost.items() if what]
        base, *others = self.runs
        found = ((r, comparing.regressions(base, r, self.result.differences)) for r in others)
        return [f"{run.name} {reason}" for run, reasons in found for reason in reasons]

    def to_frame(self) -> pd.DataFrame:
        """One row per run and figure, as a pandas DataFrame.

        Columns: `run`, `figure`, `baseline` and `value` (scores, at most 100), `difference` with its 95 % interval
        `low` and `high` (points), `messages` (effective), `p_value` (missing with fewer than 12 messages), and `found`:
        whether the difference remains after Holm's correction over all tested rows.

        Raises:
            ImportError: pandas isn't installed.
        """
        columns = ["run", "figure", "baseline", "value", "difference", "low", "high", "messages", "p_value", "found"]
        rows = [
            d.model_dump() | {"difference": d.difference.value, "low": d.difference.low, "high": d.difference.high}
            for d in self.result.differences
        ]
        return _frame(rows, columns)


def load(folder: PathLike | None = None, *, messages: PathLike | None = None) -> Release:
    """Returns a built dataset after comparing every file's hash with MANIFEST.json.

    `folder`: the built dataset; by default $HELMBENCH_DATASET, then ./helmbench. `messages`: a labeled corpus
    (`helmbench corpus`, `helmbench label`) to use in place of the dataset's stand-alone messages.

    Raises:
        HelmbenchError: the folder has no dataset, or a file is missing or was edited.
    """
    release = open_release(folder)
    return on_corpus(release, Path(messages)) if messages else release


def build(content: PathLike = CONTENT, out: PathLike = "helmbench", *, held_out: PathLike | None = None) -> Release:
    """Checks a content folder, writes the dataset into `out`, and returns it. An earlier build in `out` is replaced.

    `content`: by default the content of this package. `held_out`: a private split, built with the rest of the content.

    Raises:
        HelmbenchError: the content has errors; the message has one line per error, with file and line. Nothing was
            written.
        OSError: `out` can't be written, or isn't an earlier build.
    """
    from dataset_builder.writing.write import build as write_build

    manifest = write_build(Path(content), Path(out), Path(held_out) if held_out else None)
    return Release(Path(out).resolve(), manifest)


def read_run(path: PathLike, release: Release | None = None, *, results: PathLike | None = None) -> Run:
    """Reads the replies of one model.

    `path`: the `--output_path` of an lm-eval run (made with `--log_samples`), a `LOG.eval` of Inspect AI, or a JSONL
    file with one `{"id", "reply"}` per line (conversations: `{"id", "replies"}`). `release`: by default `load()`.
    `results`: which results_*.json of the folder to read; by default the newest.

    Raises:
        HelmbenchError: the run can't be read or isn't a run on this dataset; the message names every bad line.
    """
    path, release = Path(path), release or load()
    if path.is_file() and path.suffix != SUFFIX:
        return read_replies(path, release)
    return run_in(path, release, Path(results) if results else None)


def replies(
    records: Mapping[str, str] | Iterable[Mapping[str, Any]], release: Release | None = None, *, name: str = "replies"
) -> Run:
    """Makes a run of replies in memory.

    `records`: sample id → reply, or records as in a JSONL file: `{"id": …, "reply": text}`, of a conversation
    `{"id": …, "replies": [one text per live turn]}`; optional keys are `repeat` (from 0) and `finish` (why the model
    stopped).
    `release`: by default `load()`. `name`: the model's name in the scorecard.

    Raises:
        HelmbenchError: an unknown or repeated id, or the wrong number of turns; all are named at once.
    """
    if isinstance(records, Mapping):
        records = [{"id": key, "reply": text} for key, text in records.items()]
    return collected(((n, dict(r)) for n, r in enumerate(records, 1)), Path(name), name, release or load(), [])


def score(
    run: Run,
    release: Release | None = None,
    judge: Judge | Sequence[Judge] = "offline",
    *,
    repeats: int = 1,
    wording: str = PLAIN,
    allow_missing: bool = False,
) -> Scored:
    """Judges every reply of a run and scores the verdicts, as `helmbench score` does. Only a local judge is asked.

    Rules decide most checks. `judge` reads the rest:

    - `"offline"`: the offline judge, which counts words and is approximate;
    - another name: a language model whose answers `helmbench judge` or another engine wrote for this run;
    - `"vllm:ORG/MODEL"` or `"hf:ORG/MODEL"`: that model, asked now in this process; its answers are kept with the run;
    - a folder (`Path`, or a string with a slash): answers in the OpenAI batch format, of the model that the folder is
      named after;
    - a function `Question` → label, one of `question.labels`; it returns None if it can't tell;
    - None: no judge. What rules can't decide stays unscored, and most scores are empty.

    A list of judges is a panel, which decides by majority. `repeats` and `wording`: how often, and with which prompt of
    the dataset, the language models were asked. `allow_missing`: leave questions without an answer unscored.

    Raises:
        HelmbenchError: a judge without answers, or questions without an answer; replies to samples of another tier.
        ValueError: the same function twice, or no judge.
    """
    release = release or load()
    several = isinstance(judge, Sequence) and not isinstance(judge, str)
    given: list[Judge] = [*judge] if several else [judge]  # type: ignore[list-item, misc]
    home = home_for(run)
    seats: list[Repeats] = []
    stored: list[Stored] = []
    for one in given:
        if one is None:
            seats.append((_RulesAlone(),))
        elif callable(one):
            seats.append((_FunctionReader(one, release),))
        elif isinstance(one, Path) or ("/" in one and Path(one).is_dir()):
            folder = Path(one)
            if not folder.is_dir():
                raise RunError(f"{folder}: no such folder; expected a judge's answers (replies*.jsonl)")
            stored.append(Stored(folder))
            seats.append(readers(llm(release, folder.resolve().name, wording), repeats, stored[-1]))
        else:
            if is_local(one):
                from judge.pipeline import Questioning, ask_here

                opened = Opened(run, release.of(run.tier), home, Place(run.path))
                ask_here(opened, one, Questioning(wording, repeats))
            found = bench([model_of(one)], home, release, wording, repeats)
            seats += found.judges
            stored += found.stored
    names = [seat[0].identity.name for seat in seats]
    if len(names) != len(set(names)):
        raise ValueError(f"judge: {', '.join(names)}; expected each judge once, with a unique name")
    alike = all(isinstance(one, str) for one in given)
    identities = [seat[0].identity for seat in seats]
    about = (
        known(identities, home, NONE_GIVEN, release, bool(run.messages))
        if alike
        else Known(references=references(release))
    )
    scored = score_with(run, release, seats, about)
    if not allow_missing and (open_ := [s for s in stored if s.lacking]):
        lines = (
            f"{s.where}: {len(s.lacking)} questions have no answer; allow_missing=True leaves them unscored"
            for s in open_
        )
        raise RunError("\n".join(lines))
    card = scored.scorecard.model_copy(update={"source": source_of(run)})
    return Scored(card, scored.verdicts, scored.ratings, [*scored.talks], run, release)


def compare(
    baseline: Scored | PathLike,
    *others: Scored | PathLike,
    release: Release | None = None,
    names: Mapping[int, str] | Sequence[str] = (),
    fail_on: Collection[Gate] = (),
    samples: int = 10,
) -> Comparison:
    """Compares scored runs of the same dataset, tier and judge with a baseline, paired by message.

    Each run is a `Scored`, or the path of a run that was scored (its folder, or the folder of one judge's scores).
    `release`: by default the one of the first `Scored`, else `load()`. `names`: what to call the runs, in their order,
    or by place from 0. `fail_on`: the gates to test, as for `helmbench compare`: `regression`, `floor`,
    `undetermined`, `unscored`; `.result.failed` lists what failed. `samples`: how many samples to list where runs
    differ most. Runs of talks are paired by part; they have no gates and no list of samples.

    Raises:
        HelmbenchError: a path without scores, or runs that can't be compared.
        ValueError: gates for runs of talks.
    """
    given = [
        one if isinstance(one, Scored) or (Path(one) / SCORECARD).is_file() else find(Path(one)).folder
        for one in (baseline, *others)
    ]
    release = release or next((one.release for one in given if isinstance(one, Scored)), None) or load()
    called = names if isinstance(names, Mapping) else dict(enumerate(names))
    cards = [one.scorecard if isinstance(one, Scored) else card_in(Path(one)) for one in given]
    if all(card.talks and not card.dataset.samples for card in cards):
        if fail_on:
            raise ValueError("fail_on: runs of talks have no gates")
        verdicts = (one.talks if isinstance(one, Scored) else verdicts_in(Path(one) / TALKS) for one in given)
        played = [
            scored_talks(comparing.run_name(card.model), card, own, release)
            for card, own in zip(cards, verdicts, strict=True)
        ]
        return Comparison(compare_talks(comparing.named(played, called), release), [])
    runs = [
        comparing.scored_run(comparing.run_name(one.scorecard.model), one.scorecard, one.verdicts, release)
        if isinstance(one, Scored)
        else comparing.read(Path(one), release)
        for one in given
    ]
    runs = comparing.named(runs, called)
    return Comparison(comparing.compare(runs, fail_on, samples), runs)


def verify(folder: PathLike, release: Release | None = None) -> Verified:
    """Checks a submission: recomputes its files' hashes, prompts, verdicts and scores, and compares them.

    Returns `.state` (`verified`, `demo` or `refused`), `.problems` and `.flags` with one entry per finding, and the
    recomputed `.scorecard`. A bad submission is a result, not an error.

    Raises:
        HelmbenchError: there is no such folder, or no dataset.
    """
    return verify_folder(Path(folder), release or load())


class _RulesAlone:
    """Reads nothing: what rules can't decide stays unscored."""

    identity = JudgeIdentity("rules", None)
    decides_as: Literal["offline", "judge"] = "offline"

    def asked_with(self, case: Case, release: Release) -> str | None:
        return None

    def read(self, case: Case, release: Release) -> Given:
        return Given(None, unscored="cannot_tell")


class _FunctionReader:
    """A function as a judge, recorded with the hash of the prompt that it got."""

    decides_as: Literal["offline", "judge"] = "judge"

    def __init__(self, label: Labeler, release: Release) -> None:
        self._label = label
        self.identity = llm(release, getattr(label, "__name__", type(label).__name__))

    def asked_with(self, case: Case, release: Release) -> str | None:
        return prompt_hash(release.prompts, RATE if isinstance(case.check, AppropriatenessCheck) else PLAIN)

    def read(self, case: Case, release: Release) -> Given:
        asked = question(case, release, self.identity)
        check = case.check
        criterion = check.protocol if isinstance(check, AppropriatenessCheck) else case.read_check.criterion
        prompt = asked.body["messages"][-1]["content"]
        label = self._label(Question(case.row.id, criterion, asked.labels, asked.reply, prompt))
        if label is None:
            return Given(None, unscored="cannot_tell")
        if str(label) not in asked.labels:
            return Given(None, (f"label {str(label)[:40]!r} is not one of {list(asked.labels)}",), "unparsable")
        return Given(str(label))


def _frame(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_frame() needs pandas; install it with: pip install pandas") from None
    return pd.DataFrame(rows, columns=columns)
