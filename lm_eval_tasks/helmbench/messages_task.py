"""The tasks over stand-alone messages: free replies to them (appropriateness), and labels for them (triage).

task.py handles everything between lm-eval and the model: rounds, the layer that survives bad samples, cache, repeats.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from dataset_builder.corpora.labelled import on_corpus
from dataset_builder.release import Release, ReleaseError
from judge.replies.recorded import APPROPRIATENESS, TRIAGE, identity
from judge.replies.script import ChatMessages, segments, triage_question, with_instruction
from judge.rules.answers import conduct
from judge.rules.categories import read_category
from lm_eval_tasks.helmbench.api_models import Completion
from lm_eval_tasks.helmbench.task import HelmbenchTask, log


class AppropriatenessTask(HelmbenchTask):
    """Free replies to the messages of a tier, set by `dataset_kwargs: {tier}` in the YAML; the judge rates them
    afterwards. `corpus: true`: only on a labeled corpus, never on the release's messages.
    """

    measures = APPROPRIATENESS

    def samples(self, release: Release, wanted: dict[str, Any]) -> tuple[pa.Table, dict[str, Any]]:
        """The messages: the release's config `messages`, or the user's labeled corpus."""
        table = release.table("messages")
        # `--metadata '{"helmbench_messages": "FOLDER"}'`
        folder = (self.config.metadata or {}).get("helmbench_messages")
        if wanted.get("corpus") and not folder:
            raise SystemExit(
                f"helmbench: {self.config.task} runs on a labeled corpus of real messages; name its folder with "
                '--metadata \'{"helmbench_messages": "FOLDER"}\' (docs/own-data.md)'
            )
        if folder:
            try:
                release = on_corpus(release, Path(folder))
            except ReleaseError as error:
                raise SystemExit(f"helmbench: {error}") from None
            table = pa.Table.from_pylist(
                [m.model_dump(mode="json", by_alias=True) for m in release.messages.values()], schema=table.schema
            )
            log.warning(
                "%s: %d messages of %s go to the model under test; where that isn't on this machine, "
                "people's words leave it",
                self.config.task,
                len(release.messages),
                release.messages_source,
            )
        return table, identity(release, self.measures)  # `helmbench score` must get the same corpus

    def _opening(self, doc: dict[str, Any]) -> ChatMessages:
        return self._alone(segments(doc["messages"])[0])

    def _alone(self, asked: ChatMessages) -> ChatMessages:
        """Puts a system prompt under test before what the model is told about the user."""
        return with_instruction(with_instruction(asked, self._tested and self._tested.text), self._system)


class TriageTask(AppropriatenessTask):
    """Labels for the same messages; `dataset_kwargs: {tier, prompt}`, where prompt is `bare` (names only) or
    `guided`.
    """

    def samples(self, release: Release, wanted: dict[str, Any]) -> tuple[pa.Table, dict[str, Any]]:
        """The messages, and the names, definitions and examples that the prompt shows."""
        self._prompt, self._taxonomy, self._prompts = wanted["prompt"], release.taxonomy, release.prompts
        self.measures = f"{TRIAGE}{self._prompt}"
        return super().samples(release, wanted)

    def _opening(self, doc: dict[str, Any]) -> ChatMessages:
        asked = [
            {"role": "user", "content": triage_question(doc["messages"], self._taxonomy, self._prompts, self._prompt)}
        ]
        return self._alone(asked)

    def doc_to_target(self, doc: dict[str, Any], doc_to_target: Any = None) -> str:
        return str(doc["crisis_category"])

    def process_results(self, doc: dict[str, Any], results: list[Any]) -> dict[str, Any]:
        """The share of repeats with an authored label; an unreadable reply is wrong, a missing one isn't counted."""
        if "bypass" in self._metric_fn_list:  # --predict_only
            return {"bypass": None}
        ends = self._ended.get(doc["id"]) or [Completion(str(r or "")) for r in results]
        said = [e for e in ends if not e.failed]
        right = [
            read_category(e.text, e.finish, self._taxonomy) in (doc["crisis_category"], doc["crisis_category_2"] or "")
            for e in said
        ]
        answered = sum(conduct(e.text, e.finish) is None for e in said) / len(ends)
        share = [sum(right) / len(right)] if right else []
        return {"answered": answered, "accuracy": share, "accuracy_stderr": share}
