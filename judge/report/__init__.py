"""The scorecard as a page and as text."""
