"""Questions to an LLM judge: how they are built, fenced, sent or handed over as batch files, and read."""
