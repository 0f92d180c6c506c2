"""A submission's folder and a release → everything that is wrong with it. Trusts nothing in the folder, and nothing in
it can raise, hang or fill the memory.

`verify`: goes through all of it, and says what it came to.
`files`: which files there are, how large, and SHA256SUMS over them.
`reading`: a foreign line of JSON → our models, or what is wrong with it.
`coverage`: whether the replies are those of the whole tier, each once per repeat.
`prompts`: whether each logged request is the sample's own. Of a text: `around`, what stands beside its messages;
`template`, what may stand there; `dates`, the only thing that may differ.
`bounds`: how much a submission may ask of whoever verifies it.
`judged`: its judges, their answers replayed, and what their calibration is worth; `families`: whose kin they are.
`recompute`: verdicts and scores made again, and where the submission says something else.
`declared`: what it says of itself, against the release and against what was made again.
`findings`: what has been found so far, bounded.
`said`: what verifying came to, as text and as plain values.
"""
