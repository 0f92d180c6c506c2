"""What a model said, whoever ran it: the log of a run, or a file of replies → one `Run`. Nothing here judges.

- `schema`: the shapes of a reply and of the model that gave it; a leaf.
- `script`: a sample's written and live turns, and how a conversation is played.
- `run`: the type `Run`, which everything behind this room takes.
- `first_request`: what a model reads first of a sample, under whichever prompt is under test; every runner asks it.
- `recorded`: what a run recorded of itself, and of the release that it was made on.
- `lm_eval_log`: what lm-eval logs → a `Run`.
- `inspect_log`: what Inspect logs → a `Run`.
- `collected`: JSONL of replies collected elsewhere → a `Run`.
- `opening`: a run by its place, with the release it is judged on, or by the folder of its scores.
- `own_prompt`: the text of a system prompt under test, found in a run's requests.
- `triage`: the question in which a model labels a message.
- `visible`: what a person would see of a reply.
- `fence`: foreign text as data inside a prompt, and the form in which a quote is looked for.
- `errors`: a run that can't be read.
"""
