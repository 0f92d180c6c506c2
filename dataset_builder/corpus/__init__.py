"""Corpora of the user's own: messages and conversations → a clean, dated, hashed folder (`python -m dataset_builder corpus`).

The steps, in order, one module each: `recipe` (the mapping file) → `read` → `normalise` → `mask` → `filters` → `dedupe`
→ `sample` → `write`; `build` runs them over a stream, `folder` reads a finished corpus back. docs/corpora.md explains them.
Nothing here labels a message: labels are a later stage, keyed by the `id` of a corpus row.
"""
