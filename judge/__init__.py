"""Replies → verdicts → scorecard → page. Left imports nothing to its right:

`replies`: logs → a run. `statistics`: a leaf: estimates with intervals, coefficients of agreement, clustering.
`schema`: a leaf: verdicts and scorecards. `wording`: how figures are said. `references`: what trivial policies score.
`rules`: what needs no reading. `verdicts`: a rule's verdict, or a judge's reading as one.
`offline`: the judge that needs nothing. `llm`: language models as judges, and the one way to ask them.
`panel`: several judges as one. `scoring`: verdicts → scorecard.
`score`: (run, release, judges) → Scored, pure: the one place where judging and scoring meet.
`report`: scorecard → page and text. `calibration`: how far a judge may be trusted.
`judges`: judges by name, and what is known of them. `people`: labels of people. `origin`: whose scores a folder holds.
`pipeline`: what the commands do with one run; `comparing`: with several.
"""
