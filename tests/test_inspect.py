"""The second runner: Inspect asks what lm-eval asks, and the same scorecard comes of it."""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import reference_server
from helmbench.cli.app import main
from helmbench.inspect import data, tasks
from inspect_ai._cli.main import inspect
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import get_model
from support import submission_runs as runs
from support.judge_server import JudgeServer, stopped_at_the_end
from support.judge_server import said as answered
from support.lm_eval_runs import free_port, run_lm_eval

from dataset_builder.corpora.build import build
from dataset_builder.release import Release, open_release
from judge.replies.inspect_log import FINISHES, TURNS, first_inputs, read_log
from judge.replies.opening import SCORED, own_prompt
from judge.replies.schema import RunError
from judge.schema import Scorecard
from judge.scoring.stored import card_in, find, verdicts_in
from leaderboard.submit.pack import make

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def command(task: str, url: str, *more: str, model: str = "keyword", display: str = "none") -> list[str]:
    """What a user types after `inspect`."""
    own = ["--model", f"openai-api/local/{model}", "--model-base-url", url, "--display", display, "--log-dir", "logs"]
    return ["eval", f"helmbench/{task}", *own, *more]


def environment(dataset: Path, home: Path) -> dict[str, str]:
    """No key of the shell's, and no folder outside the test's."""
    places = {name: str(home / name) for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")}
    own = {"LOCAL_API_KEY": "none", "HF_HUB_OFFLINE": "1", "HOME": str(home), "HELMBENCH_DATASET": str(dataset)}
    return own | places


def run_inspect(dataset: Path, home: Path, *words: str, **more: str) -> str:
    """Runs a command in this process and in a folder of its own, and returns what it prints to stderr."""
    data.release.cache_clear()
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
        for name, value in (environment(dataset, home) | more).items():
            patch.setenv(name, value)
        patch.chdir(home)
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            inspect(list(words), standalone_mode=False)
        gc.collect()  # Inspect leaves streams open, of which Python would warn during another test
    return said.getvalue()


def the_log(home: Path) -> Path:
    """The newest log of a run."""
    return max((home / "logs").glob("*.eval"), key=lambda p: p.stat().st_mtime)


def scores(log: Path) -> Path:
    """Where the scores of a log, or of a run's folder, stand."""
    return find(log).folder


def comparable(card: Scorecard) -> dict[str, Any]:
    """A scorecard without the names of its runner and of its log, the two things in which two may differ."""
    return card.model_dump(exclude={"model": True, "source": {"file"}})


def asked(server: reference_server.Server) -> Counter[str]:
    """What a server was asked, byte for byte."""
    return Counter(json.dumps(r["messages"], ensure_ascii=False) for r in server.requests)


class Both:
    """A run of the keyword policy through each runner: what its server got, and where it was logged."""

    def __init__(self, dataset: Path, home: Path, tier: str = "lite") -> None:
        self.lm_eval = home / "out" / "keyword"
        with reference_server.start() as server:
            done = run_lm_eval(dataset, home / "out", server.url, f"helmbench_{tier}")
            assert done.returncode == 0, done.stderr[-3000:]
            self.asked_by_lm_eval = asked(server)
        assert main(["score", str(self.lm_eval), "--dataset", str(dataset), "-q"]) == 0
        with reference_server.start() as server:
            self.said = run_inspect(dataset, home, *command(tier, server.url))
            self.asked_by_inspect = asked(server)
        self.log = the_log(home)


@pytest.fixture(scope="module")
def small_dataset(small_content: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of seven scenarios."""
    return runs.build(small_content, tmp_path_factory.mktemp("built") / "helmbench").path


@pytest.fixture(scope="module")
def both(small_dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(small_dataset, tmp_path_factory.mktemp("both"))


@pytest.fixture
def release(small_dataset: Path) -> Release:
    return open_release(small_dataset)


def test_both_runners_ask_and_conclude_the_same(both: Both, release: Release, tmp_path: Path) -> None:
    """The same requests, byte for byte and as often, the same verdicts and scorecard; `compare` takes both runs, and
    scoring the log again changes nothing.
    """
    assert both.asked_by_inspect == both.asked_by_lm_eval
    assert sum(both.asked_by_inspect.values()) > 50
    ours, theirs = scores(both.log), scores(both.lm_eval)
    by_place = [
        sorted(verdicts_in(folder / "verdicts.jsonl"), key=lambda v: (v.id, v.repeat, v.index))
        for folder in (ours, theirs)
    ]
    assert by_place[0] == by_place[1]
    card = card_in(ours)
    assert comparable(card) == comparable(card_in(theirs))
    assert (card.model.name, card.model.backend) == ("keyword", "inspect openai-api/local")
    dataset = ["--dataset", str(release.path)]
    assert main(["score", str(both.log), *dataset, "--out", str(tmp_path), "-q"]) == 0
    assert card_in(tmp_path) == card
    pair = [str(both.lm_eval), str(both.log.with_suffix(SCORED))]
    assert main(["compare", *pair, *dataset, "--json-file", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert not [d for d in found["differences"] if d["found"]]


def test_detect_needs_no_judge_in_either_runner(small_dataset: Path, tmp_path: Path) -> None:
    """The same verdicts and scorecard, all by rule."""
    made = Both(small_dataset, tmp_path, "detect")
    ours, theirs = card_in(scores(made.log)), card_in(scores(made.lm_eval))
    assert comparable(ours) == comparable(theirs)
    assert ours.dataset.tier == "detect"
    assert ours.judge.by_judge == 0
    assert ours.detect
    assert ours.detect.samples == ours.dataset.samples > 50


def test_the_log_shows_figures_and_verdicts(both: Both, release: Release) -> None:
    """The run ends with the report's first sentence and place. `inspect view` shows the scorecard's figures, and for a
    sample its label, who decided and the quoted words.
    """
    from inspect_ai.log import read_eval_log

    card = card_in(scores(both.log))
    assert "helmbench: Missed" in both.said
    assert str(scores(both.log) / "report.html") in both.said
    log = read_eval_log(str(both.log))
    (shown,) = log.results.scores  # type: ignore[union-attr]
    assert shown.metrics["composite"].value == pytest.approx(card.composite.value, abs=1e-9)
    assert shown.metrics["composite_low"].value == pytest.approx(card.composite.low, abs=1e-9)
    assert shown.metrics["sensitivity"].value == pytest.approx(card.detection.sensitivity.value, abs=1e-9)
    verdicts = verdicts_in(scores(both.log) / "verdicts.jsonl")
    quoted = next(v for v in verdicts if v.evidence and v.label == "FAIL")
    sample = next(s for s in log.samples or [] if s.id == quoted.id)
    score = (sample.scores or {})["verdicts"]
    assert score.value == "FAIL"
    assert score.explanation
    assert quoted.decided_by.replace(":", ": ") in score.explanation
    assert " ".join(quoted.evidence[0].split()) in score.explanation
    assert sample.metadata["scenario"] == release.rows[quoted.id].scenario


def test_a_log_is_submitted_and_verified(both: Both, release: Release, tmp_path: Path) -> None:
    made = make(both.log, release, runs.ABOUT, tmp_path)
    assert made.verified.state == "demo"  # the offline judge read
    assert made.verified.submission
    generation = made.verified.submission.generation
    assert generation.lm_eval is None
    assert generation.runner[0] == "Inspect"
    assert generation.generation_kwargs["max_tokens"] == 1024


def test_a_sample_that_was_restored_without_its_store_is_read(both: Both, release: Release, tmp_path: Path) -> None:
    """So `inspect eval-retry` leaves samples that were done when a kill came, before their log was written."""
    from inspect_ai.log import read_eval_log, write_eval_log

    log = read_eval_log(str(both.log))
    for sample in log.samples or []:
        sample.store = {}
    write_eval_log(log, str(tmp_path / "restored.eval"))
    assert read_log(tmp_path / "restored.eval", release).sha256 == read_log(both.log, release).sha256


def test_other_logs_are_refused_in_one_line(both: Both, release: Release, dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="used dataset"):
        read_log(both.log, open_release(dataset))
    path = tmp_path / "x.eval"
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(RunError, match=r"x\.eval: can't be read as a log of Inspect"):
        read_log(path, release)
    with pytest.raises(RunError, match="no such file"):
        read_log(tmp_path / "y.eval", release)


def test_a_member_larger_than_any_logs_is_not_unpacked(release: Release, tmp_path: Path) -> None:
    """Some kilobytes that expand to more than memory holds: one line, before Inspect unpacks them. The archive's list,
    which the sender writes, may be false.
    """
    for member, text, said in (
        (
            "header.json",
            bytes(range(256)) * 2**18 + b" ",
            r"to 67,108,865; expected a log of Inspect, 67,108,864 at most",
        ),
        ("_journal/start.json", b" " * (17 * 2**20), "expected a log of Inspect, 17,[0-9,]* at most"),
        ("samples/1_epoch_1.json", b" " * (32 * 2**20), "expected a log of Inspect, 32,[0-9,]* at most"),
    ):
        runs.zipped(tmp_path / "bomb.eval", {member: text})
        for read in (lambda path: read_log(path, release), lambda path: next(first_inputs(path, 1))):
            with pytest.raises(RunError, match=rf"bomb\.eval: its member {member} unpacks from .* bytes .*{said}"):
                read(tmp_path / "bomb.eval")
    runs.zipped(tmp_path / "lie.eval", {"header.json": b" " * (32 * 2**20)})
    raw = bytearray((tmp_path / "lie.eval").read_bytes())
    at = raw.rfind(b"PK\x01\x02") + 24
    raw[at : at + 4] = (1000).to_bytes(4, "little")
    (tmp_path / "lie.eval").write_bytes(raw)
    with pytest.raises(RunError, match=r"lie\.eval: (its member header|can't be read as a log .*Bad CRC)"):
        read_log(tmp_path / "lie.eval", release)


def test_an_edited_log_is_refused_in_one_line(both: Both, release: Release, tmp_path: Path) -> None:
    """Its values may be anybody's."""
    from inspect_ai.log import read_eval_log, write_eval_log

    def stored(name: str, value: Any) -> Callable[[Any], Any]:
        return lambda log: log.samples[0].store.update({name: value})

    changes: tuple[tuple[Callable[[Any], Any], str], ...] = (
        (stored(TURNS, [[]]), "has other replies than texts"),
        (stored(FINISHES, None), "has other replies than texts"),
        (stored(FINISHES, [7]), "has other replies than texts"),
        (lambda log: log.eval.metadata["helmbench"].update(tier=["lite"]), "records a tier that it can't have"),
        (lambda log: log.eval.metadata["helmbench"].update(condition="x"), "records a condition that it can't have"),
        (lambda log: log.eval.metadata.update(helmbench=[1]), "not a log of a helmbench task"),
    )
    for change, said in changes:
        log = read_eval_log(str(both.log))
        change(log)
        write_eval_log(log, str(tmp_path / "edited.eval"))
        with pytest.raises(RunError, match=rf"edited\.eval: .*{said}"):
            read_log(tmp_path / "edited.eval", release)


def test_a_sample_under_anothers_name_is_refused(both: Both, release: Release, tmp_path: Path) -> None:
    """A log is an archive with a file per sample, which may hold another sample, or one of no epoch."""
    import inspect_ai.log  # noqa: F401  # it teaches zipfile the method of its archives

    with zipfile.ZipFile(both.log) as log:
        members = {name: log.read(name) for name in log.namelist()}
    first, second = sorted(name for name in members if name.startswith("samples/"))[:2]
    for change, said in (
        ({"epoch": 0}, "is of epoch 0; expected 1 to 100,000"),
        ({"epoch": 2**63}, f"is of epoch {2**63}; expected 1 to 100,000"),
        ({}, "epoch 1 appears twice in this log; expected once"),
    ):
        edited = members | {second: json.dumps(json.loads(members[first]) | change).encode()}
        runs.zipped(tmp_path / "edited.eval", edited)
        with pytest.raises(RunError, match=rf"edited\.eval: .*{said}"):
            read_log(tmp_path / "edited.eval", release)


def test_a_prompt_of_ones_own_takes_every_conditions_place(release: Release, tmp_path: Path) -> None:
    """As an argument of the task; the log says whose prompt was measured, and `compare` finds its text. Epochs are
    repeats.
    """
    prompt = tmp_path / "calm.txt"
    prompt.write_text("You are Nia, the assistant of a city library.\n")
    with reference_server.start() as server:
        argv = command("pillar1", server.url, "-T", f"condition={prompt}", "-T", "tier=lite", "--epochs", "2")
        run_inspect(release.path, tmp_path, *argv)
        firsts = [r["messages"][0]["content"] for r in server.requests]
        assert set(asked(server).values()) == {2}
    assert all(f.startswith("You are Nia, the assistant of a city library.") for f in firsts)
    log = the_log(tmp_path)
    run = read_log(log, release)
    assert {r.repeat for r in run.replies} == {0, 1}
    assert card_in(scores(log)).repeats == 2
    assert run.model.condition
    assert run.model.condition.file == "calm.txt"
    assert own_prompt(log.with_suffix(SCORED), run.model.condition, release) == prompt.read_text().strip()
    assert next(first_inputs(log, 1))[1][0].startswith("You are Nia")


@pytest.mark.parametrize("task", ["messages", "triage"])
def test_messages_alone_are_rated_and_labelled(task: str, small_dataset: Path, tmp_path: Path) -> None:
    with reference_server.start() as server:
        run_inspect(small_dataset, tmp_path, *command(task, server.url, "-T", "tier=lite", "--limit", "12"))
        assert len(server.requests) == (36 if task == "messages" else 12)
        assert {r["temperature"] for r in server.requests} == {1.0 if task == "messages" else 0.0}
    card = card_in(scores(the_log(tmp_path)))
    if task == "messages":
        assert card.appropriateness
        assert card.appropriateness.overall.replies == 36
    else:
        assert [(t.prompt, t.messages) for t in card.triage] == [("bare", 12)]


@pytest.mark.parametrize("task", ["field_replies", "field_triage"])
def test_the_field_tasks_run_on_a_corpus(task: str, small_dataset: Path, tmp_path: Path) -> None:
    """Only on one: without a folder they stop; with people's labels the scorecard names the corpus."""
    with pytest.raises(PrerequisiteError, match="name its folder with -T corpus=FOLDER"):
        getattr(tasks, task)(dataset=str(small_dataset))
    words = ("a kettle that whistles", "an oven that never warms", "a harbour under fog")
    lines = [json.dumps({"body": f"I sat by {w} all night.", "a": "no_crisis"}) for w in words]
    (tmp_path / "posts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    fields = "fields: {text: body, labels: {anna: a}}"
    (tmp_path / "m.yaml").write_text(
        f"name: kitchen\ndate: 2026-11-01\nsources: [{{name: posts, path: posts.jsonl, language: en, {fields}}}]\n"
    )
    build(tmp_path / "m.yaml", tmp_path / "corpus")
    with reference_server.start() as server:
        run_inspect(small_dataset, tmp_path, *command(task, server.url, "-T", f"corpus={tmp_path / 'corpus'}"))
        assert len(server.requests) == (9 if task == "field_replies" else 3)
    log = the_log(tmp_path)
    scored = ["score", str(log), "--dataset", str(small_dataset), "--messages", str(tmp_path / "corpus"), "-q"]
    assert main(scored) == 0
    real = card_in(scores(log)).real_messages
    assert real
    assert (real.by, real.labelled_by, real.messages) == ("people", ["anna"], 3)


def test_a_grader_is_the_judge_and_is_asked_once(small_dataset: Path, tmp_path: Path) -> None:
    """Its answers stand in the log: scoring that again by the same judge asks nothing, and gives the same verdicts."""
    with reference_server.start() as server, stopped_at_the_end() as started:
        judge = JudgeServer(lambda *_: answered('{"label": "PASS", "quotes": []}'))
        started.append(judge)
        role = "grader=openai-api/judge/judge-1"
        argv = command("pillar3", server.url, "--model-role", role, "-T", "tier=lite", model="keyword-greeting")
        run_inspect(small_dataset, tmp_path, *argv, JUDGE_BASE_URL=judge.url, JUDGE_API_KEY="none")
        paid = judge.total
    log = the_log(tmp_path)
    card = card_in(scores(log))
    assert card.judge.name == "judge-1"
    assert card.judge.by_judge > 0
    assert 0 < paid <= card.judge.by_judge
    again = ["score", str(log), "--dataset", str(small_dataset), "--judge", "judge-1", "--out", str(tmp_path / "again")]
    assert main([*again, "-q"]) == 0
    assert card_in(tmp_path / "again") == card


def test_a_server_that_is_down_is_said_at_once() -> None:
    model = get_model("openai-api/local/keyword", base_url=f"http://127.0.0.1:{free_port()}/v1", api_key="none")
    with pytest.raises(PrerequisiteError, match=r"no answer at 127\.0\.0\.1:\d+ .*start the server"):
        tasks.reach(model)


def test_a_run_of_which_too_little_was_answered_ends_early(
    small_dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model that the server doesn't have: some requests are refused, then nothing more is asked. Inspect ends with 0
    whatever came of a run, so it is said; scoring such a log ends with 5.
    """
    with reference_server.start() as server:
        said = run_inspect(small_dataset, tmp_path, *command("full", server.url, model="nobody"))
        assert 0 < len(server.requests) < 100
    assert "no scorecard: the run ended as 'error'" in said
    log = the_log(tmp_path)
    assert not log.with_suffix(SCORED).exists()
    assert main(["score", str(log), "--dataset", str(small_dataset), "-q"]) == 5
    assert "could be scored" in capsys.readouterr().err


def test_a_killed_run_goes_on_where_it_was(both: Both, release: Release, tmp_path: Path) -> None:
    """`inspect eval-retry` of what a kill left: what is in the log isn't asked again, and the scorecard is that of a
    run that nobody killed.
    """
    whole = sum(both.asked_by_inspect.values())
    with reference_server.start() as server:
        words = command("lite", server.url, "--log-buffer", "1", "--max-connections", "2")
        argv = [sys.executable, "-m", "inspect_ai", *words]
        own = os.environ | environment(release.path, tmp_path)
        with (tmp_path / "said").open("w") as said:
            running = subprocess.Popen(argv, cwd=tmp_path, env=own, stdout=said, stderr=said, start_new_session=True)
        while len(server.requests) < 30 and running.poll() is None:
            time.sleep(0.01)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        before = len(server.requests)
        kept = len(read_log(the_log(tmp_path), release).replies)
        assert 0 < kept <= before < whole
        retry = ["eval-retry", str(the_log(tmp_path)), "--display", "none", "--log-dir", "logs"]
        run_inspect(release.path, tmp_path, *retry)
        assert len(server.requests) < before + whole  # what the log held wasn't asked again
    assert comparable(card_in(scores(the_log(tmp_path)))) == comparable(card_in(scores(both.log)))


def test_without_a_build_the_dataset_is_built(
    small_content: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever has only installed the package types one command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dataset_builder.release.REPOSITORY", Path("/nowhere"))  # as installed, there is no checkout
    monkeypatch.setattr(data, "CONTENT", small_content)
    data.release.cache_clear()
    found = data.release()
    assert "building it into ./helmbench" in capsys.readouterr().err
    assert open_release(tmp_path / "helmbench").rows.keys() == found.rows.keys()
    with pytest.raises(PrerequisiteError, match="helmbench: "):
        data.release("elsewhere")
