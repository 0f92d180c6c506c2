"""`helmbench read` and `helmbench field`: anybody's replies, read by a loopback judge, and what is counted of them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from math import atanh, sqrt, tanh
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from helmbench.cli.app import main
from scipy.stats import spearmanr
from statsmodels.stats.proportion import proportion_confint
from support.browser import VIEWS, Browser
from support.judge_server import Said, Serve, failed, said
from support.labelled_sets import mapping_file

from dataset_builder.release import Release
from helmbench_common.formats.plain_file import sha256

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
ASKS = {"kind": "criterion", "by": "answers-the-need"}
FIELDS = {"id": "id", "text": "said", "reply": "reply", "system": "bot", "family": "said"}


def by_reply(body: dict[str, Any], _: int) -> Said:
    """The label in the reply, such as kettle-PASS or, of two judges, kettle-PASS-FAIL; kettle-mumble can't be read."""
    (words,) = set(re.findall(r"kettle-([\w-]+)", body["messages"][0]["content"])) or {"mumble"}
    word = words.split("-")[-1 if body["model"] == "judge-2" else 0]
    labels = body["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
    label = next((own for own in labels if own.startswith(word)), None)
    return said(json.dumps({"label": label, "quotes": []}) if label else "Well, well.")


class Found(NamedTuple):
    """What one `helmbench read` wrote."""

    code: int
    table: Any
    readings: list[Any]
    page: str

    def rows(self, *names: str) -> list[tuple[Any, ...]]:
        return [tuple(row[name] for name in names) for row in self.table["systems"]]


Read = Callable[..., Found]


@pytest.fixture
def read(serve: Serve, release: Release, tmp_path: Path) -> Read:
    """Reads CASES with judge-1 on loopback into a folder."""
    server = serve(by_reply)

    def one(cases: Path | str, *more: str, judge: str = "judge-1", url: str = server.url) -> Found:
        out = tmp_path / "out"
        command = ["read", str(cases), "--judge", judge, "--dataset", str(release.path), "--out", str(out)]
        if code := main([*command, "--base-url", url, *more]):
            return Found(code, {}, [], "")
        lines, page = ((out / name).read_text(encoding="utf-8") for name in ("readings.jsonl", "page.html"))
        return Found(0, json.loads((out / "table.json").read_bytes()), [*map(json.loads, lines.splitlines())], page)

    return one


def log(root: Path, *given: str, asks: dict[str, Any] = ASKS, source: Any = None, **top: Any) -> Path:
    """A mapping file next to a log. `given`: `system message label`, and labels of Ana and Ben if they gave some."""
    rows = []
    for n, words in enumerate(given):
        bot, message, label, *people = words.split()
        reply = "" if label == "-" else f"It is a kettle-{label}."
        row = {"id": f"r{n}", "bot": bot, "said": f"What hums, {message}?", "reply": reply}
        rows.append(row | dict(zip(("ana", "ben"), people, strict=False)))
    (root / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    labels = {who: who for who in ("ana", "ben") if who in rows[0]}
    where = {"name": "log", "path": "log.jsonl", "fields": FIELDS | {"labels": labels}} | (source or {})
    return mapping_file(root / "kettles.yaml", asks, where, **top)


def test_systems_are_counted_by_hand(read: Read, tmp_path: Path, capsys: Capture) -> None:
    """Shares, Wilson's interval at the number of messages, bounds over unread replies, and no rank below 80 %. An empty
    reply is kept and fails by rule.
    """
    given = ["a m1 PASS", "a m1 PASS", "a m2 PARTIAL", "a m3 FAIL", "a m4 PASS"]
    given += ["b m1 PASS", "b m2 PASS", "b m3 mumble", "b m4 PASS", "b m5 -", "c m1 PASS", "c m2 mumble"]
    found = read(log(tmp_path, *given))
    rows: list[Any] = [("b", 1, 5, 5, 1, 0.6, 0.8), ("a", 2, 5, 4, 0, 0.6, 0.6), ("c", None, 2, 2, 1, 0.5, 1.0)]
    assert found.rows("system", "rank", "cases", "families", "unscored", "low_bound", "high_bound") == rows
    a = found.table["systems"][1]
    assert {name: own["value"] for name, own in a["labels"].items()} == {"FAIL": 0.2, "PARTIAL": 0.2, "PASS": 0.6}
    assert (a["score"]["low"], a["score"]["high"]) == pytest.approx(proportion_confint(2.4, 4, method="wilson"))
    mumbled, empty = found.readings[7], found.readings[9]
    assert (empty["by_rule"], empty["label"], mumbled["unscored"]) == (True, "FAIL", "unparsable")
    assert re.search(r"\nb +1 +5 +5 +1 +75\.0 % \(.*\) +60\.0 to 80\.0 %", capsys.readouterr().out)
    assert "no rank: under 80 % read" in found.page


def test_the_order_of_systems_is_compared_with_peoples(read: Read, tmp_path: Path, capsys: Capture) -> None:
    """Spearman's ρ and Fisher's interval; readings and people's labels go into `helmbench agreement` as they are."""
    judged, peoples = {"a": 0, "b": 1, "c": 3, "d": 2, "e": 4}, {"a": 0, "b": 2, "c": 1, "d": 3, "e": 4}
    word = ("FAIL", "PASS")
    cases = [(bot, n, word[n < judged[bot]], word[n < peoples[bot]]) for bot in judged for n in range(4)]
    found = read(log(tmp_path, *(f"{bot} m{n} {ours} {theirs} {theirs}" for bot, n, ours, theirs in cases)), "--quiet")
    rho = found.table["spearman"]["answers-the-need"]
    expected, half = spearmanr([*judged.values()], [*peoples.values()]).statistic, 1.96 * 1.03 / sqrt(len(judged) - 3)
    limits = (tanh(atanh(expected) - half), tanh(atanh(expected) + half))
    assert (rho["value"], rho["low"], rho["high"]) == pytest.approx((expected, *limits))
    assert found.rows("system", "rank")[0] == ("e", 1)
    assert {bot: people["value"] * 4 for bot, people in found.rows("system", "people")} == peoples
    assert main(["agreement", *(str(tmp_path / "out" / f"{n}.jsonl") for n in ("readings", "people")), "--json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)["overall"]["raters"]) == ["ana", "ben", "judge-1"]


def test_a_query_and_conversations_that_the_assistant_begins(read: Read, tmp_path: Path) -> None:
    """Rows that SQL makes; turns with roles, of which the last is the reply; CASES of `helmbench annotate`."""
    talk = {"bot": "Hello.", "user": "What hums?", "Bot": "It is a kettle-PASS."}
    turns = [{"who": who, "words": words} for who, words in talk.items()]
    lines = "".join(json.dumps({"n": n, "talk": turns}) + "\n" for n in range(3))
    (tmp_path / "talks.jsonl").write_text(lines, encoding="utf-8")
    query = "SELECT n, talk, if(n < 2, 'old', 'new') AS bot FROM 'talks.jsonl' WHERE n > 0 ORDER BY n"
    fields = {"id": "n", "turns": "talk", "role": "who", "content": "words", "system": "bot"}
    found = read(mapping_file(tmp_path / "talks.yaml", ASKS, {"name": "t", "query": query, "fields": fields}))
    assert sorted(found.rows("system", "cases")) == [("new", 1), ("old", 1)]
    turn = re.compile(r'"kicker">(\w+)</p><div class="quote">([^<]+)')
    assert turn.findall(found.page)[:2] == [("assistant", "Hello."), ("user", "What hums?")]
    case = {"id": "a", "criterion": "acts-at-once", "said": ["Hi."], "reply": "A kettle-FAIL.", "system": "x"}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case) + "\n", encoding="utf-8")
    (reading,) = read(tmp_path / "cases.jsonl").readings
    assert (reading["id"], reading["criterion"], reading["system"]) == ("a", "acts-at-once", "x")


def test_every_kind_of_question(read: Read, tmp_path: Path) -> None:
    """The authors' own question, ratings, refusals by rule; a panel decides by majority, and ties go to the worse."""
    own = {"kind": "criterion", "question": {"title": "Hums", "text": "Hums?", "labels": ["no", "a_bit", "yes"]}}
    found = read(log(tmp_path, "a m1 yes yes", "a m2 no a_bit", asks=own))
    assert [(r["label"], r["criterion"]) for r in found.readings] == [("yes", "own-question"), ("no", "own-question")]
    assert found.table["systems"][0]["score"]["value"] == found.table["systems"][0]["people"]["value"] == 0.5
    found = read(log(tmp_path, "a m1 5", "a m2 2", "a m3 mumble", asks={"kind": "rating", "by": "no_crisis"}))
    assert found.table["systems"][0]["score"]["value"] == 3.5
    assert found.rows("low_bound", "high_bound") == [(8 / 3, 4.0)]
    refuses, path = log(tmp_path, "a m1 PASS", "a m2 -", "a m3 no", asks={"kind": "refusal"}), tmp_path / "log.jsonl"
    text = path.read_text(encoding="utf-8").replace("It is a kettle-no.", "I'm sorry, but I can't help with that.")
    path.write_text(text, encoding="utf-8")
    assert [r["label"] or r["unscored"] for r in read(refuses, judge="offline").readings] == [
        "answer",
        "empty",
        "refusal",
    ]
    panel = log(tmp_path, "a m1 PASS-PASS", "a m2 PASS-FAIL", "a m3 mumble-PASS", "a m4 mumble-mumble")
    found = read(panel, "--judge", "judge-2")
    assert (found.table["judges"], found.rows("unscored", "low_bound")) == (["judge-1", "judge-2"], [(1, 0.5)])


def test_each_question_is_asked_once_and_a_stop_is_resumed(read: Read, serve: Serve, tmp_path: Path) -> None:
    """A second run asks nothing; after a server that stopped only the rest is asked."""
    own = log(tmp_path, *(f"a m{n} PASS" for n in range(6)))
    stopping, again = serve(by_reply), serve(by_reply)
    stopping.script = lambda body, n: by_reply(body, n) if stopping.total <= 2 else failed(401)
    assert read(own, "--concurrency", "1", url=stopping.url).code == 3
    assert read(own, url=again.url).code == 0
    assert ({*again.asked.values()}, again.total) == ({1}, 4)
    assert [r["label"] for r in read(own, url=again.url).readings] == ["PASS"] * 6
    assert (read(own, "--sample", "2", url=again.url).rows("cases"), again.total) == ([(2,)], 4)


def test_the_page_withholds_and_filters(read: Read, browser: Browser, tmp_path: Path) -> None:
    """A reply that may hold means or encouragement only with --show-withheld, and so if nobody could read it; of a set
    that may only be asked about, no text at all.
    """
    given = ("a m1 PASS", "b m2 FAIL")
    assert "kettle-FAIL" in read(log(tmp_path, *given)).page  # of a question that finds no harm
    means = {"kind": "criterion", "by": "withholds-the-means"}
    found = read(log(tmp_path, *given, "c m3 mumble", asks=means))
    assert [f"kettle-{label}" in found.page for label in ("PASS", "FAIL", "mumble")] == [True, False, False]
    read(log(tmp_path, *given, asks=means))
    browser.show(tmp_path / "out/page.html")
    count = "return document.querySelectorAll('.case:not([hidden])').length"
    assert browser.script(count) == 2
    browser.driver.find_element("css selector", "#filter input").send_keys("M1")
    assert (browser.script(count), browser.console()) == (1, [])
    browser.show(tmp_path / "out/page.html", "phone")
    assert browser.overflow() == 0
    assert "kettle-FAIL" in read(log(tmp_path, *given, asks=means), "--show-withheld").page
    for may, shown in (("ask", False), ("show", True)):
        page = read(log(tmp_path, *given, repository="a/b", may=may)).page
        assert ("kettle-PASS" in page, "What hums" in page) == (shown, shown)


def test_axe_finds_nothing(read: Read, browser: Browser, tmp_path: Path) -> None:
    read(log(tmp_path, "a m1 PASS", "b m2 FAIL"), "--show-withheld")
    for view in VIEWS:
        browser.show(tmp_path / "out/page.html", view)
        browser.script("for (const d of document.querySelectorAll('details')) d.open = true")
        assert browser.violations() == [], view


def test_sets_are_listed_and_shown(capsys: Capture, tmp_path: Path, monkeypatch: Patch) -> None:
    """Where they come from and what is asked; not whose words they hold."""
    monkeypatch.setenv("HELMBENCH_FIELD", str(tmp_path / "field"))
    (tmp_path / "field" / "xstest").mkdir(parents=True)
    assert main(["field", "list"]) == 0
    assert re.search(r"(?s)\nschizobench +keeps-to-reality +no .*\nxstest +refusal +yes ", capsys.readouterr().out)
    assert main(["field", "show", "therapists"]) == 0
    assert re.search(r"(?s)commit +[0-9a-f]{40}\n.*files +1, checked by sha256", capsys.readouterr().out)


def test_a_set_is_fetched_at_its_commit(read: Read, tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    """With git, into the cache; a changed file is named, and a cache that a commit could publish is refused."""
    origin, where, cache = tmp_path / "host/a/b", tmp_path / "own", tmp_path / "field"
    for folder in (origin, where):
        folder.mkdir(parents=True)
        log(folder, "a m1 PASS PASS")
    git = ["git", "-C", str(origin), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "log.jsonl"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    own = log(where, "a m1 PASS PASS", repository="a/b", commit=commit)
    pinned = where / "kettles.sha256"
    pinned.write_text(f"{sha256(origin / 'log.jsonl', '')}  log.jsonl\n", encoding="utf-8")
    monkeypatch.setenv("HELMBENCH_GIT", (tmp_path / "host").as_uri())
    monkeypatch.setenv("HELMBENCH_FIELD", str(cache))
    fetch = ["field", "fetch", str(own)]
    assert main(fetch) == 0
    assert read(own, "--from", str(cache / "kettles")).table["source"] == f"a/b@{commit}"
    corpus = ["corpus", str(own), "--out", str(tmp_path / "corpus"), "--from", str(cache / "kettles")]
    assert main(corpus) == 0
    assert (tmp_path / "corpus/MANIFEST.json").exists()
    assert not (tmp_path / "corpus/labels.json").exists()  # its labels are of the replies
    (cache / "kettles/log.jsonl").write_text("{}\n", encoding="utf-8")
    capsys.readouterr()
    changed = f"{cache / 'kettles/log.jsonl'}: has changed; expected the file of a/b at commit {commit[:12]}\n"
    assert (read(own, "--from", str(cache / "kettles")).code, main(corpus)) == (2, 2)
    assert capsys.readouterr().err == changed * 2
    assert main(fetch) == 0  # restores it
    pinned.write_text(f"{'0' * 64}  log.jsonl\n", encoding="utf-8")
    assert main(fetch) == 2
    assert capsys.readouterr().err == changed
    monkeypatch.setenv("HELMBENCH_FIELD", str(origin / "field"))
    assert main(fetch) == 2
    assert f"is inside the checkout {origin}" in capsys.readouterr().err
    assert not (origin / "field").exists()


def test_bad_input_is_one_line(read: Read, tmp_path: Path, capsys: Capture) -> None:
    """The file, the row, and what was expected; nothing is asked or written."""
    talk = FIELDS | {"text": None, "turns": "said", "family": None}
    for reply, said_, fields, told in (
        (
            "Hm.",
            "Hi.",
            FIELDS | {"reply": "answer"},
            "1: the row has no field 'answer', which the mapping file names; ",
        ),
        (None, "Hi.", FIELDS, "2: the row has no field 'reply', which the mapping file names; "),
        ("Hm.", "Hi.", FIELDS | {"labels": {"ana": "bot"}}, "2: 'bot' is 'b'; expected one of FAIL, PARTIAL, PASS"),
        ("Hm.", ["Hi."], talk | {"reply": None}, "2: 'said' ends without a reply; expected one"),
        ("Hm.", ["Hi.", "Hello."], talk, "2: 'said' doesn't end with the user; expected the user's words last"),
        ("Hm.", [], talk, "2: 'said' is empty; expected the user's words last"),
    ):
        own, path = log(tmp_path, "PASS m1 PASS", source={"fields": fields}), tmp_path / "log.jsonl"
        first = json.loads(path.read_bytes())
        first["said"] = ["Hi.", "Hello.", "Well?"][: 3 if fields["reply"] else 2] if "turns" in fields else "Hi."
        second = {"id": "r2", "bot": "b", "said": said_} | ({"reply": reply} if reply else {})
        path.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n", encoding="utf-8")
        assert read(own).code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"{path}:{told}")
    assert not (tmp_path / "out").exists()
