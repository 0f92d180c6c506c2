"""The lm-eval task: passes each sample's messages unchanged to any backend, and runs live conversations in rounds.

lm-eval 0.4.13 has no YAML field for chat messages, so a class task overrides `fewshot_context`. Live turns use
`apply_filters`, which lm-eval calls after the first round and before `process_results`; this is not public API, so
lm-eval is pinned, and `lm_eval_tasks/README.md` lists the internals used here and the tests that cover them.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import lm_eval
import pyarrow as pa
from lm_eval.api.instance import Instance
from lm_eval.api.model import CachingLM
from lm_eval.api.task import ConfigurableTask

from dataset_builder.release import Release, ReleaseError, open_release, prune, ruled
from dataset_builder.schema import RULED, Row
from helmbench_common.http.retry import PATIENCE
from judge.replies.recorded import BENCHMARK, identity
from judge.replies.schema import Reply, RunError
from judge.replies.script import (
    NO_REPLY,
    ChatMessages,
    PromptUnderTest,
    continued,
    first_request,
    read_prompt,
    segments,
)
from judge.rules.answers import conduct
from judge.verdicts import by_rule, cases
from lm_eval_tasks.helmbench import lifecycle, metrics
from lm_eval_tasks.helmbench.api_models import Completion
from lm_eval_tasks.helmbench.layer import Layer, layer_of

log = logging.getLogger("lm_eval.helmbench")
PINNED = "0.4.13"
ROLES = {"system": "System", "user": "User", "assistant": "Assistant"}
TRANSCRIPT_STOPS = [f"\n\n{name}:" for name in ROLES.values()]  # a base model would go on and write the other side too

NAMED = 20  # ids to print; the results' metadata has all of them


class HelmbenchTask(ConfigurableTask):
    """One config of the dataset at one tier, set by `dataset_kwargs: {config, tier}` in the YAML."""

    def __init__(self, config: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if lm_eval.__version__ != PINNED:
            raise SystemExit(
                f"helmbench: lm-eval {lm_eval.__version__} is installed, the task is tested with {PINNED}; "
                f"install lm-eval[api]=={PINNED}"
            )
        own = {k: v for k, v in (config or {}).items() if k != "class"}  # TaskConfig has no field `class`
        lifecycle.check_settings(own.get("metadata") or {})
        # Without it, lm-eval looks up every metric's name on the network; it calls the method below instead.
        own["process_results"] = metrics.items
        self._model: Any = None
        self._layer: Layer | None = None
        self._ended: dict[str, list[Completion]] = {}
        self._template: Callable[..., Any] | None = None
        self._system: str | None = None
        self._tested: PromptUnderTest | None = None
        self._docs: list[dict[str, Any]] | None = None
        self._made: dict[str, float] | None = None  # what lm-eval prints, by name
        super().__init__(config=own, **kwargs)

    # --- data ------------------------------------------------------------------------------------------------------

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Reads the verified release; the config's rows in the tier become the test split."""
        wanted = dict(dataset_kwargs or self.config.dataset_kwargs or {})
        try:
            release = open_release((self.config.metadata or {}).get("helmbench_dataset"))
        except ReleaseError as error:
            raise SystemExit(f"helmbench: {error}") from None
        table, recorded = self.samples(release, wanted)
        inside = [n for n, tiers in enumerate(table.column("tiers").to_pylist()) if wanted["tier"] in tiers]
        self.dataset = datasets.DatasetDict({"test": datasets.Dataset(table.take(inside))})
        self._release = release
        checks = table.column("evaluation").to_pylist()
        by_rules = pa.array([n for n in inside if any(c["check"] in RULED for c in checks[n])], pa.int64())
        self._ruled = {doc["id"]: ruled(Row.model_validate(prune(doc))) for doc in table.take(by_rules).to_pylist()}
        self._figures = metrics.names(self._ruled.values())
        recorded["tier"] = wanted["tier"]
        self.config.metadata = {**(self.config.metadata or {}), **recorded}
        self._set_repeats()
        self._read_product_prompt(release)
        log.info(
            "%s: %d samples of %s, %s",
            self.config.task,
            len(inside),
            release.path,
            ", ".join(f"{k} {str(v)[:12]}" for k, v in recorded.items()),
        )

    def samples(self, release: Release, wanted: dict[str, Any]) -> tuple[pa.Table, dict[str, Any]]:
        """The rows of every tier, and their identity for the run's metadata."""
        return release.table(wanted["config"]), identity(release, BENCHMARK)

    def _set_repeats(self) -> None:
        """`--metadata '{"helmbench_repeats": N}'`: lm-eval has no option for the number of repeats per sample."""
        metadata = self.config.metadata
        asked = metadata.get("helmbench_repeats", self.config.repeats)
        if not isinstance(asked, int) or isinstance(asked, bool) or asked < 1:
            raise SystemExit(f"helmbench: helmbench_repeats is {asked!r}; expected a whole number from 1")
        self.config.repeats = metadata["repeats"] = asked

    def _read_product_prompt(self, release: Release) -> None:
        """`--metadata '{"helmbench_condition": "FILE"}'`: a prompt that replaces every condition's."""
        metadata = self.config.metadata
        if not (file := metadata.get("helmbench_condition")):
            return
        try:
            self._tested = read_prompt(Path(file), release.rows.values())
        except RunError as error:
            raise SystemExit(f"helmbench: {error}") from None
        metadata["condition"] = self._tested.identity.model_dump()

    def _opening(self, doc: dict[str, Any]) -> ChatMessages:
        """The first request's messages, with the product's prompt if one is under test."""
        try:
            return first_request(doc, self._tested, self._system or "")
        except RunError as error:
            raise SystemExit(f"helmbench: {error}") from None

    def test_docs(self) -> Any:
        """The rows as plain objects, read once: lm-eval iterates twice, and `datasets` rebuilds each row."""
        # lm-eval sets `task_docs` from the dataset itself, because it needs the columns.
        if self._docs is None and hasattr(self, "task_docs"):
            self._docs = self.dataset["test"].to_list()
            gc.freeze()  # the rows live as long as the run; scanning them took a quarter of its time
        return self._docs or self.dataset["test"]

    def fewshot_docs(self) -> None:
        return None  # the default would materialize every sample for a sampler that is never used

    def doc_to_text(self, doc: dict[str, Any], doc_to_text: Any = None) -> str:
        return str(doc["messages"][-1]["content"])

    def doc_to_target(self, doc: dict[str, Any], doc_to_target: Any = None) -> str:
        return str(doc["polarity"])

    # --- what the model reads --------------------------------------------------------------------------------------

    def fewshot_context(
        self,
        doc: dict[str, Any],
        num_fewshot: int = 0,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        chat_template: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """The first request's prompt; ignores lm-eval's few-shot settings."""
        self._system = system_instruction
        return self._render(self._opening(doc), chat_template if apply_chat_template else None)

    def _render(self, messages: ChatMessages, chat_template: Callable[..., Any] | None) -> Any:
        """Messages in the backend's format: an API's JSON array, a templated string, or a plain transcript."""
        if chat_template is None:
            return "\n\n".join(f"{ROLES[m['role']]}: {m['content']}" for m in messages) + "\n\nAssistant:"
        prompt = chat_template(messages, add_generation_prompt=True)
        system = messages[0]["content"] if messages[0]["role"] == "system" else ""
        # hf and vllm drop the system message if a template rejects that role, so prepend it to the user's turn.
        # An API's prompt is the JSON of the messages, which loses nothing.
        if system and type(prompt) is str and system.strip() not in prompt:
            first = {**messages[1], "content": f"{system}\n\n{messages[1]['content']}"}
            prompt = chat_template([first, *messages[2:]], add_generation_prompt=True)
            if system.strip() not in prompt:
                raise SystemExit(
                    f"{self.config.task}: the model's chat template loses the system message, even inside "
                    "the user's turn; use another template"
                )
            self.config.metadata["system_role"] = "refused by the chat template: put before the first user turn"
        return prompt

    # --- requests ----------------------------------------------------------------------------------------------------

    def build_all_requests(
        self, *, chat_template: Any = None, system_instruction: str | None = None, **kwargs: Any
    ) -> None:
        self._template, self._system = chat_template, system_instruction
        caller = sys._getframe(1)
        # A task can reach its model only through the bound template. A base model's run passes none; then only the
        # caller, lm-eval's `evaluate`, has the model.
        found = getattr(chat_template, "__self__", None) or caller.f_locals.get("lm")
        self._model = found.lm if isinstance(found, CachingLM) else found
        if chat_template is None:
            self._check_transcript()
        lifecycle.watch(caller, self.config.task, self._release.scoring["unscored_limit"], self._score_options())
        if self._model is not None:
            self._layer = layer_of(self._model, float(self.config.metadata.get("helmbench_patience", PATIENCE)))
        super().build_all_requests(chat_template=chat_template, system_instruction=system_instruction, **kwargs)
        self._name_over_long()

    def _score_options(self) -> dict[str, str]:
        """The options that `helmbench score` needs in addition to the run's folder."""
        names = {"helmbench_dataset": "--dataset", "helmbench_messages": "--messages"}
        return {o: str(self.config.metadata[name]) for name, o in names.items() if self.config.metadata.get(name)}

    def _name_over_long(self) -> None:
        """Reports the samples that don't fit before any cost: lm-eval would truncate their system message."""
        if self._layer is None or self._layer.window is None:
            return
        found = {i.doc["id"]: why for i in self.instances if (why := self._layer.too_long(self._least(i), i.args[1]))}
        if not found:
            return
        ids, why = sorted(found), next(iter(found.values()))
        asked = len({i.doc["id"] for i in self.instances})
        self.config.metadata["over_long"] = ids
        log.warning(
            "%s: %d of %d samples don't fit the model's window (the first: %s). What doesn't fit is not asked and "
            "stands as unscored: %s",
            self.config.task,
            len(ids),
            asked,
            why,
            _first(ids),
        )

    def _least(self, request: Instance) -> Any:
        """The shortest possible last prompt of a sample: the script, with minimal model turns."""
        if not live(request.doc):
            return request.args[0]
        said = [
            m
            for part in segments(request.doc["messages"])[1:]
            for m in ({"role": "assistant", "content": NO_REPLY}, *part)
        ]
        return self._render([*self._opening(request.doc), *said], self._template)

    def _check_transcript(self) -> None:
        """Checks that only models without a chat template get a plain transcript; it would mismeasure others."""
        template = getattr(getattr(self._model, "tokenizer", None), "chat_template", None)
        if template and self.config.metadata.get("helmbench_prompt") != lifecycle.TRANSCRIPT:
            raise SystemExit(
                f"{self.config.task}: the model has a chat template and --apply_chat_template is missing; "
                'where it is a base model all the same, say so: --metadata \'{"helmbench_prompt": "transcript"}\''
            )
        self.config.metadata["prompt"] = "plain transcript"

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> list[Instance]:
        task, doc_id, repeats = kwargs.get("metadata", (None, None, None))
        asked = dict(self.config.generation_kwargs)
        if self._template is None:
            asked["until"] = [*asked.get("until", []), *TRANSCRIPT_STOPS]
        # Each repeat is a separate branch, so that the cache can tell them apart; idx orders branches, then rounds.
        # Without a layer it is lm-eval's default: one request, sent several times.
        branches, times = (1, repeats or 1) if self._layer is None else (repeats or 1, 1)
        return [
            Instance(
                request_type="generate_until",
                doc=doc,
                arguments=(ctx, asked | ({"repeat": branch} if branch else {})),
                idx=branch * self._most(doc),
                metadata=(task, doc_id, times),
            )
            for branch in range(branches)
        ]

    def _most(self, doc: dict[str, Any]) -> int:
        """The most requests of a sample's branch."""
        return live(doc) + 1

    def apply_filters(self) -> Any:
        """Runs every live conversation to its end, one batch per round, then filters like lm-eval."""
        if self._layer is None and any(live(i.doc) for i in self.instances):
            raise SystemExit(f"{self.config.task}: conversations with live turns need --apply_chat_template")
        if self._layer is not None:
            talks = [(i, self._opening(i.doc)) for i in self.instances if live(i.doc)]
            rounds = max((live(i.doc) for i, _ in talks), default=0)
            for number in range(1, rounds + 1):
                log.info("%s: round %d of %d, %d conversations", self.config.task, number + 1, rounds + 1, len(talks))
                talks = self._next_round([(i, m) for i, m in talks if live(i.doc) >= number], number, self._layer)
            self._keep_ends(self._layer)
        return super().apply_filters()

    def _next_round(
        self, talks: list[tuple[Instance, ChatMessages]], number: int, layer: Layer
    ) -> list[tuple[Instance, ChatMessages]]:
        following: list[tuple[Instance, ChatMessages]] = []
        for instance, messages in talks:
            then = segments(instance.doc["messages"])[number]
            messages = continued(messages, str(instance.resps[0] or ""), then)
            prompt = self._render(messages, self._template)
            request = Instance(
                request_type="generate_until",
                doc=instance.doc,
                arguments=(prompt, dict(instance.args[1])),
                idx=instance.idx + 1,
                metadata=(instance.task_name, instance.doc_id, 1),
            )
            if layer.completion(instance).failed:  # no reply, so the conversation can't go on
                request.completion = Completion("", "error: an earlier turn has no reply", attempts=0)
            following.append((request, messages))
        asked = [request for request, _ in following if not hasattr(request, "completion")]
        layer(asked)
        for request, _ in following:
            request.resps.append(request.completion.text)
        self._instances.extend(request for request, _ in following)
        return following

    def _keep_ends(self, layer: Layer) -> None:
        """Logs how each request ended, as its third argument: lm-eval keeps no finish reason."""
        for instance in sorted(self.instances, key=lambda i: i.idx):
            ended = layer.completion(instance)
            instance.arguments = (*instance.args[:2], ended.note())
            self._ended.setdefault(instance.doc["id"], []).append(ended)
        lost = {i: next(e for e in ends if e.failed) for i, ends in self._ended.items() if any(e.failed for e in ends)}
        if lost:
            reasons = Counter(e.reason for e in lost.values())
            log.warning(
                "%s: %d of %d samples have no reply and count as unscored (%s): %s",
                self.config.task,
                len(lost),
                len(self._ended),
                "; ".join(f"{n} × {reason}" for reason, n in reasons.most_common()),
                _first(sorted(lost)),
            )

    # --- what lm-eval prints -----------------------------------------------------------------------------------------

    def process_results(self, doc: dict[str, Any], results: list[Any]) -> dict[str, Any]:
        """The verdicts of the rules on every repeat; the judge reads the rest from the log."""
        if "bypass" in self._metric_fn_list:  # --predict_only
            return {"bypass": None}
        ends = self._ended.get(doc["id"]) or [Completion(str(r or "")) for r in results]
        turns = live(doc) + 1
        last = ends[turns - 1 :: turns]
        answered = sum(not e.failed and conduct(e.text, e.finish) is None for e in last) / len(last)
        row, given = self._ruled.get(doc["id"]), list[metrics.Item]()
        if row is not None:
            branches = [ends[at : at + turns] for at in range(0, len(ends), turns)]
            replies = [
                Reply(id=row.id, repeat=n, turns=tuple(e.text for e in own), finish=tuple(e.finish for e in own))
                for n, own in enumerate(branches)
            ]
            found = (by_rule(case, self._release) for case in cases(replies, {row.id: row}))
            given = metrics.items(v for v in found if v is not None)
        # lm-eval requires the same metrics for every sample of a task.
        return {"answered": answered} | {f"{name}{end}": given for name in self._figures for end in ("", "_stderr")}

    def aggregation(self) -> dict[str, Any]:
        found: dict[str, Any] = dict(super().aggregation())
        return found | {
            f"{n}{end}": partial(self._figure, f"{n}{end}") for n in self._figures for end in ("", "_stderr")
        }

    def higher_is_better(self) -> dict[str, Any]:
        found: dict[str, Any] = dict(super().higher_is_better())
        return found | dict.fromkeys(self._figures, True)

    def _figure(self, name: str, given: list[list[metrics.Item]]) -> float:
        if self._made is None:
            self._made = metrics.figures(self._ruled, given, self._release.scoring)
        return self._made.get(name, float("nan"))


def _first(ids: list[str]) -> str:
    return ", ".join(ids[:NAMED]) + (" …" if len(ids) > NAMED else "")


def live(doc: dict[str, Any]) -> int:
    """The number of model turns before its last reply."""
    return [m["content"] for m in doc["messages"]].count(None)
