"""What a model said: the log of a runner, or a file of replies → one `Run`. Nothing here judges.

- `schema`: shapes and errors, a leaf; `run`: the type `Run`.
- `script`: what a model is asked, and what is seen of its reply.
- `recorded`: what a run recorded of itself and its release; `lm_eval_log`, `inspect_log`: the runners' logs → a `Run`.
- `opening`: a run by its place, with its release; replies collected elsewhere; the text of a prompt under test.
- `fence`: foreign text as data inside a prompt, and the form in which quotes are compared.
"""
