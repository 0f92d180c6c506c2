"""Rows → the built dataset; the same input gives the same bytes.

write.py       parquet, prompts, scoring.yaml, baselines.yaml, MANIFEST.json, and the hashes of their content
features.py    the columns of every config, from the models
card.py        the dataset card's figures; card.md has its text
croissant.py   the machine-readable description
new_scenario.py  TEMPLATE.md under the next free id
"""
