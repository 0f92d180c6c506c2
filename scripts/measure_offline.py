"""What the offline judge reads of real replies, question by question → judge/offline/measured.json, which decides what
it may decide in a run. Figures only; no text of any set.

Usage: python scripts/measure_offline.py SETS READINGS [--dataset DIR] [--out FILE]

SETS holds checkouts of the published sets (docs/judge-quality.md): their odd rows say how far its ratings and its
reading of delusions agree with people. READINGS holds real replies that readers labeled by our other criteria:
{"id", "said", "reply", "labels": {criterion: {reader: label}}}. Both stay outside the project. Run it after
scripts/train_offline.py; then `make generated` and `make validations`.
"""

from __future__ import annotations
