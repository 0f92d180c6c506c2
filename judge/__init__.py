"""Reads a run's replies, judges them, and scores the verdicts."""
