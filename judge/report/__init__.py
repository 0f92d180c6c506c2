"""The scorecard for people: a page that needs nothing else, and text.

- `page`: the report; `first`: what stands first in it; `plain`: a page of it for who reads no statistics.
- `charts`: the geometry of its drawings.
- `entries`: the replies, harmful ones withheld; `transcripts`: all replies, searchable.
- `summary`: the same for a terminal; `ratings_table`: several models' ratings.
- `comparison`: several runs beside each other, as text and as a page; `side_by_side`: its samples; `junit`: its gates,
  for CI.
"""
