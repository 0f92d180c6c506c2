"""The offline judge: an approximate reading by word patterns, which needs nothing.

- `addressed`: what of a reply is said to the person; `patterns`, `stances`: words and phrases looked for.
- `readings`: one decision per criterion; `judge`: a reply read by it; `rating`: 1 to 5.
- `reader`: it as `judge.verdicts` asks for a judge.
"""
