"""Verdicts and notes that need no judge. Every pattern here is applied to untrusted text and runs in time linear in its
length.

- `answers`: tags and ratings in JSON, and replies that are empty, filtered, refused or cut off.
- `refusals`: whether a reply declines a request, does nothing else, and still responds to the person.
- `baselines`: the trivial policies' replies, whose labels are authored.
- `resources`: helplines in a reply, checked against the dated registry.
- `categories`: the category that a triage answer names.
- `language`: the language of a text.
"""
