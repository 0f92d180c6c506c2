"""A built dataset → one tagged commit on the Hub (`helmbench push`).

hub_diff.py      what publishing would change, and what CHANGELOG.md and the version must say; no network
push_to_hub.py   the plan, every reason to refuse it, and the commit
"""
