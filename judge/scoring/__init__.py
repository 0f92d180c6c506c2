"""Verdicts → figures with intervals → scorecard (docs/scoring.md). Pure, except `stored`.

- `table`: verdicts as arrays; `parts`: the parts of each score; `anchors`: its zero; `figures`: all figures with
  intervals; `breakdown`: groups, arms, pairs; `curves`: detection over severity; `scorecard`: floors, conversations,
  incidents, the hard part by itself, and the scorecard.
- `messages`: shared code for figures on standalone messages; `appropriateness`: ratings 1 to 5; `triage`: labels.
- `compare`: runs, paired by message; `gates`: gates on runs; `held_out`: a private split's figures next to the public
  ones.
- `stored`: reads scores back from a folder.
"""
