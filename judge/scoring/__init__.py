"""Verdicts → figures with intervals → scorecard; runs compared."""
