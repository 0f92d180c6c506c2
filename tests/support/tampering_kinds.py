"""Every change of tampering.py and tampering_files.py, by what of a submission it forges."""

from __future__ import annotations

from collections.abc import Iterator

from support.tampering import OF_TEXT, SIGNED
from support.tampering_files import RAW

# The kinds of problems that a change is found by; where a name says more, that decides.
BY_PROBLEM = {
    "identity": "version score_hash judge judge_prompt misplaced system_prompt tier answered_as secret",
    "prompts": "edited_prompt extra_message prompt_hash live_turn mixed_requests outside_text",
    "coverage": "missing_sample extra_sample repeated_sample unknown_sample turns",
    "replies and verdicts": "changed_verdict rule_verdict changed_incident changed_evidence not_withheld changed_votes "
    "unknown_check extra_verdict missing_verdict repeated_verdict odd_finish unscored",
    "answers and calibration": "extra_answers agreement calibration judge_not_allowed people contradictory_answers "
    "extra_member",
    "archive": "broken_archive odd_archive unsafe_member unknown_member missing_member duplicate_member link_member "
    "encrypted odd_compression zip_bomb too_many_members",
    "encoding": "encoding json nesting duplicate_key odd_unicode stacked_marks long_line unreadable_lines "
    "too_many_lines too_much_text",
    "numbers": "not_finite huge_number changed_score changed_interval changed_count changed_floor",
    "names and paths": "absolute_path extra_file missing_file link not_a_file too_large empty_file sums",
    "HTML and formulas": "",
}
BY_NAME = {  # how a name begins, for what is found by its form alone
    **dict.fromkeys(("HTML", "a formula", "colours", "script", "people: a formula"), "HTML and formulas"),
    **dict.fromkeys(
        ("system prompt on", "system prompt ev", "system message", "message with", "text: system"), "prompts"
    ),
    **dict.fromkeys(("repeat ", "count ", "repeats of", "number", "no such day", "201", "n "), "numbers"),
    **dict.fromkeys(
        ("name ", "path", "revision", "text turned", "zero-width", "an argument of", "commit"), "names and paths"
    ),
    **dict.fromkeys(("field", "other format", "two runners", "submission.json: a list"), "encoding"),
    **dict.fromkeys(("answers", "people", "calibrat", "agreement", "judge swapped"), "answers and calibration"),
    **dict.fromkeys(("verdict", "unscored made"), "replies and verdicts"),
    **dict.fromkeys(("60,000", "member", "10 GB in", "zip", "archive"), "archive"),
}


def kind_of(name: str, problem: str) -> str:
    """Of which kind a change is. `problem`: the kind of problem that it is found by."""
    start = max((start for start in BY_NAME if name.startswith(start)), key=len, default=None)
    if start is not None and (problem == "schema" or BY_NAME[start] in ("HTML and formulas", "prompts")):
        return BY_NAME[start]
    return next(kind for kind, problems in BY_PROBLEM.items() if problem in problems.split())


def counted() -> Iterator[tuple[str, str]]:
    """Each change with its kind."""
    for cases in (SIGNED, OF_TEXT, RAW):
        yield from ((name, kind_of(name, problem)) for name, (_, problem, _) in cases.items())
