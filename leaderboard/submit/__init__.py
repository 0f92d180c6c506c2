"""A scored run → a submission's folder, verified before it is there; or every reason why it can't be submitted.

`fields`: what a run can't say of itself, field by field. `about`: these from flags or a small YAML file.
`ready`: a run with its log and scores, held against what the board takes. `logged`: each request as it was sent.
`answers`: who judged, and what language models answered. `document`: `submission.json`.
`pack`: writes the folder. `said`: what was packed, as text.
"""
