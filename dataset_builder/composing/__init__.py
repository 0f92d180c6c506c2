"""`Content` → rows.

compose.py          scenario × condition × user context × message, spread over the tiers
messages.py         stand-alone messages, for triage and appropriateness
condition_text.py   which part of a built system message is the condition's text
"""
