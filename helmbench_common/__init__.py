"""Shared by every package: errors, foreign file formats, JSONL, hashing and HTTP. Imports none of our packages."""
