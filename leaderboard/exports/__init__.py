"""A verified submission in the forms that others collect: the Hub's `.eval_results/*.yaml`, Every Eval Ever's JSON,
CSV.

Figures come from the scorecard that verifying recomputed, never from what the submission says of itself. No reply and
no
quotation from one stands in any export.
"""
