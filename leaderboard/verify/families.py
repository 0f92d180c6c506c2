"""Which family a language model is of, by its name: a judge tends to like the replies of its own kin."""

from __future__ import annotations

import re

# Family → what names of its models hold, as whole parts between separators; o1 and 4o are OpenAI's.
FAMILIES: dict[str, str] = {
    "openai": r"gpt\d*|chatgpt|davinci|openai|o[1-9](?:mini|pro)?|4o",
    "claude": r"claude|anthropic",
    "gemini": r"gemini|gemma\d*|palm|medgemma|shieldgemma",
    "llama": r"llama\d*|vicuna|alpaca|tulu\d*|hermes\d*|nemotron|codellama",
    "qwen": r"qwen\d*|qwq|qvq|tongyi",
    "mistral": r"mistral|mixtral|ministral|magistral|codestral|devstral|pixtral|zephyr|nemo",
    "deepseek": r"deepseek",
    "grok": r"grok\d*|xai",
    "phi": r"phi\d*",
    "command": r"command|cohere|aya|commandr",
    "olmo": r"olmo\d*|olmoe",
    "yi": r"yi",
    "falcon": r"falcon\d*",
    "granite": r"granite",
    "glm": r"glm\d*|chatglm\d*|zai",
    "kimi": r"kimi|moonshot|moonlight",
    "minimax": r"minimax|abab",
    "nova": r"nova|titan",
    "internlm": r"internlm\d*",
    "smollm": r"smollm\d*",
    "ernie": r"ernie",
    "jamba": r"jamba",
    "exaone": r"exaone",
    "solar": r"solar",
}
PATTERNS = {family: re.compile(pattern) for family, pattern in FAMILIES.items()}
PART = re.compile(r"[a-z]+\d*|\d+[a-z]*")


def families(*names: str | None) -> frozenset[str]:
    """Every family that the names tell of; a distilled model is of two: `deepseek-r1-distill-llama-8b`. Empty where
    they tell of none.
    """
    parts = {part for name in names if name for part in PART.findall(name.lower())}
    return frozenset(family for family, pattern in PATTERNS.items() if any(pattern.fullmatch(part) for part in parts))
