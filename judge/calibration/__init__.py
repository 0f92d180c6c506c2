"""How far a judge may be trusted: its labels of the calibration sets, held to their authors'.

- `types`: the shapes and hashes; `ruled`: what rules and the offline judge say of the set; `asking`: what a model says.
- `labels`: agreement with the calibration set; `ratings`: with the rating calibration set; `text`: both as tables.
- `measure`: one judge, asked, measured and written; `known`: what was measured, for scorecards; `validations`: what was
  measured against people's labels, for the same; shipped/: the offline judge's own of both.
"""
