"""What a run costs, the benchmark and the messages that stand alone together: the figures of `stats --cost`."""

from __future__ import annotations

from typing import Any

from dataset_builder.composing.compose import compose
from dataset_builder.composing.messages import messages
from dataset_builder.reading.content_types import Content
from dataset_builder.stats import cost, cost_messages
from dataset_builder.stats.cost import Asked


def estimate(content: Content, wanted: Asked) -> dict[str, Any]:
    """The figures of `cost.estimate`, and under `messages` those of `cost_messages.estimate`.

    Raises:
        CostError: the named tokenizer is not installed, not known or not to be had without network.
    """
    benchmark = cost.estimate(compose(content), wanted)
    return benchmark | {"messages": cost_messages.estimate(content, messages(content), wanted)}


def table(figures: dict[str, Any]) -> str:
    """The same figures as aligned text."""
    money = figures["prices per million tokens"] is not None
    return f"{cost.table(figures)}\n\n{cost_messages.table(figures['messages'], money)}"
