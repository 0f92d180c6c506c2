"""Verified submissions as a static board."""
