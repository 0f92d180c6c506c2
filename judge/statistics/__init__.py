"""A leaf: how sure a figure is, and how far raters agree. Pure functions of arrays.

- `estimate`: the one type of a figure with its interval.
- `intervals`: rates and means of clustered messages (docs/scoring.md section 5).
- `coefficients`: κ and its kin, each with the influence of every item; `clustered`: the same where items belong
  together.
- `agreement`: all that can be said of how raters agree.
"""
