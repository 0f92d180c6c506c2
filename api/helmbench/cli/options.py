"""The options that several commands share, and groups of them.

A group is a NamedTuple whose fields are options. If a command has a parameter of that type, `@grouped` adds the group's
options to it and calls it with the group filled in.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints

import typer

from dataset_builder.prompts import REASONED

if TYPE_CHECKING:
    from judge.llm.budget import Terms
    from judge.llm.engine import Endpoint
    from judge.pipeline import Questioning
    from judge.replies.opening import Place

Returned = TypeVar("Returned")
Wording = Literal["judge", "judge-b", "judge-reason"]

WHICH_RUN, ASKING, QUESTIONS = "The run", "Model endpoint", "Questions to a language-model judge"


def flag(*names: str, help: str, panel: str | None = None) -> Any:
    """An option without a value."""
    return typer.Option(*names, metavar="", help=help, rich_help_panel=panel)


Dataset = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Built dataset. Default: $HELMBENCH_DATASET, then ./helmbench, then the one in this checkout.",
    ),
]
RunDataset = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Built dataset. Default: $HELMBENCH_DATASET, then ./helmbench, then the one in this checkout.",
        rich_help_panel=WHICH_RUN,
    ),
]
Json = Annotated[bool, flag("--json", help="Print all figures as JSON instead of tables.")]
JsonFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the figures as JSON to FILE.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="DIR_OR_ID",
        help="Where the set's files are: a checkout of its repository, or a Hub dataset OWNER/NAME, which is "
        "downloaded. Default: what `helmbench field fetch` fetched, or the mapping file's folder.",
    ),
]
Quiet = Annotated[bool, flag("--quiet", "-q", help="Print errors only.")]
RunDir = Annotated[
    Path | None,
    typer.Argument(
        metavar="RUN",
        help="Run to read: the --output_path of lm_eval (made with --log_samples), or a LOG.eval of Inspect.",
    ),
]
Replies = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help='Replies collected elsewhere, in place of RUN: JSONL with "id" and "reply" in each line; conversations '
        'have "replies", a list.',
        rich_help_panel=WHICH_RUN,
    ),
]
Messages = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Labeled corpus that the run was made on, in place of the dataset's stand-alone messages.",
        rich_help_panel=WHICH_RUN,
    ),
]
Results = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Which results_*.json of RUN to read. Default: the newest.",
        rich_help_panel=WHICH_RUN,
    ),
]
ScoredRuns = Annotated[
    list[Path],
    typer.Argument(metavar="RUN", help="Scored runs. If several judges scored a run, name its folder scores/JUDGE."),
]
Model = Annotated[
    str,
    typer.Option(metavar="NAME", help="Model name of the judge. Use a dated snapshot for figures that you publish."),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="Stop with exit code 4 before the questions can cost more. Needs both prices.",
        rich_help_panel=ASKING,
    ),
]
PriceIn = Annotated[
    float | None,
    typer.Option(metavar="P", help="Price of a million tokens that the judge reads.", rich_help_panel=ASKING),
]
PriceOut = Annotated[
    float | None,
    typer.Option(metavar="P", help="Price of a million tokens that the judge writes.", rich_help_panel=ASKING),
]
_URL = "OpenAI-compatible endpoint of the judge. The key is read from OPENAI_API_KEY."
BaseUrl = Annotated[str | None, typer.Option(metavar="URL", help=_URL, rich_help_panel=ASKING)]
RequiredUrl = Annotated[str, typer.Option(metavar="URL", help=_URL, rich_help_panel=ASKING)]


class RunPlace(NamedTuple):
    """Which run to read, and the dataset that it was made on."""

    run_dir: RunDir = None
    replies: Replies = None
    messages: Messages = None
    results: Results = None
    dataset: RunDataset = None

    def place(self) -> Place:
        """The same for `judge.replies.opening`."""
        from judge.replies.opening import Place

        return Place(self.run_dir, self.replies, self.dataset, self.messages, self.results)


class Asking(NamedTuple):
    """How to ask an endpoint, and what it may cost."""

    concurrency: Annotated[int, typer.Option(metavar="N", help="Requests sent at once.", rich_help_panel=ASKING)] = 16
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time limit of one attempt.", rich_help_panel=ASKING)
    ] = 120.0
    max_retries: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Retries after HTTP 429, 5xx and broken connections, with growing waits.",
            rich_help_panel=ASKING,
        ),
    ] = 6
    max_cost: MaxCost = None
    price_in: PriceIn = None
    price_out: PriceOut = None

    def endpoint(self, base_url: str) -> Endpoint:
        """The endpoint at an address.

        Raises:
            ValueError: an impossible address or number.
        """
        from judge.llm.engine import Endpoint

        return Endpoint(base_url, self.concurrency, self.timeout, self.max_retries)

    def terms(self) -> Terms:
        """The prices and the cap.

        Raises:
            ValueError: an impossible number, or a cap without prices.
        """
        from judge.llm.budget import terms

        return terms(self.price_in, self.price_out, self.max_cost)


class JudgeQuestions(NamedTuple):
    """How a language-model judge is asked."""

    repeats: Annotated[
        int,
        typer.Option(metavar="N", help="Ask each question N times and take the majority.", rich_help_panel=QUESTIONS),
    ] = 1
    prompt: Annotated[
        Wording,
        typer.Option(
            metavar="NAME",
            help="Prompt of the dataset to ask with: judge, judge-b, or judge-reason.",
            rich_help_panel=QUESTIONS,
        ),
    ] = "judge"
    reason_first: Annotated[
        bool,
        flag(
            "--reason-first",
            help=f"Let the judge write a short reason before its label; the same as --prompt {REASONED[0]}.",
            panel=QUESTIONS,
        ),
    ] = False

    def how(self) -> Questioning:
        """The same for `judge.pipeline`.

        Raises:
            ValueError: fewer than one repeat.
        """
        from judge.pipeline import Questioning

        return Questioning(REASONED[0] if self.reason_first else self.prompt, self.repeats)


GROUPS: tuple[Any, ...] = (RunPlace, Asking, JudgeQuestions)


def grouped(command: Callable[..., Returned]) -> Callable[..., Returned]:
    """Replaces each parameter of a group's type by the group's options, in its place."""
    hints = get_type_hints(command, include_extras=True)
    places: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if hints[name] in GROUPS:
            places[name] = group = hints[name]
            own = get_type_hints(group, include_extras=True)
            parameters += [
                inspect.Parameter(
                    field, inspect.Parameter.KEYWORD_ONLY, default=group._field_defaults[field], annotation=own[field]
                )
                for field in group._fields
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @functools.wraps(command)
    def called(**given: Any) -> Returned:
        groups = {name: group(**{f: given.pop(f) for f in group._fields}) for name, group in places.items()}
        return command(**given, **groups)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    return called
