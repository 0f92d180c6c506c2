"""Replies → verdicts → scorecard → page. Left imports nothing to its right:

`replies`: logs → a run. `statistics`: a leaf: estimates with intervals, coefficients of agreement, clustering.
`schema`: a leaf: verdicts and scorecards. `wording`: how reports word figures. `rules`: what needs no judge.
`verdicts`: a rule's decision or a judge's answer → a verdict. `offline`: the judge that needs no model.
`llm`: language models as judges. `panel`: several judges as one. `scoring`: verdicts → scorecard.
`score`: (run, release, judges) → Scored, pure. `report`: scorecard → page and text.
`agreement`: judges compared with labels of people. `judges`: judges by name, and what is known of them.
`pipeline`: what the commands do with runs.
"""
