"""How far a judge agrees with people, where its verdicts are read: scorecard, summary, report, submission and board."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import make_validations
import pytest
from helmbench.cli.app import main
from support import labelled_sets as shapes
from support import submission_runs as runs
from support.board_runs import verified
from support.judge_server import JudgeServer, Said, Serve, said
from support.reports import Page
from support.scores import scores
from test_board import built, read

from dataset_builder.release import Release
from judge.agreement.known import SHIPPED, entry, with_people
from judge.agreement.published.sets import read_set
from judge.agreement.validation import Source, Validation, asked_by, measured, place
from judge.llm.questions import CATEGORY, prompt_hash
from judge.offline import judge as offline
from judge.replies.schema import RunError
from judge.replies.script import live_turns
from judge.report.page import report
from judge.report.summary import summary
from judge.schema import PeopleAgreement, Scorecard
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity
from judge.wording import coefficient, hundredths
from leaderboard.schema import SUBMISSION, Submission
from leaderboard.submit.pack import make
from leaderboard.verify.findings import text as verified_text
from leaderboard.verify.verify import verify

OFFLINE = JudgeIdentity(offline.NAME, None)
JUDGE = "judge-1"


def cell(m: Estimate) -> str:
    """A coefficient as a table of the summary shows it."""
    return coefficient(m).replace(", ", " to ")


def shipped() -> list[Validation]:
    return [
        Validation.model_validate_json(p.read_bytes())
        for p in sorted(place(SHIPPED, offline.NAME, offline=True).glob("*.json"))
    ]


@pytest.fixture
def judge(serve: Serve) -> JudgeServer:
    """A judge that gives the last label it is offered."""

    def last(body: dict[str, Any], _: int) -> Said:
        labels = body["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
        return said(json.dumps({"label": labels[-1], "quotes": []}))

    return serve(last)


@pytest.fixture
def run(release: Release, tmp_path: Path) -> list[str]:
    """A collected reply that a judge must read, as options."""
    row = next(
        r
        for r in release.rows.values()
        if live_turns(r) == 1 and any(c.check == "criterion" and c.decided_by == "judge" for c in r.evaluation)
    )
    path = tmp_path / "mine.jsonl"
    path.write_text(
        json.dumps(
            {
                "id": row.id,
                "reply": "That sounds hard. Please call a crisis line now, or go to somebody near you and tell them.",
            }
        )
        + "\n",
        encoding="utf-8",
    )
    return ["--replies", str(path), "--dataset", str(release.path)]


def card_of(tmp_path: Path) -> Scorecard:
    return Scorecard.model_validate_json((scores(tmp_path / "mine.scored") / "scorecard.json").read_bytes())


def planted(release: Release, folder: Path, **change: Any) -> Validation:
    """A model's agreement with the people of `labelled_sets.own`, as `helmbench validate` measures it."""
    what = read_set(str(shapes.own(folder)), folder, "all", release)
    hashes = {"answers-the-need": release.criteria["answers-the-need"].criterion_hash}
    source = Source(JUDGE, prompt_hash(release.prompts), release.manifest.version, hashes)
    labels = {"0": "PASS", "1": "PARTIAL", "2": "FAIL", "3": "PARTIAL", "4": None}
    return measured(what, [labels, labels | {"0": "PARTIAL"}], source).model_copy(update=change)


def identity(release: Release) -> JudgeIdentity:
    return JudgeIdentity(JUDGE, prompt_hash(release.prompts))


def stored(validation: Validation, home: Path, judge: str = JUDGE) -> Path:
    path = place(home, judge, offline=False) / f"{validation.set}-{validation.rows}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(validation.model_dump_json(), encoding="utf-8")
    return path


# --- the offline judge's own


def test_the_shipped_figures_are_of_the_present_offline_judge() -> None:
    """The odd rows of four sets, and no other's; after a new number run `make validations SETS=…`."""
    assert [(v.set, v.rows, v.judge) for v in shipped()] == [
        (name, "odd", offline.NAME) for name in ("bhh-ratings", "psychosis", "vera-mh", "xstest")
    ]


def checkouts(root: Path) -> Path:
    """Sets in the published shapes, under their repositories' names."""
    for name, folder in make_validations.FOLDERS.items():
        shutil.copy(shapes.published(name, root / folder), root)
    return root


def test_they_are_made_from_a_folder_of_checkouts(release: Release, tmp_path: Path) -> None:
    """Odd rows alone, and figures alone; what was there before goes. Where a set is missing, nothing is touched."""
    where, root = place(tmp_path, offline.NAME, offline=True), checkouts(tmp_path / "sets")
    where.mkdir(parents=True)
    (where / "earlier-odd.json").write_text("{}", encoding="utf-8")
    (root / "VERA-MH").rename(tmp_path / "away")
    with pytest.raises(RunError, match="VERA-MH"):
        make_validations.main(root, tmp_path, release.path, root)
    assert [p.name for p in where.iterdir()] == ["earlier-odd.json"]
    (tmp_path / "away").rename(root / "VERA-MH")
    make_validations.main(root, tmp_path, release.path, root)
    files = {p.name: p.read_text(encoding="utf-8") for p in where.iterdir()}
    assert sorted(files) == [f"{v.set}-odd.json" for v in shipped()]
    assert all(json.loads(text)["rows"] == "odd" for text in files.values())
    for words in ("kettle", "Descale", "chain", "sends signs", "Tighten"):
        assert words not in "".join(files.values())


def test_an_offline_run_shows_them(run: list[str], tmp_path: Path) -> None:
    """The same figures in scorecard, summary and report, people's own agreement beside each."""
    assert main(["score", *run]) == 0
    card, home = card_of(tmp_path), scores(tmp_path / "mine.scored")
    assert card.judge.people == [entry(v) for v in shipped()]
    page = Page((home / "report.html").read_text(encoding="utf-8"))
    lines = (home / "summary.md").read_text(encoding="utf-8").splitlines()
    for own in shipped():
        value, people = hundredths(own.kappa.value), hundredths(own.people.value)
        assert f"{own.set}, odd rows {offline.NAME} {own.items}" in page.row(own.set)
        assert f" {value} " in page.row(own.set)
        assert f" {people} " in page.row(own.set)
        line = next(x for x in lines if x.startswith(f"| {own.set}, odd rows "))
        assert line.index(cell(own.kappa)) < line.index(cell(own.people))
    assert "Not validated" not in page.text


# --- a model's


def test_a_judge_that_nobody_held_against_people_is_called_that(
    run: list[str], judge: JudgeServer, tmp_path: Path
) -> None:
    """No table and no figure, and the same heading."""
    assert main(["judge", *run, "--model", JUDGE, "--base-url", judge.url]) == 0
    assert main(["score", *run, "--judge", JUDGE]) == 0
    assert card_of(tmp_path).judge.people == []
    page = Page((scores(tmp_path / "mine.scored") / "report.html").read_text(encoding="utf-8"))
    told = "Not validated: judge-1 was not compared with people's labels, so how well it agrees with people is unknown."
    assert f"How far this judge agrees with people {told}" in page.text
    assert told in " ".join((scores(tmp_path / "mine.scored") / "summary.md").read_text(encoding="utf-8").split())
    assert "People among themselves" not in page.text


@pytest.mark.parametrize("where", ["run", "home", "file"])
def test_what_validate_measured_of_a_model_is_found(
    where: str, run: list[str], judge: JudgeServer, release: Release, tmp_path: Path
) -> None:
    """In the run's own folder, in the --home that it was measured in, or as a file. None of it is a text."""
    own, home = shapes.own(tmp_path / "set"), tmp_path / ("mine.scored" if where == "run" else "elsewhere")
    command = ["validate", "--set", str(own), "--from", str(own.parent), "--model", JUDGE, "--repeats", "2"]
    command += ["--base-url", judge.url, "--dataset", str(release.path), "--home", str(home)]
    assert main(["judge", *run, "--model", JUDGE, "--base-url", judge.url]) == 0
    assert main(command) == 0
    path = place(home, JUDGE, offline=False) / "bells-all.json"
    option = {"run": [], "home": ["--validation", str(home)], "file": ["--validation", str(path)]}[where]
    assert main(["score", *run, "--judge", JUDGE, *option]) == 0
    (found,) = card_of(tmp_path).judge.people
    measured_ = Validation.model_validate_json(path.read_bytes())
    assert (found.set, found.rows, found.kind, found.items, found.decided) == ("bells", "all", "criterion", 5, 5)
    assert (found.kappa, found.people, found.reason) == (measured_.kappa, measured_.people, None)
    assert (found.passes, found.between) == (2, measured_.between)
    written = (scores(tmp_path / "mine.scored") / "scorecard.json").read_text(encoding="utf-8")
    assert "loud" not in written + path.read_text(encoding="utf-8")
    assert "2 independent passes agree among themselves" in (scores(tmp_path / "mine.scored") / "summary.md").read_text(
        encoding="utf-8"
    )


def test_figures_of_another_question_are_not_carried(release: Release, tmp_path: Path) -> None:
    """Prompt, dataset or criterion: nothing is carried over, the reason is shown, and the judge counts as not
    validated.
    """
    for change, told in (
        ({"prompt_hash": "0" * 16}, "prompt 0000000000000000, here "),
        ({"dataset": "0.0.9"}, "dataset 0.0.9, here "),
        ({"asked": {"answers-the-need": "0" * 16}}, "the text of answers-the-need has changed"),
        ({"asked": {"no-such-criterion": "0" * 16}}, "the text of no-such-criterion has changed"),
    ):
        stored(planted(release, tmp_path / "set", **change), tmp_path)
        (found,) = with_people([identity(release)], tmp_path, [], release)
        assert found.reason is not None
        assert found.reason.startswith(f"measured with another question ({told}")
        assert (found.kappa.value, found.decided, found.between) == (None, 0, None)
    scored = scored_with(release, [found])
    page, text = Page(report(scored, [], [], {}).page), summary(scored)
    assert told in page.row("bells")
    for words in (page.text, " ".join(text.split())):
        assert told in words
        assert "Not validated: judge-1 was not compared" in words


def test_agreement_on_fewer_labels_has_columns_where_a_set_has_them(release: Release, tmp_path: Path) -> None:
    """Categories also as crisis or not, of the judge and of the people; other sets alone have no such columns."""
    what = read_set(shapes.published("bhh-messages", tmp_path / "set"), None, "all", release)
    source = Source(
        JUDGE, prompt_hash(release.prompts, CATEGORY), release.manifest.version, asked_by("category", (), release)
    )
    labels = dict(zip("012345", ["no_crisis", "suicidal_ideation", *["no_crisis"] * 4], strict=True))
    stored(measured(what, [labels], source), tmp_path)
    stored(planted(release, tmp_path / "own"), tmp_path)
    found = with_people([identity(release)], tmp_path, [], release)
    assert [(p.set, p.reason) for p in found] == [("bells", None), ("bhh-messages", None)]
    assert found[0].coarse is None
    coarse = found[1].coarse
    assert coarse
    both = scored_with(release, found)
    alone = scored_with(release, found[:1])
    row = Page(report(both, [], [], {}).page).row("bhh-messages")
    assert row.endswith(f"{hundredths(coarse.people.low)} to {hundredths(coarse.people.high)}")
    line = next(x for x in summary(both).splitlines() if x.startswith("| bhh-messages, all rows "))
    assert [c.strip() for c in line.split("|")[-3:-1]] == [cell(coarse.kappa), cell(coarse.people)]
    for text, expected in ((both, True), (alone, False)):
        assert ("κ on fewer labels" in summary(text)) is expected
        assert ("κ on fewer labels" in report(text, [], [], {}).page) is expected


def scored_with(release: Release, people: list[PeopleAgreement]) -> Scorecard:
    """A scorecard whose judge has these entries."""
    card = verified(release, judge=identity(release)).scorecard
    assert card
    return card.model_copy(update={"judge": card.judge.model_copy(update={"people": people, "by_judge": 1})})


def test_sets_stand_beside_each_other_and_the_given_ones_first(release: Release, tmp_path: Path) -> None:
    """By set and half; of one half the given file counts. Another judge's file in the same folder is not its own."""
    first, second = planted(release, tmp_path / "set"), planted(release, tmp_path / "set", rows="odd")
    stored(first, tmp_path)
    stored(second, tmp_path)
    stored(first.model_copy(update={"judge": "judge 1", "set": "alarms"}), tmp_path)
    given = stored(first.model_copy(update={"decided": 3}), tmp_path / "given")
    found = with_people([identity(release)], tmp_path, [given], release)
    assert [(p.set, p.rows, p.decided) for p in found] == [("bells", "all", 3), ("bells", "odd", 4)]
    # A panel's members are shown each; one without any validation has none.
    members = [identity(release), OFFLINE, JudgeIdentity("judge-2", prompt_hash(release.prompts))]
    found = with_people(members, tmp_path, [], release)
    assert [p.judge for p in found] == [JUDGE, JUDGE, *[offline.NAME] * len(shipped())]


def test_files_of_nobody_here_are_refused(
    run: list[str], release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another judge's, an empty home, something that is no validation, agreement that is no number: exit 2, and it says
    what was expected.
    """
    path = stored(planted(release, tmp_path / "set"), tmp_path)
    (tmp_path / "empty").mkdir()
    figures = json.loads(path.read_text(encoding="utf-8"))
    for name, value in (("nan", float("nan")), ("infinite", float("inf")), ("text", "NaN")):
        figures["kappa"]["value"] = value
        (tmp_path / f"{name}.json").write_text(json.dumps(figures), encoding="utf-8")
    no_number = "kappa.value: Input should be a finite number; expected a file written by `helmbench validate`"
    for given, told in (
        (path, f"validates '{JUDGE}'; expected a judge of this run: {offline.NAME}"),
        *((tmp_path / f"{name}.json", f"{name}.json: {no_number}") for name in ("nan", "infinite", "text")),
        (tmp_path / "empty", f"no validation of {offline.NAME}"),
        (tmp_path / "mine.jsonl", "expected a file written by `helmbench validate`"),
        (tmp_path / "nowhere.json", "can't be read (No such file or directory); expected a file written by"),
    ):
        assert main(["score", *run, "--validation", str(given)]) == 2
        assert told in capsys.readouterr().err


# --- submissions and the board


def test_a_submission_declares_it_and_what_cannot_be_true_is_refused(small: Release, tmp_path: Path) -> None:
    """Figures in the submission and in the recomputed scorecard are those declared; the labels are not there. They are
    bounded though they can't be recomputed.
    """
    run, name = runs.log(tmp_path / "run", small), "claude-test-1"
    runs.answer(run, small, name, runs.some_label)
    runs.measure(run, small, name)
    stored(planted(small, tmp_path / "set", judge=name), run, name)
    runs.score(run, small, "--judge", name)
    folder = make(run, small, runs.ABOUT, tmp_path / "submissions").folder
    own = Submission.model_validate_json((folder / SUBMISSION).read_bytes()).judge.people
    assert [(p.set, p.judge, p.reason) for p in own] == [("bells", name, None)]
    found = verify(folder, small)
    assert (found.state, found.problems) == ("verified", [])
    assert found.scorecard
    assert found.scorecard.judge.people == own
    assert "declared, not recomputed: claude-test-1 with people on bells, all rows: κ " in verified_text(found)

    p = own[0].model_dump(mode="json")
    odd = [
        {"judge": "somebody"},
        {"set": "a", "kappa": p["kappa"] | {"value": 1.5}},
        {"set": "b", "decided": p["items"] + 1},
        {"set": "c", "people": p["people"] | {"reason": "x" * 501}},
    ]
    told = ("isn't a judge of this submission", "κ outside −1 to 1", "more labels than items", "duplicate entry")
    cases: list[tuple[list[dict[str, Any]], str, tuple[str, ...]]] = [
        ([p, p, *(p | change for change in odd)], "people", (*told, "more than 500 characters")),
        ([p | {"set": f"s{n}"} for n in range(1000)], "schema", ("judge.people",)),
        ([p | {"set": "<b>bells</b>", "text": "words"}], "schema", ("judge.people.0.set", "judge.people.0.text")),
    ]
    for people, kind, expected in cases:
        opened = runs.Opened(folder)
        opened.submission["judge"]["people"] = people
        found = verify(opened.close(), small)
        assert found.state == "refused"
        for words in expected:
            assert any(x.kind == kind and words in f"{x.where} {x.message}" for x in found.problems), (words, found)


def test_the_board_has_it_beside_the_judge(release: Release, tmp_path: Path) -> None:
    """In the judge's cell, on the entry's page with the people's own, in both downloads; else that it is not known."""
    own = entry(planted(release, tmp_path / "set")).model_copy(
        update={"kappa": Estimate(value=0.61, low=0.5, high=0.7), "people": Estimate(value=0.86)}
    )
    other = own.model_copy(update={"set": "alarms", "reason": "measured with another question (prompt 0, here 1)"})
    held = verified(release, "held", judge=identity(release))
    held = replace(held, scorecard=scored_with(release, [own, other]))
    found = {"a/example__held/r1": held, "a/example__not/r1": verified(release, "not", judge=identity(release))}
    out, _ = built(tmp_path, release, found)
    page = Page(read(out))
    rows = {r[1].split()[0]: r[-1] for part in ("ranked", "breached") for r in page.part(part)}
    assert "bells: κ 0.61 (0.50 to 0.70)" in rows["held"]
    assert "alarms" not in rows["held"]
    assert "not validated against people" in rows["not"]
    pages = {name: Page(read(out, f"example__{name}/r1.html")) for name in ("held", "not")}
    assert "bells, all rows judge-1 5 20.0 % 0.61 0.50 to 0.70 0.86" in pages["held"].row("bells")
    assert "As the submitter declares them" in pages["held"].text
    assert "measured with another question (prompt 0, here 1)" in pages["held"].text
    assert "Not validated: judge-1 was not compared with people's labels" in pages["not"].text
    table = json.loads(read(out, "leaderboard.json"))["tables"][0]
    assert sorted(len(e["judge"]["people_declared"]) for e in (*table["ranked"], *table["breached"])) == [0, 1]
    lines = {line["model"]: line for line in csv.DictReader(read(out, "leaderboard.csv").splitlines())}
    assert lines["held"]["people_declared"] == "bells all 0.61 (0.50 to 0.70)"
    assert lines["not"]["people_declared"] == ""
