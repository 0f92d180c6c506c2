"""A folder of submissions → the board: static pages and two downloads. The same submissions give the same bytes.

`gather`: every submission below a folder, verified against the release that it names; and which were judged again.
`rows`: the tables: one per score_hash and tier, ranks within one judge; breached runs, demos and policies
apart.
`twins`: which of them hold the same replies under different names.
`page`: the HTML, from `templates/`. `downloads`: the figures for programs.
`build`: writes all of it, whole or not at all.
"""
