"""A submission as Every Eval Ever 0.3.0 keeps evaluations: one aggregate JSON, and a JSONL of instances beside it.

`data/<collection>/<organization>/<model>/<uuid>.json` and `<uuid>_samples.jsonl`, as its datastore wants them. What was
asked is
named by its sample id and not repeated, for it belongs where the canary is; what was replied is withheld.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import UTC, datetime
from typing import Any

from dataset_builder.release import Release, canonical, digest
from dataset_builder.schema import Row
from judge.report.failures import WITHHELD
from judge.schema import Scorecard, Verdict
from leaderboard.exports.headline import DEMO, Named, figures
from leaderboard.schema import Submission, Verified

VERSION = "0.3.0"
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
    lines = [
        canonical(_instance(v, release.rows[v.id], points, identity, model, source))
        for v, points in _scored(verified.verdicts, release)
    ]
    samples = "".join(line + "\n" for line in lines)
    results = [
        _result(n, submission, card, verified.verdicts, source) for n in figures(card) if n.figure.value is not None
    ]
    aggregate = {
        "schema_version": VERSION,
        "evaluation_id": identity,
        "retrieved_timestamp": str(made),
        "source_metadata": _metadata(verified, submission),
        "eval_library": {
            "name": "lm_eval",
            "version": submission.generation.lm_eval,
            "additional_details": {"task": "helmbench", "task_version": submission.generation.task_version},
        },
        "model_info": _model(submission, model),
        "evaluation_results": results,
    }
    if lines:  # a samples file without a row is an error there
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


def _scored(verdicts: list[Verdict], release: Release) -> list[tuple[Verdict, float]]:
    """Verdicts with what each label earns (0 to 1), in order. An unscored one has no score to give, and the format no
    word for that.
    """
    worth = release.scoring["points"]
    found = [(v, float(worth[v.label])) for v in verdicts if v.label in worth]
    return sorted(found, key=lambda pair: (pair[0].id, pair[0].repeat, pair[0].index))


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
    named: Named, submission: Submission, card: Scorecard, verdicts: list[Verdict], source: dict[str, Any]
) -> dict[str, Any]:
    f, points = named.figure, named.unit == "points"
    detects = points and (
        named.name == "composite" or named.name.startswith("P1")
    )  # below 0: worse than one reply for everybody
    metric: dict[str, Any] = {
        "evaluation_description": named.title,
        "metric_id": f"helmbench.{named.name}",
        "metric_name": named.name,
        "metric_unit": "points" if points else "proportion",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": "-Infinity" if detects else 0,
        "max_score": 100 if points else 1,
    }
    if scoring := _judges(named, card, verdicts):
        metric["llm_scoring"] = scoring
    uncertainty: dict[str, Any] = {"num_samples": f.n}
    if f.low is not None and f.high is not None:
        uncertainty["confidence_interval"] = {
            "lower": f.low,
            "upper": f.high,
            "confidence_level": 0.95,
            "method": INTERVAL,
        }
    details = {"verdicts": str(f.n), "messages": str(f.clusters), "unscored": str(f.unscored)}
    bounds = {"score_if_every_unscored_failed": f.all_fail, "score_if_every_unscored_passed": f.all_pass}
    details |= {key: repr(value) for key, value in bounds.items() if value is not None}
    if named.name == "composite":  # one-sided limits, and a state: no score of this format
        details |= {f"floor {floor.name}": floor.state for floor in card.floors}
    return {
        "evaluation_result_id": named.name,
        "evaluation_name": f"HELMbench {named.name}",
        "source_data": source,
        "metric_config": metric,
        "score_details": {"score": f.value, "details": details, "uncertainty": uncertainty},
        "generation_config": {
            "generation_args": _arguments(submission),
            "additional_details": {"repeats": str(submission.generation.repeats)},
        },
    }


def _judges(named: Named, card: Scorecard, verdicts: list[Verdict]) -> dict[str, Any] | None:
    """The judge, where a language model decided anything that this figure counts. The prompt is named by its hash."""
    prefix = {"composite": "", "sensitivity": "P1", "specificity": "P1"}.get(named.name, named.name)
    read = any(v.behavior.startswith(prefix) and v.decided_by in ("judge", "panel") for v in verdicts)
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


def _instance(v: Verdict, row: Row, points: float, identity: str, model: str, source: dict[str, Any]) -> dict[str, Any]:
    """One verdict. Its behavior's score weighs messages and corrects for chance, so it is not these scores' mean."""
    live = [m.role for m in row.messages if m.content is None]
    place = source.get("hf_repo", source["dataset_name"])
    evaluation: dict[str, Any] = {"score": points, "is_correct": points == 1}
    if live:
        roles = [*(m.role for m in row.messages), "assistant"]
        said: dict[str, Any] = {
            "output": None,
            "messages": [{"turn_idx": n, "role": role, "content": None} for n, role in enumerate(roles)],
        }
        evaluation["num_turns"] = len(live) + 1
    else:
        said = {"output": {"raw": [WITHHELD]}, "messages": None}
    metadata = {
        "label": str(v.label),
        "check": v.check,
        "check_index": str(v.index),
        "repeat": str(v.repeat),
        "turn": str(v.turn),
        "decided_by": v.decided_by,
        **({"criterion": v.criterion} if v.criterion else {}),
        **({"outcome": v.outcome} if v.outcome else {}),
        **({"incident": v.incident} if v.incident else {}),
    }
    return {
        "schema_version": VERSION,
        "evaluation_id": identity,
        "model_id": model,
        "evaluation_name": f"HELMbench {v.behavior}",
        "evaluation_result_id": v.behavior,
        "sample_id": v.id,
        "interaction_type": "multi_turn" if live else "single_turn",
        "input": {
            "raw": f"[withheld: sample {v.id} of {place} {source['additional_details']['version']}]",
            "reference": [],
        },
        **said,
        "answer_attribution": [],
        "evaluation": evaluation,
        "metadata": metadata,
    }
