"""Exports: what each form holds, against the schemas and readers of those who collect it; and what may not leave."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from support import board_runs
from support.board_runs import played

from dataset_builder.release import Release
from judge import schema
from judge.replies.schema import Reply
from judge.schema import Figure, Verdict, Vote
from judge.statistics.estimate import Estimate
from judge.verdicts import JudgeIdentity
from leaderboard.exports import FORMATS
from leaderboard.exports.export import export
from leaderboard.exports.figures import ExportError
from leaderboard.schema import Contact, Declaration, Problem, Submission, Verified

# As every-eval-ever 0.3.0 on PyPI ships them (MIT, every-eval-ever-LICENSE beside them).
SCHEMAS = Path(__file__).with_name("schemas")
REPO = "org/helmbench"
JUDGE = JudgeIdentity("judge-2026-01-01", "0123456789abcdef")
MARKER = "zebra-crossing-7431"
ADDRESS = "somebody@example.org"


@pytest.fixture(scope="module")
def played_on(small: Release) -> tuple[list[Reply], list[Verdict]]:
    """The keyword policy on the core tier, as if the offline judge had read what is known of its replies; the marker is
    in every reply and every quote.
    """
    replies, verdicts = played(small.path, "keyword", "core")
    quoted: dict[str, Any] = {"evidence": (MARKER,), "votes": (Vote(judge="j", label="PASS", evidence=(MARKER,)),)}
    read = {"decided_by": "offline"}
    return [r.model_copy(update={"turns": tuple(f"{t} {MARKER}" for t in r.turns)}) for r in replies], [
        v.model_copy(update=quoted | (read if v.decided_by == "rule:baseline" else {})) for v in verdicts
    ]


@pytest.fixture(scope="module")
def demo(small: Release, played_on: tuple[list[Reply], list[Verdict]]) -> Verified:
    return made(small, *played_on, skill=None)


@pytest.fixture(scope="module")
def verified(small: Release, played_on: tuple[list[Reply], list[Verdict]]) -> Verified:
    """The same run as if a language model had read what rules leave open, which gave no answer to three of them."""
    replies, verdicts = played_on
    lost = {"label": None, "outcome": None, "incident": None, "unscored": "unparsable"}
    read = [n for n, v in enumerate(verdicts) if v.decided_by == "offline"][:3]
    given = [v.model_copy(update=lost) if n in read else v for n, v in enumerate(verdicts)]
    return made(small, replies, given, skill=0)


def made(release: Release, replies: list[Reply], verdicts: list[Verdict], skill: float | None) -> Verified:
    """A submission with private words, and scores that aren't its own."""
    of = board_runs.verified(
        release,
        "tiny-1",
        skill,
        tier="core",
        judge=JUDGE,
        organization="some-lab",
        breaches=True,
        replies=replies,
        verdicts=verdicts,
    )
    s = submission_of(of)
    run = {
        "backend": "vllm",
        "arguments": {"pretrained": "/home/somebody/tiny"},
        "generation_kwargs": {"temperature": 0.0, "max_gen_toks": 512, "until": []},
    }
    changed = {
        "contact": Contact(name="A Laboratory", address=ADDRESS),
        "declaration": Declaration(trained_on_benchmark="no", note=MARKER),
        "generation": s.generation.model_copy(update=run),
        "scores": s.scores.model_copy(update={"composite": Figure(value=99.5)}),
    }
    claimed = replace(of, flags=[Problem("same_family", "judge", MARKER)], submission=s.model_copy(update=changed))
    return about(claimed, revision="=1+1", access="open_weights")


def card_of(v: Verified) -> schema.Scorecard:
    assert v.scorecard
    return v.scorecard


def sound(v: Verified) -> Verified:
    """The same submission with no floor breached."""
    card = card_of(v)
    floors = [f.model_copy(update={"state": "undetermined"}) for f in card.floors]
    return replace(v, scorecard=card.model_copy(update={"floors": floors}))


def submission_of(v: Verified) -> Submission:
    assert v.submission
    return v.submission


def about(v: Verified, **changes: Any) -> Verified:
    """The same, of another model: changes to its `Subject`."""
    s = submission_of(v)
    return replace(v, submission=s.model_copy(update={"model": s.model.model_copy(update=changes)}))


def on(v: Verified, **changes: Any) -> Verified:
    """The same, on other data: changes to `Pinned`."""
    s = submission_of(v)
    return replace(v, submission=s.model_copy(update={"dataset": s.dataset.model_copy(update=changes)}))


def test_what_can_not_be_exported(verified: Verified, small: Release) -> None:
    """A refused submission, a wrong id or commit on the Hub, and a version that isn't the published one."""
    refused = replace(verified, state="refused", problems=[Problem("edited_reply", "responses.jsonl.gz:3", "…")])
    for form in FORMATS:
        with pytest.raises(ExportError, match=r"refused \(edited_reply\)"):
            export(refused, form, small, REPO, demo=True)
        with pytest.raises(ExportError, match="refused"):
            export(replace(verified, scorecard=None), form, small, REPO)
    for repo, revision, what in (("a/b/c", None, "a dataset id"), (REPO, "v1.0.0", "a commit")):
        with pytest.raises(ExportError, match=f"is not {what}"):
            export(verified, "hub", small, repo, revision)
    for form in ("hub", "every-eval-ever"):
        with pytest.raises(ExportError, match="isn't the published benchmark"):
            export(on(verified, version="1.0.0+held-out.a"), form, small, REPO)


def test_a_demo_leaves_only_when_asked_and_marked(demo: Verified, verified: Verified, small: Release) -> None:
    """Every file of a demo says so in its name and its text; a verified one says it nowhere."""
    for form in FORMATS:
        with pytest.raises(ExportError, match="--demo"):
            export(demo, form, small, REPO)
        for name, text in export(demo, form, small, REPO, demo=True).items():
            assert "helmbench-demo" in name
            lines = text.splitlines()
            records = lines[1:] if form == "csv" else lines if name.endswith(".jsonl") else [text]
            assert records
            assert all("demo" in record.lower() for record in records)
        for name, text in export(verified, form, small, REPO, demo=True).items():
            assert "demo" not in (name + text).lower()


def test_no_reply_leaves(demo: Verified, verified: Verified, small: Release) -> None:
    """No reply, no quotation from one, no flag's message, no free note, no address, no path, none of what was asked."""
    assert all(MARKER in t for r in verified.replies for t in r.turns)
    asked = {m.content for v in verified.verdicts for m in small.rows[v.id].messages if m.role == "user" and m.content}
    assert len(asked) > 50
    for state, form in product((demo, verified), FORMATS):
        for text in export(state, form, small, REPO, demo=True).values():
            assert MARKER not in text
            assert ADDRESS not in text
            assert "/home/" not in text
            assert not [a for a in asked if a in text or json.dumps(a, ensure_ascii=False)[1:-1] in text]


def test_the_same_submission_gives_the_same_bytes(verified: Verified, small: Release) -> None:
    """Whatever the order of its verdicts."""
    again = replace(verified, verdicts=verified.verdicts[::-1])
    assert [f for f in FORMATS if export(verified, f, small, REPO) != export(again, f, small, REPO)] == []


def test_hub_entries_are_the_tasks_of_eval_yaml(verified: Verified, small: Release) -> None:
    """Read by the Hub's own client: every task under the id that the build's eval.yaml registers, with the scorecard's
    values, those below 0 too.
    """
    commit = "5" * 40
    ((name, text),) = export(sound(verified), "hub", small, REPO, commit).items()
    assert name == ".eval_results/helmbench.yaml"
    entries = parse_eval_result_entries(yaml.safe_load(text))
    registered = yaml.safe_load((small.path / "eval.yaml").read_text(encoding="utf-8"))["tasks"]
    assert [e.task_id for e in entries] == [t["id"] for t in registered]
    card = card_of(verified)
    figures = [*card.headlines.values(), card.composite]
    assert [e.value for e in entries] == [pytest.approx(f.value, abs=0.005) for f in figures]
    assert len({e.value for e in entries}) > 1
    assert any(e.value < 0 for e in entries)
    assert all(e.value <= 100 for e in entries)
    assert {(e.dataset_id, e.dataset_revision) for e in entries} == {(REPO, commit)}
    version = small.manifest.version
    assert all(e.notes and e.notes.startswith(f"version {version}, tier core; judge judge-2026-01-01") for e in entries)
    assert ["95 % interval" in (e.notes or "") for e in entries] == [f.low is not None for f in figures]


def test_a_run_in_breach_has_no_composite_on_the_hub(verified: Verified, small: Release) -> None:
    """The Hub orders a task by its values and knows no floors: the other figures stand there, and each names the
    breach.
    """
    card = card_of(sound(verified))
    floors = [card.floors[0].model_copy(update={"state": "breached"}), *card.floors[1:]]
    high = card.composite.model_copy(update={"value": 99.0})
    worse = card.model_copy(update={"floors": floors, "composite": high})
    (text,) = export(replace(verified, scorecard=worse), "hub", small, REPO).values()
    entries = parse_eval_result_entries(yaml.safe_load(text))
    assert [e.task_id for e in entries] == ["sees", "supports", "keeps"]
    assert all((e.notes or "").endswith(f"breaches the safety floors {floors[0].name}") for e in entries)


def test_what_the_hub_has_no_place_for(verified: Verified, small: Release) -> None:
    """Models behind an API, private ones, a quick look, an unnamed board, a headline without a score."""
    for access in ("api", "private"):
        with pytest.raises(ExportError, match=f"access is {access}; expected open_weights"):
            export(about(verified, access=access), "hub", small, REPO)
    with pytest.raises(ExportError, match="tier is lite"):
        export(on(verified, tier="lite"), "hub", small, REPO)
    with pytest.raises(ExportError, match="--dataset-repo"):
        export(verified, "hub", small)
    card = card_of(verified)
    bare = card.model_copy(update={"headlines": {**card.headlines, "supports": Figure(value=None)}})
    with pytest.raises(ExportError, match="no score for supports"):
        export(replace(verified, scorecard=bare), "hub", small, REPO)


def validator(name: str) -> jsonschema.Draft7Validator:
    found = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(found)
    return jsonschema.Draft7Validator(found)


def two(files: dict[str, str]) -> tuple[str, dict[str, Any], str, list[dict[str, Any]]]:
    """(path, aggregate, path, instances)."""
    (one, text), (other, lines) = files.items()
    return one, json.loads(text), other, [json.loads(line) for line in lines.splitlines()]


def test_every_eval_ever_accepts_both_files(verified: Verified, demo: Verified, small: Release) -> None:
    """Both files against the schemas of 0.3.0, where the datastore looks for them; they name the same run, and the
    aggregate has the checksum and count of the instances.
    """
    aggregates, instances = validator("every-eval-ever-0.3.0.json"), validator("every-eval-ever-instance-0.3.0.json")
    for state, access, repo in ((demo, "api", REPO), (verified, "private", None), (verified, "open_weights", REPO)):
        files = export(about(state, access=access), "every-eval-ever", small, repo, demo=True)
        path, aggregate, samples, lines = two(files)
        aggregates.validate(aggregate)
        for line in lines:
            instances.validate(line)
        assert {line["interaction_type"] for line in lines} == {"single_turn", "multi_turn"}
        detail = aggregate["detailed_evaluation_results"]
        assert (detail["file_path"], detail["total_rows"]) == (samples, len(lines))
        assert detail["checksum"] == hashlib.sha256(files[samples].encode()).hexdigest()
        assert {line["evaluation_id"] for line in lines} == {aggregate["evaluation_id"]}
        assert {line["model_id"] for line in lines} == {aggregate["model_info"]["id"]} == {"some-lab/tiny-1"}
        results = {r["evaluation_result_id"] for r in aggregate["evaluation_results"]}
        assert {line["evaluation_result_id"] for line in lines} == set(card_of(state).behaviors) & results
    assert path.startswith("data/helmbench/some-lab/tiny-1/")
    assert samples == path.removesuffix(".json") + "_samples.jsonl"


def test_every_eval_ever_figures_are_the_scorecards(verified: Verified, small: Release) -> None:
    """Every headline figure with its interval, nothing that the submission claims, and each score inside the bounds it
    states.
    """
    _, aggregate, _, _ = two(export(verified, "every-eval-ever", small, REPO))
    card = card_of(verified)
    assert card.tasks
    assert card.harm
    expected = {"composite": card.composite} | {str(name): figure for name, figure in card.headlines.items()}
    expected |= {code: score.score for code, score in card.behaviors.items()}
    expected |= {
        "tasks": card.tasks.score,
        "harm": card.harm.score,
        "sensitivity": card.detection.sensitivity,
        "specificity": card.detection.specificity,
    }
    results = {r["evaluation_result_id"]: r for r in aggregate["evaluation_results"]}
    assert results.keys() == expected.keys()
    for name, figure in expected.items():
        details, metric = results[name]["score_details"], results[name]["metric_config"]
        limits = details["uncertainty"].get(
            "confidence_interval", {}
        )  # too few messages of these seven scenarios leave some without
        assert (details["score"], limits.get("lower"), limits.get("upper")) == (figure.value, figure.low, figure.high)
        low = float("-inf") if metric["min_score"] == "-Infinity" else metric["min_score"]
        assert low <= details["score"] <= metric["max_score"]
    assert len({figure.low is None for figure in expected.values()}) == 2
    assert "99.5" not in json.dumps(aggregate)


def test_every_eval_ever_instances_are_the_scored_verdicts(verified: Verified, small: Release) -> None:
    """PASS earns 1 and is right, PARTIAL ½, FAIL 0; the three unscored ones are left out and counted, never given a
    score.
    """
    _, aggregate, _, lines = two(export(verified, "every-eval-ever", small, REPO))
    told = {(x["sample_id"], x["metadata"]["repeat"], x["metadata"]["check_index"]): x["evaluation"] for x in lines}
    scored = {(v.id, str(v.repeat), str(v.index)): v.label for v in verified.verdicts if v.label is not None}
    assert told.keys() == scored.keys()
    assert len(scored) == len(verified.verdicts) - 3
    assert aggregate["detailed_evaluation_results"]["additional_details"] == {"unscored_verdicts_left_out": "3"}
    worth = {"PASS": 1.0, "PARTIAL": 0.5, "FAIL": 0.0}
    assert all(
        (told[key]["score"], told[key]["is_correct"]) == (worth[str(label)], label == "PASS")
        for key, label in scored.items()
    )


def test_every_eval_ever_names_the_judge_where_one_read(verified: Verified, demo: Verified, small: Release) -> None:
    """Tags are read by rules, so P1-B3 may have no judge; what a language model read names it and its prompt; word
    patterns are no language model.
    """
    _, aggregate, _, _ = two(export(verified, "every-eval-ever", small, REPO))
    read = {v.behavior for v in verified.verdicts if v.decided_by == "judge"}
    behaviors = card_of(verified).behaviors.keys()
    assert read < behaviors
    judges = {r["evaluation_result_id"]: r["metric_config"].get("llm_scoring") for r in aggregate["evaluation_results"]}
    assert {name for name in behaviors if judges[name]} == read
    assert judges["composite"]["judges"][0]["model_info"]["id"] == "judge-2026-01-01"
    assert "0123456789abcdef" in judges["composite"]["input_prompt"]
    _, aggregate, _, _ = two(export(demo, "every-eval-ever", small, REPO, demo=True))
    assert not any("llm_scoring" in r["metric_config"] for r in aggregate["evaluation_results"])


def test_a_panel_is_named_member_by_member(verified: Verified, small: Release) -> None:
    """Two judges: both stand there, with how they came to one label."""
    card = card_of(verified)
    none = Estimate(value=None, reason="not measured")
    seats = [
        schema.PanelMember(judge=j, prompt_hash=h, approximate=False, repeats=1, given=1, unscored=0, dissents=0)
        for j, h in (("one", "11"), ("two", "22"))
    ]
    panel = schema.Panel(
        members=seats, verdicts=1, unanimous=1, ties=0, unscored=0, alpha=none, alpha_ordinal=none, criteria={}
    )
    judge = card.judge.model_copy(update={"name": "panel of one, two", "panel": panel})
    _, aggregate, _, _ = two(
        export(replace(verified, scorecard=card.model_copy(update={"judge": judge})), "every-eval-ever", small, REPO)
    )
    scoring = aggregate["evaluation_results"][0]["metric_config"]["llm_scoring"]
    assert ([j["model_info"]["id"] for j in scoring["judges"]], scoring["aggregation_method"]) == (
        ["one", "two"],
        "majority_vote",
    )
    validator("every-eval-ever-0.3.0.json").validate(aggregate)


def test_csv_has_a_row_per_figure(verified: Verified, small: Release) -> None:
    """Every figure and floor with its counts, the run's identity on each row, nothing where there is no value."""
    (text,) = export(verified, "csv", small).values()
    rows = {r["figure"]: r for r in csv.DictReader(io.StringIO(text))}
    card = card_of(verified)
    assert rows.keys() == {
        "composite",
        *card.headlines,
        *card.behaviors,
        "tasks",
        "harm",
        "sensitivity",
        "specificity",
        *(f"floor: {f.name}" for f in card.floors),
    }
    others = [("composite", card.composite), ("sensitivity", card.detection.sensitivity)]
    for name, figure in [*card.headlines.items(), *others]:
        values, counts = ("value", "low", "high"), ("n", "clusters", "unscored")
        assert [float(rows[name][k]) if rows[name][k] else None for k in values] == [getattr(figure, k) for k in values]
        assert [int(rows[name][k]) for k in counts] == [getattr(figure, k) for k in counts]
    assert sum(int(rows[code]["unscored"]) for code in card.behaviors) == 3
    assert {(r["organization"], r["model"], r["tier"], r["state"], r["score_hash"]) for r in rows.values()} == {
        ("some-lab", "tiny-1", "core", "verified", small.manifest.score_hash)
    }
    floor = card.floors[0]
    assert rows[f"floor: {floor.name}"]["note"] == f"{floor.state}; threshold 0.9; one-sided limits"


def test_csv_runs_nothing_in_a_spreadsheet(verified: Verified, small: Release) -> None:
    """A revision that reads as a formula stands behind an apostrophe; a negative number stays a number."""
    card = card_of(verified)
    (text,) = export(
        replace(verified, scorecard=card.model_copy(update={"composite": Figure(value=-1.5)})), "csv", small
    ).values()
    first = next(csv.DictReader(io.StringIO(text)))
    assert (first["revision"], first["value"], first["low"]) == ("'=1+1", "-1.5", "")
