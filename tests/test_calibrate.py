"""How far a judge agrees with the calibration set: planted judges, whose agreement is known, and the real command
against a loopback judge.
"""

from __future__ import annotations

import copy
import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import make_references
import numpy as np
import pytest
from helmbench.cli.app import main
from sklearn.metrics import cohen_kappa_score
from support.few_rows import keep_few
from support.figures_alike import same
from support.judge_server import JudgeServer, Said, Serve, said

from dataset_builder.prompts import installed
from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow
from judge.agreement.answers import JudgeLabel
from judge.agreement.calibration import Calibration, calibrate, calibration_hash
from judge.agreement.known import SHIPPED, of_judge, stored
from judge.agreement.tables import calibration_text
from judge.llm.questions import JudgeRequest, calibrated, for_calibration, prompt_hash, rating_request
from judge.offline import judge as offline
from judge.offline import model
from judge.replies.schema import RunError
from judge.schema import CriterionAgreement
from judge.verdicts import JudgeIdentity

JUDGE = JudgeIdentity("judge-1", prompt_hash(installed()))
Labels = dict[str, str | None]
Capture = pytest.CaptureFixture[str]


def with_rows(release: Release, rows: list[CalibrationRow]) -> Release:
    """The release with another calibration set."""
    changed = copy.copy(release)
    changed.__dict__["calibration"] = rows
    return changed


def author(release: Release) -> Labels:
    """The labels of a judge that always agrees with the author."""
    return {r.id: r.label for r in release.calibration}


def measured(release: Release, *repeats: Labels, others: dict[str, Labels] | None = None) -> Calibration:
    """A planted judge's calibration; None is unscored."""

    def answers(labels: Labels) -> dict[str, JudgeLabel]:
        return {k: JudgeLabel(x, None if x else "unparsable") for k, x in labels.items()}

    wordings = {wording: answers(labels) for wording, labels in (others or {}).items()}
    return calibrate(release, JUDGE, [answers(r) for r in repeats], wordings)


def of(c: Calibration, name: str) -> CriterionAgreement:
    return next(a for a in c.criteria if a.criterion == name)


def test_a_judge_that_always_agrees_may_be_used(release: Release) -> None:
    """κ 1 everywhere with an interval below it, every failure seen, no bias, no flip, and nothing in the way of a
    submission. A judge that passes every failure is too kind by their share, and sees none.
    """
    labels = author(release)
    c = measured(release, labels)
    assert (c.usable, c.reasons) == (True, [])
    assert (c.overall.kappa.value, c.overall.fail_recall.value, c.overall.bias.value) == (1.0, 1.0, 0.0)
    assert 0.9 < (c.overall.kappa.low or 0) < 1
    assert {a.criterion for a in c.criteria} == set(release.criteria)
    assert all(a.kappa.value == 1 and not a.too_low and a.reason is None for a in c.criteria)
    assert all(f.flips == 0 and f.pairs > 0 for f in c.flips)
    kind = measured(release, {k: "PASS" if str(x).startswith("FAIL") else x for k, x in labels.items()})
    own = of(kind, "acts-at-once")
    failed = sum(r.label.startswith("FAIL") for r in release.calibration if r.criterion == "acts-at-once")
    assert own.bias.value == pytest.approx(failed / own.replies)
    assert (own.fail_recall.value, kind.usable) == (0, False)
    assert "κ over all replies is" in kind.reasons[0]


def test_kappa_equals_scikit_learns(release: Release) -> None:
    """Per criterion, ways to fail taken together; the graded criterion on its outcomes."""
    rng = np.random.default_rng(3)
    labels: Labels = {
        r.id: (str(rng.choice(release.criteria[r.criterion].labels)) if rng.random() < 0.3 else r.label)
        for r in release.calibration
    }
    c = measured(release, labels)
    for name in release.criteria:
        rows = [r for r in release.calibration if r.criterion == name]
        given = (
            [str(x).partition("-")[0] for x in own] for own in ([r.label for r in rows], [labels[r.id] for r in rows])
        )
        assert of(c, name).kappa.value == pytest.approx(cohen_kappa_score(*given)), name


def test_variants_of_one_reply_are_one_observation(release: Release) -> None:
    """A judge that errs on an origin errs on its variant too; counted as two, they would make the interval narrower."""
    wrong = {r.same_as: r.id for r in release.calibration if r.criterion == "does-not-diagnose" and r.same_as}
    kin = {*map(str, wrong), *wrong.values()}
    labels: Labels = {
        r.id: ("FAIL" if r.label != "FAIL" else "PASS") if r.id in kin else r.label for r in release.calibration
    }
    strangers = [r.model_copy(update={"same_as": None, "change": None}) for r in release.calibration]
    together, apart = (
        of(measured(own, labels), "does-not-diagnose").kappa for own in (release, with_rows(release, strangers))
    )
    assert (together.value, together.n) == (apart.value, apart.n)
    assert (together.high or 0) - (together.low or 0) > (apart.high or 0) - (apart.low or 0)


def test_one_label_is_too_low_and_unscored_replies_are_counted(release: Release) -> None:
    """A judge of one label has κ 0 without an interval; an unknown upper limit does not pass. Unscored replies are not
    agreement: above the limit a judge can't be used, however well it does on the rest.
    """
    labels = author(release)
    c = measured(release, {r.id: "PASS" if r.criterion == "acts-at-once" else r.label for r in release.calibration})
    own = of(c, "acts-at-once")
    assert (own.kappa.value, own.kappa.high, own.too_low) == (0.0, None, True)
    assert [r for r in c.reasons if "acts-at-once" in r]
    skipped = {r.id for r in release.calibration if r.label.startswith("FAIL")}
    c = measured(release, {k: None if k in skipped else x for k, x in labels.items()})
    assert c.overall.unscored == len(skipped)
    assert c.overall.kappa.n == len(labels) - len(skipped)
    assert c.overall.fail_recall.value == 1.0  # of the outcomes that fail, which are left
    failed = sum(r.criterion == "acts-at-once" for r in release.calibration if r.id in skipped)
    assert c.confusion["acts-at-once"].unscored == [failed, 0, 0] != [0, 0, 0]
    assert any("unscored" in r for r in c.reasons)


def test_a_flip_is_found_and_named(release: Release) -> None:
    """One variant read differently from its origin: one flip under its change, and none elsewhere; a pair without a
    label is counted apart.
    """
    variant, silent = (next(r for r in release.calibration if r.change == change) for change in ("gender", "follow_up"))
    labels = author(release) | {variant.id: "PARTIAL" if variant.label != "PARTIAL" else "PASS", silent.id: None}
    flips = {f.change: f for f in measured(release, labels).flips}
    pairs = sum(r.change == "gender" for r in release.calibration)
    gender = flips["gender"]
    assert (gender.flips, gender.rows, gender.rate.value) == (1, [variant.id], pytest.approx(1 / pairs))
    assert (flips["follow_up"].unscored, flips["follow_up"].flips) == (1, 0)
    assert sum(f.flips for f in flips.values()) == 1


def test_missing_replies_and_disagreeing_readers(release: Release) -> None:
    """A criterion without replies is listed with its reason, and the judge may not be used. Readers who disagree take
    their rows out of the agreed ones, and out of no other figure.
    """
    fewer = with_rows(release, [r for r in release.calibration if r.criterion != "acts-at-once"])
    c = measured(fewer, author(fewer))
    assert of(c, "acts-at-once").reason == "the calibration set has no reply for this criterion"
    assert c.reasons == ["agreement is not measured for acts-at-once"]
    own = [r.id for r in release.calibration if r.criterion == "acts-at-once"]
    apart = {"readings": ["PASS", "FAIL"]}
    read = [r.model_copy(update=apart) if r.id in own[:5] else r for r in release.calibration]
    a = of(measured(with_rows(release, read), author(release)), "acts-at-once")
    assert (a.kappa.n, a.kappa_agreed.n) == (len(own), len(own) - 5)


def test_repeats_and_wordings_are_compared(release: Release) -> None:
    """Three repeats that differ on ten replies agree on a third of the pairs there. A wording's gain is the difference
    of the two kappas, paired; the same labels change nothing and gain nothing.
    """
    base = author(release)
    ten = [r.id for r in release.calibration if r.criterion == "acts-at-once" and r.label == "PASS"][:10]
    c = measured(release, base, base, base | dict.fromkeys(ten, "FAIL"))
    n = len(release.calibration)
    assert c.self_agreement is not None
    assert c.self_agreement.value == pytest.approx((n - 10 + 10 / 3) / n)
    rng = np.random.default_rng(5)
    noisy = {k: "FAIL" if x == "PASS" and rng.random() < 0.3 else x for k, x in base.items()}
    c = measured(release, noisy, others={"judge-reason": base, "judge-b": noisy})
    reason, same = c.wordings
    assert reason.gain.value == pytest.approx(1 - (c.overall.kappa.value or 0))
    assert (reason.gain.low or 0) > 0
    assert reason.changed.value == pytest.approx(sum(noisy[k] != x for k, x in base.items()) / len(noisy))
    assert (same.changed.value, same.gain.value) == (0.0, 0.0)
    assert "a short reason first agrees better" in calibration_text(c, release)
    worse = measured(release, base, others={"judge-b": noisy})
    assert "this wording agrees worse" in calibration_text(worse, release)


def test_the_offline_judge_may_never_be_used(release: Release) -> None:
    """Its shipped agreement is today's (after a change of content or patterns run `make generated`). Every criterion
    that it may decide has a κ; of the others it leaves what no rule decides.
    """
    assert sorted(p.name for p in SHIPPED.glob("*.json")) == [f"{offline.NAME}.json"]
    shipped = json.loads((SHIPPED / f"{offline.NAME}.json").read_text(encoding="utf-8"))
    assert same(shipped, json.loads(make_references.calibration(release)))
    c = Calibration.model_validate(shipped)
    may = {a.criterion for a in c.criteria if model.decides(str(a.criterion))}
    assert may
    assert all(a.kappa.value is not None and a.unscored < a.replies for a in c.criteria if a.criterion in may)
    assert all(a.unscored == a.replies - a.by_rule for a in c.criteria if a.criterion not in may)
    assert c.overall.unscored == sum(a.unscored for a in c.criteria)


def test_agreement_with_another_prompt_or_text_does_not_apply(release: Release) -> None:
    """Another prompt: not measured. Another text or other replies of one criterion: this criterion isn't, and the judge
    may not be used.
    """
    c = measured(release, author(release))
    assert of_judge(JUDGE, c, release).usable
    other = of_judge(JudgeIdentity("judge-1", "another prompt"), c, release)
    assert (other.measured, other.usable) == (False, False)
    first, *rest = release.calibration
    edited = with_rows(release, [first.model_copy(update={"reply": first.reply + " "}), *rest])
    changed = of_judge(JUDGE, c, edited)
    assert [a.criterion for a in changed.criteria if a.reason] == [first.criterion]
    assert not changed.usable
    assert calibration_hash(edited) != c.calibration_hash


def test_agreement_that_is_no_number_is_refused(release: Release, tmp_path: Path) -> None:
    """NaN is below no limit, and would make any judge usable."""
    file = tmp_path / "calibration.json"
    figures = json.loads(measured(release, author(release)).model_dump_json())
    figures["overall"]["kappa"]["value"] = float("nan")
    file.write_text(json.dumps(figures), encoding="utf-8")
    wrong = r"calibration\.json: overall\.kappa\.value: Input should be a finite number; expected a file written by"
    with pytest.raises(RunError, match=wrong):
        stored([JUDGE], tmp_path, [file], release)


def test_pairs_with_facts_lie_on_both_sides_of_a_line(release: Release) -> None:
    """One reply draws on what the model was told and passes; its pair claims what the model wasn't told and doesn't."""
    pairs: dict[str | None, list[CalibrationRow]] = defaultdict(list)
    for row in release.calibration:
        # All rows of notices-with-care have facts.
        if row.about and row.about.profile and row.criterion != "notices-with-care":
            pairs[row.pair].append(row)
    assert {rows[0].criterion for rows in pairs.values()} == {
        *("sees-the-danger", "speaks-to-this-person", "answers-the-need", "same-answer-as-anyone", "says-it-plainly")
    }
    for right, wrong in pairs.values():
        assert (right.about, right.said, right.criterion) == (wrong.about, wrong.said, wrong.criterion)
        assert right.about and right.about.profile and right.about.job  # noqa: PT018
        assert right.label == "PASS" != wrong.label


# --- the command

Labeler = Callable[[Callable[[str, str], str]], JudgeServer]


def asked_to_rate(row: CalibrationRow, release: Release) -> JudgeRequest:
    """The request to rate a row of the rating calibration set."""
    protocol = next(p for p in release.protocols.values() if p.category == row.criterion)
    return rating_request(protocol, calibrated(row), release, "judge-1")


@pytest.fixture
def few(release: Release, monkeypatch: pytest.MonkeyPatch) -> Release:
    """The dataset with two replies of each label under each criterion and category."""
    keep_few(monkeypatch)
    return release


@pytest.fixture
def labeler(few: Release, serve: Serve) -> Labeler:
    """Starts a judge whose label is a function of the model that it is asked as and the author's label."""
    known = {
        for_calibration(r, few, "any", wording=w).body["messages"][0]["content"]: r.label
        for r in few.calibration
        for w in ("judge", "judge-b", "judge-reason")
    } | {asked_to_rate(r, few).body["messages"][0]["content"]: r.label for r in few.rating_calibration}

    def start(label: Callable[[str, str], str]) -> JudgeServer:
        def script(body: dict[str, Any], _: int) -> Said:
            prompt = body["messages"][0]["content"]
            answer = {"label": label(body["model"], known[prompt]), "quotes": []}
            reasoned = "reason" in body["response_format"]["json_schema"]["schema"]["properties"]
            return said(json.dumps({"reason": "so", **answer} if reasoned else answer))

        return serve(script)

    return start


def command(release: Release, home: Path, *more: str) -> int:
    return main(["calibrate", "--dataset", str(release.path), "--home", str(home), *more])


def test_the_command_asks_measures_and_asks_nothing_twice(
    labeler: Labeler, few: Release, tmp_path: Path, capsys: Capture
) -> None:
    """Every row that no rule decides, in two repeats and, but for ratings, one more wording; a second run asks
    nothing.
    """
    server, home = labeler(lambda _, label: label), tmp_path / "judge/judge-1"
    options = ["--model", "judge-1", "--repeats", "2", "--wording", "judge,judge-reason"]
    assert command(few, tmp_path, *options, "--base-url", server.url, "--concurrency", "32") == 0
    found = Calibration.model_validate_json((home / "calibration.json").read_bytes())
    asked = found.overall.replies - found.overall.by_rule
    rated = json.loads((home / "rating_calibration.json").read_bytes())["overall"]
    total = 3 * asked + 2 * (rated["replies"] - rated["by_rule"])
    assert server.total == total
    assert (rated["kappa"]["value"], rated["unscored"]) == (pytest.approx(1.0, abs=0.01), 0)
    assert found.self_agreement is not None
    assert (found.usable, found.self_agreement.value) == (True, 1.0)
    assert [w.wording for w in found.wordings] == ["judge-reason"]
    printed = capsys.readouterr().out
    assert "MAY be used for a submission" in printed
    assert "No clinician has labelled any of these replies" in printed
    assert all(name in printed for name in few.criteria)
    assert command(few, tmp_path, *options) == 0
    assert server.total == total


def _labels(path: Path, labels: Labels) -> Path:
    path.write_text("".join(json.dumps({"id": k, "label": x}) + "\n" for k, x in labels.items()), encoding="utf-8")
    return path


def test_bad_input_is_one_clear_error(few: Release, tmp_path: Path, capsys: Capture) -> None:
    """Exit 2, and what was wrong. Labels: a five-point rating under PASS, PARTIAL, FAIL; labels of nothing known; a
    rater named like a judge.
    """
    identity = few.calibration[0].id
    five = _labels(tmp_path / "five.jsonl", {identity: "4"})
    unknown = _labels(tmp_path / "none.jsonl", {"x": "PASS"})
    clash = _labels(tmp_path / "offline.jsonl", {identity: "PASS"})
    for options, told in (
        ([], "Missing option '--judge' / '--model'"),
        (["--judge", "offline", "--model", "m", "--out", "x.json"], "--out takes a single judge"),
        (["--judge", "offline", "--labels", "nowhere.jsonl"], "nowhere.jsonl: can't be read"),
        (["--judge", "offline", "--wording", "judge,polite"], "judge-reason"),  # the known ones are listed
        (["--judge", "offline", "--labels", str(five)], "is labeled 4; expected FAIL, PARTIAL, PASS"),
        (["--judge", "offline", "--labels", str(unknown)], "none of its"),
        (["--judge", "offline", "--labels", str(clash)], "both a judge and a rater have this name"),
    ):
        assert command(few, tmp_path, *options) == 2
        assert told in capsys.readouterr().err


def test_the_judge_that_agrees_more_with_people_is_chosen(
    labeler: Labeler, few: Release, tmp_path: Path, capsys: Capture
) -> None:
    """Three judges and two raters: κ with each, their mean, the raters' own agreement, and a choice
    that says whether it is chance.
    """
    server = labeler(
        lambda model, label: label if model == "good" else "PASS" if model == "kind" and label != "flagged" else label
    )
    some = [r for r in few.calibration if r.criterion in ("acts-at-once", "does-not-diagnose")]
    others: Labels = {r.id: "PARTIAL" if n % 5 == 0 else r.label for n, r in enumerate(some)}
    files = [_labels(tmp_path / "ann.jsonl", {r.id: r.label for r in some}), _labels(tmp_path / "bea.jsonl", others)]
    options = ["--model", "good", "--model", "kind", "--judge", "offline", "--base-url", server.url, "--repeats", "2"]
    assert command(few, tmp_path / "home", *options, *(x for f in files for x in ("--labels", str(f)))) == 0
    printed = capsys.readouterr().out
    assert f"{len(some)} replies labeled by 2 raters: ann, bea" in printed
    assert "Chosen: good; its mean κ with the raters is" in printed
    assert "ahead of kind by" in printed
    assert "Fleiss' κ" in printed
    given = ([r.label for r in some], others.values())
    theirs = cohen_kappa_score(*([str(x).partition("-")[0] for x in own] for own in given))
    row = next(line for line in printed.splitlines() if line.startswith("good"))
    for kappa in (1, theirs, (1 + theirs) / 2):
        assert f"{kappa:.2f} (" in row
    passing = _labels(tmp_path / "eve.jsonl", {r.id: "PASS" for r in some if r.criterion == "does-not-diagnose"})
    assert command(few, tmp_path / "home", "--judge", "offline", "--labels", str(passing)) == 0
    printed = capsys.readouterr().out
    assert "Agreement of the raters: unknown with one rater." in printed
    assert re.search(r"(?m)^(?:No judge is chosen|Chosen: offline-\d+; its mean κ)", printed)
    assert command(few, tmp_path / "home", "--judge", "offline") == 0
    printed = capsys.readouterr().out
    assert "This judge may NOT be used for a submission" in printed
    assert "Self-agreement: word counts give the same answer every time." in printed
