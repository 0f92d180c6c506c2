"""Messages of your own → a clean, dated, hashed corpus folder (`helmbench corpus`, docs/own-data.md).

schema.py      the mapping file, a document, the manifest, labels, and `CorpusError`
read.py        the mapping file and its sources → documents; hub.py: datasets of the Hub
normalize.py   one form for the same text, and the text that copies are compared by
mask.py        what identifies a person by its pattern
clean.py       all steps on one document → a row, or why it is dropped
dedupe.py      near-copies
sample.py      two disjoint samples
write.py       rows → parquet, card, MANIFEST.json
build.py       all of it, in stages over shards, on this machine
cluster.py     the same stages for datatrove's executors
folder.py      a finished corpus, with every hash checked
labelled.py    a corpus with its labels, in place of a release's messages
"""
