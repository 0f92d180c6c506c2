"""The `helmbench` package: `cli` (the command line), `inspect` (the Inspect AI tasks)."""
