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
}
