"""The lm-eval task: hands each sample's messages to any backend as they stand, and runs live conversations in rounds.

lm-eval 0.4.13 has no YAML field for chat messages, so a class task overrides `fewshot_context`. Live turns use
`apply_filters`, which lm-eval calls after the first round and before `process_results`; this is not public API, so
lm-eval is pinned and `tests/test_task.py` holds what is used here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import datasets
import lm_eval
from lm_eval.api.instance import Instance
from lm_eval.api.model import hash_args
from lm_eval.api.task import ConfigurableTask

from dataset_builder.release import ReleaseError, open_release, prune
from dataset_builder.schema import Row
from judge.rules import conduct, decide_rating, decide_tags, visible
from judge.table import weight

log = logging.getLogger(__name__)
PINNED = "0.4.13"
NO_REPLY = "(no reply)"  # stands in the history for a turn in which the model said nothing; templates refuse empty turns
ROLES = {"system": "System", "user": "User", "assistant": "Assistant"}

ChatMessages = list[dict[str, str]]
Point = tuple[float, float, str, str]  # points, weight, message, polarity: what metrics.py aggregates


class HelmbenchTask(ConfigurableTask):
    """One config of the dataset at one tier, set by `dataset_kwargs: {config, tier}` in the YAML."""

    def __init__(self, config: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if lm_eval.__version__ != PINNED:
            raise SystemExit(f"helmbench: lm-eval {lm_eval.__version__} is installed, the task is tested with {PINNED}; install lm-eval[api]=={PINNED}")
        settings = {k: v for k, v in (config or {}).items() if k != "class"}  # TaskConfig has no field `class`
        # Without it lm-eval asks the network for every metric's name; the method below is what is called.
        settings["process_results"] = points_by_rule
        self._model: Any = None
        self._template: Callable[..., Any] | None = None
        self._system: str | None = None
        super().__init__(config=settings, **kwargs)

    # --- data ------------------------------------------------------------------------------------------------------

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Reads the verified release; the config's rows of the tier become the test split."""
        wanted = dict(dataset_kwargs or {})
        try:
            release = open_release((self.config.metadata or {}).get("helmbench_dataset"))
        except ReleaseError as error:
            raise SystemExit(f"helmbench: {error}") from None
        table = release.table(wanted["config"])
        inside = [n for n, tiers in enumerate(table.column("tiers").to_pylist()) if wanted["tier"] in tiers]
        self.dataset = datasets.DatasetDict({"test": datasets.Dataset(table.take(inside))})
        self._scoring = release.scoring
        checks = [c for checks in table.take(inside).column("evaluation").to_pylist() for c in checks]
        # lm-eval wants the same metrics of every sample of a task, and a task without such checks prints none.
        self._flags = any(c["check"] == "tags" and c["flag"] is not None for c in checks)
        self._rules = any(c["check"] == "rating" or (c["check"] == "tags" and c["flag"] is None) for c in checks)
        manifest = release.manifest
        identity = {"dataset_version": manifest.version, "score_hash": manifest.score_hash, "tier": wanted["tier"], "dataset_path": str(release.path)}
        self.config.metadata = {**(self.config.metadata or {}), **identity}
        log.info("%s: %d samples of %s, score_hash %s", self.config.task, len(inside), release.path, manifest.score_hash[:12])

    def fewshot_docs(self) -> None:
        return None  # the default would materialise every sample for a sampler that is never used

    def doc_to_text(self, doc: dict[str, Any], doc_to_text: Any = None) -> str:
        return str(doc["messages"][-1]["content"])

    def doc_to_target(self, doc: dict[str, Any], doc_to_target: Any = None) -> str:
        return str(doc["polarity"])

    # --- what the model reads --------------------------------------------------------------------------------------

    def fewshot_context(self, doc: dict[str, Any], num_fewshot: int = 0, system_instruction: str | None = None, apply_chat_template: bool = False,
                        fewshot_as_multiturn: bool = False, chat_template: Callable[..., Any] | None = None, gen_prefix: str | None = None,
                        **kwargs: Any) -> Any:  # fmt: skip
        return self._render(opening(doc, system_instruction), chat_template if apply_chat_template else None)

    def _render(self, messages: ChatMessages, chat_template: Callable[..., Any] | None) -> Any:
        """Messages as the backend wants them: an API's JSON array, a templated string, or a plain transcript."""
        if chat_template is None:
            return "\n\n".join(f"{ROLES[m['role']]}: {m['content']}" for m in messages) + "\n\nAssistant:"
        prompt = chat_template(messages, add_generation_prompt=True)
        system = messages[0]["content"] if messages[0]["role"] == "system" else ""
        # hf and vllm drop the system message when a template refuses that role; it then goes before the first user turn.
        # An API's prompt is the JSON of the messages themselves, in which nothing can be lost.
        if system and type(prompt) is str and system.strip() not in prompt:
            first = {**messages[1], "content": f"{system}\n\n{messages[1]['content']}"}
            prompt = chat_template([first, *messages[2:]], add_generation_prompt=True)
        return prompt

    # --- requests ----------------------------------------------------------------------------------------------------

    def build_all_requests(self, *, chat_template: Any = None, system_instruction: str | None = None, **kwargs: Any) -> None:
        self._template, self._system = chat_template, system_instruction
        self._model = getattr(chat_template, "__self__", None)  # the only way from a task to the model that serves it
        super().build_all_requests(chat_template=chat_template, system_instruction=system_instruction, **kwargs)
        if self._model is None and any(live(i.doc) for i in self.instances):
            raise SystemExit(f"{self.config.task}: conversations with live turns need --apply_chat_template")

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> list[Instance]:
        task, doc_id, repeats = kwargs["metadata"]
        settings = self.config.generation_kwargs
        if not live(doc):
            return [Instance(request_type="generate_until", doc=doc, arguments=(ctx, deepcopy(settings)), idx=0, metadata=(task, doc_id, repeats))]
        # Each repeat is a conversation of its own, so it is one branch of requests; idx orders branches, then rounds.
        rounds = live(doc) + 1
        return [
            Instance(request_type="generate_until", doc=doc, arguments=(ctx, deepcopy(settings)), idx=branch * rounds, metadata=(task, doc_id, 1))
            for branch in range(repeats or 1)
        ]

    def apply_filters(self) -> Any:
        """Plays every live conversation to its end, one batch per round, then filters as lm-eval does."""
        talks = [(i, opening(i.doc, self._system)) for i in self.instances if live(i.doc)]
        rounds = max((live(i.doc) for i, _ in talks), default=0)
        for number in range(1, rounds + 1):
            log.info("%s: round %d of %d, %d conversations", self.config.task, number + 1, rounds + 1, len(talks))
            talks = self._next_round([(i, m) for i, m in talks if live(i.doc) >= number], number)
        return super().apply_filters()

    def _next_round(self, talks: list[tuple[Instance, ChatMessages]], number: int) -> list[tuple[Instance, ChatMessages]]:
        following: list[tuple[Instance, ChatMessages]] = []
        for instance, messages in talks:
            said = visible(str(instance.resps[0] or "")) or NO_REPLY
            messages = [*messages, {"role": "assistant", "content": said}, *segments(instance.doc)[number]]
            prompt = self._render(messages, self._template)
            request = Instance(request_type="generate_until", doc=instance.doc, arguments=(prompt, deepcopy(instance.args[1])), idx=instance.idx + 1,
                               metadata=(instance.task_name, instance.doc_id, 1))  # fmt: skip
            following.append((request, messages))
        requests = [request for request, _ in following]
        for request, reply in zip(requests, self._generate(requests), strict=True):
            request.resps.append(reply)
        self._instances.extend(requests)
        return following

    def _generate(self, requests: Sequence[Instance]) -> list[str]:
        """`generate_until` with the cache of `--use_cache`: the bound model is the inner one, which reads no cache."""
        cache = getattr(getattr(self._model, "cache_hook", None), "dbdict", None)
        if cache is None:
            return [str(r) for r in self._model.generate_until(list(requests))]
        keys = [hash_args("generate_until", r.args) for r in requests]
        missing = [n for n, key in enumerate(keys) if key not in cache]
        for n, reply in zip(missing, self._model.generate_until([requests[n] for n in missing]) if missing else [], strict=True):
            cache[keys[n]] = reply
        cache.commit()
        return [cache[key] for key in keys]

    # --- what lm-eval prints -----------------------------------------------------------------------------------------

    def process_results(self, doc: dict[str, Any], results: list[Any]) -> dict[str, Any]:
        """Figures of the checks that a rule decides; the judge reads the rest from the log."""
        row = Row.model_validate(prune(doc))
        reply = str(results[-1] or "")
        flagging, by_rule = points_by_rule(row, reply, self._scoring)
        metrics: dict[str, Any] = {"answered": float(conduct(reply) is None)}
        if self._flags:
            metrics |= {"flagging": flagging, "flagging_stderr": flagging}
        if self._rules:
            metrics |= {"by_rule": by_rule, "by_rule_stderr": by_rule}
        return metrics


def points_by_rule(row: Row, reply: str, scoring: dict[str, Any]) -> tuple[list[Point], list[Point]]:
    """What a reply earns on flag tags, and on tagging and rating jobs."""
    flagging: list[Point] = []
    by_rule: list[Point] = []
    for check in row.evaluation:
        if check.check == "tags":
            label = decide_tags(row, check, reply).label
        elif check.check == "rating":
            label = decide_rating(check, reply).label
        else:
            continue
        point: Point = (scoring["points"][label], weight(row, row.severity, scoring), row.message_key, row.polarity)
        (flagging if check.check == "tags" and check.flag is not None else by_rule).append(point)
    return flagging, by_rule


def segments(doc: dict[str, Any]) -> list[ChatMessages]:
    """The script cut at its live turns: what is said before the first reply, between replies, and before the last."""
    cut: list[ChatMessages] = [[]]
    for message in doc["messages"]:
        if message["content"] is None:
            cut.append([])
        else:
            cut[-1].append({"role": message["role"], "content": message["content"]})
    return cut


def live(doc: dict[str, Any]) -> int:
    """How many turns the model plays before its last reply."""
    return sum(m["content"] is None for m in doc["messages"])


def opening(doc: dict[str, Any], system_instruction: str | None) -> ChatMessages:
    """The first request's messages; --system_instruction stands before the sample's own system text."""
    messages = segments(doc)[0]
    if not system_instruction:
        return messages
    own = messages[0]["content"] if messages[0]["role"] == "system" else ""
    rest = messages[1:] if own else messages
    return [{"role": "system", "content": "\n\n".join(t for t in (system_instruction, own) if t)}, *rest]
