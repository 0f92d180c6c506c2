"""Runs lm-eval's command line in this process, and makes models and requests for tests of the runner."""

from __future__ import annotations

import io
import json
import logging
import socket
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import lm_eval.tasks
import lm_eval.utils
import pytest
from lm_eval._cli import HarnessCLI
from lm_eval.api.instance import Instance
from lm_eval.models.api_models import JsonChatStr
from lm_eval.models.openai_completions import LocalChatCompletion
from lm_eval.tasks import TaskManager

from lm_eval_tasks.helmbench import lifecycle

ROOT = Path(__file__).resolve().parents[2]
CHAT = ("--model", "local-chat-completions", "--apply_chat_template")
SETTINGS: dict[str, Any] = {"until": [], "max_gen_toks": 64, "temperature": 0.0}


def lm_eval_command(dataset: Path, cwd: Path, *words: str) -> CompletedProcess[str]:
    """`lm_eval run …` with only our tasks: its 13,000 task files take seven seconds to read."""
    out, err, at_exit = io.StringIO(), io.StringIO(), list[Callable[[], object]]()
    handler = logging.StreamHandler(err)
    logger = logging.getLogger("lm_eval")
    code = 0
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
        patch.chdir(cwd)
        patch.setenv("HELMBENCH_DATASET", str(dataset))
        patch.setattr(sys, "argv", ["lm_eval", "run", *words, "--include_path", str(ROOT / "lm_eval_tasks")])
        patch.setattr(lm_eval.utils, "_LOGGING_CONFIGURED", True)
        patch.setattr(lm_eval.tasks, "TaskManager", partial(TaskManager, include_defaults=False))
        register = lambda call, *given: at_exit.append(partial(call, *given))  # noqa: E731
        patch.setattr(lifecycle, "atexit", SimpleNamespace(register=register))
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                cli = HarnessCLI()
                cli.execute(cli.parse_args())
                for call in at_exit:
                    call()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
            err.write("" if isinstance(end.code, int) else f"{end.code}\n")
        except Exception:
            code = 1
            err.write(traceback.format_exc())
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
    return CompletedProcess(words, code, out.getvalue(), err.getvalue())


def run_lm_eval(
    dataset: Path, out: Path, url: str, tasks: str, *more: str, model: str = "keyword", cwd: Path | None = None
) -> CompletedProcess[str]:
    """Runs tasks against a chat server, eight requests at once."""
    arguments = ("--model_args", f"model={model},base_url={url}/chat/completions,num_concurrent=8")
    kept = ("--log_samples", "--output_path", str(out))
    return lm_eval_command(dataset, cwd or out.parent, *CHAT, *arguments, "--tasks", tasks, *kept, *more)


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def model_at(
    url: str, name: str = "faulty", kind: type[LocalChatCompletion] = LocalChatCompletion, **more: Any
) -> LocalChatCompletion:
    """A real lm-eval API model."""
    return kind(model=name, base_url=f"{url}/chat/completions", num_concurrent=8, timeout=1, **more)


def request(text: str, n: int = 0, **settings: Any) -> Instance:
    """One request, as the task makes it."""
    messages = [{"role": "system", "content": "Help the user."}, {"role": "user", "content": text}]
    return Instance("generate_until", {}, (JsonChatStr(json.dumps(messages)), {**SETTINGS, **settings}), n, ("t", n, 1))
