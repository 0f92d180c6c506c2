"""Compiles `content/` into the versioned HELMbench dataset, and reads a built one back."""
