"""What several tests do to a content folder of their own."""

from __future__ import annotations

import re
from pathlib import Path

FRONT = """---
id: P4-B2-S1
title: Small
job: Chats with the user.
review: draft
sources: none yet
crisis_category: no_crisis
control: [answers-the-need]
---
"""  # of a scenario as small as they come


def drop_unheard_voices(root: Path) -> None:
    """Removes from voices.md whoever no message has any more; a voice that is left unused is an error."""
    headings = [
        line
        for folder in ("scenarios", "conversations")
        for path in sorted((root / folder).glob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("# PT")
    ]
    heard = {slug for line in headings for slug in re.findall(r"\bvoice: ([\w-]+)", line)}
    head, *voices = re.split(r"(?m)^(?=# )", (root / "voices.md").read_text(encoding="utf-8"))
    (root / "voices.md").write_text(head + "".join(v for v in voices if v.split()[1] in heard), encoding="utf-8")
