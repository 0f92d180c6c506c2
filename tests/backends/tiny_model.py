"""Makes a causal language model of two million parameters or less and its tokenizer, on the spot: nothing is
downloaded.

Usage, in an environment that has torch and transformers: `python tests/backends/tiny_model.py OUT --corpus TEXT
[--template chatml|no-system|drops-system|none] [--says REPLY] [--seed 0]`

Weights are random, unless `--says` is given: then they are built so that the model writes that reply, token after
token, whatever it was asked, on every backend and in every batch. What was asked can't be read from such replies, so
tests read it from what went in.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, set_seed

END, START, PAD = "<|im_end|>", "<|im_start|>", "<|endoftext|>"
TURN = "{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' -}}"
GENERATE = "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
TEMPLATES: dict[str, str | None] = {
    "chatml": "{%- for message in messages -%}" + TURN + "{%- endfor -%}" + GENERATE,
    # As Gemma's first generations and early Mistral: a system role is an error.
    "no-system": "{%- if messages[0]['role'] == 'system' -%}{{- raise_exception('System role not supported') "
    "-}}{%- endif -%}"
    "{%- for message in messages -%}" + TURN + "{%- endfor -%}" + GENERATE,
    # Worse: it is left out without a word.
    "drops-system": "{%- for message in messages if message['role'] != 'system' -%}"
    + TURN
    + "{%- endfor -%}"
    + GENERATE,
    "none": None,
}
CONTEXT = 16384  # tokens; positions are computed and cost no weights
HEAD = 32  # the smallest attention head that vLLM's CPU kernel has


def tokenizer(corpus: str, template: str | None, vocabulary: int = 4096) -> PreTrainedTokenizerFast:
    """A byte-level BPE trained on `corpus`, with ChatML's special tokens; `<think>` is plain text to it, as to Qwen
    3's.
    """
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        corpus.splitlines(keepends=True),
        trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=[PAD, START, END], initial_alphabet=alphabet, show_progress=False
        ),
    )
    raw.add_tokens([AddedToken(text, special=False, normalized=False) for text in ("<think>", "</think>", "\n\n")])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token=END, pad_token=PAD, model_max_length=CONTEXT, clean_up_tokenization_spaces=False
    )
    fast.chat_template = template
    return fast


def model(tok: PreTrainedTokenizerFast, hidden: int, tied: bool) -> Qwen2ForCausalLM:
    """Two layers; what they hold is random."""
    config = Qwen2Config(
        vocab_size=-(-len(tok) // 64) * 64,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=hidden // HEAD,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=tied,
        eos_token_id=tok.eos_token_id,
        bos_token_id=None,
        pad_token_id=tok.pad_token_id,
        initializer_range=0.2,
    )
    made = Qwen2ForCausalLM(config).eval()
    made.generation_config = GenerationConfig(
        eos_token_id=tok.eos_token_id, pad_token_id=tok.pad_token_id, do_sample=False
    )
    return made


def teach(made: Qwen2ForCausalLM, tok: PreTrainedTokenizerFast, says: str) -> None:
    """Builds weights by which the next token depends on the last alone: what ends a prompt is followed by `says`, and
    that by the end.

    The layers add nothing, so the last position's state is its token's embedding e_t, and the output row of the token
    that follows t is e_t itself: random e are nearly orthogonal, so its logit is far above all others.

    Raises:
        SystemExit: a token stands twice in the reply, so that its follower isn't one.
    """
    reply = [*tok(says, add_special_tokens=False)["input_ids"], tok.eos_token_id]
    # "<|im_start|>assistant\n" ends a templated prompt, "Assistant:" a transcript.
    starts = {
        tok(text, add_special_tokens=False)["input_ids"][-1] for text in ("<|im_start|>assistant\n", "Assistant:")
    }
    if len(set(reply)) < len(reply) or starts & set(reply[:-1]) - {reply[-2]}:
        raise SystemExit(
            f"tiny_model: a token stands twice in {says!r} or begins a turn: {tok.convert_ids_to_tokens(reply)}"
        )
    follows = dict(itertools.pairwise(reply)) | dict.fromkeys(
        starts, reply[0]
    )  # a reply that ends as a prompt does begins again, for ever
    with torch.no_grad():
        for layer in made.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        embedding = torch.nn.functional.normalize(torch.randn_like(made.model.embed_tokens.weight), dim=1)
        made.model.embed_tokens.weight.copy_(embedding)
        made.lm_head.weight.zero_()
        for token, following in follows.items():
            made.lm_head.weight[following] += 10 * embedding[token]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", type=Path, required=True, help="the text that the tokenizer is trained on")
    parser.add_argument("--template", choices=TEMPLATES, default="chatml")
    parser.add_argument("--says", help="the reply to everything; without it the weights are random")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    set_seed(options.seed)
    tok = tokenizer(options.corpus.read_text(encoding="utf-8"), TEMPLATES[options.template])
    made = model(tok, hidden=128 if options.says else 64, tied=not options.says)
    if options.says:
        teach(made, tok, options.says)
    made.save_pretrained(options.out)
    tok.save_pretrained(options.out)
    size = sum(f.stat().st_size for f in options.out.iterdir())
    print(f"{options.out}: {made.num_parameters():,} parameters, {len(tok)} tokens, {size / 1e6:.1f} MB")  # noqa: T201 - a script


if __name__ == "__main__":
    main()
