"""Rows → the built dataset; the same input gives the same bytes.

write.py       parquet, prompts, scoring.yaml, baselines.yaml, MANIFEST.json, and the hashes that stand for them
features.py    the columns of every config, read off the models
card.py        the dataset card's figures; card.md has its words
croissant.py   the same for machines
new_scenario.py  TEMPLATE.md under the next free id, the one thing that is written into content
"""
