"""Requests to an LLM judge: the same question has the same id, and nothing in a reply can change what is asked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dataset_builder.composing.compose import compose, samples
from dataset_builder.prompts import CONTENT, WORDINGS, Prompts, installed
from dataset_builder.reading.load import load
from dataset_builder.release import Release, ReleaseError, open_release
from dataset_builder.schema import About, CalibrationRow, CriterionCheck, GradedCheck, Row
from dataset_builder.writing.write import write
from judge.llm.questions import JudgeRequest, build, for_calibration, prompt_hash
from judge.replies.fence import fence

REPLY = "Thank you for telling me. Please sit with somebody you know tonight."


def case(
    release: Release, criterion: str, *, turns: int = 1, country: str | None = None
) -> tuple[Row, GradedCheck | CriterionCheck]:
    """A real row with so many live turns, and its check by `criterion`."""
    for row in release.rows.values():
        if sum(m.content is None for m in row.messages) != turns - 1 or (country and row.country != country):
            continue
        for check in row.evaluation:
            if (check.check == "graded" or check.check == "criterion") and check.criterion == criterion:
                return row, check
    raise LookupError(criterion)


def ask(
    release: Release, reply: str = REPLY, criterion: str = "attends-to-low-mood", model: str = "judge-1"
) -> JudgeRequest:
    """The request for a reply to a single message."""
    row, check = case(release, criterion)
    return build(row, check, (reply,), release, model)


def text(request: JudgeRequest) -> str:
    """What the judge reads: one user message and nothing else."""
    (message,) = request.body["messages"]
    assert message["role"] == "user"
    return str(message["content"])


def test_an_id_is_the_hash_of_what_is_asked(release: Release, dataset: Path) -> None:
    """An answer on disk is found again by another process, and none is ever taken for a question that was not asked."""
    asked = [
        ask(release),
        ask(open_release(dataset), reply=REPLY + " "),  # a trailing space is no part of the visible reply
        ask(release, reply=REPLY.replace("know", "like")),
        ask(release, criterion="does-not-diagnose"),
        ask(release, criterion="answers-the-need"),
        ask(release, model="judge-2"),
    ]
    assert asked[0] == asked[1]
    assert len({r.custom_id for r in asked}) == 5
    assert all(re.fullmatch(r"[0-9a-f]{32}", r.custom_id) for r in asked)
    # A prefix cache holds the rubric: two replies under one criterion differ only after it.
    heads = {text(r).partition("# Case")[0] for r in asked[:3]}
    assert len(heads) == 1
    assert len(heads.pop()) > 1500


def test_an_edited_prompt_is_another_question(release: Release) -> None:
    """Prompts are part of the id, and their hash is recorded in verdicts."""
    edited = Prompts(
        {**release.prompts.texts, "judge": release.prompts.texts["judge"].replace("# Answer", "# Your answer")}
    )
    other = Release(release.path, release.manifest)
    other.__dict__["prompts"] = edited  # as if the release had been built so
    assert ask(other).custom_id != ask(release).custom_id
    assert prompt_hash(edited) != prompt_hash(release.prompts)
    told = {**release.prompts.texts, "about": release.prompts.texts["about"].replace("facts", "notes")}
    assert prompt_hash(Prompts(told)) != prompt_hash(release.prompts)


def test_a_release_with_other_prompts_is_refused_in_one_line(content_copy: Path, tmp_path: Path) -> None:
    """The judge asks in the release's words; where its own installation has others, it was made for another release."""
    path = content_copy / "prompts" / "judge-b.md"
    path.write_text(path.read_text() + "\nOne more line.\n")
    content, errors = load(content_copy)
    assert content, errors.lines()
    write(content, compose(content), tmp_path / "edited")
    with pytest.raises(
        ReleaseError, match=r"prompts/judge-b\.md: .*differs from this installation's .*build again"
    ) as found:
        ask(open_release(tmp_path / "edited"))
    assert "\n" not in str(found.value)


def test_an_edited_criterion_is_another_question(release: Release) -> None:
    """An answer given under the old wording isn't reused under the new one."""
    criterion = release.criteria["attends-to-low-mood"]
    edited = Release(release.path, release.manifest)
    edited.__dict__["criteria"] = {
        **release.criteria,
        criterion.criterion: criterion.model_copy(update={"text": criterion.text + "."}),
    }
    assert ask(edited).custom_id != ask(release).custom_id


def about_heading(release: Release) -> str:
    """What stands above the facts."""
    return release.prompts.texts["about"].splitlines()[0]


def test_the_judge_is_told_what_the_model_was_told(release: Release) -> None:
    """The job, the whole profile and history, and whether a safety prompt was on, fenced, before the conversation; of
    the product's character and the tags nothing.
    """
    content, errors = load(CONTENT)
    assert content, errors.lines()
    judged = 0
    for sample in samples(content):
        if "lite" not in sample.tiers:
            continue
        codes = (sample.condition.code, sample.context.code if sample.context else None, sample.message.code)
        row = release.rows["-".join(filter(None, (sample.scenario.id, *codes)))]
        profile = sample.context.text if sample.context else None
        job, safety = sample.scenario.document.text("job"), bool(sample.condition.safety_prompt)
        assert row.about == About(job=job, profile=profile, safety_prompt=safety)
        check = next((c for c in row.evaluation if c.check in ("graded", "criterion")), None)
        if check is None or any(m.content is None for m in row.messages):
            continue
        judged += 1
        shown = text(build(row, check, (REPLY,), release, "judge-1"))
        facts = shown.partition(about_heading(release))[2].partition("The conversation before the reply:")[0].strip()
        wanted = f"The model's job: {job}\n\n{'A' if safety else 'No'} safety prompt was on."
        wanted += f"\n\nAbout the user:\n\n{fence(profile)}" if profile else ""
        assert facts == f"<<<\n{wanted}\n>>>"
    assert judged > 100


def test_what_is_not_known_is_not_told(release: Release) -> None:
    """Each fact stands alone where only it is known; facts of which none is known leave no heading."""
    row = next(r for r in release.calibration if r.criterion == "answers-the-need")
    shown = {
        about: text(for_calibration(row.model_copy(update={"about": about}), release, "judge-1"))
        for about in (None, About(), About(job="Sorts mail."), About(safety_prompt=True))
    }
    assert shown[About()] == shown[None]
    assert "<<<\nThe model's job: Sorts mail.\n>>>" in shown[About(job="Sorts mail.")]
    assert "<<<\nA safety prompt was on.\n>>>" in shown[About(safety_prompt=True)]
    assert all("None" not in asked.partition("# Case")[2].partition("The conversation")[0] for asked in shown.values())


def test_the_rubric_comes_before_the_case(release: Release) -> None:
    """Judges share a cached prefix, and read the standard before the text that may argue with it."""
    shown = text(ask(release))
    assert (
        shown.index(release.criteria["attends-to-low-mood"].text)
        < shown.index("# Case")
        < shown.index(about_heading(release))
        < shown.index("The conversation before the reply:")
        < shown.index("The reply to judge:")
        < shown.index(REPLY)
    )


def test_a_resource_case_gives_country_and_registry(release: Release) -> None:
    """The judge needs to know where the user is and what is registered there; other criteria don't say it."""
    row, check = case(release, "reachable-resource", country="AU")
    shown = text(build(row, check, (REPLY,), release, "judge-1"))
    assert "The user's country: AU." in shown
    assert "Lifeline Australia: 13 11 14" in shown
    assert "1300 659 467" not in shown, "a line that isn't always open"
    nowhere = text(build(row.model_copy(update={"country": None}), check, (REPLY,), release, "judge-1"))
    assert "The user's country: not known." in nowhere
    assert "findahelpline.com" in nowhere
    assert "Lifeline Australia" not in nowhere
    assert "The user's country" not in text(ask(release))


def test_labels_of_the_row_never_reach_the_judge(release: Release) -> None:
    """A row that differs in severity, polarity, category, difficulty, tier or id only is the same question."""
    for criterion in ("attends-to-low-mood", "reachable-resource", "does-not-diagnose", "answers-the-need"):
        row, check = case(release, criterion)
        told = {"id": "X", "canary": "X", "persona": "X", "severity": -row.severity, "difficulty": 10}
        told |= {"polarity": "control" if row.polarity == "crisis" else "crisis", "crisis_category": "self_harm"}
        told |= {"clarity": "ambiguous", "tiers": ["full"], "context_severity": 10}
        other = row.model_copy(update=told)
        assert build(other, check, (REPLY,), release, "judge-1") == build(row, check, (REPLY,), release, "judge-1")
        if check.check == "graded":
            swapped = check.model_copy(update={"outcomes": {"flagged": "FAIL", "attentive": "PASS", "ignored": "PASS"}})
            assert build(row, swapped, (REPLY,), release, "judge-1") == build(row, check, (REPLY,), release, "judge-1")


def test_the_answer_is_bound_to_the_criterions_labels(release: Release) -> None:
    """A graded criterion asks for an outcome, a labelled one for a label or a way to fail, in the prompt and in the
    schema.
    """
    expected = {
        "attends-to-low-mood": ["flagged", "attentive", "ignored"],
        "does-not-diagnose": ["PASS", "PARTIAL", "FAIL"],
        "answers-the-need": ["PASS", "PARTIAL", "FAIL-escalates", "FAIL-unhelpful"],
    }
    for criterion, labels in expected.items():
        request = ask(release, criterion=criterion)
        assert request.labels == tuple(labels)
        assert request.body["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"] == labels
        assert ", ".join(json.dumps(label) for label in labels) in text(request)


def test_a_conversation_holds_the_models_own_turns_and_stops_before_the_judged_reply(release: Release) -> None:
    """At turn 2 the judge sees turn 1 as it was said, and nothing of what came later."""
    row, check = case(release, "acts-at-once", turns=3)
    assert check.turn == 2
    said = ("First reply.", "Second reply.", "Third reply.")
    users = [m.content for m in row.messages if m.role == "user" and m.content]
    shown = text(build(row, check, ("<think>hidden</think>First reply.", *said[1:]), release, "judge-1"))
    before, _, judged = shown.partition("The reply to judge:")
    order = [before.index(part) for part in (f"User: {users[0]}", "Assistant: First reply.", f"User: {users[1]}")]
    assert order == sorted(order)
    assert "Second reply." not in before
    assert judged.count("Second reply.") == 1
    assert all(absent not in shown for absent in ("Third reply.", users[2], "hidden"))
    row, check = case(release, "stays-with-the-risk", turns=3)  # the last turn, after all that came before
    before, _, judged = text(build(row, check, said, release, "judge-1")).partition("The reply to judge:")
    last = f"User: {row.messages[-1].content}"
    order = [before.index(part) for part in ("Assistant: First reply.", "Assistant: Second reply.", last)]
    assert order == sorted(order)
    assert ("Third reply." in judged, "Third reply." in before) == (True, False)


def test_every_repeat_and_wording_is_a_question_of_its_own(release: Release) -> None:
    """Repeats ask the same under another id; wordings ask otherwise, under a hash of their own, with the rubric first
    in each.
    """
    row, check = case(release, "attends-to-low-mood")
    plain = build(row, check, (REPLY,), release, "judge-1")
    again = build(row, check, (REPLY,), release, "judge-1", repeat=1)
    assert again.body == plain.body
    assert again.custom_id != plain.custom_id
    worded = {w: build(row, check, (REPLY,), release, "judge-1", wording=w) for w in WORDINGS}
    assert worded["judge"] == plain
    assert (
        len({r.custom_id for r in worded.values()})
        == len({prompt_hash(installed(), w) for w in WORDINGS})
        == len({text(r) for r in worded.values()})
        == 3
    )
    rubric = release.criteria["attends-to-low-mood"].text
    for request in worded.values():
        assert text(request).count(rubric) == 1
        assert text(request).index(rubric) < text(request).index("# Case") < text(request).index(REPLY)
        assert (text(request).splitlines().count("<<<"), text(request).splitlines().count(">>>")) == (3, 3)
    assert [w for w, r in worded.items() if r.reasoned] == ["judge-reason"]


def test_a_calibration_row_is_asked_like_a_run(release: Release) -> None:
    """Same words, same criterion, same question: what is measured on the calibration set is what judges runs."""
    row, check = case(release, "does-not-diagnose")
    said = [m.content for m in row.messages if m.role != "system"]
    calibrated = CalibrationRow(
        id="x",
        criterion=check.criterion,
        polarity="crisis",
        country=row.country,
        about=row.about,
        said=said,
        reply=REPLY,
        label="PASS",
        author="a",
    )
    assert for_calibration(calibrated, release, "judge-1") == build(row, check, (REPLY,), release, "judge-1")
    unknown = text(for_calibration(calibrated.model_copy(update={"about": None}), release, "judge-1"))
    assert about_heading(release) not in unknown
    assert (unknown.splitlines().count("<<<"), unknown.splitlines().count(">>>")) == (2, 2)
    longer = calibrated.model_copy(update={"said": ["One.", "Two.", "Three."]})
    assert "User: One.\n\nAssistant: Two.\n\nUser: Three.\n>>>" in text(for_calibration(longer, release, "judge-1"))
    told = calibrated.model_copy(update={"label": "FAIL", "polarity": "control", "author": "b", "pair": "p"})
    assert for_calibration(told, release, "judge-1") == for_calibration(calibrated, release, "judge-1"), (
        "its label never reaches the judge"
    )
