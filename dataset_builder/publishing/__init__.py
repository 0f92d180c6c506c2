"""A built dataset → one commit and its tag on the Hub (`helmbench push`).

hub_diff.py      what publishing would change, and what CHANGELOG.md and the version must say; no network
push_to_hub.py   a plan, every reason against it, and the commit
"""
