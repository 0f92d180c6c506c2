"""What the trivial policies score on this release (references.json, which `make generated` writes), for every
report.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

from dataset_builder.release import Release
from dataset_builder.schema import Tier
from judge.schema import Reference

REFERENCES = Path(__file__).with_name("references.json")  # beside the code and outside what is hashed


def references(release: Release) -> dict[Tier, list[Reference]]:
    """The policies' scores by tier; empty for a build that the file does not know."""
    known = json.loads(REFERENCES.read_text(encoding="utf-8")) if REFERENCES.is_file() else {}
    own = known.get(release.manifest.score_hash, {})
    tiers: tuple[Tier, ...] = get_args(Tier)
    return {tier: [Reference.model_validate(row) for row in own[tier]] for tier in tiers if tier in own}
