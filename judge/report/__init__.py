"""The scorecard for people: a page that needs nothing else, and text.

- `page`: the report; `charts`: its drawings; `failures`: the samples in it, harmful replies withheld.
- `summary`: the same for a terminal; `ratings_table`: several models' ratings.
"""
