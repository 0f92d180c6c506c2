"""Authored files → `Content`. Reports every error at once, each with its file and line.

markdown.py        one file → front matter and parts with line numbers; readers of single fields; `Errors`
settings.py        YAML with lines; benchmark.yaml and scoring.yaml
refused.py         refused_terms.yaml and allowed_amounts.yaml
content_types.py   the authored files as types
signing.py         a `review:` line: a draft, or who signed which text
strays.py          which files are read; any other is an error
load_scenario.py   a scenario or conversation, resolved against the shared texts that it references
categories.py      the crisis categories and their rating protocols
calibration.py     replies with known labels, blind readings of them, and baselines
load.py            a whole folder: the above, and personas, voices, conditions, criteria, helplines
opening.py         opens a folder for a command, merging in a team's private additions
"""
