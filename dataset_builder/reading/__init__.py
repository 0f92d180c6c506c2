"""Authored files → `Content`: every error with its file and line, all of them at once.

markdown.py        one file → front matter and parts with line numbers; readers of single fields; `Errors`
settings.py        YAML with lines; benchmark.yaml and scoring.yaml
refused.py         refused_terms.yaml and allowed_amounts.yaml
content_types.py   the files as types
signing.py         a `review:` line: a draft, or who signed which words
strays.py          which files are read; any other is an error
load_scenario.py   a scenario or conversation, against the shared texts that it points to
categories.py      the crisis categories and the rating protocol of each
calibration.py     replies with known labels, blind readings of them, and baselines
load.py            a whole folder: the above, and personas, voices, conditions, criteria, helplines
opening.py         a folder as a command gets it, with a team's private additions merged in
"""
