"""Runners for lm-eval, as an installed package, so that a registered task is found wherever it is asked for."""
