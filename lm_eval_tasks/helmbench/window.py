"""Which prompts don't fit a model's window: lm-eval cuts them at the left, where the system message stands."""

from __future__ import annotations

from typing import Any

API_DEFAULT = (
    2047  # what lm-eval takes for the window of a completions server when nobody named one: no knowledge of it
)
SPECIAL = 16  # tokens that a tokenizer may add at either end of a prompt


class Window:
    """`size`: tokens that prompt and reply may take together; None where the backend doesn't know before it asks."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._shared = getattr(model, "backend", "causal") != "seq2seq"  # an encoder's window is the prompt's alone
        self.size = _size(model)

    def too_long(self, prompt: Any, settings: dict[str, Any]) -> str | None:
        """What is said of a prompt that leaves no room for the reply, or None for one that fits."""
        if self.size is None:
            return None
        reply = int(settings.get("max_gen_toks", getattr(self._model, "max_gen_toks", 0))) if self._shared else 0
        text = str(getattr(prompt, "prompt", prompt))
        # A token is at least one byte of text: what is short enough in bytes needs no tokenizer, which saves most of
        # the work.
        if len(text.encode()) + SPECIAL + reply <= self.size:
            return None
        tokens = len(self._model.tok_encode(text))
        return (
            f"{tokens} tokens and {reply} for the reply, the window holds {self.size}"
            if tokens + reply > self.size
            else None
        )


def _size(model: Any) -> int | None:
    try:
        size = int(model.max_length)
    except (AttributeError, TypeError, ValueError, NotImplementedError):
        return None
    if hasattr(model, "base_url"):  # a chat server counts tokens by itself, and refuses what is too long
        return size if model.tokenized_requests and size != API_DEFAULT else None
    return size if getattr(model, "tokenizer", None) else None
