"""A verified submission in the formats of the Hub, Every Eval Ever and spreadsheets.

All figures are recomputed. No export contains a reply or a quote. `export`: verifies, checks whether the submission may
be exported, and writes the files; the Hub's YAML and the CSV. `every_eval_ever`: its JSON and JSON lines.
"""

from __future__ import annotations

from typing import Literal, get_args

Format = Literal["hub", "every-eval-ever", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
