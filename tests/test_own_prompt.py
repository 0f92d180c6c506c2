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
from judge.replies.schema import NO_PROMPT, OwnPrompt, RunError
from judge.replies.script import first_request, read_prompt

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


def test_a_prompt_is_found_in_every_form_of_a_request(release: Release, tmp_path: Path) -> None:
    """An API's messages, a template's one text, with an instruction before it or not. A request that was edited, or
    holds none, shows nothing.
    """
    row = next(r for r in release.rows.values() if r.user_context)
    system, user = system_text(release, row), row.messages[-1].content or ""
    for form in (as_api, as_api_without_a_system_role, as_template):
        for instruction in ("", "Answer in English.\n\n"):
            assert own_prompt(logged(tmp_path, row, form(instruction + system, user)), condition(), release) == PROMPT
    for edited in (system.replace("200", "20"), "no request", ""):
        assert own_prompt(logged(tmp_path, row, as_api(edited, user)), condition(), release) is None


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


def test_a_log_of_another_shape_holds_no_prompt(release: Release, tmp_path: Path) -> None:
    """Whatever stands where requests should, a folder in the place of the samples, and no log at all."""
    row, shapes = next(iter(release.rows.values())), list[Any]([None, 3, [], [[]], ["[3]"], {"a": 1}])
    assert own_prompt(tmp_path, condition(), release) is None
    for sent in shapes:
        assert own_prompt(logged(tmp_path, row, sent), condition(), release) is None
    path = tmp_path / "samples_helmbench_pillar1_lite_2026.jsonl"
    path.unlink()
    path.mkdir()
    assert own_prompt(tmp_path, condition(), release) is None


def test_without_a_prompt_the_job_stays(release: Release) -> None:
    """Each sample's system text without its condition, and never an empty one."""
    rows = [row.model_dump(by_alias=True) for row in release.rows.values()]
    without, texts = read_prompt(Path(NO_PROMPT), release.rows.values()), condition_texts(release.rows.values())
    for row in rows:
        own = texts[row["scenario"], row["condition"]]
        system, *rest = first_request(row, without)
        assert system["content"] == first_request(row)[0]["content"].removeprefix(own).lstrip() != ""
        assert rest == first_request(row)[1:]


def test_a_prompt_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A pipe isn't waited for, and a device isn't read without end."""
    path = tmp_path / "calm.txt"
    puts: list[tuple[Callable[[], Any], str]] = [
        (lambda: None, "can't be read"),
        (path.mkdir, "is a folder"),
        (lambda: os.mkfifo(path), "is not a regular file"),
        (lambda: path.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda: path.symlink_to(path), "can't be read"),
        (lambda: path.write_bytes(b"caf\xe9"), "is not UTF-8"),
        (lambda: path.write_bytes(b"\xef\xbb\xbf \n"), "is empty"),
    ]
    for put, said in puts:
        put()
        with pytest.raises(RunError, match=rf"calm\.txt(:\d+)?: {said}"):
            read_prompt(path, [])
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
