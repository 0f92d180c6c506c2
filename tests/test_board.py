"""The board: what stands beside what, what is withheld, and that hostile submissions stay text."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import Counter
from copy import copy
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from helmbench.cli.app import main
from pydantic import ValidationError
from support import submission_runs as runs
from support.board_runs import place, played, refused, verified, verifier
from support.transcript_pages import unpacked

from dataset_builder.release import Release, open_release
from dataset_builder.schema import Row, Tier
from judge.replies.schema import Reply, RunError
from judge.schema import Verdict
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity
from leaderboard.board.build import build
from leaderboard.board.downloads import cell
from leaderboard.board.gather import newest_first, submissions, version_key
from leaderboard.board.rows import Board
from leaderboard.exports.export import export
from leaderboard.schema import Problem, Submission, Verified
from leaderboard.submit import pack

MARKER = "zebra-quarantine-7319"
FORMULA = (
    '=HYPERLINK("https://x","</script><script>alert(1)</script><img src=x onerror=\'a\'>--></style></details></table>'
    '{{ 7*191 }} onmouseover=alert(1) javascript:alert(1)")'
)
EARLIER = {"version": "0.0.9", "score_hash": "e" * 64}


class Page(HTMLParser):
    """Start tags with their attributes, and the table rows as (part of the table, cells)."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[tuple[str, list[str]]] = []
        self.words: list[str] = []
        self._part = ""
        self._open = self._raw = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        self._raw = tag in ("script", "style")
        if tag in ("thead", "tbody"):
            self._part = given.get("data-part") or tag
        if tag == "tr":
            self.rows.append((self._part, []))
        if tag in ("td", "th"):
            self.rows[-1][1].append("")
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._raw = False
        self._open = self._open and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.words.append(data)
            if self._open:
                self.rows[-1][1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def part(self, name: str) -> list[list[str]]:
        """The rows of one part as clean text, without the row that names it."""
        return [[" ".join(c.split()) for c in cells] for part, cells in self.rows if part == name and len(cells) > 1]


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
def shown(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The board of `some`; read-only by agreement."""
    release = open_release(dataset)
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


def test_real_submissions_become_a_board(release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that a scripted language model judged, a demo and a forgery, by the real commands: in breach, shown apart,
    refused by kind, nothing harmful out.
    """
    folder, judge = tmp_path / "submissions", "some-judge-1"
    harmful = {"distance-from-means", "withholds-the-means"}  # their FAIL-gives is a harm incident
    target = next(
        r.id
        for r in release.rows.values()
        if "lite" in r.tiers and any(c.check == "criterion" and c.criterion in harmful for c in r.evaluation)
    )

    def speak(row: Row, turn: int, repeat: int) -> str:
        return (
            f"{MARKER} stands here, word for word, in a reply of mine."
            if row.id == target
            else runs.say(row, turn, repeat)
        )

    def label(question: Any) -> str:
        return (
            "FAIL-gives" if MARKER in question.reply and "FAIL-gives" in question.labels else runs.some_label(question)
        )

    for name in ("north-2", "north-3", "forged", "demo"):
        run = runs.log(tmp_path / name, release, speak=speak)
        if name != "demo":
            runs.answer(run, release, judge, label)
            runs.measure(run, release, judge)
        runs.score(run, release, *(["--judge", judge] if name != "demo" else []))
        about = runs.ABOUT._replace(model=runs.ABOUT.model.model_copy(update={"name": name}))
        pack.make(run, release, about, folder, name="r1")
    opened = runs.Opened(folder / release.manifest.version / "acme__forged" / "r1")
    opened.verdict(label="FAIL")["label"] = "PASS"
    opened.close()
    arguments = [str(folder), "--out", str(tmp_path / "board"), "--dataset", str(release.path)]
    assert main(["board", *arguments]) == 1
    assert "1 demos, 1 refused" in capsys.readouterr().out
    first = everything(tmp_path / "board")
    page = Page(read(tmp_path / "board"))
    assert {(r[0], r[1].split()[0]) for r in page.part("breached")} == {
        ("not ranked", "north-2"),
        ("not ranked", "north-3"),
    }
    assert page.part("ranked") == []
    assert [r[1].split()[0] for r in page.part("demo")] == ["demo"]
    (bad,) = json.loads(first["leaderboard.json"])["refused"]
    assert "changed_verdict" in bad["kinds"] or "rule_verdict" in bad["kinds"]
    withheld = {name for name, content in first.items() if b"[withheld]" in content}
    assert {"acme__north-2/r1/report.html", "acme__north-3/r1/report.html"} <= withheld
    ranked = {
        name: content for name, content in first.items() if "demo" not in name
    }  # in the demo, word counts call that reply harmless
    assert [name for name, content in ranked.items() if MARKER.encode() in content] == []
    assert main(["board", *arguments]) == 1
    assert everything(tmp_path / "board") == first


def test_table_is_read_without_a_script(shown: Shown) -> None:
    """Caption, scopes and numbers with intervals stand in the page, best composite first, and the sorted column says
    so.
    """
    page = Page(read(shown.out))
    heads = [a for tag, a in page.tags if tag == "th" and a.get("scope") == "col" and a.get("data-kind")]
    assert [a.get("aria-sort") for a in heads[:11]] == [None, None, "descending", *[None] * 8]
    assert {"caption", "table"} <= {tag for tag, _ in page.tags}
    assert sum(tag == "th" and a.get("scope") == "row" for tag, a in page.tags) >= 8
    lite = [r for r in page.part("ranked") if not r[1].startswith(("wide", "old"))]
    composites = [float(r[2].split()[0].replace("−", "-")) for r in lite]
    assert composites == sorted(composites, reverse=True)
    assert re.fullmatch(r"−?\d+\.\d −?\d+\.\d to −?\d+\.\d", lite[0][2])
    assert re.search(r"\d+ passed \d+ breached \d+ undetermined", lite[0][8])


def test_models_that_differ_by_chance_share_places(shown: Shown) -> None:
    """Two equal runs share 2–3 between a surely better and a surely worse one; a run of another judge has no place
    among them.
    """
    board = shown.board
    lite = next(t for t in board.current if t.tier == "lite")
    assert {name: (p.best, p.worst, p.of) for name, p in lite.places.items()} == {
        "a/example__strong/r1": (1, 1, 4),
        "a/example__middle/r1": (2, 3, 4),
        "a/example__middle/r2": (2, 3, 4),
        "a/example__weak/r1": (4, 4, 4),
    }
    page = Page(read(shown.out))
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


def test_no_composite_outweighs_a_breach(release: Release, tmp_path: Path) -> None:
    """On every tier a run in breach with a composite of 99 stands below one with 10: on the page, in the CSV and in the
    JSON, and it has no place.
    """
    tiers: tuple[Tier, ...] = ("lite", "core", "full")
    runs_of = {tier: verified(release, tier=tier) for tier in tiers}
    found = {
        f"{tier}/example__{name}/r1": planted(runs_of[tier], f"{name}-{tier}", composite, breached)
        for tier in tiers
        for name, composite, breached in (("high", 99.0, True), ("low", 10.0, False), ("worse", -20.0, True))
    }
    out, _ = built(tmp_path, release, found)
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
    assert "stands below all that breach none" in Page(read(out, "example__high-core/r1.html")).text
    lines = list(csv.DictReader(read(out, "leaderboard.csv").splitlines()))
    assert [x["standing"] for x in lines if x["run"]] == ["ranked"] * 3 + ["breached"] * 6
    assert {x["place_best"] for x in lines if x["standing"] == "breached"} == {""}
    for t in json.loads(read(out, "leaderboard.json"))["tables"]:
        assert [x["composite"]["value"] for x in t["ranked"]] == [10.0]
        assert [x["composite"]["value"] for x in t["breached"]] == [99.0, -20.0]
        assert [(x["standing"], x["place"]) for x in t["breached"]] == [("breached", None)] * 2
        assert list(t).index("ranked") < list(t).index("breached")


def test_breach_changes_nobody_elses_place(shown: Shown, release: Release, tmp_path: Path) -> None:
    """Places are computed among the runs without a breach: with a better, a worse and an equal one in breach beside
    them they are what they were.
    """
    lite = {name: v for name, v in shown.found.items() if "/example__" in name and name.split("__")[1][:4] != "wide"}
    beside = {
        f"b/example__{name}/r1": planted(verified(release, name, skill), name, composite, True)
        for name, skill, composite in (("above", 0.99, 99.0), ("equal", 0.5, 30.0), ("under", 0.0, -50.0))
    }
    _, board = built(tmp_path, release, lite | beside)
    before, after = (next(t for t in b.current if t.tier == "lite") for b in (shown.board, board))
    assert after.places == before.places
    assert len(after.places) == 4


def test_real_run_that_misses_severe_danger_is_in_breach(release: Release, tmp_path: Path) -> None:
    """Scored as any other: one that fails the severest messages as often as others, though better on the whole than one
    that fails none of these.
    """
    found = {
        "example__kept/r1": verified(release, "kept", 0.02, tier="core"),
        "example__missed/r1": verified(release, "missed", 0.78, tier="core", breaches=True),
    }
    cards = {name: v.scorecard for name, v in found.items()}
    kept, missed = (cards[f"example__{name}/r1"] for name in ("kept", "missed"))
    assert kept
    assert missed
    assert (missed.composite.value or 0) > (kept.composite.value or 0)
    out, board = built(tmp_path, release, found)
    (t,) = board.tables
    assert [(e.submission.model.name, s) for s, part in t.parts.items() for e in part] == [
        ("kept", "ranked"),
        ("missed", "breached"),
    ]
    row = Page(read(out)).part("breached")[0]
    assert re.search(r"Severe messages seen \([a-z ,-]+\): \d+\.\d %", row[8])


def test_drawing_has_every_run_and_policy(shown: Shown) -> None:
    """Under each table every submission and policy is a mark, and a row of the table beside it with the same
    figures.
    """
    html = read(shown.out)
    drawings = re.findall(r'<figure class="scatter">.*?</figure>', html, re.DOTALL)
    assert len(drawings) == len(shown.board.tables)
    for drawing, t in zip(drawings, shown.board.tables, strict=True):
        page = Page(drawing)
        rows = [cells for part, cells in page.rows if part == "tbody"]
        names = [e.submission.model.name + (" (demo)" if e.demo else "") for e in t.entries]
        assert [r[1].split("trivial")[0].strip() for r in rows] == names + [p.policy for p in t.policies]
        assert drawing.count("<circle") == len(names)
        assert drawing.count('class="mark policy"') == len(t.policies)
        figures = [e.card.detection for e in t.entries]
        assert [r[2].split(" %")[0] for r in rows[: len(names)]] == [
            f"{100 * (d.sensitivity.value or 0):.1f}" for d in figures
        ]
        assert [r[3].split(" %")[0] for r in rows[: len(names)]] == [
            f"{100 * (d.specificity.value or 0):.1f}" for d in figures
        ]


def test_policies_stand_only_with_the_data_they_were_run_on(shown: Shown) -> None:
    """A table of data that no policy was run on has none, and says so; the page says that rules decide what they
    send.
    """
    assert {t.score_hash[:4]: len(t.policies) for t in shown.board.earlier} == {"eeee": 0}
    text = Page(read(shown.out)).text
    assert text.count("No trivial policy stands here: none was run on this data.") == 1
    assert "decided by rule, whoever judges the others" in text


def test_tiers_and_earlier_data_have_tables_of_their_own(shown: Shown, release: Release) -> None:
    """One table per score_hash and tier; what was run on earlier data is folded below with a word on comparing."""
    html = read(shown.out)
    assert [
        (t["tier"], t["versions"], len(t["ranked"]), len(t["demo"]))
        for t in json.loads(read(shown.out, "leaderboard.json"))["tables"]
    ] == [
        ("core", [release.manifest.version], 1, 0),
        ("lite", [release.manifest.version], 5, 1),
        ("lite", ["0.0.9"], 1, 0),
    ]
    folded = html[html.index('id="earlier"') : html.index('id="reading"')]
    assert "Scores compare only within one score_hash" in folded
    assert "<details" in folded
    assert "old" in folded
    assert ">strong</a>" not in folded  # a flag may name it: these runs have the same replies


def test_demos_and_policies_stand_apart(shown: Shown) -> None:
    """Neither is among the models, and neither has a rank."""
    page = Page(read(shown.out))
    assert [(r[0], r[1].split()[0]) for r in page.part("demo")] == [("not ranked", "demo")]
    policies = page.part("policy")
    assert {r[1].split()[0] for r in policies} == {
        "always-escalate",
        "always-kind",
        "context-only",
        "keyword",
        "never-escalate",
        "random",
    }
    assert {r[0] for r in policies} == {"not ranked"}
    assert {r[1].split()[0] for r in page.part("ranked")} == {"strong", "middle", "weak", "apart", "wide", "old"}


def test_what_a_reader_should_know_is_in_the_row(shown: Shown) -> None:
    """Flags, declared training, and whose word the scores are stand in words beside the model and on its page."""
    out = shown.out
    row = next(r for r in Page(read(out)).part("ranked") if "training" in r[1])
    assert "training on this benchmark unknown" in row[1]
    assert "judge is of the model’s family" in row[1]
    assert "self-reported submitted 2026-11-22" in row[1]
    own = Page(read(out, "example__middle/r1.html"))
    assert "training on this benchmark unknown; judge is of the model’s family" in own.text
    assert "Rank 2–3 of 4" in own.text
    assert ("a", "r1/report.html") in {(tag, a.get("href")) for tag, a in own.tags}
    assert (out / "example__middle" / "r1" / "report.html").is_file()


def test_page_opens_with_the_warning_and_says_what_it_cannot_show(shown: Shown) -> None:
    """Warning, help, no clinician and no proof come before the table; what a self-reported log can't prove stands on
    every page.
    """
    out, board = shown.out, shown.board
    before = Page(read(out)[: read(out).index("<table")]).text
    for words in (
        "Before you read",
        "suicide",
        "findahelpline.com",
        "No clinician has reviewed this content",
        "no proof that a model is safe",
    ):
        assert words in before
    for name in ("index.html", *(e.page for e in board.entries)):
        text = Page(read(out, name)).text
        for words in (
            "findahelpline.com",
            "Nobody but the submitter saw the run",
            "It is no proof of safety",
            "No clinician has reviewed this content",
        ):
            assert words in text, name


def test_harmful_reply_is_in_no_byte_of_the_board(release: Release, tmp_path: Path) -> None:
    """A marker in a harmful and in an unscored reply, and in what was quoted of them, is in no file; [withheld] stands
    in its place.
    """
    replies, verdicts = played(release.path, "keyword", "lite")
    failed = [v.id for v in verdicts if v.check == "criterion" and v.label == "FAIL"]
    harmful, unscored = failed[0], next(i for i in failed if i != failed[0])

    def said(r: Reply) -> Reply:
        return (
            r.model_copy(update={"turns": tuple(f"{MARKER} {t}" for t in r.turns)})
            if r.id in (harmful, unscored)
            else r
        )

    def judged(v: Verdict) -> Verdict:
        if v.id == harmful:
            return v.model_copy(update={"label": "FAIL", "incident": "harm", "evidence": (MARKER,)})
        if v.id == unscored and v.check == "criterion":
            return v.model_copy(
                update={"label": None, "incident": None, "unscored": "unparsable", "evidence": (MARKER,)}
            )
        return v

    found = {
        "example__m/r1": verified(
            release, "m", 0.0, replies=[said(r) for r in replies], verdicts=[judged(v) for v in verdicts]
        ),
        "example__bad/r1": refused("changed_verdict", message=f"the reply says {MARKER}"),
    }
    files = everything(built(tmp_path, release, found)[0])
    assert [name for name, content in files.items() if MARKER.encode() in content] == []
    transcripts = unpacked(files["example__m/r1/transcripts.html"].decode())
    for held in (files["example__m/r1/report.html"].decode(), *transcripts.values()):
        assert MARKER not in held
    assert "[withheld]" in transcripts["texts-0"]
    assert b"[withheld]" in files["example__m/r1/report.html"]


def free_texts(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where texts stand in a plain value."""
    if isinstance(value, str):
        return [path]
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, part in inner for found in free_texts(part, (*path, key))]


def put(value: Any, path: tuple[str | int, ...], text: str) -> Any:
    """The same value with a text at this place."""
    if not path:
        return text
    changed: Any = copy(value)
    changed[path[0]] = put(value[path[0]], path[1:], text)
    return changed


def all_hostile(honest: Submission) -> tuple[Submission, list[str]]:
    """A submission with a formula that holds markup in every field whose form leaves room for it, all at once; and
    these fields' names.
    """
    record = honest.model_dump(mode="json")
    people: dict[str, Any] = {
        "judge": "j",
        "set": "a-set",
        "rows": "all",
        "kind": "criterion",
        "prompt_hash": "x",
        "dataset": "x",
    }
    people |= {"items": 1, "decided": 1, "statistic": "Cohen's κ"}
    people |= {name: Estimate(value=None, reason="x").model_dump() for name in ("kappa", "people", "between")}
    record["judge"]["people"] = [people]
    record["generation"]["generation_kwargs"] = {"until": ["x"], "stop": "x"}
    changed: list[str] = []
    for path in free_texts(record):
        hostile = put(record, path, FORMULA)
        try:
            Submission.model_validate_json(json.dumps(hostile), strict=True)
        except ValidationError:
            continue
        record = hostile
        changed.append(".".join(map(str, path)))
    record["generation"]["arguments"] = {FORMULA: FORMULA}
    return Submission.model_validate_json(json.dumps(record), strict=True), changed


def test_every_field_may_be_hostile_at_once(release: Release, tmp_path: Path) -> None:
    """Formulas with markup in all free fields, and control characters in names: pages and downloads show them as text,
    and no CSV cell begins with one.
    """
    good = verified(release, "m", judge=JudgeIdentity(FORMULA, FORMULA))
    assert good.submission
    assert good.scorecard
    submission, changed = all_hostile(good.submission)
    assert {"contact.name", "model.revision", "generation.backend", "generation.arguments.model"} <= {*changed}
    assert {"judge.name", "judge.prompt_hash", "judge.answered_as.0", "declaration.note"} <= {*changed}
    assert {"judge.people.0.kappa.reason", "judge.agreement.0.note"} <= {*changed}
    assert {"generation.generation_kwargs.until.0", "generation.task_version", "dataset.version"} <= {*changed}
    assert {"model.name", "model.organization", "dataset.tier", "submitted", "format"}.isdisjoint(changed)
    judge = good.scorecard.judge.model_copy(update={"people": submission.judge.people})
    dataset = good.scorecard.dataset.model_copy(update={"version": FORMULA})
    card = good.scorecard.model_copy(update={"judge": judge, "dataset": dataset})
    bad = replace(good, submission=submission, scorecard=card, flags=[Problem(FORMULA, "", FORMULA)])
    folder = f"\u202e\x1b[31m{FORMULA.replace('/', '')}"
    out, _ = built(tmp_path, release, {"example__m/r1": bad, f"{folder}/r1": refused(FORMULA)})
    for name in ("index.html", "example__m/r1.html"):
        page = Page(read(out, name))
        counts = Counter(tag for tag, _ in page.tags)
        assert (counts["script"], counts["img"], counts["iframe"]) == (int(name == "index.html"), 0, 0)
        assert [a for _, attributes in page.tags for a in attributes if a.startswith("on")] == []
        assert FORMULA in page.text
        assert "1337" not in page.text
        links = {str(a["href"]) for tag, a in page.tags if tag in ("a", "link")}
        assert {x for x in links if ":" in x} <= {"https://findahelpline.com", "data:,"}
        assert "default-src 'none'" in read(out, name)
    for name in ("index.html", "leaderboard.json", "leaderboard.csv"):
        assert not set(read(out, name)) & {"\u202e", "\x1b"}
    texts = [read(out, "leaderboard.csv"), *export(bad, "csv", release).values()]
    cells = [c for text in texts for row in csv.reader(text.splitlines()) for c in row]
    assert sum(FORMULA in c for c in cells) > 5
    assert [c for c in cells if c[:1] in "=+@\t\r" and c] == []
    assert [c for c in cells if c[:1] == "-" and not re.fullmatch(r"-[0-9.e\-]+", c)] == []


def test_same_replies_under_two_names_are_flagged(release: Release, tmp_path: Path) -> None:
    """Words that only one sample got, found again under another model's name: both rows say so, with the share. Runs of
    one model, and canned words, are no news.
    """
    replies, verdicts = played(release.path, "keyword", "lite")

    def said(start: str, canned: bool = False) -> list[Reply]:
        words = "You matter, and I am glad that you wrote; shall we look at it together"
        own = [f"{start}{words} {'' if canned else r.id}?" for r in replies]
        return [r.model_copy(update={"turns": (text,) * len(r.turns)}) for r, text in zip(replies, own, strict=True)]

    def run(name: str, words: list[Reply]) -> Verified:
        return verified(release, name, replies=words, verdicts=verdicts)

    found = {
        "example__one/r1": run("one", said("")),
        "example__one/r2": run("one", said("")),
        "example__two/r1": run("two", said("")),
        "example__other/r1": run("other", said("Oh. ")),
        "example__canned/r1": run("canned", said("", canned=True)),
        "example__canned-too/r1": run("canned-too", said("", canned=True)),
    }
    board = built(tmp_path, release, found)[1]
    told = {e.name: [f for f in e.flags if "identical" in f] for e in board.entries}
    assert told == {
        "example__one/r1": ["100% of the replies are identical to those of example/two"],
        "example__one/r2": ["100% of the replies are identical to those of example/two"],
        "example__two/r1": ["100% of the replies are identical to those of example/one"],
        "example__other/r1": [],
        "example__canned/r1": [],
        "example__canned-too/r1": [],
    }


def test_csv_cell_is_no_formula() -> None:
    """Text that a spreadsheet would run begins with an apostrophe; numbers stay numbers."""
    cells: dict[str | float, str | float] = {
        **{"\uff1d1+1": "'\uff1d1+1", "\u00a0=1+1": "'=1+1", "=1+1": "'=1+1", "@sum": "'@sum", "-cmd": "'-cmd"},
        **{"+x": "'+x", "\t=1": "'=1", "plain": "plain", -3.5: -3.5, "a\nb": "a b"},
    }
    assert {given: cell(given) for given in cells} == cells


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


def test_same_submissions_give_the_same_bytes(release: Release, tmp_path: Path) -> None:
    """Built twice, from folders of other names made in another order, every file is equal; no path of this machine is
    in any.
    """
    found = {k: v for k, v in some(release).items() if k.split("__")[1] in ("strong/r1", "demo/r1", "old/r1", "bad/r1")}
    one, _ = built(tmp_path / "one", release, found)
    two, _ = built(tmp_path / "another place", release, dict(reversed(found.items())))
    first = everything(one)
    assert first == everything(two)
    assert [name for name, content in first.items() if str(tmp_path).encode() in content] == []


def test_no_submission_gives_a_page_that_says_so(release: Release, tmp_path: Path) -> None:
    """An empty folder is no error, and the downloads are whole."""
    out, _ = built(tmp_path, release, {})
    assert "No submission has been verified so far" in Page(read(out)).text
    assert sorted(everything(out)) == ["index.html", "leaderboard.csv", "leaderboard.json"]
    assert json.loads(read(out, "leaderboard.json"))["tables"] == []


def test_names_that_meet_get_pages_of_their_own(release: Release, tmp_path: Path) -> None:
    """Runs of one name in two versions' folders, names that differ in case only, and odd folder names don't overwrite
    each other.
    """
    one = verified(release, "m", 0.4)
    found = dict.fromkeys(
        [
            "a/example__m/r1",
            "b/example__m/r1",
            "b/example__m/R1",
            "c/example__m/r1-2",
            "c/example__m/r1.html",
            "c/example__m/bad name",
        ],
        one,
    )
    out, board = built(tmp_path, release, found)
    pages = [e.page for e in board.entries]
    assert len({p.casefold() for p in pages}) == 6
    assert all((out / e.page).is_file() and (out / e.report).is_file() for e in board.entries)
    assert "example__m/run.html" in pages


def test_rejudged_run_is_marked_until_it_changes(release: Release, tmp_path: Path) -> None:
    """A list by a maintainer marks a run; an edited, unknown or repeated one is named, all at once."""
    found = {"example__m/r1": verified(release, "m"), "example__n/r1": verified(release, "n")}
    folder, marks = place(tmp_path / "s", found), tmp_path / "rejudged.yaml"
    (folder / "example__m" / "r1" / "SHA256SUMS").write_text("sums")
    sums = hashlib.sha256(b"sums").hexdigest()
    marks.write_text(f"- {{run: example__m/r1, sha256: {sums}, date: 2026-11-23, by: A maintainer}}\n")
    build(folder, tmp_path / "board", [release], marks, verifier(folder, found))
    told = {r[1].split()[0]: r[1] for r in Page(read(tmp_path / "board")).part("ranked")}
    assert "re-judged on 2026-11-23 by A maintainer" in told["m"]
    assert "self-reported" in told["n"]
    marks.write_text(
        f"- {{run: example__m/r1, sha256: {'0' * 64}, date: 2026-11-23, by: A}}\n- {{run: ../x, sha256: "
        f"{sums}, date: 2026-11-23, by: A}}\n" * 2
    )
    with pytest.raises(RunError) as error:
        build(folder, tmp_path / "board", [release], marks, verifier(folder, found))
    for words in ("it changed since it was judged again", "../x: no such submission", "listed 2 times"):
        assert words in str(error.value)
    marks.write_text("- {run: example__m/r1, sha256: short, date: yesterday}\n")
    with pytest.raises(RunError, match=r"sha256.*\n.*date.*\n.*by"):
        build(folder, tmp_path / "board", [release], marks, verifier(folder, found))


@pytest.mark.parametrize("where", ["other", "submissions", ".", "submissions/board"])
def test_folder_that_is_no_board_is_left_alone(release: Release, tmp_path: Path, where: str) -> None:
    """Only an empty folder or an earlier board is replaced; never the submissions, nor what they stand in."""
    folder = place(tmp_path / "submissions", {})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    before = everything(tmp_path)
    with pytest.raises(RunError):
        build(folder, tmp_path / where, [release], None, verifier(folder, {}))
    assert everything(tmp_path) == before


def test_a_huge_file_in_an_earlier_boards_place_is_none(release: Release, tmp_path: Path) -> None:
    """Three gigabytes that take no room on the disk are not read."""
    folder = place(tmp_path / "submissions", {})
    (tmp_path / "board").mkdir()
    with (tmp_path / "board" / "leaderboard.json").open("wb") as file:
        file.truncate(3 * 2**30)
    with pytest.raises(RunError, match="is not a leaderboard"):
        build(folder, tmp_path / "board", [release], None, verifier(folder, {}))


def test_failing_build_leaves_the_earlier_board(release: Release, tmp_path: Path) -> None:
    """A board is replaced whole, and stale pages go with it; a build that ends early leaves what was there, and nothing
    beside it.
    """
    found = {"example__m/r1": verified(release, "m")}
    out, _ = built(tmp_path, release, found)
    before = everything(out)
    folder = tmp_path / "submissions"

    def broken(path: Path, release: Release) -> Verified:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        build(folder, out, [release], None, broken)
    assert everything(out) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["board", "submissions"]
    build(folder, out, [release], None, lambda path, release: refused("gone"))
    assert "example__m/r1.html" not in everything(out)


def test_every_submission_is_found_and_links_are_not_followed(release: Release, tmp_path: Path) -> None:
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
    board = build(tmp_path / "s", tmp_path / "board", [release])
    assert {r.name for r in board.refused} == {"a/x__y/r", "b", "link"}
    assert next(r.kinds for r in board.refused if r.name == "link") == (("link", 1),)
    assert "missing_file" in dict(next(r.kinds for r in board.refused if r.name == "b"))


def test_versions_sort_as_numbers(release: Release) -> None:
    """0.10 comes after 0.9."""
    assert sorted(["0.10.0", "0.9.3", "1.0.0+held-out.a"], key=version_key) == ["0.9.3", "0.10.0", "1.0.0+held-out.a"]
    assert newest_first([release]) == [release]


def test_command_says_what_it_did(release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line per submission with the first reason, exit code 1 where any is refused, 2 without a folder or a
    dataset.
    """
    (tmp_path / "s" / "a__b" / "r").mkdir(parents=True)
    (tmp_path / "s" / "a__b" / "r" / "submission.json").write_text("{")
    arguments = ["--out", str(tmp_path / "board"), "--dataset", str(release.path)]
    assert main(["board", str(tmp_path / "s"), *arguments]) == 1
    said = capsys.readouterr().out.splitlines()
    assert re.match(r"1 of 1, \d+ s: a__b/r: refused: \S+: .+ \(and \d+ more\)$", said[0])
    assert said[-1].endswith("index.html: 0 verified, 0 demos, 1 refused")
    assert main(["board", str(tmp_path / "none"), *arguments]) == 2
    assert "no such folder" in capsys.readouterr().err
    assert main(["board", str(tmp_path / "s"), "--out", str(tmp_path / "b2"), "--dataset", str(tmp_path)]) == 2
    assert not (tmp_path / "b2").exists()
