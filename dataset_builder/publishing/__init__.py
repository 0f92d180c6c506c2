"""A built dataset → one commit and its tag on the Hub (`helmbench push`).

changelog.py     what CHANGELOG.md says of each version
hub_diff.py      what a publication would change, and what about it would be wrong; no network
push_to_hub.py   a plan, every reason against it, and the commit
"""
