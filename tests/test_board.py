"""The board: what stands beside what, what is withheld, and that hostile submissions stay text."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from helmbench.cli.app import main
from huggingface_hub import SpaceCard
from support import submission_runs as runs
from support.board_runs import place, played, refused, verified, verifier
from support.hostile import Poison
from support.reports import Page, people
from support.tricks import TRICKS

from dataset_builder.release import Release
from dataset_builder.schema import Row, Tier
from judge.replies.schema import Reply, RunError
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity
from leaderboard.board.build import build
from leaderboard.board.downloads import cell
from leaderboard.board.gather import submissions, version_key
from leaderboard.board.rows import FLAGS, Board
from leaderboard.exports.export import export
from leaderboard.schema import UNPROVEN, Problem, Verified
from leaderboard.submit import pack
from leaderboard.verify.verify import verify

ROOT = Path(__file__).resolve().parents[1]
MARKER = "zebra-quarantine-7319"
FORMULA = (
    '=HYPERLINK("https://x","</script><script>alert(1)</script><img src=x onerror=\'a\'>--></style></details></table>'
    '{{ 7*191 }} onmouseover=alert(1) javascript:alert(1)")'
)
EARLIER = {"version": "0.0.9", "score_hash": "e" * 64}


def built(
    tmp_path: Path, release: Release, found: dict[str, Verified], rejudged: Path | None = None
) -> tuple[Path, Board]:
    folder = place(tmp_path / "submissions", found)
    board = build(folder, tmp_path / "board", [release], rejudged, verifier(folder, found))
    return tmp_path / "board", board


class Shown(NamedTuple):
    """A built board, and what it was made from."""

    out: Path
    board: Board
    found: dict[str, Verified]


@pytest.fixture(scope="module")
def shown(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The board of `some`; read-only by agreement."""
    found = some(release)
    return Shown(*built(tmp_path_factory.mktemp("shown"), release, found), found)


def read(folder: Path, name: str = "index.html") -> str:
    return (folder / name).read_text(encoding="utf-8")


def everything(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def some(release: Release) -> dict[str, Verified]:
    """Of every kind of row one: ranked by two judges, in breach of a floor, a demo, another tier, earlier data, and one
    that is refused.
    """
    other = JudgeIdentity("example-judge-large", "abcdef012345")
    return {
        "a/example__strong/r1": verified(release, "strong", 0.98),
        "a/example__middle/r1": verified(
            release, "middle", 0.6, trained="unknown", flags=["same_family", "trained_on_benchmark"]
        ),
        "a/example__middle/r2": verified(release, "middle", 0.6),
        "a/example__weak/r1": verified(release, "weak", 0.0),
        "a/example__apart/r1": verified(release, "apart", 0.6, judge=other),
        "a/example__careless/r1": verified(release, "careless", 0.7, breaches=True),
        "a/example__demo/r1": verified(release, "demo", None),
        "a/example__wide/r1": verified(release, "wide", 0.6, tier="core"),
        "a/example__old/r1": verified(release, "old", 0.7, pinned=EARLIER),
        "a/example__bad/r1": refused("changed_score", "changed_verdict", "changed_verdict", message=MARKER),
    }


def test_real_submissions_become_a_board(small: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that a scripted language model judged, a demo and a forgery, by the real commands: listed, apart, refused by
    kind, and no harmful reply in any file.
    """
    folder, judge = tmp_path / "submissions", "some-judge-1"
    target = next(
        r.id
        for r in small.rows.values()
        if "lite" in r.tiers and any(getattr(c, "criterion", "") == "distance-from-means" for c in r.evaluation)
    )

    def speak(row: Row, turn: int, repeat: int) -> str:
        return f"{MARKER} is in a harmful reply." if row.id == target else runs.say(row, turn, repeat)

    def label(question: Any) -> str:
        harms = MARKER in question.reply and "FAIL-gives" in question.labels
        return "FAIL-gives" if harms else runs.some_label(question)

    for name in ("north-2", "north-3", "forged", "demo"):
        run = runs.log(tmp_path / name, small, speak=speak)
        if name != "demo":
            runs.answer(run, small, judge, label)
            runs.measure(run, small, judge)
        runs.score(run, small, *(["--judge", judge] if name != "demo" else []))
        about = runs.ABOUT._replace(model=runs.ABOUT.model.model_copy(update={"name": name}))
        pack.make(run, small, about, folder, name="r1")
    opened = runs.Opened(folder / small.manifest.version / "acme__forged" / "r1")
    opened.verdict(label="FAIL", decided_by="judge")["label"] = "PASS"
    opened.close()
    arguments = [str(folder), "--out", str(tmp_path / "board"), "--dataset", str(small.path)]
    assert main(["board", *arguments]) == 1
    assert "2 verified, 1 demos, 1 refused" in capsys.readouterr().out
    first = everything(tmp_path / "board")
    page = Page(read(tmp_path / "board"))
    assert {r[1].split()[0] for part in ("ranked", "breached") for r in page.part(part)} == {"north-2", "north-3"}
    assert [r[1].split()[0] for r in page.part("demo")] == ["demo"]
    (bad,) = json.loads(first["leaderboard.json"])["refused"]
    assert "changed_verdict" in bad["kinds"]
    for name in ("acme__north-2/r1/report.html", "acme__north-3/r1/report.html"):
        assert b"[withheld]" in first[name]
    # In the demo, word counts call that reply harmless.
    assert [name for name, content in first.items() if "demo" not in name and MARKER.encode() in content] == []
    assert main(["board", *arguments]) == 1
    assert everything(tmp_path / "board") == first


def test_table_is_read_without_a_script(shown: Shown) -> None:
    """Caption, scopes and numbers with intervals are in the page, best composite first. On so few messages only the
    best run is surely better than the worst; a run of another judge has no place among them.
    """
    page = Page(read(shown.out))
    heads = [a for tag, a in page.tags if tag == "th" and a.get("scope") == "col" and a.get("data-kind")]
    assert [a.get("aria-sort") for a in heads[:10]] == [None, None, "descending", *[None] * 7]
    assert {"caption", "table"} <= {tag for tag, _ in page.tags}
    assert sum(tag == "th" and a.get("scope") == "row" for tag, a in page.tags) >= 8
    lite = [r for r in page.part("ranked") if not r[1].startswith(("wide", "old"))]
    composites = [float(r[2].split()[0].replace("−", "-")) for r in lite]
    assert composites == sorted(composites, reverse=True)
    assert re.fullmatch(r"−?\d+\.\d −?\d+\.\d to −?\d+\.\d", lite[0][2])
    assert re.search(r"0 of 11 passed.*0 passed, 0 breached, 11 undetermined", lite[0][8])
    assert re.search(r"κ 0\.77.*example-judge-2026-01-01.*not validated against people", lite[0][9])
    assert f"Composites rest on {shown.board.current[1].messages} messages." in page.text
    t = next(t for t in shown.board.current if t.tier == "lite")
    places = {name.split("__")[1]: (p.best, p.worst, p.of) for name, p in t.places.items()}
    middle = dict.fromkeys(("middle/r1", "middle/r2"), (1, 4, 4))
    assert places == {"strong/r1": (1, 3, 4), **middle, "weak/r1": (2, 4, 4)}
    assert "2 judges read these runs" in page.text
    assert next(r for r in page.part("ranked") if r[1].startswith("apart"))[0] == "alone with its judge"


def planted(v: Verified, name: str, composite: float, breached: bool) -> Verified:
    """The same submission by this name with this composite, and floors that are all passed, or one of them breached."""
    card, submission = v.scorecard, v.submission
    assert card
    assert submission
    submission = submission.model_copy(update={"model": submission.model.model_copy(update={"name": name})})
    floors = [f.model_copy(update={"state": "passed"}) for f in card.floors]
    if breached:
        floors[-1] = floors[-1].model_copy(update={"state": "breached"})
    figure = card.composite.model_copy(update={"value": composite, "low": composite - 1, "high": composite + 1})
    return replace(v, submission=submission, scorecard=card.model_copy(update={"composite": figure, "floors": floors}))


def test_no_composite_outweighs_a_breach(small: Release, tmp_path: Path) -> None:
    """On every tier a run in breach with a composite of 99 stands below one with 10: on the page, in the CSV and in the
    JSON, and it has no place.
    """
    tiers: tuple[Tier, ...] = ("lite", "core", "full")
    runs_of = {tier: verified(small, tier=tier) for tier in tiers}
    found = {
        f"{tier}/example__{name}/r1": planted(runs_of[tier], f"{name}-{tier}", composite, breached)
        for tier in tiers
        for name, composite, breached in (("high", 99.0, True), ("low", 10.0, False), ("worse", -20.0, True))
    }
    out, _ = built(tmp_path, small, found)
    page = Page(read(out))
    names = [r[1].split()[0] for part in ("ranked", "breached") for r in page.part(part)]
    assert names[:3] == ["low-core", "low-full", "low-lite"]
    for tier in tiers:
        html = read(out)
        below = "Breaches a safety floor: not ranked, and below all runs that breach none"
        order = [f">low-{tier}<", below, f">high-{tier}<", f">worse-{tier}<"]
        section = html[html.index(f">{tier.capitalize()} tier <") :]
        assert [section.index(words) for words in order] == sorted(section.index(words) for words in order)
    assert {r[0] for r in page.part("breached")} == {"not ranked"}
    assert "listed below all that breach none" in Page(read(out, "example__high-core/r1.html")).text
    lines = list(csv.DictReader(read(out, "leaderboard.csv").splitlines()))
    assert [x["standing"] for x in lines if x["run"]] == ["ranked"] * 3 + ["breached"] * 6
    assert {x["place_best"] for x in lines if x["standing"] == "breached"} == {""}
    for t in json.loads(read(out, "leaderboard.json"))["tables"]:
        assert [x["composite"]["value"] for x in t["ranked"]] == [10.0]
        assert [x["composite"]["value"] for x in t["breached"]] == [99.0, -20.0]
        assert [(x["standing"], x["place"]) for x in t["breached"]] == [("breached", None)] * 2
        assert list(t).index("ranked") < list(t).index("breached")


def test_drawing_has_every_run_and_policy(shown: Shown) -> None:
    """Under each table every submission and policy is a mark, and a row of the table beside it with its figures."""
    drawings = re.findall(r'<figure class="scatter">.*?</figure>', read(shown.out), re.DOTALL)
    for drawing, t in zip(drawings, shown.board.tables, strict=True):
        rows = Page(drawing).part("tbody")
        figures = [(e.submission.model.name + " (demo)" * e.demo, e.card.detection) for e in t.entries]
        expected = [(name, d.sensitivity, d.specificity) for name, d in figures]
        expected += [(p.policy, p.sensitivity, p.specificity) for p in t.policies]
        assert [(r[1].removesuffix(" trivial policy"), r[2].split(" %")[0], r[3].split(" %")[0]) for r in rows] == [
            (name, *(f"{100 * (figure.value or 0):.1f}" for figure in two)) for name, *two in expected
        ]
        assert drawing.count("<circle") == len(figures)
        assert drawing.count('class="mark policy"') == len(t.policies)


def test_tiers_earlier_data_demos_and_policies_stand_apart(shown: Shown, release: Release) -> None:
    """One table per score_hash and tier, that of earlier data folded and without policies; demos and policies have no
    rank.
    """
    html, version = read(shown.out), release.manifest.version
    assert [
        (t["tier"], t["versions"], len(t["ranked"]), len(t["demo"]), len(t["policies"]))
        for t in json.loads(read(shown.out, "leaderboard.json"))["tables"]
    ] == [("core", [version], 1, 0, 6), ("lite", [version], 5, 1, 6), ("lite", ["0.0.9"], 1, 0, 0)]
    folded = html[html.index('id="earlier"') : html.index('id="reading"')]
    for words in ("Scores compare only within one score_hash", "<details", "old", "No trivial policy is shown"):
        assert words in folded
    assert ">strong</a>" not in folded  # a flag may name it: these runs have the same replies
    page = Page(html)
    assert [(r[0], r[1].split()[0]) for r in page.part("demo")] == [("not ranked", "demo")]
    policies = {"always-escalate", "always-kind", "context-only", "keyword", "never-escalate", "random"}
    assert {(r[0], r[1].split()[0]) for r in page.part("policy")} == {("not ranked", name) for name in policies}
    assert {r[1].split()[0] for r in page.part("ranked")} == {"strong", "middle", "weak", "apart", "wide", "old"}


def test_what_a_reader_should_know_is_in_the_row(shown: Shown) -> None:
    """Flags, declared training, and whose word the scores are stand in words beside the model and on its page."""
    out = shown.out
    row = next(r for r in Page(read(out)).part("ranked") if "training" in r[1])
    assert "training unknown" in row[1]
    assert "judge of the same family" in row[1]
    assert "self-reported, 2026-11-22" in row[1]
    assert "Judge of the same family Badge. Judge and model share a family" in Page(read(out)).text
    own = Page(read(out, "example__middle/r1.html"))
    assert "training unknown; judge of the same family" in own.text
    assert "Rank 1–4 of 4" in own.text
    assert ("a", "r1/report.html") in {(tag, a.get("href")) for tag, a in own.tags}
    assert (out / "example__middle" / "r1" / "report.html").is_file()


def test_every_flag_of_verifying_is_documented() -> None:
    """A flag that verifying can raise has words for its badge, and docs/publishing.md has both."""
    root = Path(__file__).resolve().parents[1]
    docs = (root / "docs" / "publishing.md").read_text(encoding="utf-8")
    sources = "".join(p.read_text(encoding="utf-8") for p in (root / "leaderboard" / "verify").glob("*.py"))
    shown = re.sub(r" +", " ", docs)
    assert [f.words for f in FLAGS.values() if f"| {f.words} | {f.meaning} |" not in shown] == []
    assert [kind for kind in FLAGS if f'"{kind}"' not in sources] == ["training_unknown"]  # declared, not found
    raised = set(re.findall(r'flags\.append\(Problem\("(\w+)"', sources))
    assert {"left", "two_answers", "dates"} <= raised <= FLAGS.keys()


def test_only_sets_that_ask_the_same_kind_of_question_vouch_for_a_judge(small: Release, tmp_path: Path) -> None:
    """κ with people's ratings or categories says nothing of verdicts by criteria; the share that was read is shown."""
    one = verified(small, "m")
    assert one.scorecard
    sets = [people("by-criterion", 0.41).model_copy(update={"kind": "criterion"}), people("by-rating", 0.8)]
    judge = one.scorecard.judge.model_copy(update={"people": sets})
    found = replace(one, scorecard=one.scorecard.model_copy(update={"judge": judge}))
    (row,) = Page(read(built(tmp_path, small, {"example__m/r1": found})[0])).part("ranked")
    assert "by-criterion: κ 0.41 with people, 97.5 % read" in row[9].replace("\u00a0", " ")
    assert "by-rating" not in row[9]


def test_page_opens_with_the_warning_and_says_what_it_cannot_show(shown: Shown) -> None:
    """Warning, help and no proof come before the table; what a log can't prove is on every page."""
    before = Page(read(shown.out)[: read(shown.out).index("<table")]).text
    assert all(words in before for words in ("Before you read", "suicide", "no proof that a model is safe"))
    told = ("findahelpline.com", "No clinician has reviewed this content", "Nobody but the submitter saw the run")
    for name in ("index.html", *(e.page for e in shown.board.entries)):
        text = Page(read(shown.out, name)).text
        assert all(words in text for words in (*told, "It is no proof of safety")), name
    for name, content in everything(shown.out).items():
        assert MARKER.encode() not in content, name  # the message of a refusal


def test_every_field_may_be_hostile_at_once(small: Release, tmp_path: Path) -> None:
    """Formulas with markup in all free fields, and control characters in names: pages and downloads show them as text,
    and no CSV cell begins with one.
    """
    good = verified(small, "m", judge=JudgeIdentity(FORMULA, FORMULA))
    assert good.submission
    assert good.scorecard
    none = Estimate(value=None, reason="x")
    known = people("a-set", None).model_copy(update={"kappa": none, "between": none, "prompt_hash": "x"})
    own = good.submission.judge.model_copy(update={"people": [known]})
    poison = Poison(repeat(FORMULA))
    submission = poison(good.submission.model_copy(update={"judge": own}))
    assert {"Contact.name", "Generation.arguments", "SubmittedJudge.name"} <= poison.fields
    assert {"SubmittedJudge.prompt_hash", "Declaration.note", "Estimate.reason", "Pinned.version"} <= poison.fields
    held = {"Subject.name", "Subject.organization", "Subject.revision", "Subject.family", "Pinned.tier"}
    assert held.isdisjoint(poison.fields)
    judge = good.scorecard.judge.model_copy(update={"people": submission.judge.people})
    dataset = good.scorecard.dataset.model_copy(update={"version": FORMULA})
    card = good.scorecard.model_copy(update={"judge": judge, "dataset": dataset})
    bad = replace(good, submission=submission, scorecard=card, flags=[Problem(FORMULA, "", FORMULA)])
    folder = f"\u202e\x1b[31m{FORMULA.replace('/', '')}"
    out, _ = built(tmp_path, small, {"example__m/r1": bad, f"{folder}/r1": refused(FORMULA)})
    for name in ("index.html", "example__m/r1.html"):
        page = Page(read(out, name))
        counts = Counter(tag for tag, _ in page.tags)
        assert (counts["script"], counts["img"], counts["iframe"]) == (int(name == "index.html"), 0, 0)
        assert not any(a.startswith("on") for _, attributes in page.tags for a in attributes)
        assert FORMULA in page.text
        assert "1337" not in page.text
        links = {str(a["href"]) for tag, a in page.tags if tag in ("a", "link")}
        assert {x for x in links if ":" in x} <= {"https://findahelpline.com", "data:,"}
        assert "default-src 'none'" in read(out, name)
    for name in ("index.html", "leaderboard.json", "leaderboard.csv"):
        assert not set(read(out, name)) & {"\u202e", "\x1b"}
    texts = [read(out, "leaderboard.csv"), *export(bad, "csv", small).values()]
    cells = [c for text in texts for row in csv.reader(text.splitlines()) for c in row]
    assert sum(FORMULA in c for c in cells) > 5
    assert [c for c in cells if c[:1] in "=+@\t\r" and c] == []
    assert [c for c in cells if c[:1] == "-" and not re.fullmatch(r"-[0-9.e\-]+", c)] == []


def test_same_replies_under_two_names_are_flagged(small: Release, tmp_path: Path) -> None:
    """Words that only one sample got, found again in another run, of this model or another: both rows say so, with the
    share. Canned words, and fewer than half of the replies of another run of this model, aren't flagged.
    """
    replies, verdicts = played(small.path, "keyword", "lite")

    def said(start: str, canned: bool = False) -> list[Reply]:
        words = "You matter, and I am glad that you wrote; shall we look at it together"
        own = [f"{start}{words} {'' if canned else r.id}?" for r in replies]
        return [r.model_copy(update={"turns": (text,) * len(r.turns)}) for r, text in zip(replies, own, strict=True)]

    def run(name: str, words: list[Reply]) -> Verified:
        return verified(small, name, replies=words, verdicts=verdicts)

    found = {
        "example__one/r1": run("one", said("")),
        "example__one/r2": run("one", said("")),
        "example__two/r1": run("two", said("")),
        "example__other/r1": run("other", said("Oh. ")),
        "example__other/r2": run("other", [*said("Oh. ")[: len(replies) // 3], *said("Ah. ")[len(replies) // 3 :]]),
        "example__canned/r1": run("canned", said("", canned=True)),
        "example__canned-too/r1": run("canned-too", said("", canned=True)),
    }
    board = built(tmp_path, small, found)[1]
    told = {e.name: [f for f in e.flags if "identical" in f] for e in board.entries}
    more = "replies identical to those of 2 other runs: up to 100%, of another run of this model,"
    assert told == {
        "example__one/r1": [f"{more} example__one/r2, example/two"],
        "example__one/r2": [f"{more} example__one/r1, example/two"],
        "example__two/r1": ["100% of the replies are identical to those of example/one"],
        "example__other/r1": [],
        "example__other/r2": [],
        "example__canned/r1": [],
        "example__canned-too/r1": [],
    }


def test_every_trick_is_refused_flagged_or_listed_as_unproven(judged: Path, small: Release, tmp_path: Path) -> None:
    """On a board with an honest submission, a trick is refused, or has a flag, or rests on something that the board and
    SECURITY.md list as the submitter's word.
    """
    known = cache(lambda path: verify(path, small))

    def rows(home: Path, **sent: Path) -> dict[str, tuple[str, ...]]:
        """The flags of each listed submission of a board; the board is in `home`."""
        places = {f"{who}/{path.parent.name}/{path.name}": path for who, path in sent.items()}
        for name in places:
            (home / "sent" / name).mkdir(parents=True)
            (home / "sent" / name / "submission.json").write_text("{}", encoding="utf-8")

        def check(path: Path, _: Release) -> Verified:
            return known(places[path.relative_to(home / "sent").as_posix()])

        board = build(home / "sent", home / "board", [small], None, check)
        return {e.name.partition("/")[0]: e.flags for e in board.entries}

    honest = rows(tmp_path / "honest", honest=judged)["honest"]
    unproven = Page(read(tmp_path / "honest" / "board")).text
    security = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
    assert [said for said in UNPROVEN if f"- {said}" not in security or said not in unproven] == []
    table: list[tuple[bool, str]] = []
    for n, (name, (work, due, words)) in enumerate(TRICKS.items()):
        trick = work(judged, tmp_path / f"{n} made", small)
        flags = rows(tmp_path / str(n), honest=judged, trick=trick).get("trick")
        if flags is None:
            (reason,) = known(trick).problems
            found, said = "refused", f"{reason.kind}: {reason.where} {reason.message}"
        elif due == "on trust" and all("identical" in f for f in flags if f not in honest):  # edited copies
            found, said = "on trust", "; ".join(UNPROVEN)
        else:
            found, said = "flagged", "; ".join(f for f in flags if f not in honest)
        table.append((found == due and words in said, f"{name:33} {due:8} {words!r} | {found}: {said[:160]}"))
    assert all(fine for fine, _ in table), "".join(f"\n{'ok   ' if fine else 'WRONG'} {line}" for fine, line in table)


def test_csv_cell_is_no_formula_and_versions_sort_as_numbers() -> None:
    """Text that a spreadsheet would run begins with an apostrophe; numbers stay numbers. 0.10 comes after 0.9."""
    cells: dict[str | float, str | float] = {
        **{"\uff1d1+1": "'\uff1d1+1", "\u00a0=1+1": "'=1+1", "=1+1": "'=1+1", "@sum": "'@sum", "-cmd": "'-cmd"},
        **{"+x": "'+x", "\t=1": "'=1", "plain": "plain", -3.5: -3.5, "a\nb": "a b"},
    }
    assert {given: cell(given) for given in cells} == cells
    assert sorted(["0.10.0", "0.9.3", "1.0.0+held-out.a"], key=version_key) == ["0.9.3", "0.10.0", "1.0.0+held-out.a"]


def test_downloads_hold_the_figures(shown: Shown) -> None:
    """JSON and CSV give every submission's figures with their intervals, the demo as such, and what was refused by kind
    only.
    """
    out, found = shown.out, shown.found
    card = found["a/example__strong/r1"].scorecard
    assert card
    told = json.loads(read(out, "leaderboard.json"))
    row = next(r for t in told["tables"] for r in t["ranked"] if r["run"] == "a/example__strong/r1")
    assert row["composite"] == card.composite.model_dump(mode="json")
    assert told["refused"] == [{"run": "a/example__bad/r1", "kinds": {"changed_score": 1, "changed_verdict": 2}}]
    lines = list(csv.DictReader(read(out, "leaderboard.csv").splitlines()))
    assert Counter(line["standing"] for line in lines) == {"ranked": 7, "breached": 1, "demo": 1, "policy": 12}
    line = next(x for x in lines if x["run"] == "a/example__strong/r1")
    assert (float(line["composite"]), float(line["sees_low"]), line["place_best"]) == (
        card.composite.value,
        card.headlines["sees"].low,
        "1",
    )
    assert [float(line[name]) for name in ("sees", "supports", "keeps")] == [f.value for f in card.headlines.values()]
    assert row["headlines"] == {name: f.model_dump(mode="json") for name, f in card.headlines.items()}
    assert row["tasks"] == (card.tasks and card.tasks.score.model_dump(mode="json"))


def test_same_submissions_give_the_same_bytes(small: Release, tmp_path: Path) -> None:
    """Built twice, from folders of other names made in another order, every file is equal; no path of this machine is
    in any. Without submissions the page says so, the downloads are whole, and the Hub's client reads a static Space.
    """
    found = {k: v for k, v in some(small).items() if k.split("__")[1] in ("strong/r1", "demo/r1", "old/r1", "bad/r1")}
    one, _ = built(tmp_path / "one", small, found)
    two, _ = built(tmp_path / "another place", small, dict(reversed(found.items())))
    first = everything(one)
    assert first == everything(two)
    assert [name for name, content in first.items() if str(tmp_path).encode() in content] == []
    empty, _ = built(tmp_path / "empty", small, {})
    assert "No submission has been verified so far" in Page(read(empty)).text
    assert sorted(everything(empty)) == ["README.md", "index.html", "leaderboard.csv", "leaderboard.json"]
    space = SpaceCard.load(empty / "README.md").data
    assert (space.sdk, (empty / str(space.app_file)).is_file()) == ("static", True)
    assert json.loads(read(empty, "leaderboard.json"))["tables"] == []


def test_names_that_meet_get_pages_of_their_own(small: Release, tmp_path: Path) -> None:
    """Runs of one name in two folders, names that differ in case only, and odd names don't overwrite each other."""
    names = ("a/m/r1", "b/m/r1", "b/m/R1", "c/m/r1-2", "c/m/r1.html", "c/m/bad name")
    out, board = built(tmp_path, small, dict.fromkeys(names, verified(small, "m", 0.4)))
    pages = [e.page for e in board.entries]
    assert len({p.casefold() for p in pages}) == 6
    assert all((out / e.page).is_file() and (out / e.report).is_file() for e in board.entries)
    assert "example__m/run.html" in pages


def test_rejudged_run_is_marked_until_it_changes(small: Release, tmp_path: Path) -> None:
    """A list by a maintainer marks a run; an edited, unknown or repeated one is named, all at once."""
    found = {"example__m/r1": verified(small, "m"), "example__n/r1": verified(small, "n")}
    folder, marks = place(tmp_path / "s", found), tmp_path / "rejudged.yaml"
    (folder / "example__m" / "r1" / "SHA256SUMS").write_text("sums")
    sums = hashlib.sha256(b"sums").hexdigest()
    marks.write_text(f"- {{run: example__m/r1, sha256: {sums}, date: 2026-11-23, by: A maintainer}}\n")
    build(folder, tmp_path / "board", [small], marks, verifier(folder, found))
    told = {r[1].split()[0]: r[1] for r in Page(read(tmp_path / "board")).part("ranked")}
    assert "re-judged on 2026-11-23 by A maintainer" in told["m"]
    assert "self-reported" in told["n"]
    marks.write_text(
        f"- {{run: example__m/r1, sha256: {'0' * 64}, date: 2026-11-23, by: A}}\n- {{run: ../x, sha256: "
        f"{sums}, date: 2026-11-23, by: A}}\n" * 2
    )
    with pytest.raises(RunError) as error:
        build(folder, tmp_path / "board", [small], marks, verifier(folder, found))
    for words in ("it changed since it was judged again", "../x: no such submission", "listed 2 times"):
        assert words in str(error.value)
    marks.write_text("- {run: example__m/r1, sha256: short, date: yesterday}\n")
    with pytest.raises(RunError, match=r"sha256.*\n.*date.*\n.*by"):
        build(folder, tmp_path / "board", [small], marks, verifier(folder, found))


def test_folder_that_is_no_board_is_left_alone(small: Release, tmp_path: Path) -> None:
    """Only an empty folder or an earlier board is replaced; never the submissions, nor what they stand in."""
    folder = place(tmp_path / "submissions", {})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    before = everything(tmp_path)
    for where, said in (
        ("other", "is not a leaderboard"),
        *((w, "overlaps") for w in ("submissions", ".", "submissions/b")),
    ):
        with pytest.raises(RunError, match=said):
            build(folder, tmp_path / where, [small], None, verifier(folder, {}))
    assert everything(tmp_path) == before


def test_a_board_is_replaced_whole(small: Release, tmp_path: Path) -> None:
    """Stale pages go with it; a build that ends early leaves what was there, and nothing beside it."""
    out, _ = built(tmp_path, small, {"example__m/r1": verified(small, "m")})
    before, folder = everything(out), tmp_path / "submissions"

    def broken(path: Path, release: Release) -> Verified:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        build(folder, out, [small], None, broken)
    assert everything(out) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["board", "submissions"]
    build(folder, out, [small], None, lambda path, release: refused("gone"))
    assert "example__m/r1.html" not in everything(out)


def test_every_submission_is_found_and_links_are_not_followed(small: Release, tmp_path: Path) -> None:
    """A folder with any of a submission's files counts, so that none vanishes with its submission.json; a linked one is
    refused.
    """
    for name, file in (
        ("a/x__y/r", "verdicts.jsonl"),
        ("b", "SHA256SUMS"),
        (".git/c", "submission.json"),
        ("d", "notes.txt"),
    ):
        (tmp_path / "s" / name).mkdir(parents=True)
        (tmp_path / "s" / name / file).write_text("")
    (tmp_path / "s" / "link").symlink_to(tmp_path / "s" / "b")
    assert [p.relative_to(tmp_path / "s").as_posix() for p in submissions(tmp_path / "s")] == ["a/x__y/r", "b", "link"]
    board = build(tmp_path / "s", tmp_path / "board", [small])
    assert {r.name for r in board.refused} == {"a/x__y/r", "b", "link"}
    assert next(r.kinds for r in board.refused if r.name == "link") == (("link", 1),)
    assert "missing_file" in dict(next(r.kinds for r in board.refused if r.name == "b"))


def test_command_says_what_it_did(small: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line per submission with the first reason, exit code 1 where any is refused, 2 without a folder or a
    dataset.
    """
    (tmp_path / "s" / "a__b" / "r").mkdir(parents=True)
    (tmp_path / "s" / "a__b" / "r" / "submission.json").write_text("{")
    arguments = ["--out", str(tmp_path / "board"), "--dataset", str(small.path)]
    assert main(["board", str(tmp_path / "s"), *arguments]) == 1
    said = capsys.readouterr().out.splitlines()
    assert re.match(r"1 of 1, \d+ s: a__b/r: refused: \S+: .+ \(and \d+ more\)$", said[0])
    assert said[-1].endswith("index.html: 0 verified, 0 demos, 1 refused")
    assert main(["board", str(tmp_path / "none"), *arguments]) == 2
    assert "no such folder" in capsys.readouterr().err
    assert main(["board", str(tmp_path / "s"), "--out", str(tmp_path / "b2"), "--dataset", str(tmp_path)]) == 2
    assert not (tmp_path / "b2").exists()
