"""A submission as Every Eval Ever 0.3.0 keeps evaluations: one aggregate JSON, and a JSONL of instances beside it.

`data/<collection>/<organization>/<model>/<uuid>.json` and `<uuid>_samples.jsonl`, as its datastore wants them. What was
asked is named by its sample id and not repeated, for it belongs where the canary is; what was replied is withheld.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import UTC, datetime
from typing import Any

from dataset_builder.release import Release
from helmbench_common.hashing import digest
from judge.schema import Scorecard, Verdict
from leaderboard.exports.headline import DEMO, Named, figures
from leaderboard.exports.instances import VERSION, Of, instances
from leaderboard.schema import Submission, Verified

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
    """Path → text of the two files. `release`: what was asked, which says what each label is worth."""
    made = int(datetime.fromisoformat(submission.submitted).replace(tzinfo=UTC).timestamp())
    model = f"{submission.model.organization}/{submission.model.name}"
    identity = f"{collection}/{model}/{made}"
    # The datastore wants version 4 ids; this one is made from the submission, so that the same one gives the same
    # files.
    name = uuid.UUID(bytes=bytes.fromhex(digest(submission.model_dump(mode="json")))[:16], version=4)
    stem = f"data/{collection}/{model}/{name}"
    source = _source(submission, dataset_repo, dataset_revision)
    lines = instances(verified.verdicts, release, Of(identity, model, source))
    samples = "".join(line + "\n" for line in lines)
    known = [n for n in figures(card) if n.figure.value is not None]
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
            _result(n, submission, card, _judges(n, card, verified.verdicts, release), source) for n in known
        ],
    }
    if lines:  # a samples file without a row is an error there
        left_out = len(verified.verdicts) - len(lines)
        aggregate["detailed_evaluation_results"] = _detailed(f"{stem}_samples.jsonl", samples, len(lines), left_out)
    text = json.dumps(aggregate, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return {f"{stem}.json": text} | ({f"{stem}_samples.jsonl": samples} if lines else {})


def _detailed(path: str, samples: str, rows: int, left_out: int) -> dict[str, Any]:
    """The entry of the file of instances."""
    return {
        "format": "jsonl",
        "file_path": path,
        "hash_algorithm": "sha256",
        "checksum": hashlib.sha256(samples.encode()).hexdigest(),
        "total_rows": rows,
        "additional_details": {"unscored_verdicts_left_out": str(left_out)},
    }


def _metadata(verified: Verified, submission: Submission) -> dict[str, Any]:
    details = {
        "verification": "ids, prompts, rule verdicts and scores recomputed by `helmbench verify`; that these "
        "replies are the model's is the submitter's word",
        "flags": ", ".join(sorted({f.kind for f in verified.flags})) or "none",
        "trained_on_benchmark": submission.declaration.trained_on_benchmark,
        "relation_to_developer": submission.model.relation,
        **({"demo": DEMO} if verified.state == "demo" else {}),
    }
    return {
        "source_name": f"HELMbench submission ({DEMO})" if verified.state == "demo" else "HELMbench submission",
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
    """The data that was asked: on the Hub where its id there is known."""
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
        uncertainty["confidence_interval"] = {
            "lower": f.low,
            "upper": f.high,
            "confidence_level": 0.95,
            "method": INTERVAL,
        }
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
    # What earns has no lower end: below 0 is worse than not reading. What only costs ends at 0.
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
    if named.name == "composite":  # one-sided limits, and a state: no score of this format
        details |= {f"floor {floor.name}": floor.state for floor in card.floors}
    return details


def _judges(named: Named, card: Scorecard, verdicts: list[Verdict], release: Release) -> dict[str, Any] | None:
    """The judge, where a language model decided anything that this figure counts. The prompt is named by its hash."""
    own = _behaviors(named.name, card)
    helps = release.scoring["helps"] if named.name in ("tasks", "keeps") else None
    read = any(
        v.decided_by in ("judge", "panel") and (v.behavior in own or (helps and v.criterion == helps)) for v in verdicts
    )
    members = card.judge.panel.members if card.judge.panel else []
    judges = [(m.judge, m.prompt_hash) for m in members] or [(card.judge.name, card.judge.prompt_hash)]
    asked = [(name, prompt) for name, prompt in judges if prompt is not None]
    if not read or not asked:
        return None
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    return {
        "judges": [
            {
                "model_info": {"name": name, "id": name, "additional_details": unknown},
                "additional_details": {"prompt_hash": str(p)},
            }
            for name, p in asked
        ],
        "input_prompt": f"HELMbench {card.dataset.version}, dataset_builder/content/prompts, hash "
        f"{card.judge.prompt_hash}",
        **({"aggregation_method": "majority_vote"} if len(asked) > 1 else {}),
    }


def _behaviors(name: str, card: Scorecard) -> set[str]:
    """The behaviors that a figure counts; the controls' tasks are of a criterion and of many behaviors."""
    if name == "composite":
        return set(card.behaviors)
    of = {"sensitivity": "sees", "specificity": "sees"}.get(name, name)
    return {code for code, score in card.behaviors.items() if of in (code, score.headline)}


def _arguments(submission: Submission) -> dict[str, Any]:
    """What sampling the format has a field for, where it has the field's type."""
    given = submission.generation.generation_kwargs
    found: dict[str, Any] = {}
    for key in ("temperature", "top_p", "top_k"):
        value = given.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[key] = value
    limit = given.get("max_gen_toks")
    return found | (
        {"max_tokens": limit} if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else {}
    )
