"""Your own messages → a clean, dated, hashed corpus folder (`helmbench corpus`, docs/own-data.md).

schema.py      the mapping file, a document, the manifest, labels, and `CorpusError`
read.py        the mapping file and its sources → documents
normalize.py   one form for the same text, and the folded text for duplicate detection
mask.py        masks personal data with a recognizable pattern
clean.py       all steps on one document → a row, or why it is dropped
dedupe.py      near-copies
sample.py      two disjoint samples
write.py       rows → parquet, card, MANIFEST.json
build.py       the whole build, in stages over shards, on this machine
cluster.py     the same stages for datatrove's executors
folder.py      opens a finished corpus and verifies every hash
labelled.py    a labeled corpus, in place of a release's messages
"""
