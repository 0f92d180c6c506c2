"""How well judges and people agree: one table of cases and raters' labels, measured by `judge.statistics`.

- Cases: `cases` (replies for raters), `annotate` (a sheet for them), `labels` (label files), `published` (sets of
  people's labels), `coding` (low ratings, coded by hand).
- Judges: `answers` (a judge's labels of cases), `calibration` (against the calibration sets), `validation` (against
  people), `calibrate` (the command, and the choice among judges), `corpus_labels`.
- Results: `tables` (text), `known` (what a scorecard says of its judge), shipped/ (the offline judge's figures).
"""
