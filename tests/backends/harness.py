"""How backends are run here, and what every one of them must have done with the forty samples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helmbench.cli.common import OK

from dataset_builder.schema import Row

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = Path(os.environ.get("HELMBENCH_BACKENDS") or ROOT)
TIMEOUT = 900  # seconds; the first start of vLLM on a busy machine takes minutes
# Of the tests' own environment, which is enough for models behind an API; the path, since another checkout may be
# registered there.
LM_EVAL = [sys.executable, "-m", "lm_eval", "run", "--include_path", str(ROOT / "lm_eval_tasks")]
SCORE = ["helmbench", "score"]  # as docs/running.md types it, in the tests' own environment
SHARE = {"pillar1": 16, "pillar2": 7, "pillar3": 5, "pillar4": 6, "conversations": 6}  # forty samples of the lite tier


def environment(kind: str) -> Path:
    """The `bin` of a backend's environment; a test that needs it fails where there is none."""
    folder = ENVIRONMENTS / f".venv-{kind}"
    if not (folder / ".ready").is_file():
        pytest.fail(
            f"no environment for the backend {kind} in {folder}; make it with: scripts/make_backend_env.sh {kind}"
        )
    made_for = (folder / ".ready").read_text(encoding="utf-8").strip()
    assert made_for == str(ROOT), (
        f"{folder} runs the code in {made_for}, not this one; make it again: scripts/make_backend_env.sh {kind}"
    )
    return folder / "bin"


def run(command: list[str], dataset: Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A program as a user would start it, on this dataset, without a network beyond loopback."""
    settings = {
        "HELMBENCH_DATASET": str(dataset),
        "HF_HUB_OFFLINE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
    }
    # What belongs to the tests' own Python must not reach another one's; its own runs are of this checkout, wherever
    # they start.
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    if command[0] == sys.executable:
        inherited["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        command, cwd=cwd, env=inherited | settings | more, capture_output=True, text=True, timeout=TIMEOUT
    )


def succeeded(done: subprocess.CompletedProcess[str], code: int = OK) -> subprocess.CompletedProcess[str]:
    assert done.returncode == code, f"{done.args}\n{done.stdout[-1500:]}\n{done.stderr[-4000:]}"
    return done


def judge(folder: Path, dataset: Path, *more: str, code: int = OK) -> dict[str, Any]:
    """The page's command for scoring, which ends with this exit code, and the scorecard that it made."""
    program = str(Path(sys.executable).with_name(SCORE[0]))
    command = [program, *SCORE[1:], str(folder), "--dataset", str(dataset), *more, "--json"]
    done = subprocess.run(command, cwd=ROOT, timeout=TIMEOUT, stdout=subprocess.PIPE, text=True)
    assert done.returncode == code
    card: dict[str, Any] = json.loads(done.stdout)
    return card


def logged(out: Path) -> dict[str, dict[str, Any]]:
    """The log's lines by sample id."""
    lines = [
        json.loads(line)
        for path in sorted(out.rglob("samples_*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    found = {line["doc"]["id"]: line for line in lines}
    assert len(found) == len(lines)
    return found


def conversations_played(row: Row, replies: list[str], shown: Callable[[str], str]) -> list[list[dict[str, str]]]:
    """The messages of each request that a sample takes, when the model's turns so far were `replies`; `shown` is what
    history keeps of one.
    """
    requests: list[list[dict[str, str]]] = []
    history: list[dict[str, str]] = []
    said = iter(replies)
    for message in row.messages:
        if message.content is None:
            requests.append(list(history))
            history.append({"role": "assistant", "content": shown(next(said))})
        else:
            history.append({"role": message.role, "content": message.content})
    return [*requests, history]


def expected_requests(
    rows: dict[str, Row], log: dict[str, dict[str, Any]], shown: Callable[[str], str]
) -> list[list[dict[str, str]]]:
    """All requests that a run should have made, from the dataset's rows and the model's logged words."""
    assert log.keys() == rows.keys()
    return [
        request
        for i, row in rows.items()
        for request in conversations_played(row, [r[0] for r in log[i]["resps"]], shown)
    ]


LINE = {
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
    "answered",
}
PRINTED = {
    f"{prompt}{figure}{end}"
    for prompt in ("", "prompt_")
    for figure in ("sensitivity", "specificity", "informedness", "job")
    for end in ("", "_stderr")
}


def check_shape(log: dict[str, dict[str, Any]], rows: dict[str, Row]) -> None:
    """Logs of all backends have the same keys, one request per live turn, one reply per request."""
    assert log.keys() == rows.keys()
    for identity, line in log.items():
        assert line.keys() - PRINTED == LINE
        turns = sum(m.content is None for m in rows[identity].messages) + 1
        assert list(line["arguments"]) == [f"gen_args_{n}" for n in range(turns)]
        assert all(
            {"arg_0", "arg_1"} <= set(a) <= {"arg_0", "arg_1", "arg_2"} for a in line["arguments"].values()
        )  # arg_2: how it ended
        assert [len(r) for r in line["resps"]] == [1] * turns
        assert all(isinstance(r[0], str) for r in line["resps"])


def lost(card: dict[str, Any]) -> int:
    """Verdicts that something went wrong with; what the offline judge can't tell of such replies is no loss."""
    judged = card["judge"]
    return int(judged["unscored"]) - int(judged["unscored_reasons"].get("cannot_tell", 0))


def check_judged(out: Path, dataset: Path, rows: dict[str, Row]) -> dict[str, Any]:
    """The judge is shown all forty, loses none, and says that it isn't the whole tier."""
    card = judge(out, dataset)
    assert (card["dataset"]["tier"], card["dataset"]["samples"], card["dataset"]["complete"]) == (
        "lite",
        len(rows),
        False,
    )
    assert lost(card) == 0
    assert card["judge"]["verdicts"] == sum(len(r.evaluation) for r in rows.values())
    return card
