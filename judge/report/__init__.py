"""The scorecard for people: a self-contained page, and text.

- `page`: the report; `sentences`: its sentences; `tables`: its tables, which the summary also shows.
- `charts`: the geometry of its charts.
- `entries`: the replies, with harmful ones withheld; `transcripts`: all replies, searchable.
- `summary`: the report for a terminal; `ratings_table`: several models' ratings.
- `comparison`: several runs side by side, as text and as a page; `junit`: its gates, for CI.
"""
