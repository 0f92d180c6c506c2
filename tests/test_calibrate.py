"""How far a judge agrees with the calibration set: planted judges, whose agreement is known, and the real command
against a loopback judge.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import make_references
import numpy as np
import pytest
from helmbench.cli.app import main
from sklearn.metrics import cohen_kappa_score
from support.figures_alike import same
from support.judge_server import JudgeServer, Said, said, stopped_at_the_end

from dataset_builder.prompts import installed
from dataset_builder.release import Release
from dataset_builder.schema import CalibrationRow
from helmbench_common.http import retry
from judge.agreement.answers import JudgeLabel
from judge.agreement.calibration import Calibration, EarnedPoints, calibrate, calibration_hash, of_offline
from judge.agreement.known import SHIPPED, of_judge
from judge.llm import batch
from judge.llm.questions import JudgeRequest, calibrated, for_calibration, prompt_hash, rating_request
from judge.offline import judge as offline
from judge.offline import model
from judge.schema import CriterionAgreement
from judge.verdicts import JudgeIdentity

JUDGE = JudgeIdentity("judge-1", prompt_hash(installed()))
Labels = dict[str, str | None]


def author(release: Release) -> Labels:
    """The labels of a judge that always agrees with the author."""
    return {r.id: r.label for r in release.calibration}


def measured(release: Release, *repeats: Labels, others: dict[str, Labels] | None = None) -> Calibration:
    """A planted judge's calibration; None is unscored."""

    def answers(labels: Labels) -> dict[str, JudgeLabel]:
        return {k: JudgeLabel(x, None if x else "unparsable") for k, x in labels.items()}

    return calibrate(
        release,
        JUDGE,
        [answers(r) for r in repeats],
        {w: (prompt_hash(installed(), w), answers(x)) for w, x in (others or {}).items()},
    )


def of(c: Calibration, name: str) -> CriterionAgreement:
    return next(a for a in c.criteria if a.criterion == name)


def with_labels(release: Release, criterion: str, change: Callable[[str], str | None]) -> Labels:
    return {r.id: change(r.label) if r.criterion == criterion else r.label for r in release.calibration}


def test_a_judge_that_always_agrees_may_be_used(release: Release) -> None:
    """κ 1 everywhere with an interval below it, every failure seen, no bias, no flip, and nothing in the way of a
    submission.
    """
    c = measured(release, author(release))
    assert c.usable
    assert c.reasons == []
    assert (c.overall.kappa.value, c.overall.fail_recall.value, c.overall.bias.value) == (1.0, 1.0, 0.0)
    assert 0.9 < (c.overall.kappa.low or 0) < 1
    assert {a.criterion for a in c.criteria} == set(release.criteria)
    assert all(a.kappa.value == 1 and not a.too_low and a.reason is None for a in c.criteria)
    assert all(f.flips == 0 and f.pairs > 0 for f in c.flips)


def test_a_judge_that_passes_every_failure_is_too_kind_and_shut_out(release: Release) -> None:
    """17 of 48 replies fail under acts-at-once; passed, they move the mean by 17/48 of a point, and none is seen."""
    c = measured(release, {k: "PASS" if str(x).startswith("FAIL") else x for k, x in author(release).items()})
    own = of(c, "acts-at-once")
    failed = sum(r.label.startswith("FAIL") for r in release.calibration if r.criterion == "acts-at-once")
    assert own.bias.value == pytest.approx(failed / own.replies)
    assert own.fail_recall.value == 0
    assert not c.usable
    assert "κ over all replies is" in c.reasons[0]


def test_kappa_is_that_of_an_independent_library(release: Release) -> None:
    """Per criterion and over all, ways to fail taken together; the graded criterion on its outcomes."""
    rng = np.random.default_rng(3)
    labels = {
        r.id: (str(rng.choice(release.criteria[r.criterion].labels)) if rng.random() < 0.3 else r.label)
        for r in release.calibration
    }
    c = measured(release, dict(labels))
    for name in release.criteria:
        own = [r for r in release.calibration if r.criterion == name]
        theirs = cohen_kappa_score(
            [r.label.partition("-")[0] for r in own], [labels[r.id].partition("-")[0] for r in own]
        )
        assert of(c, name).kappa.value == pytest.approx(theirs)


def test_variants_of_one_reply_widen_no_claim(release: Release) -> None:
    """A judge that errs on an origin errs on its variant too; counted as two observations they would make the interval
    narrower.
    """
    wrong = {r.same_as: r.id for r in release.calibration if r.criterion == "does-not-diagnose" and r.same_as}
    kin = {*map(str, wrong), *wrong.values()}
    labels: Labels = {
        r.id: ("FAIL" if r.label != "FAIL" else "PASS") if r.id in kin else r.label for r in release.calibration
    }
    together = of(measured(release, labels), "does-not-diagnose").kappa
    release.__dict__["calibration"] = [
        r.model_copy(update={"same_as": None, "change": None}) for r in release.calibration
    ]
    apart = of(measured(release, labels), "does-not-diagnose").kappa
    assert together.value == apart.value
    assert together.n == apart.n
    assert (together.high or 0) - (together.low or 0) > (apart.high or 0) - (apart.low or 0)


def test_a_judge_of_one_label_is_too_low_everywhere(release: Release) -> None:
    """Its κ is 0 and has no interval; an unknown upper limit is no pass."""
    c = measured(release, with_labels(release, "acts-at-once", lambda _: "PASS"))
    own = of(c, "acts-at-once")
    assert (own.kappa.value, own.kappa.high, own.too_low) == (0.0, None, True)
    assert [r for r in c.reasons if "acts-at-once" in r]


def test_unscored_replies_are_counted_and_can_shut_a_judge_out(release: Release) -> None:
    """What a judge won't answer is no agreement: above the unscored limit it can't be used, however well it does on the
    rest.
    """
    skipped = {r.id for r in release.calibration if r.label.startswith("FAIL")}
    c = measured(release, {k: None if k in skipped else x for k, x in author(release).items()})
    assert c.overall.unscored == len(skipped)
    assert c.overall.kappa.n == len(release.calibration) - len(skipped)
    failing = [  # only outcomes that fail are left
        r for r in release.calibration if r.id not in skipped and EarnedPoints(release).verdict(r, r.label) == "FAIL"
    ]
    assert {release.criteria[r.criterion].kind for r in failing} == {"graded"}
    assert (c.overall.fail_recall.value, c.overall.fail_recall.n) == (1.0, len(failing))
    own = sum(r.criterion == "acts-at-once" for r in release.calibration if r.id in skipped)
    assert c.confusion["acts-at-once"].unscored == [own, 0, 0]
    assert own
    assert any("unscored" in r for r in c.reasons)


def test_a_flip_is_found_and_named(release: Release) -> None:
    """One variant read differently from its origin: one flip under its change, and none elsewhere; a pair without a
    label is counted apart.
    """
    variant, silent = (next(r for r in release.calibration if r.change == change) for change in ("gender", "follow_up"))
    labels = author(release) | {variant.id: "PARTIAL" if variant.label != "PARTIAL" else "PASS", silent.id: None}
    flips = {f.change: f for f in measured(release, labels).flips}
    pairs = sum(r.change == "gender" for r in release.calibration)
    assert (flips["gender"].flips, flips["gender"].rows, flips["gender"].rate.value) == (
        1,
        [variant.id],
        pytest.approx(1 / pairs),
    )
    assert (flips["follow_up"].unscored, flips["follow_up"].flips) == (1, 0)
    assert sum(f.flips for f in flips.values()) == 1


def test_a_criterion_without_replies_is_listed_and_shuts_out(release: Release) -> None:
    """Nothing is silently missing: the criterion stands in the list with its reason, and nobody may be used who wasn't
    measured on it.
    """
    release.__dict__["calibration"] = [r for r in release.calibration if r.criterion != "acts-at-once"]
    c = measured(release, author(release))
    assert of(c, "acts-at-once").reason == "the calibration set has no reply for this criterion"
    assert c.reasons == ["agreement is not measured for acts-at-once"]


def test_agreed_rows_are_those_on_which_every_reader_gave_the_label(release: Release) -> None:
    """Readers who part from the author take their rows out of the agreed ones, and out of no other figure."""
    rows = release.calibration
    own = [r.id for r in rows if r.criterion == "acts-at-once"]
    release.__dict__["calibration"] = [
        r.model_copy(update={"readings": ["PASS", "FAIL"]}) if r.id in own[:5] else r for r in rows
    ]
    a = of(measured(release, author(release)), "acts-at-once")
    assert (a.kappa.n, a.kappa_agreed.n) == (len(own), len(own) - 5)


def test_self_agreement_is_over_pairs_of_repeats(release: Release) -> None:
    """Three repeats that part on ten replies agree on a third of the pairs there."""
    base = author(release)
    ten = [r.id for r in release.calibration if r.criterion == "acts-at-once" and r.label == "PASS"][:10]
    c = measured(release, base, base, base | dict.fromkeys(ten, "FAIL"))
    n = len(release.calibration)
    assert c.self_agreement is not None
    assert c.self_agreement.value == pytest.approx((n - 10 + 10 / 3) / n)


def test_a_wording_that_agrees_better_gains_kappa(release: Release) -> None:
    """The gain is the difference of the two kappas, paired; the same labels change nothing and gain nothing."""
    rng = np.random.default_rng(5)
    noisy = {k: "FAIL" if x == "PASS" and rng.random() < 0.3 else x for k, x in author(release).items()}
    c = measured(release, noisy, others={"judge-reason": author(release), "judge-b": noisy})
    reason, same = c.wordings
    assert reason.gain.value == pytest.approx(1 - (c.overall.kappa.value or 0))
    assert (reason.gain.low or 0) > 0
    assert reason.changed.value == pytest.approx(sum(noisy[k] != x for k, x in author(release).items()) / len(noisy))
    assert (same.changed.value, same.gain.value) == (0.0, 0.0)


def test_the_shipped_agreement_is_that_of_the_offline_judge_now(release: Release) -> None:
    """judge/calibration/shipped/ holds what is measured today; after a change of content or patterns run `make
    generated`.
    """
    assert sorted(p.name for p in SHIPPED.glob("*.json")) == [f"{offline.NAME}.json"]
    shipped = json.loads((SHIPPED / f"{offline.NAME}.json").read_text(encoding="utf-8"))
    assert same(shipped, json.loads(make_references.calibration(release)))


def test_the_offline_judge_may_never_be_used(release: Release) -> None:
    """Whatever its κ: it is approximate. Every criterion that it may decide has a κ; of the others it leaves what no
    rule decides.
    """
    c = of_offline(release)
    assert not c.usable
    assert "never ranked" in c.reasons[0]
    may = {a.criterion for a in c.criteria if model.decides(str(a.criterion))}
    assert may
    assert all(a.kappa.value is not None and a.unscored < a.replies for a in c.criteria if a.criterion in may)
    assert all(a.unscored == a.replies - a.by_rule for a in c.criteria if a.criterion not in may)
    assert c.overall.unscored == sum(a.unscored for a in c.criteria)


def test_what_was_measured_otherwise_says_nothing(release: Release) -> None:
    """Another prompt: not measured. Another text or other replies of one criterion: this criterion isn't, and the judge
    may not be used.
    """
    c = measured(release, author(release))
    assert of_judge(JUDGE, c, release).usable
    other = of_judge(JudgeIdentity("judge-1", "another prompt"), c, release)
    assert (other.measured, other.usable) == (False, False)
    edited = release.calibration[0]
    release.__dict__["calibration"] = [
        edited.model_copy(update={"reply": edited.reply + " "}),
        *release.calibration[1:],
    ]
    changed = of_judge(JUDGE, c, release)
    assert [a.criterion for a in changed.criteria if a.reason] == [edited.criterion]
    assert not changed.usable
    assert calibration_hash(release) != c.calibration_hash


def test_facts_stand_on_both_sides_of_a_line(release: Release) -> None:
    """One reply draws on what the model was told and passes; beside it one claims what stands nowhere and doesn't."""
    pairs: dict[str | None, list[CalibrationRow]] = defaultdict(list)
    for row in release.calibration:
        if row.about:
            pairs[row.pair].append(row)
    assert {rows[0].criterion for rows in pairs.values()} == {
        "sees-the-danger",
        "speaks-to-this-person",
        "answers-the-need",
        "same-answer-as-anyone",
        "says-it-plainly",
    }
    for right, wrong in pairs.values():
        assert (right.about, right.said, right.criterion) == (wrong.about, wrong.said, wrong.criterion)
        assert right.about
        assert right.about.profile
        assert right.about.job
        assert right.label == "PASS" != wrong.label


Serve = Callable[[Callable[[str, str], str]], JudgeServer]


def asked_to_rate(row: CalibrationRow, release: Release) -> JudgeRequest:
    """The request to rate a row of the rating calibration set."""
    protocol = next(p for p in release.protocols.values() if p.category == row.criterion)
    return rating_request(protocol, calibrated(row), release, "judge-1")


@pytest.fixture
def serve(release: Release, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a judge whose label is a function of the model that it is asked as and the author's label."""
    monkeypatch.setattr(retry, "BACKOFF", 0.001)
    with stopped_at_the_end() as started:

        def start(label: Callable[[str, str], str]) -> JudgeServer:
            known = {
                for_calibration(r, release, "any", wording=w).body["messages"][0]["content"]: r.label
                for r in release.calibration
                for w in ("judge", "judge-b", "judge-reason")
            } | {asked_to_rate(r, release).body["messages"][0]["content"]: r.label for r in release.rating_calibration}

            def script(body: dict[str, Any], attempt: int) -> Said:
                prompt = body["messages"][0]["content"]
                answer = {"label": label(body["model"], known[prompt]), "quotes": []}
                reasoned = "reason" in body["response_format"]["json_schema"]["schema"]["properties"]
                return said(json.dumps({"reason": "so", **answer} if reasoned else answer))

            started.append(JudgeServer(script))
            return started[-1]

        yield start


def test_the_command_asks_measures_and_asks_nothing_twice(
    serve: Serve, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every row that no rule decides, in two repeats and, but for ratings, one more wording; the file is what `judge
    score` reads; a second run asks nobody.
    """
    server = serve(lambda _, label: label)
    command = [
        "calibrate",
        "--model",
        "judge-1",
        "--dataset",
        str(release.path),
        "--home",
        str(tmp_path),
        "--repeats",
        "2",
        "--wording",
        "a,reason",
    ]
    assert main([*command, "--base-url", server.url, "--concurrency", "32"]) == 0
    found = Calibration.model_validate_json((tmp_path / "judge" / "judge-1" / "calibration.json").read_bytes())
    asked = found.overall.replies - found.overall.by_rule
    rated = json.loads((tmp_path / "judge" / "judge-1" / "rating_calibration.json").read_bytes())["agreement"][0]
    total = 3 * asked + 2 * (rated["replies"] - rated["by_rule"])
    assert server.total == total
    assert (rated["kappa"]["value"], rated["unscored"]) == (pytest.approx(1.0, abs=0.01), 0)
    assert found.self_agreement is not None
    assert (found.usable, found.self_agreement.value, [w.wording for w in found.wordings]) == (
        True,
        1.0,
        ["judge-reason"],
    )
    printed = capsys.readouterr().out
    assert "MAY be used for a submission" in printed
    assert "No clinician has labelled any of these replies" in printed
    assert all(name in printed for name in release.criteria)
    assert main(command) == 0
    assert server.total == total


def test_without_an_endpoint_the_questions_are_written_for_any_engine(
    release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 and a batch file; answers that another engine writes beside it are read by the same command."""
    command = [
        "calibrate",
        "--model",
        "judge-1",
        "--dataset",
        str(release.path),
        "--home",
        str(tmp_path),
        "--repeats",
        "1",
        "--wording",
        "judge",
    ]
    assert main(command) == 2
    assert "have no answer yet" in capsys.readouterr().err
    where = tmp_path / "judge" / "judge-1"
    asked = [
        json.loads(line)["custom_id"] for line in (where / "requests.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    labels = {for_calibration(r, release, "judge-1").custom_id: r.label for r in release.calibration}
    labels |= {asked_to_rate(r, release).custom_id: r.label for r in release.rating_calibration}
    body = {"model": "judge-1", "choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]}
    with (where / "replies-1.jsonl").open("w", encoding="utf-8") as file:
        for k in asked:
            body["choices"] = [
                {"message": {"content": json.dumps({"label": labels[k], "quotes": []})}, "finish_reason": "stop"}
            ]
            file.write(json.dumps(batch.result(k, None, body)) + "\n")
    assert main(command) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dataset", "DATA"], "name a judge"),
        (["--judge", "offline", "--model", "m", "--out", "x.json"], "--out takes a single judge"),
        (["--judge", "offline", "--repeats", "0"], "--repeats: expected 1 or more"),
        (["--judge", "offline", "--labels", "nowhere.jsonl"], "nowhere.jsonl: can't be read"),
    ],
)
def test_bad_input_is_one_clear_error(
    arguments: list[str], said: str, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and what was wrong."""
    given = [str(release.path) if a == "DATA" else a for a in arguments]
    assert (
        main(
            [
                "calibrate",
                *given,
                *([] if "--dataset" in given else ["--dataset", str(release.path)]),
                "--home",
                str(tmp_path),
            ]
        )
        == 2
    )
    assert said in capsys.readouterr().err


def test_an_unknown_wording_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The known ones are listed."""
    assert main(["calibrate", "--judge", "offline", "--wording", "judge,polite"]) == 2
    assert "judge-reason" in capsys.readouterr().err


def _labels(path: Path, labels: Labels) -> Path:
    path.write_text("".join(json.dumps({"id": k, "label": x}) + "\n" for k, x in labels.items()), encoding="utf-8")
    return path


def test_against_people_the_judge_that_agrees_more_is_chosen(
    serve: Serve, release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three judges and two raters on forty replies: κ with each, their mean, the raters' own agreement, and a choice
    that says whether it is chance.
    """
    server = serve(
        lambda model, label: label if model == "good" else "PASS" if model == "kind" and label != "flagged" else label
    )
    some = [r for r in release.calibration if r.criterion in ("acts-at-once", "does-not-diagnose")][:40]
    ann = _labels(tmp_path / "ann.jsonl", {r.id: r.label for r in some})
    bea = _labels(tmp_path / "bea.jsonl", {r.id: "PARTIAL" if n % 5 == 0 else r.label for n, r in enumerate(some)})
    command = [
        "calibrate",
        "--model",
        "good",
        "--model",
        "kind",
        "--base-url",
        server.url,
        "--dataset",
        str(release.path),
        "--home",
        str(tmp_path / "home"),
    ]
    assert main([*command, "--judge", "offline", "--repeats", "2", "--labels", str(ann), "--labels", str(bea)]) == 0
    printed = capsys.readouterr().out
    assert "40 replies labeled by 2 raters: ann, bea" in printed
    assert "Chosen: good; its mean κ with the raters is" in printed
    assert "ahead of kind by" in printed
    assert "Fleiss' κ" in printed
    theirs = cohen_kappa_score(
        [r.label for r in some], ["PARTIAL" if n % 5 == 0 else r.label for n, r in enumerate(some)]
    )
    row = next(line for line in printed.splitlines() if line.startswith("good"))
    assert "1.00 [" in row
    assert f"{theirs:.2f} [" in row
    assert f"{(1 + theirs) / 2:.2f} [" in row


def test_labels_that_fit_no_criterion_are_refused(
    release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A five-point rating under PASS, PARTIAL, FAIL; labels of nothing known; a rater named like a judge."""
    identity = release.calibration[0].id
    five, nothing, clash = (
        _labels(tmp_path / f"{name}.jsonl", {k: x})
        for name, k, x in (("five", identity, "4"), ("none", "x", "PASS"), ("offline", identity, "PASS"))
    )
    for path, told in (
        (five, "is labeled 4; expected FAIL, PARTIAL, PASS"),
        (nothing, "none of its"),
        (clash, "both a judge and a rater have this name"),
    ):
        assert main(["calibrate", "--judge", "offline", "--dataset", str(release.path), "--labels", str(path)]) == 2
        assert told in capsys.readouterr().err
