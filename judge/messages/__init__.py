"""Messages that stand alone: what a model is asked about them, and what its answers say."""
