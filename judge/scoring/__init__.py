"""Verdicts → figures with intervals → scorecard (docs/scoring.md). Pure, but for `stored`.

- `table`: verdicts as arrays; `parts`: what each score is made of; `anchors`: its zero; `figures`: all of them with
  intervals; `safety`: floors, conversations, incidents; `breakdown`: groups,
  arms, pairs; `curves`: detection over severity; `hard`: the hard part by itself; `score`: the scorecard.
- `messages`: what figures on messages that stand alone rest on; `ratings`, `appropriateness`: ratings 1 to 5; `triage`:
  labels.
- `compare`: runs, paired by message; `gates`: what shuts a gate on them; `held_out`: a private split's figures beside
  the public ones.
- `stored`: what scoring left in a folder, read back.
"""
