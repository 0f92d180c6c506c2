"""Tricks of a submitter who wants a better row: each makes a signed submission, and says how it must end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dataset_builder.release import Release
from leaderboard.schema import ANSWERS, SUBMISSION
from leaderboard.submit.pack import make
from leaderboard.verify import files
from support import submission_runs as runs
from support.tampering import judge_renamed

Trick = Callable[[Path, Path, Release], Path]  # (an honest submission, an empty folder, the release) → a submission
JUDGE = "claude-test-1"


def edit(change: Callable[[runs.Opened], Any]) -> Trick:
    """The honest submission, changed and signed again."""

    def work(honest: Path, home: Path, release: Release) -> Path:
        opened = runs.Opened(runs.copied(honest, home), release)
        change(opened)
        return placed(opened.close(), opened.submission["model"]["name"])

    return work


def placed(folder: Path, name: str) -> Path:
    """The submission in the folder of a model of this name."""
    place = folder.parent.with_name(f"acme__{name}")
    return folder.parent.rename(place) / folder.name


def declared(part: str, **values: Any) -> Trick:
    return edit(lambda o: o.submission[part].update(values))


def forged_labels(name: str) -> Trick:
    """The honest replies, with answers of the judge that pass them all."""

    def work(honest: Path, home: Path, release: Release) -> Path:
        run = runs.log(home / "run", release)
        runs.answer(run, release, JUDGE, lambda q: q.labels[0])
        runs.measure(run, release, JUDGE)
        runs.score(run, release, "--judge", JUDGE)
        model = runs.ABOUT.model.model_copy(update={"name": name})
        return make(run, release, runs.ABOUT._replace(model=model), home / "out", name="forged").folder

    return work


def hinted(hint: str) -> Trick:
    """The same run through a chat template that writes a hint for the model."""

    def work(honest: Path, home: Path, release: Release) -> Path:
        def form(messages: list[dict[str, str]]) -> Any:
            return hint + str(runs.as_chatml(messages))

        runs.TEMPLATES[form] = hint + runs.CHATML
        return runs.judged_by_model(home, release, form=form)

    return work


def answered_by(model: str) -> Trick:
    """Answers that name another model than the judge."""

    def change(o: runs.Opened) -> None:
        o.submission["judge"]["answered_as"] = [model]
        old, new = (json.dumps({"model": m}, separators=(",", ":"))[1:-1].encode() for m in (JUDGE, model))
        assert old in o.logged[ANSWERS]
        o.logged[ANSWERS] = o.logged[ANSWERS].replace(old, new)

    return edit(change)


def panel_of_one(o: runs.Opened) -> None:
    """One judge in three spellings."""
    (own,) = o.submission["judge"]["agreement"]
    o.submission["judge"]["agreement"] = [own, *({**own, "judge": n} for n in (JUDGE, JUDGE.title(), JUDGE.upper()))]


def not_a_number(honest: Path, home: Path, release: Release) -> Path:
    folder = runs.copied(honest, home)
    value = json.loads((folder / SUBMISSION).read_text())
    value["scores"]["composite"]["value"] = float("nan")
    (folder / SUBMISSION).write_text(json.dumps(value))
    files.sign(folder)
    return folder


def no_finish(o: runs.Opened) -> None:
    for r in o.responses:
        r["finish"] = []


# trick → (how it ends, words of the reason, of the flag, or of the list of what rests on the submitter's word)
TRICKS: dict[str, tuple[Trick, str, str]] = {
    "forged labels for another model": (forged_labels("north-3"), "flagged", "questions differently"),
    "forged labels for the same model": (forged_labels("north-2"), "flagged", "about another run of this model"),
    "copy under another name": (declared("model", name="north-3"), "flagged", "100% of the replies are identical"),
    "copy under the same name": (edit(lambda o: None), "flagged", "identical to those of another run of this model"),
    "copy without revision": (declared("model", revision=None), "flagged", "no revision"),
    "Cyrillic judge": (edit(judge_renamed(JUDGE, "\u0441laude-test-1")), "refused", "judge: submission.json: judge"),
    "judge with a space": (edit(judge_renamed(JUDGE, f"{JUDGE} ")), "refused", f"'{JUDGE} ' isn't the name of a judge"),
    "judge with markup": (edit(judge_renamed(JUDGE, "<b>claude</b>")), "refused", "expected ASCII letters"),
    "panel of one judge": (edit(panel_of_one), "refused", "twice, ignoring case: claude-test-1, Claude-Test-1"),
    "date in the future": (edit(lambda o: o.submission.update(submitted="2099-01-01")), "refused", "date: "),
    "date in the year 1": (edit(lambda o: o.submission.update(submitted="0001-01-01")), "refused", "date: "),
    "revision of marks": (declared("model", revision="e" + "\u0301" * 400), "refused", "model.revision"),
    "NaN for a score": (not_a_number, "refused", "json: submission.json"),
    "key in the note": (declared("declaration", note="s\u200dk-" + "a1b2\u200d" * 6), "refused", "secret: "),
    "answers of no model": (answered_by(""), "flagged", "other judge answered"),
    "answers of model c": (answered_by("c"), "flagged", "other judge answered"),
    "hint in the template": (hinted("Hand over at once.\n"), "flagged", "chat template adds words"),
    "hint in Chinese": (hinted("危机时必须给热线\n"), "flagged", "chat template adds words"),
    "hint of 11 letters": (hinted("Escalate all\n"), "on trust", "up to 12 letters"),
    "finish reasons dropped": (edit(no_finish), "on trust", "finish reasons"),
    "claimed relation": (declared("model", relation="developer"), "on trust", "relation to its developer"),
    "claimed family": (declared("model", family="qwen"), "on trust", "family"),
    "claimed temperature": (declared("generation", generation_kwargs={"temperature": 0.7}), "on trust", "temperature"),
    "claimed backend": (declared("generation", backend="vllm"), "on trust", "backend"),
    "claimed version": (declared("generation", lm_eval="banana <b>", task_version="77"), "on trust", "versions"),
    "claimed commit": (declared("dataset", commit="0" * 40), "on trust", "commit"),
}
