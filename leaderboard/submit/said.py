"""What was packed, as text for a terminal."""

from __future__ import annotations

from leaderboard.submit.pack import Made
from leaderboard.verify.findings import line

PUBLIC = (
    "submission.json, verdicts.jsonl and SHA256SUMS can be public; the .jsonl.gz files contain every reply and are for "
    "verifiers only"
)


def summary(made: Made) -> str:
    """What was packed, what it came to, and what to do next."""
    sizes = [f"  {p.name:<16}{p.stat().st_size:>12,} bytes" for p in sorted(made.folder.iterdir())]
    flags = [f"flag: {line(p)}" for p in made.verified.flags]
    return "\n".join(
        [
            f"{made.folder}: {made.verified.state}",
            *sizes,
            PUBLIC,
            *made.notes,
            *flags,
            f"next: helmbench verify {made.folder}",
        ]
    )
