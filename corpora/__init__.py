"""Corpora of the user's own: messages and conversations → a clean, dated, hashed folder (`python -m dataset_builder
corpus`).

The steps, in order, one module each: `recipe` (the mapping file) → `read` → `normalise` → `mask` → `filters` → `dedupe`
→ `sample` → `write`; `build` runs them over a stream, `folder` reads a finished corpus back. docs/corpora.md explains
them.
Nothing here labels a message: `judge label` does, by the `id` of a row, and `labelled` reads corpus and labels
together.
"""
