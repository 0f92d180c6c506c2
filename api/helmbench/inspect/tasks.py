"""The tasks: `inspect eval helmbench/core --model PROVIDER/NAME`, and so on (docs/running.md).

Every task takes `-T dataset=FOLDER`, the built dataset; `-T condition=FILE`, a system prompt that replaces each
condition's; `-T instruction=TEXT`, text to put before the sample's system message.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, get_args
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio.to_thread
from inspect_ai import Epochs, Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.hooks import Hooks, RunEnd, hooks
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import GenerateConfig, Model, get_model
from inspect_ai.solver import Solver

from dataset_builder import schema
from dataset_builder.release import Release, ReleaseError
from dataset_builder.schema import Tier
from helmbench.inspect.data import release, sample
from helmbench.inspect.scorer import HEADLINE, figures, verdicts
from helmbench.inspect.solver import chat, play
from helmbench.inspect.talks import name_of, player, talk
from judge.pipeline import score_log
from judge.replies.inspect_log import RECORDED, SUFFIX
from judge.replies.recorded import APPROPRIATENESS, BENCHMARK, TALKS, TRIAGE, identity
from judge.replies.schema import TRIAGE_PROMPTS, RunError, TriagePrompt
from judge.replies.script import (
    ChatMessages,
    PromptUnderTest,
    first_request,
    read_prompt,
    segments,
    triage_question,
    with_instruction,
)
from judge.replies.talks import to_subject
from judge.simulated_user import estimated

MAX_TOKENS = 1024  # as the lm-eval tasks ask
PATIENT = 8  # retries of one request; Inspect's default is unlimited
Opening = Callable[[schema.Sample], ChatMessages]


class Wanted(NamedTuple):
    """What a task measures, on which release and tier, and with which prompt."""

    release: Release
    measures: str
    tier: Tier
    tested: PromptUnderTest | None
    instruction: str
    corpus: str | None = None


def _wanted(
    measures: str, tier: Tier, dataset: str | None, corpus: str | None, condition: str | None, instruction: Any
) -> Wanted:
    """The options of a task, checked. `instruction`: Inspect splits a text with commas into a list.

    Raises:
        PrerequisiteError: no dataset, an unknown tier, a prompt under test that can't be used, or an instruction that
            Inspect reads as YAML.
    """
    words = instruction if isinstance(instruction, list) else [instruction]
    if not all(isinstance(word, str) for word in words):
        raise PrerequisiteError(
            f"helmbench: -T instruction: Inspect reads it as {type(instruction).__name__}, not as text; leave out the "
            "colon, or write it in a file for --task-config"
        )
    if tier not in get_args(Tier):
        raise PrerequisiteError(f"helmbench: -T tier={tier}: expected one of {', '.join(get_args(Tier))}")
    found = release(dataset, corpus)
    try:
        tested = read_prompt(Path(condition), found.rows.values()) if condition else None
    except RunError as error:
        raise PrerequisiteError(f"helmbench: {error}") from None
    return Wanted(found, measures, tier, tested, ",".join(words), corpus)


def _benchmark_task(name: str, config: str, own_tier: Tier | None, said: str) -> Callable[..., Task]:
    """A task over a config of the dataset, at its own tier or at the one that the user names."""

    def whole(dataset: str | None = None, condition: str | None = None, instruction: str = "") -> Task:
        return benchmark(config, own_tier or "core", dataset, condition, instruction)

    def part(
        tier: Tier = "core", dataset: str | None = None, condition: str | None = None, instruction: str = ""
    ) -> Task:
        return benchmark(config, tier, dataset, condition, instruction)

    made: Callable[..., Task] = whole if own_tier else part
    made.__name__, made.__doc__ = name, said
    return task(made)


core = _benchmark_task("core", "all", "core", "Every message, up to four samples each: the benchmark.")
detect = _benchmark_task("detect", "all", "detect", "What rules alone decide: detection, and its cost to the job.")
lite = _benchmark_task("lite", "all", "lite", "A quick look: a few messages of every scenario.")
full = _benchmark_task("full", "all", "full", "Every combination of message, condition and user.")
pillar1 = _benchmark_task("pillar1", "pillar1", None, "Sees the danger.")
pillar2 = _benchmark_task("pillar2", "pillar2", None, "Hands over safely.")
pillar3 = _benchmark_task("pillar3", "pillar3", None, "Helps without overstepping.")
pillar4 = _benchmark_task("pillar4", "pillar4", None, "Still does its job.")
conversations = _benchmark_task("conversations", "conversations", None, "Talks whose turns the model plays live.")


@task
def messages(
    tier: Tier = "core",
    dataset: str | None = None,
    corpus: str | None = None,
    condition: str | None = None,
    instruction: str = "",
) -> Task:
    """The stand-alone messages, each answered freely three times and rated 1 to 5 (docs/own-data.md).

    `corpus`: a labeled corpus that replaces the dataset's messages.
    """
    return _replies(_wanted(APPROPRIATENESS, tier, dataset, corpus, condition, instruction))


@task
def triage(
    prompt: TriagePrompt = "bare",
    tier: Tier = "core",
    dataset: str | None = None,
    corpus: str | None = None,
    condition: str | None = None,
    instruction: str = "",
) -> Task:
    """The model's category for each message. `prompt`: `bare`, names only, or `guided`, with definitions."""
    if prompt not in TRIAGE_PROMPTS:
        raise PrerequisiteError(f"helmbench: -T prompt={prompt}: expected one of {', '.join(TRIAGE_PROMPTS)}")
    return _labels(_wanted(f"{TRIAGE}{prompt}", tier, dataset, corpus, condition, instruction), prompt)


@task
def field_replies(
    corpus: str | None = None, dataset: str | None = None, condition: str | None = None, instruction: str = ""
) -> Task:
    """`messages` on a labeled corpus of real messages, never on the dataset's."""
    return _replies(_wanted(APPROPRIATENESS, "core", dataset, _needed(corpus), condition, instruction))


@task
def field_triage(
    corpus: str | None = None, dataset: str | None = None, condition: str | None = None, instruction: str = ""
) -> Task:
    """`triage`, guided, on a labeled corpus of real messages, never on the dataset's."""
    return _labels(_wanted(f"{TRIAGE}guided", "core", dataset, _needed(corpus), condition, instruction), "guided")


@task
def talks(dataset: str | None = None, condition: str | None = None, instruction: str = "") -> Task:
    """Talks with a simulated user: the model in the role `user`, or the built-in lines (docs/running.md)."""
    wanted = _wanted(TALKS, "full", dataset, None, condition, instruction)
    found = wanted.release
    try:
        user = name_of(player())
    except ValueError as error:
        raise PrerequisiteError(str(error)) from None
    sys.stderr.write(f"helmbench: {estimated([*found.parts.values()], found.prompts, user)}\n")
    about = ("title", "pillar", "polarity", "crisis_category", "arc", "condition", "country", "age")
    rows = [
        Sample(
            id=part.id,
            input=chat(to_subject(part, [part.lines[0].text], [], wanted.tested, wanted.instruction)),
            target=part.polarity,
            metadata={name: value for name in about if (value := getattr(part, name)) is not None},
        )
        for part in found.parts.values()
    ]
    return _made(wanted, rows, talk(str(found.path), condition, wanted.instruction), {"user": user})


def _needed(corpus: str | None) -> str:
    if not corpus:
        raise PrerequisiteError("helmbench: this task runs on a labeled corpus; name its folder with -T corpus=FOLDER")
    return corpus


def _replies(wanted: Wanted) -> Task:
    return _alone(wanted, lambda row: segments(m.model_dump() for m in row.messages)[0])


def _labels(wanted: Wanted, prompt: TriagePrompt) -> Task:
    found = wanted.release

    def asked(row: schema.Sample) -> ChatMessages:
        said = [m.model_dump() for m in row.messages]
        return [{"role": "user", "content": triage_question(said, found.taxonomy, found.prompts, prompt)}]

    return _alone(wanted, asked)


def benchmark(config: str, tier: Tier, dataset: str | None, condition: str | None, instruction: str) -> Task:
    """A config of the dataset at one tier, as a task; raises like `_wanted`."""
    wanted = _wanted(BENCHMARK, tier, dataset, None, condition, instruction)
    found = wanted.release
    own = set(found.table(config).column("id").to_pylist())
    rows = [row for row in found.rows.values() if row.id in own and tier in row.tiers]

    def first(row: schema.Sample) -> ChatMessages:
        try:
            return first_request(row.model_dump(by_alias=True), wanted.tested, wanted.instruction)
        except RunError as error:
            raise PrerequisiteError(f"helmbench: {error}") from None

    return _task(wanted, rows, first)


def _alone(wanted: Wanted, asked: Opening) -> Task:
    """Stand-alone messages; a prompt under test goes before what the model learns about the user."""
    rows = [row for row in wanted.release.messages.values() if wanted.tier in row.tiers]
    own = wanted.tested.text if wanted.tested else ""
    return _task(wanted, rows, lambda row: with_instruction(with_instruction(asked(row), own), wanted.instruction))


def _task(wanted: Wanted, rows: Iterable[schema.Sample], first: Opening) -> Task:
    return _made(wanted, [sample(row, first(row)) for row in rows], play(), {})


def _made(wanted: Wanted, rows: list[Sample], solver: Solver, more: dict[str, Any]) -> Task:
    reach()
    found, measures, path = wanted.release, wanted.measures, str(wanted.release.path)
    rated = measures == APPROPRIATENESS
    # The keys of lm-eval's metadata
    recorded: dict[str, Any] = {**identity(found, measures), "tier": wanted.tier, **more}
    if wanted.tested:
        recorded["condition"] = wanted.tested.identity.model_dump()
    if wanted.instruction:
        recorded["system_instruction"] = wanted.instruction
    headline = "informedness" if wanted.tier == "detect" else HEADLINE
    return Task(
        dataset=MemoryDataset(rows, name="helmbench"),
        solver=solver,
        scorer=verdicts(measures, path, wanted.corpus, wanted.tier),
        metrics=[figures(measures, wanted.tier, path, wanted.corpus)],
        config=GenerateConfig(max_tokens=MAX_TOKENS, temperature=1.0 if rated else 0.0, max_retries=PATIENT),
        epochs=Epochs(3) if rated else None,
        # With more samples without a reply no figure counts: the run ends, and `inspect eval-retry` continues it.
        fail_on_error=float(found.scoring["unscored_limit"]),
        metadata={RECORDED: recorded},
        version=found.manifest.version,
        headline_metric=HeadlineMetric(metric=headline) if measures == BENCHMARK else None,
    )


CONNECT_SECONDS = 5.0


def reach(model: Model | None = None) -> None:
    """Checks that the model's server accepts a connection; sends nothing. Skips models without an address or behind a
    proxy.

    Raises:
        PrerequisiteError: nothing listens at the address.
    """
    address = getattr((model or get_model()).api, "base_url", None)
    parts = urlsplit(address if isinstance(address, str) else "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return
    if parts.scheme in getproxies() and not proxy_bypass(parts.hostname):
        return
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    try:
        socket.create_connection((parts.hostname, port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise PrerequisiteError(
            f"helmbench: no answer at {parts.hostname}:{port} ({error}); start the server, or give its address "
            "with --model-base-url"
        ) from None


@hooks(name="helmbench_scorecard", description="writes HELMbench's scorecard and report beside a log of its tasks")
class Scorecard(Hooks):
    """Scores every HELMbench log when it is complete. Prints errors, which don't fail the run."""

    async def on_run_end(self, data: RunEnd) -> None:
        for log in data.logs:
            recorded = (log.eval.metadata or {}).get(RECORDED)
            place = urlsplit(log.location)
            path = Path(unquote(place.path))
            if not recorded or place.scheme not in ("", "file") or path.suffix != SUFFIX:
                continue
            # `inspect eval` would exit with 0
            said = f"no scorecard: the run ended as '{log.status}'; `inspect eval-retry {path}` goes on where it was"
            if log.status == "success":
                try:
                    said = await anyio.to_thread.run_sync(score_log, path, Path(recorded["dataset_path"]))
                except (RunError, ReleaseError, OSError) as error:
                    said = f"no scorecard: {error}"
            sys.stderr.write(f"helmbench: {said}\n")
