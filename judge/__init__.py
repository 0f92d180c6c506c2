"""Replies → verdicts → scorecard → page. Left imports nothing to its right:

`replies`: logs → a run. `statistics`: a leaf: estimates with intervals, coefficients of agreement, clustering.
`schema`: a leaf: verdicts and scorecards. `wording`: how reports format figures. `rules`: verdicts without a judge.
`verdicts`: a rule's decision or a judge's answer → a verdict. `offline`: the judge that needs no language model.
`llm`: language models as judges. `panel`: several judges combined. `scoring`: verdicts → scorecard.
`score`: (run, release, judges) → Scored, pure. `report`: scorecard → page and text.
`agreement`: judges compared with human labels. `judges`: judges by name, with their agreement figures.
`pipeline`: what the commands do with runs.
"""
