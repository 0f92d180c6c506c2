"""transformers through lm-eval's `hf`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import environment, expected_requests, judge, lost, run
from helmbench.cli.common import UNANSWERED
from local_backends import DETECT, FEW, SAID, TAGS, Backend, LocalBackendTests, chatml, finished, folded, two_of_each

from dataset_builder.release import Release
from judge.replies.script import visible

HF = Backend("hf", chat="hf", reasoning="hf", base="hf", values={}, settings=",dtype=float32")


class TestHf(LocalBackendTests):
    backend = HF

    def test_detect_in_lm_evals_table_is_the_scorecards(
        self, make_model: Callable[..., Path], dataset: Path, tmp_path: Path
    ) -> None:
        """Forty samples of every job, answered with tags that some of them offer: each figure and standard error that
        lm-eval prints is the scorecard's, and no judge is asked.
        """
        model = make_model(environment(self.backend.kind), "chatml", TAGS)
        chosen = ["--samples", json.dumps({DETECT: list(range(0, 1520, 38))}), "--gen_kwargs", "max_gen_toks=64"]
        done = finished(self.backend.command(self.backend.chat, model, tmp_path, DETECT, *chosen), dataset, tmp_path)
        assert {r[0] for line in done.log.values() for r in line["resps"]} == {TAGS}
        card = judge(done.out, dataset)
        found = card["detect"]
        assert card["judge"]["by_judge"] == card["judge"]["unscored"] == 0
        printed = done.results["results"][DETECT]
        for name in ("sensitivity", "specificity", "informedness"):
            assert printed[f"{name},none"] == pytest.approx(found["detection"][name]["value"], abs=1e-9)
            assert printed[f"{name}_stderr,none"] == pytest.approx(found["stderr"][name], abs=1e-9)
        assert 0 < printed["sensitivity,none"] < 100


def test_a_template_that_drops_the_system_role_silently_loses_nothing(
    make_model: Callable[..., Path], dataset: Path, forty: dict[str, list[int]], opened: Release, tmp_path: Path
) -> None:
    """No error tells of it, only the text that is missing: it goes before the first user turn as well."""
    model = make_model(environment("hf"), "drops-system", SAID)
    command = HF.command("hf", model, tmp_path, ",".join(FEW), *two_of_each(forty), "--gen_kwargs", "max_gen_toks=8")
    done = finished(command, dataset, tmp_path)
    rows = {i: opened.rows[i] for i in done.log}
    assert sorted(done.received) == sorted(chatml(folded(m)) for m in expected_requests(rows, done.log, visible))


def test_a_chat_model_without_the_flag_is_refused(
    make_model: Callable[..., Path], dataset: Path, forty: dict[str, list[int]], tmp_path: Path
) -> None:
    """Forgetting --apply_chat_template would measure a format that the model never saw: one line says what to add,
    nothing is generated.
    """
    model = make_model(environment("hf"))
    command = HF.command("hf", model, tmp_path, ",".join(FEW), *two_of_each(forty))
    command.remove("--apply_chat_template")
    done = run(command, dataset, tmp_path)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "--apply_chat_template is missing" in last
    assert "helmbench_prompt" in last
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "received.jsonl").exists()


COUNT = """
import json, sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
print(json.dumps([len(tokenizer(text)["input_ids"]) for text in json.load(sys.stdin)]))
"""


def test_what_the_window_cannot_hold_is_named_and_never_cut(
    make_model: Callable[..., Path], dataset: Path, forty: dict[str, list[int]], opened: Release, tmp_path: Path
) -> None:
    """In a window for half of the prompts, what enters the model is whole; the others are listed before the run,
    unsent, and stand as unscored; with so many the run ends with 5.
    """
    programs = environment("hf")
    model = make_model(programs)
    task = "helmbench_pillar2_lite"
    inside = [r["id"] for r in opened.records("pillar2") if "lite" in r["tiers"]]
    chosen = {inside[n]: chatml([m.model_dump() for m in opened.rows[inside[n]].messages]) for n in forty[task]}
    counted = subprocess.run(
        [str(programs / "python"), "-c", COUNT, str(model)],
        input=json.dumps(list(chosen.values())),
        capture_output=True,
        text=True,
    )
    lengths = dict(zip(chosen, json.loads(counted.stdout), strict=True))
    middle = sorted(lengths.values())[len(lengths) // 2]
    narrow = Backend(
        "hf", chat="hf", reasoning="hf", base="hf", values={}, settings=f",dtype=float32,max_length={middle + 8}"
    )
    command = narrow.command(
        "hf", model, tmp_path, task, "--samples", json.dumps({task: forty[task]}), "--gen_kwargs", "max_gen_toks=8"
    )
    done = finished(command, dataset, tmp_path, code=UNANSWERED)
    too_long = {i for i, length in lengths.items() if length > middle}
    assert too_long
    assert set(done.results["configs"][task]["metadata"]["over_long"]) == too_long
    assert sorted(done.received) == sorted(text for i, text in chosen.items() if i not in too_long)
    card = judge(tmp_path / "out", dataset, code=UNANSWERED)
    assert lost(card) == sum(len(opened.rows[i].evaluation) for i in too_long)
