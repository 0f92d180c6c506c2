"""A verified submission in the forms that others collect.

Figures come from the scorecard that verifying recomputed, never from what the submission says of itself. No reply and
no quotation from one stands in any export.

`formats`: their names. `headline`: the figures that every export tells, and why one can't be made.
`hub`: the Hub's `.eval_results/*.yaml`. `every_eval_ever`: Every Eval Ever's JSON, with `instances`, a verdict each.
`figures_csv`: CSV, a row per figure.
`export`: which submission may leave in which form; verifies it, and writes the files.
"""
