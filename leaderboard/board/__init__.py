"""A folder of submissions → the board: static pages and two downloads. The same submissions give the same bytes.

`gather`: every submission below a folder, verified against the release it names, and which were re-judged.
`rows`: the tables, one per score_hash and tier. `page`: the HTML. `downloads`: the figures for programs.
`shared`: what two submissions share that should differ, as flags. `build`: writes everything, whole or not at all.
"""
