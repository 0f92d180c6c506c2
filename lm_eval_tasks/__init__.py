"""The lm-eval tasks, as an installed package, so that registered tasks work from any directory.

`helmbench/` holds the tasks; `registering` copies their YAML files into the installed lm-eval and removes them.
"""
