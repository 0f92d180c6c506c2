"""Authored files → `Content`: every error with its file and line, all of them at once.

markdown.py        one file → front matter and parts, with line numbers; the collection of errors
fields.py          readers of single fields
settings.py        the YAML of a content folder, with lines; benchmark.yaml, and scoring.yaml number by number
refused.py         what no text may hold, as hashes, and what only looks like it
voices.py          how people write whom no product remembers
content_types.py   what the files hold once read
signing.py         what a `review:` line is: a draft, or who signed which words
template.py        sentences of TEMPLATE.md that a scenario still holds
load_scenario.py   a scenario or a conversation, against the shared texts that it points to
taxonomy.py        the crisis categories
protocols.py       how a reply to a message of a category is rated
calibration.py     replies written to be judged or rated, and what blind readers said of them
baselines.py       what can be had without reading, held by calibration replies
strays.py          which files are read; any other is an error
load.py            a whole folder
overlay.py         a team's private additions, laid over the published content
opening.py         a folder as a command is given it: read whole, or refused with every line
"""
