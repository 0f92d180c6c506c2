"""Small invented files in the formats of the published sets of people's labels, about kettles and bicycles."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from judge.agreement.published.sets import MAPPINGS

CATEGORIES = [
    "no_crisis",
    "self-harm",
    "no_crisis",
    "substance_abuse_or_withdrawal",
    "risk_taking_behaviours",
    "no_crisis",
]
MODELS = ("chatgpt", "claude", "deepseek", "llama")
NAN = float("nan")


def dump(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def table(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def bhh(root: Path, votes: list[list[str]] | None = None, scores: list[list[float]] | None = None) -> Path:
    """Four people's categories of six messages, two clinicians' ratings. `votes`, `scores`: by row."""
    votes = votes or [[name] * 3 + ["no_crisis"] for name in CATEGORIES]
    scores = scores or [[5, 5], [1, 2], [4, 4], [3, NAN], [2, 2], [5, 4]]
    human = root / "data/human_label"
    for n, end in enumerate(("labeled", "labeled", "labeled", "labelled")):
        rows = [{"inputs": ["My kettle", f"hums in the key of {k}."], "label": own[n]} for k, own in enumerate(votes)]
        dump(human / f"H{n + 1}_{end}_n6_s42.json", rows)
    for n in (0, 1):
        rated = [
            {"inputs": "?", "answer": f"Descale it, step {k}.", "label": CATEGORIES[k], "evaluation": own[n]}
            for k, own in enumerate(scores)
        ]
        dump(human / f"H{n + 1}_scores_n6_s42.json", rated)
    judge = [{"evaluation": own[0]} for own in scores]
    dump(root / "data/llm_evaluator/sampled/sampled_lowest_scores_n200.json", judge)
    return root


def xstest(root: Path) -> Path:
    """Two models' replies to four questions: a refusal, two answers, a partial refusal."""
    said = (
        ("I'm sorry, but I can't help with that.", "2_full_refusal", "2_full_refusal"),
        ("Lift the chain onto the ring.", "1_full_compliance", "1_full_compliance"),
        ("That would not be wise, and I won't go on.", "2_full_refusal", "3_partial_refusal"),
        ("I'd rather leave the brakes, but oil the chain.", "3_partial_refusal", "3_partial_refusal"),
    )
    for model in ("ab", "ba"):
        rows = [
            {"id": f"v2-{n}", "type": "x", "prompt": f"How do I mend bicycle {n}?", "completion": reply}
            | {"annotation_1": first, "annotation_2": second, "agreement": "1", "final_label": first}
            for n, (reply, first, second) in enumerate(said)
        ]
        table(root / f"model_completions/xstest_v2_completions_{model}.csv", rows)
    return root


def psychosis(root: Path) -> Path:
    """Three messages, four models: deepseek and llama agree that the kettle sends signs."""
    data = root / "pipeline/src/data"
    keys = ("a", "b", "c")
    replies = [
        {"id": f"{key} ", "scenarios": f"Kettle {key} sends signs."}
        | {f"{m}_response": f"{m} on {key}." for m in MODELS}
        for key in keys
    ]
    table(data / "model_responses_to_base_scenarios_2025-08-07.csv", replies)

    def marks(flipped: bool) -> list[dict[str, str]]:
        validating = ("deepseek", "llama") if not flipped else ("deepseek",)
        return [
            {"id": key}
            | {f"{m}_criteria_{k}": str(int(k == 2 and m in validating)) for m in MODELS for k in range(1, 8)}
            for key in keys
        ]

    table(data / "judges/human_consensus_2025-08-24.csv", marks(False))
    table(data / "judges/human1_base_scenarios_manual_validation.csv", marks(False))
    table(data / "judges/human2_base_scenarios_manual_validation.csv", marks(True))
    table(data / "judges/kimi_as_judge_binary_2025-08-30-11-19-15.csv", marks(True))
    table(data / "judges/kimi_as_judge_binary_seed_0_2026-01-16-09-58-20.csv", marks(False))
    return root


def vera(root: Path) -> Path:
    """Three conversations, three clinicians; in the last one two of them find nothing relevant."""
    human = root / "publication_data/human_validation"
    best, worst, none = "Best Practice", "High Potential for Harm", "Not Relevant"
    some = "Suboptimal but Low Potential for Harm"
    given = {"c0": (best, best, some), "c1": (worst, worst, none), "c2": (none, none, best)}
    rows = [
        {"clinician_id": f"r{n}", "conversation_id": f"#{key}"}
        | {f"clinician_{d}": word for d in ("detects", "confirms", "guides", "supportive", "boundaries")}
        for key, words in given.items()
        for n, word in enumerate(words)
    ]
    table(human / "clinician_judging/Ratings.csv", rows)
    for key in given:
        path = human / f"conversations/run/{key}_x.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"user: My bell is loose on {key}.\nchatbot: Tighten it.\nuser: Done.\nchatbot: Good.\n", encoding="utf-8"
        )
    return root


def counselbench(root: Path) -> Path:
    """Two questions, two responders each, three ratings per answer; one line per rating, interleaved."""
    scores = {("q0", "x"): "543", ("q0", "y"): "112", ("q1", "x"): "444", ("q1", "y"): "235"}
    rows = [
        {"questionID": question, "questionTitle": "My bell", "questionText": f"Why is bell {question}<br>so loud?"}
        | {"topic": "bells", "responder": responder, "response": f"Says {responder}: oil it.", "survey_id": "1"}
        | {"overall_score": given[n]}
        for n in range(3)
        for (question, responder), given in scores.items()
    ]
    table(root / "counselbench_eval.csv", rows)
    return root


def cssrs(root: Path) -> Path:
    """Three posts with a level by one coder, and models' labels."""
    models = ("gpt", "claude", "gemini", "llama", "mistral")
    rows = [
        {"content": f"Bell {n} rings.", "severity": str(level)} | {f"{m}_label": str(n) for m in models}
        for n, level in enumerate((0, 3, 1))
    ]
    table(root / "labelled_data/csv/human_n_llm_labeled_rSuicidewatch_posts.csv", rows)
    return root


def feiwang(root: Path) -> Path:
    """Three prompts to three products: a sign, a number of another country, and a code that is left out."""
    replies = {
        "Claude Response": "It is a kettle.",
        "GPT5.4 Response": "Call 000.",
        "Gemini3 Respnse": "It sends signs.",
    }
    rows = [
        {"Subcategory Code": code, "Prompt (English)": f"My kettle, {code}?", **replies, "Claude_Category": "A"}
        | {"GPT5.4 New Category": other, "Gemini 3 Category": "C", "Human verification": "A"}
        | {"Human verification_1": "", "Human verification_2": "A"}
        for code, other in (("B1a", "A"), ("A1b", "B(Region Error)"), ("C1", "A"))
    ]
    table(root / "data/clean.2026.csv", rows)
    return root


def mind_eval(root: Path) -> Path:
    """Two conversations, rated by two and by one psychologist."""
    path = root / "data/human_annotations.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    talk = [{"role": "user", "content": "My chain slips."}, {"role": "assistant", "content": "Tighten it."}]
    rows = [
        {"id": n, "model": f"m{n}", "messages": talk, "criterion_1.responses": given}
        | {"criterion_1.responses.users": [f"p{k}" for k in range(len(given))]}
        for n, given in enumerate(([4, 6], [1]))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return root


def nami(root: Path) -> Path:
    """Three conversations of two people; the last one ends with the person's words."""
    for name, end in (("p1--a", ""), ("p1--b", ""), ("p2--a", "\n**3 · Kim**\n\n> Bye.\n")):
        path = root / f"releases/v1/conversations/{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        said = "**1 · Kim**\n\n> My bell\n> is loose.\n\n**2 · Nami**\n\n> Tighten it.\n"
        path.write_text(f"# Kim\n\n## Transcript\n\n{said}{end}", encoding="utf-8")
    return root


def schizobench(root: Path) -> Path:
    """Two scripts, two models."""
    turns = [{"prompt": f"Sign {n}?", "response": f"A kettle, {n}."} for n in range(2)]
    for model in ("a", "b"):
        talks = [{"sequence_id": f"s{n}", "category": "signs", "turns": turns} for n in range(2)]
        dump(root / f"results_v3/{model}.json", {"metadata": {"model": model}, "sequences": talks})
    return root


def therapists(root: Path) -> Path:
    """Replies to two messages: of people and a bot, coded by people, and of a model, coded by a model."""
    rows = [
        {"key": f"k{n}", "id": message, "participant_type": who, "interjection": said, "model_response": "Oil it."}
        | {"human_classification": coded, "verification_correct": "Yes", "correct_response": correct}
        for n, (message, who, said, coded, correct) in enumerate(
            [
                ("bridge", "people", "How high is the bell?", "no", ""),
                ("signs", "a bot", "['My kettle hums.', 'It does.', 'Why?']", "yes ", ""),
                ("signs", "m1", "My kettle hums.", "", "True"),
                ("bridge", "m1", "How high is the bell?", "", "False"),
            ]
        )
    ]
    table(root / "results/interjections/all_combined.csv", rows)
    return root


def own(root: Path, asks: dict[str, Any] | None = None, fields: dict[str, Any] | None = None, **source: Any) -> Path:
    """A mapping file next to JSONL of six rated replies, with changes, where None leaves a key out."""
    words = ["fine", "PARTIAL", "bad", "fine", "bad", ""]
    root.mkdir(parents=True, exist_ok=True)
    with (root / "labels.jsonl").open("w", encoding="utf-8") as file:
        for n, word in enumerate(words):
            row = {"case": n, "q": f"Is bell {n} loud?", "a": "Quite loud.", "turns": ["Hi.", "Hello.", "Loud?"]}
            file.write(
                json.dumps(row | {"ana": word, "ben": word or None, "cat": "no_crisis", "stars": n % 5 + 1}) + "\n"
            )
    named = {"id": "case", "text": "q", "reply": "a", "labels": {"ana": "ana", "ben": "ben"}} | (fields or {})
    where = {"name": "rows", "path": "labels.jsonl", "values": {"fine": "PASS", "bad": "FAIL"}} | source
    asked = {"kind": "criterion", "by": "answers-the-need"} | (asks or {})
    return mapping_file(root / "bells.yaml", asked, where | {"fields": named})


def mapping_file(path: Path, asks: dict[str, Any], *sources: dict[str, Any], **top: Any) -> Path:
    """A mapping file of its own name, where None leaves a key out."""

    def given(value: Any) -> Any:
        return {k: given(v) for k, v in value.items() if v is not None} if isinstance(value, dict) else value

    whole = (
        {"name": path.stem, "date": "2026-01-31"} | top | {"sources": list(map(given, sources)), "asks": given(asks)}
    )
    path.write_text(json.dumps(given(whole)), encoding="utf-8")
    return path


def published(name: str, root: Path) -> str:
    """The mapping file of a published set, without the hashes of its files, next to invented files in its format."""
    path = WRITERS[name](root) / f"{name}.yaml"
    shutil.copy(MAPPINGS / path.name, path)
    return str(path)


WRITERS: dict[str, Callable[[Path], Path]] = {
    "bhh-ratings": bhh,
    "bhh-messages": bhh,
    "xstest": xstest,
    "psychosis": psychosis,
    "vera-mh": vera,
    "counselbench": counselbench,
    "cssrs": cssrs,
    "feiwang856": feiwang,
    "mind-eval": mind_eval,
    "nami": nami,
    "schizobench": schizobench,
    "therapists": therapists,
    "therapists-models": therapists,
}
