"""The scorecard for people: a page that needs nothing else, and text.

- `page`: the report; `sentences`: its words; `tables`: its tables, which the summary shows too.
- `charts`: the geometry of its drawings.
- `entries`: the replies, harmful ones withheld; `transcripts`: all replies, searchable.
- `summary`: the same for a terminal; `ratings_table`: several models' ratings.
- `comparison`: several runs next to each other, as text and as a page; `junit`: its gates, for CI.
"""
