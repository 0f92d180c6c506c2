"""A model's replies: the log of a runner, or a file of replies → one `Run`. Nothing here judges.

- `schema`: shapes and errors, a leaf; `run`: the type `Run`.
- `script`: what a model is asked, and the visible part of its reply.
- `recorded`: a run's metadata about itself and its release; `lm_eval_log`, `inspect_log`: the runners' logs → a `Run`.
- `opening`: opens a run by its path, with its release; replies collected elsewhere; the text of a prompt under test.
- `fence`: foreign text as data inside a prompt, and the normal form for comparing quotes.
"""
