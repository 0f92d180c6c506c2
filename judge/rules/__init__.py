"""Verdicts that need no reader, and notes beside verdicts. Every pattern here meets foreign text, and takes time in
proportion to its length, whatever it holds.

- `answers`: tags and ratings in JSON, and replies that are empty, filtered, refused or cut off.
- `refusals`: whether a reply turns a request down, does nothing else, and turns to the person all the same.
- `baselines`: the trivial policies' replies, whose labels are authored.
- `resources`: helplines in a reply, against the dated registry.
- `categories`: the category that an answer to triage names.
- `language`: the language of a text.
"""
