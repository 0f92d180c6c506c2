"""A submission and its release → everything that is wrong with it.

Nothing in the folder can raise, hang or fill memory.

`verify`: checks everything and returns the result.
`files`: the files' names, sizes and SHA256SUMS, and their records read with limits.
`coverage`: whether the replies are those of the whole tier, each once per repeat.
`requests`: whether each logged request is the sample's own; `render`, a program that renders chat templates.
`judges`: the judges, their replayed answers, and their calibration.
`recompute`: where verdicts and scores differ from the recomputed ones.
`declared`: what `submission.json` declares.
`findings`: problems and flags, as a bounded list, text and plain values.
"""
