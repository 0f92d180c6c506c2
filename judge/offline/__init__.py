"""The offline judge: an approximate reading by a small linear model, which needs nothing and says when it can't tell.

- `addressed`: what of a reply is said to the person; `features`: what is counted of it.
- `model`: how likely each label is, from `weights.json` (`scripts/train_offline.py`, of the replies in `training/`).
- `judge`: a reply read by it, or left; `measured.json`: what it reads on real replies (`scripts/measure_offline.py`).
- `reader`: it as `judge.verdicts` asks for a judge.
"""
