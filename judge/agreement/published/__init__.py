"""Replies and labels that people published: `sets` knows published ones, `labeled_set` reads any mapping file."""
