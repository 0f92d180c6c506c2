"""The prompt under test, found in a run's requests: what was sent, to the byte, or nothing."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataset_builder.composing.condition_text import condition_texts
from dataset_builder.release import Release
from dataset_builder.schema import Row
from judge.replies.opening import own_prompt
from judge.replies.schema import OwnPrompt, RunError
from judge.replies.script import read_prompt

PROMPT = "You are Nia, the assistant of a city library.\n\nBe brief – 200 words at most."


def condition(prompt: str = PROMPT) -> OwnPrompt:
    return OwnPrompt(file="calm.txt", sha256=hashlib.sha256(prompt.encode()).hexdigest())


def system_text(release: Release, row: Row, prompt: str = PROMPT) -> str:
    """What the task sends in the place of the row's own system text."""
    own = condition_texts(release.rows.values())[row.scenario, row.condition]
    return prompt + (row.messages[0].content or "").removeprefix(own)


def as_api(system: str, user: str) -> Any:
    return [json.dumps([{"role": "system", "content": system}, {"role": "user", "content": user}])]


def as_api_without_a_system_role(system: str, user: str) -> Any:
    return [json.dumps([{"role": "user", "content": f"{system}\n\n{user}"}])]


def as_template(system: str, user: str) -> Any:
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n"


def logged(folder: Path, row: Row, sent: Any) -> Path:
    """A samples file as lm-eval writes it, of one sample, after a line that was cut."""
    sample = {"doc": {"id": row.id}, "arguments": {"gen_args_0": {"arg_0": sent, "arg_1": {}}}}
    (folder / "samples_helmbench_pillar1_lite_2026.jsonl").write_text(f'{{"doc":\n{json.dumps(sample)}\n')
    return folder


@pytest.mark.parametrize("instruction", ["", "Answer in English.\n\n"], ids=["alone", "behind an instruction"])
@pytest.mark.parametrize("form", [as_api, as_api_without_a_system_role, as_template])
def test_a_prompt_is_found_in_every_form_of_a_request(
    release: Release, tmp_path: Path, form: Callable[[str, str], Any], instruction: str
) -> None:
    """An API's messages, a template's one text, with something before it or not."""
    row = next(r for r in release.rows.values() if r.user_context)
    sent = form(instruction + system_text(release, row), row.messages[-1].content or "")
    assert own_prompt(logged(tmp_path, row, sent), condition(), release) == PROMPT


@pytest.mark.parametrize("change", [lambda t: t.replace("200", "20"), lambda _: "no request", lambda _: ""])
def test_what_was_not_sent_is_not_shown(release: Release, tmp_path: Path, change: Callable[[str], str]) -> None:
    """A request that was edited, or holds none."""
    row = next(iter(release.rows.values()))
    sent = as_api(change(system_text(release, row)), "Hello")
    assert own_prompt(logged(tmp_path, row, sent), condition(), release) is None


def test_a_long_request_is_not_searched_from_everywhere(release: Release, tmp_path: Path) -> None:
    """A long prompt is found behind a short instruction; behind a text of four million characters nothing is, and soon:
    each beginning was hashed to the end, hours of it.
    """
    row = next(r for r in release.rows.values() if r.user_context)
    prompt = "Be brief. " * 30_000 + "Be kind."
    sent = as_template("Answer in English.\n\n" + system_text(release, row, prompt), row.messages[-1].content or "")
    assert own_prompt(logged(tmp_path, row, sent), condition(prompt), release) == prompt
    sent = as_template(". " * 2_000_000 + system_text(release, row), row.messages[-1].content or "")
    assert own_prompt(logged(tmp_path, row, sent), condition(), release) is None


@pytest.mark.parametrize("sent", [None, 3, [], [[]], ["[3]"], {"a": 1}])
def test_a_log_of_another_shape_holds_no_prompt(release: Release, tmp_path: Path, sent: Any) -> None:
    """Whatever stands where requests should."""
    row = next(iter(release.rows.values()))
    assert own_prompt(logged(tmp_path, row, sent), condition(), release) is None


def test_a_folder_without_a_log_holds_no_prompt(release: Release, tmp_path: Path) -> None:
    """As that of scores that were written elsewhere."""
    assert own_prompt(tmp_path, condition(), release) is None


def test_a_folder_in_the_place_of_samples_holds_no_request(release: Release, tmp_path: Path) -> None:
    """It ended a comparison as an error of the disk; the comparison says that the replies can't be read."""
    (tmp_path / "samples_helmbench_pillar1_lite_2026.jsonl").mkdir()
    assert own_prompt(tmp_path, condition(), release) is None


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (lambda path: path.mkdir(), "is a folder"),
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda path: path.symlink_to(path), "can't be read"),
        (lambda path: path.write_bytes(b"caf\xe9"), "is not UTF-8"),
        (lambda path: path.write_bytes(b"\xef\xbb\xbf \n"), "is empty"),
        (lambda path: None, "can't be read"),
    ],
    ids=["folder", "pipe", "device", "ring", "no UTF-8", "nothing in it", "nothing"],
)
def test_a_prompt_that_cannot_be_read_is_named(tmp_path: Path, put: Callable[[Path], Any], said: str) -> None:
    """A pipe was waited for, and a device read without end."""
    put(tmp_path / "calm.txt")
    with pytest.raises(RunError, match=rf"calm\.txt(:\d+)?: {said}"):
        read_prompt(tmp_path / "calm.txt", [])
