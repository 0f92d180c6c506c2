"""How well judges and people agree. Every source of labels becomes `judge.statistics.agreement.Readings`, which
computes every figure; `tables` shows them.

- Cases: `cases` (replies for raters), `annotate` (rating sheets), `labels` (label files), `published` (published sets
  of human labels), `coding` (low ratings, coded by hand).
- Judges: `answers` (a judge's labels of cases), `calibration` (against the calibration sets), `validation` (against
  people), `calibrate` (the command, and choosing among judges), `corpus_labels`.
- Results: `tables` (text), `known` (a judge's figures for scorecards), shipped/ (the offline judge's figures).
"""
