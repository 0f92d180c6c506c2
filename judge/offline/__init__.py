"""The offline judge: an approximate reading by word patterns, which needs nothing."""
