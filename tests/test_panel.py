"""Several judges as one: majority, ties to the worse, who dissents, and how they agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from helmbench.cli.app import main
from support.few_rows import keep_few
from support.judge_server import Said, Serve, said
from support.scores import scores

from dataset_builder.release import Release
from dataset_builder.schema import GradedCheck, Row
from judge.agreement.known import FILE
from judge.offline import judge as offline
from judge.offline.reader import OfflineReader
from judge.panel import OUTCOMES_WORST_FIRST, Member, PanelVerdicts, combine, identity_of, majority
from judge.replies.run import Run
from judge.replies.schema import Model, Reply
from judge.replies.script import live_turns
from judge.schema import VERDICTS, Scorecard, Verdict
from judge.verdicts import JudgeIdentity, judge_run

OFFLINE = JudgeIdentity(offline.NAME, None)
NAMES = ("one", "two", "three", "four")


Panelled = Callable[..., PanelVerdicts]


@pytest.fixture(scope="module")
def base(release: Release) -> list[Verdict]:
    """One judge's verdicts of the lite tier."""
    rows = [r for r in release.rows.values() if "lite" in r.tiers]
    replies = [Reply(id=r.id, turns=(_reply(r),) * live_turns(r)) for r in rows]
    return judge_run(Run(Path("fixed"), Model(name="m", backend="b"), "lite", replies, False), release, OfflineReader())


@pytest.fixture
def panel(release: Release, base: list[Verdict]) -> Panelled:
    """Combines members who each say one thing of everything that is read."""

    def combined(*labels: str | None) -> PanelVerdicts:
        members = [
            Member(JudgeIdentity(name, f"prompt {name}"), [[relabelled(v, label, release, name) for v in base]])
            for name, label in zip(NAMES, labels, strict=False)
        ]
        return combine(members, release)

    return combined


def _reply(row: Row) -> str:
    coded = {c.check for c in row.evaluation} & {"tags", "rating"}
    return '{"tags": ["ASSISTANCE"], "distress": 5}' if coded else "That sounds hard. I'm here and I'm listening."


def relabelled(v: Verdict, label: str | None, release: Release, quote: str = "") -> Verdict:
    """The verdict with another label; a graded one by the outcome that earns it, if any does."""
    if v.decided_by.startswith("rule:"):
        return v
    check = release.rows[v.id].evaluation[v.index]
    change: dict[str, Any] = {"label": label, "incident": None, "unscored": None, "evidence": (quote,)}
    if label is None:
        change |= {"outcome": None, "unscored": "error", "evidence": ()}
    elif isinstance(check, GradedCheck):
        outcome = next(o for o, earned in check.outcomes.items() if earned == label or label == "PARTIAL")
        change |= {"label": check.outcomes[outcome], "outcome": outcome}
    elif label == "FAIL":
        change["incident"] = release.criteria[str(v.criterion)].incident
    return v.model_copy(update=change)


def test_the_majority_wins_and_of_equals_the_worse() -> None:
    """A judge without a label abstains, and most abstaining leaves none; ways to fail count as one failure first;
    `worsens` is the first way. Not seeing a danger is the worse outcome in a crisis, seeing one in a control.
    """
    for labels, expected in (
        (["PASS", "PASS", "FAIL"], "PASS"),
        (["PASS", "FAIL"], "FAIL"),
        (["PASS", "PARTIAL"], "PARTIAL"),
        (["PASS", "PARTIAL", "FAIL"], "FAIL"),
        (["PASS", "PASS", "PARTIAL", "PARTIAL", "FAIL"], "PARTIAL"),
        (["PASS", None, None], None),
        (["PASS", None], "PASS"),
        ([None, None], None),
        (["PASS", "FAIL", None], "FAIL"),
        (["FAIL-misses", "FAIL-worsens", "PASS"], "FAIL-worsens"),
        (["FAIL-misses", "FAIL-misses", "FAIL-worsens"], "FAIL-misses"),
        (["FAIL-misses", "FAIL-worsens", "PASS", "PASS", "PASS"], "PASS"),
        (["1", "5"], "1"),
        (["4", "4", "2"], "4"),
    ):
        for given in (labels, labels[::-1]):
            assert majority(given, VERDICTS, ["worsens", "misses"]) == expected, labels
    assert majority(["flagged", "ignored"], OUTCOMES_WORST_FIRST["crisis"]) == "ignored"
    assert majority(["flagged", "ignored"], OUTCOMES_WORST_FIRST["control"]) == "flagged"


def test_a_panels_verdicts_carry_votes_and_what_rules_decide_stays(panel: Panelled, base: list[Verdict]) -> None:
    """Two pass, one fails: PASS, with the quotes of those two, and all three votes in the verdict. What a rule decided
    is the same verdict afterwards.
    """
    decided = panel("PASS", "FAIL", "PASS")
    v = next(v for v in decided.verdicts if v.decided_by == "panel" and v.check == "criterion")
    assert (v.label, v.evidence, v.judge) == ("PASS", ("one", "three"), "panel of one, two, three")
    said = [("one", "PASS", ("one",)), ("two", "FAIL", ("two",)), ("three", "PASS", ("three",))]
    assert [(x.judge, x.label, x.evidence) for x in v.votes] == said
    assert Verdict.model_validate_json(v.model_dump_json()) == v
    ruled = [(a, b) for a, b in zip(base, decided.verdicts, strict=True) if a.decided_by.startswith("rule:")]
    assert ruled
    assert all(a == b for a, b in ruled)
    assert decided.card.verdicts == len(base) - len(ruled)


def test_dissent_ties_and_abstention_are_counted(panel: Panelled) -> None:
    """Two against one: the third dissents everywhere; one against one are ties that go to the worse. One of three
    without an answer abstains; two of three leave the verdict unscored, with their reason.
    """

    def given(own: PanelVerdicts) -> set[tuple[object, object]]:
        return {(v.label, v.unscored) for v in own.verdicts if v.decided_by == "panel"}

    card = panel("PASS", "PASS", "FAIL").card
    n = card.verdicts
    assert ([m.dissents for m in card.members], card.unanimous, card.ties) == ([0, 0, n], 0, 0)
    tied = panel("PASS", "FAIL")
    assert (tied.card.ties, given(tied)) == (n, {("FAIL", None)})
    assert panel("PASS", "PASS").card.unanimous == n
    abstains = panel("PASS", "PASS", None).card
    assert (abstains.unscored, [m.unscored for m in abstains.members]) == (0, [0, 0, n])
    silent = panel("PASS", None, None)
    assert (silent.card.unscored, given(silent)) == (n, {(None, "error")})


def test_alpha_is_that_of_an_independent_library(release: Release, base: list[Verdict]) -> None:
    """Three judges who err at random; nominal and ordinal, over all and per criterion, missing labels left out."""
    rng = np.random.default_rng(11)
    options = ["PASS", "PARTIAL", "FAIL", "PASS", None]
    members = [
        Member(
            JudgeIdentity(n, "p"),
            [[relabelled(v, options[int(rng.integers(5))] if rng.random() < 0.5 else "PASS", release) for v in base]],
        )
        for n in NAMES[:3]
    ]
    card = combine(members, release).card
    ballots = [[v.label for v in m.repeats[0] if not v.decided_by.startswith("rule:")] for m in members]
    codes = np.array([[np.nan if x is None else VERDICTS.index(str(x)) for x in own] for own in ballots], dtype=float)
    domain = [0.0, 1.0, 2.0]
    nominal = krippendorff.alpha(codes, level_of_measurement="nominal", value_domain=domain)
    ordinal = krippendorff.alpha(codes, level_of_measurement="ordinal", value_domain=domain)
    assert card.alpha.value == pytest.approx(nominal)
    assert card.alpha_ordinal.value == pytest.approx(ordinal)
    assert sum(m.n for m in card.criteria.values()) == card.alpha.n


def test_a_judge_has_one_vote_however_often_it_is_asked(release: Release, base: list[Verdict]) -> None:
    """Three repeats of one judge don't outvote two others; each verdict shows all five votes, and the judge's
    self-agreement is measured.
    """

    def says(label: str) -> list[Verdict]:
        return [relabelled(v, label, release) for v in base]

    often = Member(JudgeIdentity("often", "p"), [says("PASS"), says("PASS"), says("FAIL")])
    others = [Member(JudgeIdentity(n, "p"), [says("FAIL")]) for n in ("two", "three")]
    decided = combine([often, *others], release)
    panels = [v for v in decided.verdicts if v.decided_by == "panel"]
    assert {v.label for v in panels} == {"FAIL"}
    assert {len(v.votes) for v in panels} == {5}
    first = decided.card.members[0]
    assert first.self_agreement is not None
    assert first.self_agreement.value == pytest.approx(1 / 3)
    assert (first.dissents, decided.card.members[1].self_agreement) == (len(panels), None)
    alone = combine([often], release)
    assert {v.label for v in alone.verdicts if v.decided_by == "panel"} == {"PASS"}
    assert (alone.card.alpha.value, alone.card.alpha.reason) == (None, "there is only one judge")


def test_members_are_matched_and_identified(release: Release, base: list[Verdict]) -> None:
    """Verdicts are matched by what they are of, never by place alone. Another member or another prompt is another hash;
    without any language model there is none.
    """
    with pytest.raises(ValueError, match="not of the same replies"):
        combine([Member(OFFLINE, [base]), Member(JudgeIdentity("b", "p"), [base[::-1]])], release)
    a, b = JudgeIdentity("a", "1"), JudgeIdentity("b", "1")
    assert identity_of([a]) == a
    assert len({identity_of(x).prompt_hash for x in ([a, b], [a, JudgeIdentity("b", "2")], [a, OFFLINE])}) == 3
    assert identity_of([OFFLINE, JudgeIdentity("patterns", None)]).prompt_hash is None


def test_the_commands_score_by_a_panel(
    serve: Serve, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two models and the offline judge over one run: votes in verdicts.jsonl, the panel in scorecard and report,
    approximate because of one member. Calibration files given, or beside the replies, are enough for the panel's own
    agreement; a file of another judge is an error.
    """
    keep_few(monkeypatch)
    places = {"kind": 0, "stern": -1}

    def script(body: dict[str, Any], _: int) -> Said:
        """The label at the model's place of those offered."""
        labels = body["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
        return said(json.dumps({"label": labels[places[body["model"]]], "quotes": []}))

    server = serve(script)
    path = tmp_path / "mine.jsonl"
    rows = [r for r in release.rows.values() if "lite" in r.tiers][::8]
    lines = [json.dumps({"id": r.id, "replies": [_reply(r)] * live_turns(r)}) + "\n" for r in rows]
    path.write_text("".join(lines), encoding="utf-8")
    data = ["--dataset", str(release.path)]
    run = ["--replies", str(path), *data]
    score = ["score", *run, "--judge", "kind", "--judge", "stern", "--judge", "offline", "--repeats", "2"]
    assert main(["judge", *run, "--model", "kind", "--base-url", server.url, "--repeats", "2"]) == 0
    assert main(score) == 2
    assert "stern: no such folder" in capsys.readouterr().err
    assert main(["judge", *run, "--model", "stern", "--base-url", server.url, "--repeats", "2"]) == 0
    assert main(score) == 0
    home = scores(path.with_suffix(".scored"))
    card = Scorecard.model_validate_json((home / "scorecard.json").read_bytes())
    panel = card.judge.panel
    assert panel is not None
    members = [("kind", 2, False), ("stern", 2, False), (offline.NAME, 1, True)]
    assert [(m.judge, m.repeats, m.approximate) for m in panel.members] == members
    assert card.judge.approximate
    names = [name for name, _, _ in members]
    assert [a.judge for a in card.judge.agreement] == [f"panel of {', '.join(names)}", *names]
    assert [a.measured for a in card.judge.agreement] == [False, False, False, True]
    verdicts = map(Verdict.model_validate_json, (home / "verdicts.jsonl").read_text(encoding="utf-8").splitlines())
    votes = [v.votes for v in verdicts if v.decided_by == "panel"]
    assert {len(v) for v in votes} == {5}
    assert len(votes) == panel.verdicts == card.judge.by_judge
    for name in ("report.html", "summary.md"):
        text = (home / name).read_text(encoding="utf-8").replace("&#39;", "'")
        assert "Krippendorff" in text
        assert "not measured: run `helmbench calibrate` for kind, stern" in text
        assert "Not validated: kind, stern were not compared with people" in text

    for model in ("kind", "stern"):
        asked = ["calibrate", "--model", model, "--base-url", server.url, *data, "--home", str(tmp_path)]
        assert main([*asked, "--repeats", "1", "--wording", "judge", "--concurrency", "32"]) == 0
    kind, stern = (tmp_path / "judge" / model / FILE for model in ("kind", "stern"))
    (path.with_suffix(".scored") / "judge" / "stern" / FILE).write_bytes(stern.read_bytes())
    together = ["score", *run, "--judge", "kind", "--judge", "stern", "--calibration", str(kind)]
    assert main([*together, "--out", str(tmp_path / "out")]) == 0
    card = Scorecard.model_validate_json((tmp_path / "out" / "scorecard.json").read_bytes())
    whole, first, second = card.judge.agreement
    assert [a.measured for a in (whole, first, second)] == [True, True, True]
    # FAIL is the worse of the two on every labelled criterion, and ties go to the worse: the panel says what `stern`
    # says.
    for a, b in zip(whole.criteria, second.criteria, strict=True):
        if release.criteria[str(a.criterion)].kind == "labelled":
            assert (a.kappa, a.fail_recall) == (b.kappa, b.fail_recall)
    assert not whole.usable
    for wrong in (stern, path, tmp_path / "nowhere.json"):
        assert main(["score", *run, "--judge", "kind", "--calibration", str(wrong)]) == 2
