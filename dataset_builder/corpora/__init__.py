"""Messages of your own → a clean, dated, hashed corpus folder (`helmbench corpus`; docs/own-data.md explains it).

The steps, in order:

    recipe.py      the mapping file
    read.py        sources → documents; hub.py: datasets of the Hub
    normalise.py   spaces and characters, and the text that duplicates are compared by
    mask.py        what identifies a person by pattern
    filters.py     length, language, long conversations
    clean.py       these steps over batches, in as many processes as asked
    rows.py        documents → rows
    dedupe.py      copies and near-copies
    sample.py      two disjoint samples
    licences.py    which licences allow a text to be passed on
    finish.py      what was counted → the manifest's summaries
    write.py       rows → parquet, card, MANIFEST.json
    build.py       all of it over a stream
    sharded/       all of it over shards, on datatrove's executors

    schema.py      the shapes, and `CorpusError`
    folder.py      a finished corpus, read back with every hash checked
    labelled.py    a corpus with its labels, in the place of a release's messages

Nothing here labels a message: `helmbench label` does, by the `id` of a row.
"""
