"""The Inspect AI tasks `helmbench/core`, `lite`, `full`, `pillar1` … (docs/running.md).

`tasks`: the tasks that `inspect eval` finds by name, and the scorecard written next to a finished log. `data`: the
dataset and its samples. `solver`: a sample's turns, scripted and live. `scorer`: verdicts and metrics.

The folder `api` is a separate source root so that the installed package is called `helmbench`: Inspect names a task
after its package.
"""
