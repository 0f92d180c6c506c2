"""Stage 2: every slip in an authored file is an error at its path and line, and all of them come at once."""

from __future__ import annotations

from pathlib import Path

from support.contents import edit, edited, errors_of

from dataset_builder.reading.load import load

P1, P2, P4 = "scenarios/P1-B1-S1.md", "scenarios/P2-B3-S1.md", "scenarios/P4-B1-S1.md"
TALK, GRADED = "conversations/P2-B1-S1.md", "criteria/attends-to-low-mood.md"
READING = "calibration/readings/language-model-1.jsonl"


# An edit whose error begins with the last string, at the line where the edit stands. An empty one: any error there.
CASES = {
    "unknown key": (P1, "title:", "titel:",
        "unknown key 'titel'; did you mean 'title'? expected one of actions, ages, "),
    "id is not the file's name": (P1, "id: P1-B1-S1", "id: P1-B1-S2",
        "id 'P1-B1-S2' differs from the file's name 'P1-B1-S1'; expected the same"),
    "crisis category": (P1, "crisis_category: suicidal_ideation", "crisis_category: suicide",
        "crisis_category is 'suicide'; "),
    "misspelt heading": (P1, "# Not tested", "# Not testet",
        "unknown heading '# Not testet'; expected Judgement calls, Not tested, Rationale, Scenario, "),
    "repeated perturbation": (P1, "# PT2 (", "# PT1 (", "'# PT1' appears twice; codes are never reused"),
    "empty message": (P1, "# PT2 (", "# PT99 (severity 3)\n\n# PT2 (",
        "'# PT99' is empty; expected text below the heading"),
    "empty prose": (P1, "# Not tested", "# Judgement calls\n# Not tested",
        "'# Judgement calls' is empty; expected text below the heading"),
    "severity too high": (P1, "# PT7 (severity 10", "# PT7 (severity 11",
        "severity is '11'; expected a whole number from -10 to 10"),
    "severity 0": (P1, "# PT7 (severity 10", "# PT7 (severity 0",
        "severity is 0; expected 1 to 10 for a crisis message, -1 to -10 for a control"),
    "severity missing": (P1, "# PT7 (severity 10", "# PT7 (register: slang",
        "heading '# PT7' has no 'severity'; expected '# PT7 (severity …)'"),
    "difficulty too high": (P1, "# C2 practical-advice (difficulty 3)", "# C2 practical-advice (difficulty 11)",
        "difficulty is '11'; expected a whole"),
    "flag": (P1, "flag: [ASSISTANCE]", "flag: [ASSISTENCE]", "flag is 'ASSISTENCE'; "),
    "rating out of range": (P4, "rating: 9-10", "rating: 9-11",
        "rating is '9-11'; expected low-high within 1-10, such as 2-4"),
    "rating malformed": (P4, "rating: 2-4;", "rating: low;", "rating is 'low'; expected low-high"),
    "unknown attribute": (P1, "; register: slang", "; registre: slang",
        "unknown 'registre' in the heading; did you mean 'register'?"),
    "unknown persona": (P1, "# U1 michel/1", "# U1 michelle/1",
        "no persona 'michelle'; did you mean 'michel'? expected one of ama, "),
    "unknown rung": (P1, "# U1 michel/1", "# U1 michel/9",
        "persona 'michel' has no rung '9'; expected '# U1 michel/N' with N one of [1, 2, 3, 4, 5, 6, 7, 8]"),
    "unknown condition": (P1, "# C1 bare-assistant", "# C1 bare-asistant",
        "no condition 'bare-asistant'; did you mean 'bare-assistant'? "),
    "condition with text": (P1, "# C1 bare-assistant (difficulty 0)\n",
        "# C1 bare-assistant (difficulty 0)\nAnd more.\n", "'# C1 bare-assistant' must "),
    "pairs unknown": (P4, "# C4 bare-assistant+safety-prompt (difficulty 1; pairs C3",
        "# C4 bare-assistant+safety-prompt (difficulty 1; pairs C9", "pairs"),
    "unknown criterion": (P2, "crisis: [reachable-resource]", "crisis: [reachable-resorce]",
        "no criterion 'reachable-resorce'; did you mean 'reach"),
    "criterion of another kind": (P2, "crisis: [", "graded: [acts-at-once]\ncrisis: [",
        "criterion 'acts-at-once' is labelled; expected a graded one here"),
    "tag not offered": (P4, "; tags: HOBBY", "; tags: HOBY", "tag 'HOBY' is not offered; did you mean 'HOBBY'? "),
    "for a stranger": (P1, "; for: michel)", "; for: meera)", "for is 'meera'; expected one of michel, nobody, suki"),
    "not for a stranger": (P1, "; for: michel)", "; not for: meera)",
        "not for is 'meera'; expected one of michel, suki"),
    "not for nobody": (P1, "; for: michel)", "; not for: nobody)", "not for is 'nobody'; expected one of michel, suki"),
    "for and not for": (P1, "; for: michel)", "; for: suki; not for: michel)",
        "has both 'for' and 'not for'; expected one of them"),
    "not for all": (P1, "; for: michel)", "; not for: michel, suki)",
        "'not for' excludes every persona of this scenario; expected 'for: nobody'"),
    "nobody beside somebody": (P1, "; for: michel)", "; for: nobody, suki)",
        "'for' names nobody and somebody; expected 'for: nobody' alone"),
    "ages of one": (P1, "tags: [", "ages: 14\ntags: [", "ages is '14'; expected youngest-oldest, as in 14-19"),
    "countries": (P1, "tags: [", "countries: [GB, Ghana]\ntags: [", "'Ghana' in countries; expected two-letter ISO"),
    "unknown signal": (P1, "# PT7 (severity 10", "# PT7 (severity 10; signal: hidden",
        "signal is 'hidden'; expected one of direct, indirect"),
    "a control's signal": (P1, "# PT13 (severity -6", "# PT13 (severity -6; signal: direct",
        "a control has a 'signal'; expected it only on crisis"),
    "alone": (P1, "# PT7 (severity 10", "# PT7 (severity 10; alone: never",
        "alone is 'never'; expected one of no, yes"),
    "probe's name": (P1, "# PT7 (severity 10", "# PT7 (severity 10; probe: P 3",
        "probe is 'P 3'; expected a short name in small letters, such as p3"),
    "a conversation alone": (TALK, "# PT1 (severity 8", "# PT1 (severity 8; alone: no",
        "'alone' on a conversation, which is never a stand-alone message"),
    "checkpoint": (TALK, "## Reply (acts-at-once: P2-B1 severity 8)", "## Reply (acts at once)",
        "cannot read checkpoint 'acts at once'; expected "),
    "checkpoint's behavior": (TALK, "## Reply (acts-at-once: P2-B1 ", "## Reply (acts-at-once: P9-B1 ",
        "cannot read checkpoint 'acts-at-once: P9-B1 sever"),
    "checkpoint's criterion": (TALK, "## Reply (acts-at-once", "## Reply (act-at-once",
        "no criterion 'act-at-once'; did you mean 'acts-at-once'? "),
    "turn's name": (TALK, "## User", "## Usr",
        "cannot read turn '## Usr'; expected '## User' or '## Assistant' with text, or '## Reply "),
    "persona's age": ("personas/ama.md", "age: 29", "age: 12", "age is '12'; expected a whole number from 13 to 110"),
    "persona's country": ("personas/ama.md", "country: GH", "country: Ghana",
        "country is 'Ghana'; expected a two-letter ISO 3166 code such as AU"),
    "rung twice": ("personas/ama.md", "# 2 (", "# 1 (",
        "unexpected heading '# 1'; expected '# Profile', '# Voice' or '# 1 (severity …)', each once"),
    "condition's kind": ("conditions/johora.md", "kind: roleplay", "kind: role play",
        "kind is 'role play'; did you mean 'roleplay'? "),
    "incident": (GRADED, "incident: missed_crisis", "incident: missed_crises",
        "incident is 'missed_crises'; did you mean 'missed_crisis'? "),
    "grading's label": (GRADED, "mild: [flagged PASS", "mild: [flagged GOOD",
        "'mild' is ['flagged GOOD', 'attentive PARTIAL', 'ignored FAIL']; expected"),
    "way to fail": ("criteria/answers-the-need.md", "fails: [escalates over_escalation",
        "fails: [escalates overescalation", "incident in fails is 'overesc"),
    "criterion's severity": (GRADED, "severity: 8", "severity: 11",
        "severity is '11'; expected a whole number from 1 to 10"),
    "helpline column": ("helplines.csv", "country,service", "country,servise", "columns are ['country', 'servise', "),
    "helpline tier": ("helplines.csv", "AR,Centro de Asistencia al Suicida,suicide_line,,135 | 011 5275-1135,,,,,no,C",
        "AR,Centro de Asistencia al Suicida,suicide_line,,135 | 011 5275-1135,,,,,no,D",
        "column 'tier': Input should be 'A', 'B' or 'C'"),
    "helpline always_open": ("helplines.csv", "AU,Lifeline Australia,suicide_line,,13 11 14,0477 13 11 14,,,,yes,",
        "AU,Lifeline Australia,suicide_line,,13 11 14,0477 13 11 14,,,,Yes,", "column 'always_open'"),
    "helpline date": ("helplines.csv",
        "BD,Kaan Pete Roi,suicide_line,,09612-119911,,https://kaanpeteroi.org/,,,no,A,2026-06-02,2027-06-02",
        "BD,Kaan Pete Roi,suicide_line,,09612-119911,,https://kaanpeteroi.org/,,,no,A,2026-06-02,June 2027",
        "column 'expires'"),
    "helpline with a cell too many": ("helplines.csv", "AR,Centro de Asistencia", "AR,,Centro de Asistencia", ""),
    "scoring is not YAML": ("scoring.yaml", "points: {", "points: }", "invalid YAML: "),
    "reading's label": (READING, '"label": "PARTIAL"', '"label": "PARTIALLY"',
        "label is 'PARTIALLY'; did you mean 'PARTIAL'? expected one of "),
    "reading without a label": (READING, '"label": "FAIL"', '"label": null', "label is 'None'; expected one of "),
    "reading of no row": (READING, '"id": "acts-at-once-02"', '"id": "acts-at-once-2"',
        "unknown calibration row 'acts-at-once-2'"),
    "reading given twice": (READING, '"id": "acts-at-once-02"', '"id": "acts-at-once-01"',
        "duplicate id 'acts-at-once-01'; a reader reads a reply once"),
}  # fmt: skip


def test_a_slip_is_an_error_at_its_line(content_copy: Path) -> None:
    """Unknown is an error, named at path:line with what was expected, and it yields no content."""
    missed: list[str] = []
    for name, (file, old, new, expected) in CASES.items():
        with edited(content_copy, file, old, new) as line:
            content, found = load(content_copy)
        lines = [line.removeprefix(f"{content_copy}/") for line in found.lines()]
        if content or not any(said.startswith(f"{file}:{line}: {expected}") for said in lines):
            missed.append(f"{name}: {lines}")
    assert missed == []


def test_what_is_missing_is_named(content_copy: Path) -> None:
    """A key of a scenario, a setting of the benchmark, and a file that every content folder has."""
    for key in ("title", "job", "review", "sources", "crisis_category"):
        with edited(content_copy, P1, f"\n{key}: ", "\n# "):
            assert errors_of(content_copy) == [f"{P1}:1: key '{key}' is missing from the front matter"]
    edit(content_copy, "benchmark.yaml", "released:", "xreleased:")
    assert any(error.startswith("benchmark.yaml:") for error in errors_of(content_copy))
    for name in ("benchmark.yaml", "scoring.yaml", "helplines.csv", "refused_terms.yaml"):
        (content_copy / name).unlink()
    assert len([e for e in errors_of(content_copy) if e.endswith(":1: is missing; every content folder has one")]) == 4


def test_a_missing_part_is_an_error(content_copy: Path) -> None:
    """A scenario says what it doesn't test."""
    text = (content_copy / P1).read_text(encoding="utf-8")
    head, rest = text.split("# Not tested\n")
    (content_copy / P1).write_text(head + rest[rest.index("# C1") :], encoding="utf-8")
    assert errors_of(content_copy) == [f"{P1}:1: '# Not tested' is missing; every scenario has one"]


def test_only_a_safety_prompt_has_a_second_text(content_copy: Path) -> None:
    """A product speaks in one wording; a safety prompt has one more, for jobs that say nothing to the user."""
    edit(content_copy, "conditions/johora.md", "# Text\n", "# Text where nothing is said to the user\nX.\n# Text\n")
    assert errors_of(content_copy) == [
        "conditions/johora.md:1: expected the headings ['Text'] and no others ('# Text where nothing is said to the "
        "user' only of a safety prompt)"
    ]


def test_a_silent_jobs_safety_prompt_has_a_wording_for_it(content_copy: Path) -> None:
    """A prompt that tells a model to speak never stands above a job that takes nothing but JSON."""
    path = content_copy / "conditions" / "safety-prompt.md"
    path.write_text(path.read_text(encoding="utf-8").split("# Text where")[0], encoding="utf-8")
    found = errors_of(content_copy)
    assert [line.split(":")[0] for line in found] == [P4] * 3
    assert all("the answer is JSON, and 'safety-prompt' has no wording for that; expected '# Text where" in line
               for line in found)  # fmt: skip


def test_criterion_parts_stand_in_order(content_copy: Path) -> None:
    """The judge reads labels first, what is not judged second, the neutral pair last."""
    edit(content_copy, GRADED, "# Outcomes", "# Neutral pair first")
    assert (f"{GRADED}:1: headings are ['Neutral pair first', 'Not judged', 'Neutral pair']; expected "
            "['Outcomes', 'Not judged', 'Neutral pair'], in this order"
            ) in errors_of(content_copy)  # fmt: skip


def test_a_conversation_ends_with_a_live_reply(content_copy: Path) -> None:
    """Two user turns in a row, or a user turn at the end, are an error at the script's heading."""
    line = edit(content_copy, TALK, "# PT1 (", "# PT1 (")
    edit(content_copy, TALK, "# PT2 (", "## User\none more\n# PT2 (")
    assert errors_of(content_copy) == [
        f"{TALK}:{line}: turns of '# PT1' are ['user', 'assistant', 'user', 'assistant', 'user', 'assistant', 'user']; "
        "expected user and reply in turn, ending with '## Reply'"
    ]


def test_a_checkpoint_below_an_empty_line_keeps_its_line(content_copy: Path) -> None:
    """An empty line between a script's heading and its first turn doesn't shift the lines of errors."""
    edit(content_copy, TALK, "## User\n", "\n\n## User\n")
    line = edit(content_copy, TALK, "## Reply (acts-at-once: P2-B1 severity 8)", "## Reply (acts at once)")
    assert [e.split(": ")[0] for e in errors_of(content_copy)] == [f"{TALK}:{line}"]


def test_one_slip_in_one_file_is_one_error(content_copy: Path) -> None:
    """A persona's age is no reason to call criteria of other files unknown."""
    line = edit(content_copy, "personas/ama.md", "age: 29", "age: 12")
    assert errors_of(content_copy) == [f"personas/ama.md:{line}: age is '12'; expected a whole number from 13 to 110"]
