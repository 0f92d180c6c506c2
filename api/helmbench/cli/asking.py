"""The options of every command that asks a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from judge.llm.engine import Endpoint

_URL = "The judge's OpenAI-compatible endpoint; its key comes from OPENAI_API_KEY."
BaseUrl = Annotated[str | None, typer.Option(metavar="URL", help=_URL)]
RequiredUrl = Annotated[str, typer.Option(metavar="URL", help=_URL)]
Concurrency = Annotated[int, typer.Option(metavar="N", help="Questions under way at once.")]
Timeout = Annotated[float, typer.Option(metavar="SECONDS", help="For one attempt.")]
MaxRetries = Annotated[
    int, typer.Option(metavar="N", help="After 429, 5xx and broken connections, with growing waits.")
]
MaxCost = Annotated[
    float | None,
    typer.Option(metavar="X", help="Stop (exit 4) before this judge's questions can cost more; needs both prices."),
]
PriceIn = Annotated[float | None, typer.Option(metavar="P", help="Money per million tokens that the judge reads.")]
PriceOut = Annotated[float | None, typer.Option(metavar="P", help="Money per million tokens that the judge writes.")]


def endpoint_at(base_url: str, concurrency: int, timeout: float, max_retries: int) -> Endpoint:
    """The endpoint that a user names.

    Raises:
        ValueError: an address or a number that can't be.
    """
    from judge.llm.engine import Endpoint

    return Endpoint(base_url, concurrency, timeout, max_retries)
