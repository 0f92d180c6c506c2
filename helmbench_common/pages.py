"""Self-contained HTML pages: one Jinja environment, one frame with the content security policy, one base style.

Pages quote untrusted text. Jinja escapes every value, `inert` spells out control characters, and the policy in
`templates/page.html` allows no network requests and no script except the page's own.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from helmbench_common.formats.inert import printed

TEMPLATES = Path(__file__).with_name("templates")


@cache
def environment(*folders: Path) -> Environment:
    """An environment for the templates in `folders`, which may extend `page.html`."""
    return Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        finalize=printed,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def inlined(*files: Path) -> dict[str, Any]:
    """The variables that `page.html` needs from a page's .css and .js files: `style` (with the base style first),
    `script` and `script_hash`; the last two are empty without a .js file.
    """
    style = "\n".join(_read(f) for f in (TEMPLATES / "base.css", *files) if f.suffix == ".css")
    script = "\n".join(_read(f) for f in files if f.suffix == ".js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() if script else ""
    return {"style": Markup(style), "script": Markup(script), "script_hash": digest}


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()
