"""Inspect AI drives generation: the tasks `helmbench/core`, `lite`, `full`, `pillar1` … (docs/running.md).

`tasks`: what `inspect eval` finds by name, and the scorecard written beside a finished log. `data`: the dataset and its
samples. `solver`: a sample's turns, scripted and live. `scorer`: verdicts and metrics.

The folder is a source root of its own, so that the installed package is called `helmbench`: Inspect names a task after
its package.
"""
