"""A leaf: the uncertainty of figures, and agreement between raters. Pure functions of arrays.

- `estimate`: the only type for a figure with its interval.
- `intervals`: rates and means of clustered messages (docs/scoring.md section 5).
- `coefficients`: κ and related coefficients, each with a jackknife over clusters of items.
- `agreement`: readings (cases × raters × scale), and every figure on how well they agree.
"""
