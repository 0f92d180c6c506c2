"""Inspect AI drives generation: the tasks `helmbench/core`, `lite`, `full`, `pillar1` … (docs/running.md).

`tasks`: what `inspect eval` finds by name. `asked`: the release and its samples. `reaching`: a server that is down is
said at once. `play`: a sample's turns, written and live. `verdicts`: the scorer, rules first, then the offline judge or
the model in the role `grader` (`grading`). `figures`: its metrics, with the intervals of the scorecard. `after`: the
scorecard, written beside the log.

The folder is a source root of its own, so that the installed package is called `helmbench`: Inspect names a task after
the package that it stands in.
"""
