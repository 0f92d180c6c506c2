"""The offline judge: an approximate reading by a small linear model, which needs nothing and abstains when unsure.

- `addressed`: the parts of a reply addressed to the person; `features`: the features counted in them.
- `model`: the probability of each label, from `weights.json` (`scripts/train_offline.py`, trained on the replies in
  `training/`).
- `readable`: replies that the model can't read.
- `judge`: reads a reply or abstains; `measured.json`: what it can read on real replies (`scripts/measure_offline.py`).
- `reader`: adapts it to the judge interface of `judge.verdicts`.
"""
