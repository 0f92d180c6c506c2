"""What is asked of the backends that hold the model themselves, hf and vLLM alike: three runs each, on three models."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
from harness import ROOT, check_judged, check_shape, environment, expected_requests, judge, logged, lost, run, succeeded
from helmbench.cli.common import OK, UNANSWERED
from support.recipes import filled, recipe, with_option

from dataset_builder.schema import Row
from judge.replies.script import visible

THOUGHT, SAID = "<think>They sound tired</think>", "I hear you."
SPEAKS_ON = " I hear you.\n\nUser:"  # then it begins again: a base model writes both sides
DETECT, TAGS = "helmbench_detect", '{"tags": ["TASK", "ASSISTANCE"]}'
FEW = ("helmbench_conversations_lite", "helmbench_pillar2_lite")


@dataclass(frozen=True)
class Backend:
    """A kind of environment, the recipes of docs/running.md that belong to it, and what a small model on a CPU changes
    in them.
    """

    kind: str
    chat: str
    reasoning: str
    base: str
    values: dict[str, str]
    settings: str

    def command(self, name: str, model: Path, folder: Path, tasks: str, *more: str) -> list[str]:
        """The recipe, run under record.py, on a tiny model and a few tasks; it writes to `folder`."""
        values = {key: value for key, value in self.values.items() if any(key in word for word in recipe(name)[0])}
        program, *words = filled(
            recipe(name)[0], values | {"pretrained=ORG/NAME": f"pretrained={model}{self.settings}"}, *more
        )
        assert program == "lm_eval"
        words = with_option(with_option(words, "--tasks", tasks), "--output_path", str(folder / "out"))
        return [
            str(environment(self.kind) / "python"),
            str(ROOT / "tests" / "backends" / "record.py"),
            str(folder / "received.jsonl"),
            *words,
        ]


class Run(NamedTuple):
    out: Path
    log: dict[str, dict[str, Any]]
    received: list[str]
    results: dict[str, Any]


def finished(command: list[str], dataset: Path, folder: Path, code: int = OK) -> Run:
    succeeded(run(command, dataset, folder), code)
    received = [json.loads(line) for line in (folder / "received.jsonl").read_text(encoding="utf-8").splitlines()]
    return Run(
        folder / "out",
        logged(folder / "out"),
        received,
        json.loads(next(folder.rglob("results_*.json")).read_text(encoding="utf-8")),
    )


def chatml(messages: list[dict[str, str]]) -> str:
    return "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages) + "<|im_start|>assistant\n"


def folded(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    system, first, *rest = messages
    return [{"role": "user", "content": f"{system['content']}\n\n{first['content']}"}, *rest]


def transcript(messages: list[dict[str, str]]) -> str:
    return "\n\n".join(f"{m['role'].capitalize()}: {m['content']}" for m in messages) + "\n\nAssistant:"


def few(log: dict[str, dict[str, Any]], release_rows: dict[str, Row]) -> dict[str, Row]:
    return {i: release_rows[i] for i in log}


def two_of_each(forty: dict[str, list[int]]) -> list[str]:
    return ["--samples", json.dumps({task: forty[task][:2] for task in FEW})]


class LocalBackendTests:
    """Subclasses name their backend."""

    backend: ClassVar[Backend]

    @pytest.fixture(scope="class")
    @classmethod
    def chat_run(
        cls, make_model: Callable[..., Path], dataset: Path, forty: dict[str, list[int]], tmp_path_factory: Any
    ) -> Run:
        """The forty samples, on random weights."""
        folder = tmp_path_factory.mktemp(f"{cls.backend.kind}-chat")
        chosen = ["--samples", json.dumps(forty), "--gen_kwargs", "max_gen_toks=16"]
        model = make_model(environment(cls.backend.kind))
        return finished(cls.backend.command(cls.backend.chat, model, folder, ",".join(forty), *chosen), dataset, folder)

    @pytest.fixture(scope="class")
    @classmethod
    def thinking_run(
        cls, make_model: Callable[..., Path], dataset: Path, forty: dict[str, list[int]], tmp_path_factory: Any
    ) -> Run:
        """A model that reasons first, and whose template refuses the system role."""
        folder = tmp_path_factory.mktemp(f"{cls.backend.kind}-thinking")
        model = make_model(environment(cls.backend.kind), "no-system", THOUGHT + SAID)
        command = cls.backend.command(
            cls.backend.reasoning, model, folder, ",".join(FEW), *two_of_each(forty), "--gen_kwargs", "max_gen_toks=24"
        )
        return finished(command, dataset, folder)

    @pytest.fixture(scope="class")
    @classmethod
    def base_run(
        cls, make_model: Callable[..., Path], dataset: Path, forty: dict[str, list[int]], tmp_path_factory: Any
    ) -> Run:
        """A model without a chat template, which would write both sides of the talk."""
        folder = tmp_path_factory.mktemp(f"{cls.backend.kind}-base")
        model = make_model(environment(cls.backend.kind), "none", SPEAKS_ON)
        command = cls.backend.command(
            cls.backend.base, model, folder, ",".join(FEW), *two_of_each(forty), "--gen_kwargs", "max_gen_toks=40"
        )
        if "--apply_chat_template" in command:
            command.remove("--apply_chat_template")
        return finished(command, dataset, folder)

    def test_the_model_gets_the_datasets_messages(self, chat_run: Run, rows: dict[str, Row]) -> None:
        """What enters the model, decoded, is the rows' messages in its template, once each, in every round; live turns
        hold its own words.
        """
        expected = [
            chatml(m) for m in expected_requests(rows, chat_run.log, lambda reply: visible(reply) or "(no reply)")
        ]
        assert len(expected) == 40 + sum(m.content is None for r in rows.values() for m in r.messages)
        assert Counter(chat_run.received) == Counter(expected)

    def test_the_log_has_every_backends_shape(self, chat_run: Run, rows: dict[str, Row]) -> None:
        """One line per sample with the keys of any backend, one request per live turn; the prompt stands in it as a
        string.
        """
        check_shape(chat_run.log, rows)
        sent = Counter(a["arg_0"] for line in chat_run.log.values() for a in line["arguments"].values())
        assert sent == Counter(chat_run.received)

    def test_the_judge_reads_all_forty(self, chat_run: Run, dataset: Path, rows: dict[str, Row]) -> None:
        """The page's command for scoring, on the run's folder: forty samples, none lost."""
        assert check_judged(chat_run.out, dataset, rows)["model"]["backend"] == chat_run.results["config"]["model"]

    def test_a_local_judge_answers_every_question_once(
        self, thinking_run: Run, make_model: Callable[..., Path], dataset: Path, tmp_path: Path
    ) -> None:
        """`--judge hf:MODEL` or `vllm:MODEL`, in one command: an answer for each question, none asked again by a second
        run, and those that a killed one lost are asked by the next.
        """
        out = next(Path(shutil.copytree(thinking_run.out, tmp_path / "out")).glob("*/results_*.json")).parent
        model = make_model(environment(self.backend.kind), "chatml", SAID)
        program = environment(self.backend.kind) / "helmbench"
        settings = self.backend.settings if self.backend.kind == "vllm" else ""
        command = [str(program), "score", str(out), "--judge", f"{self.backend.kind}:{model}{settings}", "--json"]
        code = UNANSWERED  # what this model says can't be read, or is cut off where vLLM holds it to the schema
        first = succeeded(run(command, dataset, tmp_path), code)
        card = json.loads(first.stdout)
        (answers,) = (out / "judge").glob("*/replies.jsonl")
        written = answers.read_text(encoding="utf-8").splitlines()
        asked = {json.loads(line)["custom_id"] for line in written}
        assert 0 < len(asked) <= card["judge"]["by_judge"]
        assert card["judge"]["name"] == str(model)
        assert set(card["judge"]["unscored_reasons"]) <= {"unparsable"}
        bodies = [json.loads(line)["response"]["body"]["choices"][0] for line in written]
        assert self.backend.kind == "vllm" or {b["message"]["content"] for b in bodies} == {SAID}
        assert "judging" in first.stderr
        assert "judging" not in succeeded(run(command, dataset, tmp_path), code).stderr
        answers.write_text("\n".join(written[: len(written) // 2])[:-9], encoding="utf-8")
        again = succeeded(run([*command, "--replace"], dataset, tmp_path), code)
        assert "judging" in again.stderr
        assert {json.loads(x)["custom_id"] for x in answers.read_text(encoding="utf-8").splitlines()} == asked
        assert json.loads(again.stdout)["judge"] == card["judge"]

    def test_a_refused_system_role_loses_no_word(self, thinking_run: Run, opened: Any) -> None:
        """The system text then stands at the beginning of the first user turn, in every round, and the run says so."""
        rows = few(thinking_run.log, opened.rows)
        expected = [chatml(folded(m)) for m in expected_requests(rows, thinking_run.log, visible)]
        assert Counter(thinking_run.received) == Counter(expected)
        for config in thinking_run.results["configs"].values():
            assert "first user turn" in config["metadata"]["system_role"]

    def test_thoughts_stay_in_the_log_and_out_of_the_history(self, thinking_run: Run, dataset: Path) -> None:
        """Each logged reply holds its reasoning; no prompt does; the judge reads what comes after it."""
        replies = {r[0] for line in thinking_run.log.values() for r in line["resps"]}
        assert replies == {THOUGHT + SAID}
        later = [text for text in thinking_run.received if f"assistant\n{SAID}<|im_end|>" in text]
        assert later
        assert not [text for text in thinking_run.received if "<think>" in text or "sound tired" in text]
        assert lost(judge(thinking_run.out, dataset)) == 0

    def test_a_base_model_gets_a_transcript_and_speaks_for_itself_alone(self, base_run: Run, opened: Any) -> None:
        """Rounds are transcripts that go on; each reply ends where the model would have begun to write the user."""
        rows = few(base_run.log, opened.rows)
        assert any(len(line["resps"]) > 1 for line in base_run.log.values())
        assert {r[0].strip() for line in base_run.log.values() for r in line["resps"]} == {SAID}
        expected = [transcript(m) for m in expected_requests(rows, base_run.log, visible)]
        assert Counter(base_run.received) == Counter(expected)
        for config in base_run.results["configs"].values():
            assert config["metadata"]["prompt"] == "plain transcript"

    def test_the_log_says_how_each_reply_ended(self, chat_run: Run, thinking_run: Run, base_run: Run) -> None:
        """Random weights run into the limit of 16 tokens; a model that says what it has to ends by itself, and so does
        one that is stopped.
        """

        def ends(of: Run) -> Counter[str]:
            return Counter(a["arg_2"]["finish"] for line in of.log.values() for a in line["arguments"].values())

        assert ends(chat_run)["length"] > 0.9 * ends(chat_run).total()
        assert set(ends(chat_run)) <= {"length", "stop"}
        assert set(ends(thinking_run)) == {"stop"}
        assert set(ends(base_run)) == {"stop"}
