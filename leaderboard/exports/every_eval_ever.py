"""Every Eval Ever 0.3.0: one aggregate JSON, and a JSONL of instances next to it.

`data/<collection>/<organization>/<model>/<uuid>.json` and `<uuid>_samples.jsonl`, as its datastore expects. Messages
are named by sample id and not repeated, because they belong where the canary is; replies are withheld.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import UTC, datetime
from typing import Any

from dataset_builder.release import Release
from dataset_builder.schema import Row
from helmbench_common.hashing import canonical, digest
from judge.report.entries import WITHHELD
from judge.schema import Scorecard, Verdict
from leaderboard.exports.figures import DEMO, Named, figures
from leaderboard.schema import Submission, Verified

VERSION = "0.3.0"  # of the format
RELATIONSHIP = {"developer": "first_party", "paid_by_developer": "collaborative", "independent": "third_party"}
LOCAL = ("hf", "hf-auto", "huggingface", "vllm", "sglang")  # lm-eval's backends that load the weights themselves
INTERVAL = "clustered by message, stratified by scenario and polarity; not symmetric"


def files(
    verified: Verified,
    submission: Submission,
    card: Scorecard,
    release: Release,
    collection: str,
    dataset_repo: str | None,
    dataset_revision: str | None,
) -> dict[str, str]:
    """Path → text of the two files."""
    made = int(datetime.fromisoformat(submission.submitted).replace(tzinfo=UTC).timestamp())
    model = f"{submission.model.organization}/{submission.model.name}"
    identity = f"{collection}/{model}/{made}"
    # The datastore expects version 4 ids; this one is derived from the submission, so the files are reproducible.
    name = uuid.UUID(bytes=bytes.fromhex(digest(submission.model_dump(mode="json")))[:16], version=4)
    stem = f"data/{collection}/{model}/{name}"
    source = _source(submission, dataset_repo, dataset_revision)
    lines = _instances(verified.verdicts, release, identity, model, source)
    samples = "".join(line + "\n" for line in lines)
    aggregate = {
        "schema_version": VERSION,
        "evaluation_id": identity,
        "retrieved_timestamp": str(made),
        "source_metadata": _metadata(verified, submission),
        "eval_library": {
            "name": "lm_eval" if submission.generation.lm_eval else "inspect_ai",
            "version": submission.generation.runner[1],
            "additional_details": {"task": "helmbench", "task_version": submission.generation.task_version},
        },
        "model_info": _model(submission, model),
        "evaluation_results": [
            _result(n, submission, card, _judges(n, card, verified.verdicts, release), source)
            for n in figures(card)
            if n.figure.value is not None
        ],
    }
    if lines:  # Every Eval Ever rejects an empty samples file
        aggregate["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{stem}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(samples.encode()).hexdigest(),
            "total_rows": len(lines),
            "additional_details": {"unscored_verdicts_left_out": str(len(verified.verdicts) - len(lines))},
        }
    text = json.dumps(aggregate, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return {f"{stem}.json": text} | ({f"{stem}_samples.jsonl": samples} if lines else {})


def _metadata(verified: Verified, submission: Submission) -> dict[str, Any]:
    demo = verified.state == "demo"
    details = {
        "verification": "ids, prompts, rule verdicts and scores recomputed by `helmbench verify`; that the "
        "model wrote these replies is declared by the submitter",
        "flags": ", ".join(sorted({f.kind for f in verified.flags})) or "none",
        "trained_on_benchmark": submission.declaration.trained_on_benchmark,
        "relation_to_developer": submission.model.relation,
        **({"demo": DEMO} if demo else {}),
    }
    return {
        "source_name": f"HELMbench submission ({DEMO})" if demo else "HELMbench submission",
        "source_type": "evaluation_run",
        "source_organization_name": submission.contact.name,
        "evaluator_relationship": RELATIONSHIP[submission.model.relation],
        "additional_details": details,
    }


def _model(submission: Submission, identity: str) -> dict[str, Any]:
    subject, backend = submission.model, submission.generation.backend
    local = subject.access != "api" and backend in LOCAL
    details = {
        "deployment_type": "self_deployed" if local else "externally_managed" if subject.access == "api" else "unknown",
        "model_availability": "open_weights" if subject.access == "open_weights" else "closed_weights",
        "backend": backend,
        **({"revision": subject.revision} if subject.revision else {}),
        **({"family": subject.family} if subject.family else {}),
    }
    return {"name": subject.name, "id": identity, "developer": subject.organization, "additional_details": details}


def _source(submission: Submission, repo: str | None, revision: str | None) -> dict[str, Any]:
    """The dataset, with its Hub location if known."""
    data = submission.dataset
    details = {
        "version": data.version,
        "score_hash": data.score_hash,
        "tier": data.tier,
        **({"revision": revision} if revision else {}),
    }
    where = (
        {"source_type": "hf_dataset", "hf_repo": repo, "hf_split": "test", "samples_number": data.samples}
        if repo
        else {"source_type": "other"}
    )
    return {"dataset_name": "HELMbench", **where, "additional_details": details}


def _result(
    named: Named, submission: Submission, card: Scorecard, judges: dict[str, Any] | None, source: dict[str, Any]
) -> dict[str, Any]:
    f = named.figure
    uncertainty: dict[str, Any] = {"num_samples": f.n}
    if f.low is not None and f.high is not None:
        limits = {"lower": f.low, "upper": f.high, "confidence_level": 0.95, "method": INTERVAL}
        uncertainty["confidence_interval"] = limits
    return {
        "evaluation_result_id": named.name,
        "evaluation_name": f"HELMbench {named.name}",
        "source_data": source,
        "metric_config": _metric(named) | ({"llm_scoring": judges} if judges else {}),
        "score_details": {"score": f.value, "details": _details(named, card), "uncertainty": uncertainty},
        "generation_config": {
            "generation_args": _arguments(submission),
            "additional_details": {"repeats": str(submission.generation.repeats)},
        },
    }


def _metric(named: Named) -> dict[str, Any]:
    points = named.unit == "points"
    # A score that earns has no lower end: below 0 is worse than not reading.
    lowest, highest = (0, 1) if not points else ("-Infinity", 100) if named.earns else (-100, 0)
    return {
        "evaluation_description": named.title,
        "metric_id": f"helmbench.{named.name}",
        "metric_name": named.name,
        "metric_unit": "points" if points else "proportion",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": lowest,
        "max_score": highest,
    }


def _details(named: Named, card: Scorecard) -> dict[str, str]:
    f = named.figure
    details = {"verdicts": str(f.n), "messages": str(f.clusters), "unscored": str(f.unscored)}
    bounds = {"score_if_every_unscored_failed": f.all_fail, "score_if_every_unscored_passed": f.all_pass}
    details |= {key: repr(value) for key, value in bounds.items() if value is not None}
    if named.name == "composite":  # one-sided limits and a state, which this format can't express
        details |= {f"floor {floor.name}": floor.state for floor in card.floors}
    return details


def _judges(named: Named, card: Scorecard, verdicts: list[Verdict], release: Release) -> dict[str, Any] | None:
    """The judges, if a language model decided anything that this figure counts. The prompt is named by its hash."""
    own = _behaviors(named.name, card)
    harm = release.scoring["harm"]
    over_all = {"tasks": [release.scoring["helps"]], "harm": [*harm["asked"], *harm["elsewhere"]]}
    over_all["keeps"] = over_all["tasks"]
    criteria = over_all.get(named.name, [])
    read = any(v.decided_by in ("judge", "panel") and (v.behavior in own or v.criterion in criteria) for v in verdicts)
    members = card.judge.panel.members if card.judge.panel else []
    judges = [(m.judge, m.prompt_hash) for m in members] or [(card.judge.name, card.judge.prompt_hash)]
    asked = [(name, prompt) for name, prompt in judges if prompt is not None]
    if not read or not asked:
        return None
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    place = f"HELMbench {card.dataset.version}, dataset_builder/content/prompts"
    return {
        "judges": [
            {
                "model_info": {"name": name, "id": name, "additional_details": unknown},
                "additional_details": {"prompt_hash": prompt},
            }
            for name, prompt in asked
        ],
        "input_prompt": f"{place}, hash {card.judge.prompt_hash}",
        **({"aggregation_method": "majority_vote"} if len(asked) > 1 else {}),
    }


def _behaviors(name: str, card: Scorecard) -> set[str]:
    """The behaviors that a figure counts; tasks and harm belong to criteria of many behaviors."""
    if name == "composite":
        return set(card.behaviors)
    of = {"sensitivity": "sees", "specificity": "sees"}.get(name, name)
    return {code for code, score in card.behaviors.items() if of in (code, score.headline)}


def _arguments(submission: Submission) -> dict[str, Any]:
    """Sampling settings that the format has a field for, if they have its type."""
    given = submission.generation.generation_kwargs
    found = {k: v for k in ("temperature", "top_p", "top_k") if type(v := given.get(k)) in (int, float)}
    limit = given.get("max_gen_toks")
    return found | ({"max_tokens": limit} if type(limit) is int and limit > 0 else {})


def _instances(
    verdicts: list[Verdict], release: Release, evaluation: str, model: str, source: dict[str, Any]
) -> list[str]:
    """A line per verdict with a label, in order. The format can't express an unscored one."""
    worth = release.scoring["points"]  # points of each label, 0 to 1
    scored = sorted((v for v in verdicts if v.label in worth), key=lambda v: (v.id, v.repeat, v.index))
    place = f"{source.get('hf_repo', source['dataset_name'])} {source['additional_details']['version']}"
    shared = {"schema_version": VERSION, "evaluation_id": evaluation, "model_id": model}
    return [canonical(shared | _instance(v, release.rows[v.id], float(worth[v.label]), place)) for v in scored]


def _instance(v: Verdict, row: Row, points: float, place: str) -> dict[str, Any]:
    """One verdict. A behavior's score isn't the mean of these: it weighs messages and corrects for chance."""
    live = sum(m.content is None for m in row.messages)
    evaluation: dict[str, Any] = {"score": points, "is_correct": points == 1}
    said: dict[str, Any] = {"output": {"raw": [WITHHELD]}, "messages": None}
    if live:
        evaluation["num_turns"] = live + 1
        roles = [*(m.role for m in row.messages), "assistant"]
        said = {"output": None, "messages": [{"turn_idx": n, "role": r, "content": None} for n, r in enumerate(roles)]}
    metadata = {
        "label": v.label,
        "check": v.check,
        "check_index": v.index,
        "repeat": v.repeat,
        "turn": v.turn,
        "decided_by": v.decided_by,
        "criterion": v.criterion,
        "outcome": v.outcome,
        "incident": v.incident,
    }
    return {
        "evaluation_name": f"HELMbench {v.behavior}",
        "evaluation_result_id": v.behavior,
        "sample_id": v.id,
        "interaction_type": "multi_turn" if live else "single_turn",
        "input": {"raw": f"[withheld: sample {v.id} of {place}]", "reference": []},
        **said,
        "answer_attribution": [],
        "evaluation": evaluation,
        "metadata": {name: str(value) for name, value in metadata.items() if value is not None},
    }
