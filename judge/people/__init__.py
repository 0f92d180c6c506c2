"""Labels of people: asked for, read, and compared with judges'.

- `labels`: label files → one table; `raters`: how far raters agree, as a report.
- `cases`: the replies that a sheet shows; `annotate`: the sheet and what comes back from it.
- `choose`: judges against people's labels. `low_ratings`: replies rated low, for coding by hand.
- `published`: sets of labels that others published. `validation`: any judge against such a set; `validated`: what is
  measured of it; `validation_text`: the same in words and columns.
- `corpus_labels`: categories of a corpus's messages; `majority`: votes → one label.
"""
