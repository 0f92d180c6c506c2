"""Renders a chat template as transformers does. Runs as a separate program: a template is code, so it gets limits.

Standard input: a JSON line with the template, then one per request. Standard output: a JSON line per request.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from datetime import date
from typing import Any, NoReturn

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MEMORY = 2**30  # bytes


class Generation(Extension):
    """`{% generation %}` marks the assistant's text; it prints what it contains."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _now(day: str | None) -> Callable[[str], str]:
    def strftime_now(form: str) -> str:
        return date.fromisoformat(day).strftime(form) if day else _raise("the submission names no day")

    return strftime_now


def main() -> None:
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    given = json.loads(sys.stdin.readline())
    variables = {**given["variables"], "tools": None, "documents": None, "add_generation_prompt": True}
    template = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            template = template or environment.from_string(given["text"])
            text = template.render(variables, messages=asked["messages"], strftime_now=_now(asked["day"]))
            answer = {"text": text}
        except Exception as error:  # a template can raise anything
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
