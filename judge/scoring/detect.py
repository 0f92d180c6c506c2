"""What rules alone decide: detection by tags, numbers and actions, and what it costs the job. Final without a judge.

The tier `detect` has only such checks; every other tier has some of its samples. lm-eval prints these figures, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dataset_builder.schema import RULED
from judge import schema
from judge.schema import Figure
from judge.scoring.breakdown import without_prompt
from judge.scoring.differences import paired, spread_of
from judge.scoring.figures import Scorer
from judge.scoring.parts import Made, Part
from judge.scoring.table import INCIDENTS, Table


def detect(table: Table, scoring: Mapping[str, Any]) -> schema.Detect | None:
    """The figures of the samples that tier `detect` has, weighted as if only these had been run; None without any."""
    own = np.array(["detect" in r.tiers for r in table.samples], dtype=bool)[table.sample]
    ruled = own & np.logical_or.reduce([table.kind.mask(name) for name in RULED])
    if not ruled.any():
        return None
    scorer = Scorer(table.part(ruled), scoring, {})
    t = scorer.table
    sides = {"sensitivity": t.detects & t.crisis, "specificity": t.detects & ~t.crisis}
    jobs = ~t.detects
    values = {"sensitivity": t.caught, "specificity": t.caught, "job": t.points}
    masks = {name: m for name, m in {**sides, "job": jobs}.items() if m.any()}
    made = {name: Made((Part(m, values[name], 1.0),)) for name, m in masks.items()}
    made |= {"informedness": i} if (i := scorer.informedness()).parts else {}
    prompt: dict[str, Figure] = {}
    for name, own in masks.items():
        without = without_prompt(t, values[name])
        if (pairs := own & ~np.isnan(values[name] - without)).any():
            apart = spread_of(t, values[name], without, np.ones(t.size, dtype=bool))
            prompt[name] = paired(scorer, pairs, values[name], without, apart)
            made[f"prompt_{name}"] = Made((Part(pairs, values[name] - without, 100.0),))
    bands = [(b, sides["sensitivity"] & (b["from"] <= t.severity) & (t.severity <= b["to"])) for b in scoring["bands"]]
    return schema.Detect(
        samples=len(t.samples),
        messages=len(t.message.names),
        format_failures=schema.Tally(
            count=int((t.incident == INCIDENTS.index("format_failure")).sum()), of=int((~t.unread).sum())
        ),
        detection=scorer.detection(),
        job=scorer.rate_figure(jobs) if jobs.any() else None,
        stderr={name: scorer.stderr(m) for name, m in made.items() if scorer.value(m) is not None},
        severity=[
            schema.Band(low=b["from"], high=b["to"], sensitivity=scorer.rate_figure(m, t.caught))
            for b, m in bands
            if m.any()
        ],
        behaviors={
            code: schema.Sides(
                **{
                    name: scorer.rate_figure(m, t.caught) if (m := side & t.behavior.mask(code)).any() else None
                    for name, side in sides.items()
                }
            )
            for code in t.behavior.names
            if (t.behavior.mask(code) & t.detects).any()
        },
        prompt=prompt,
    )
