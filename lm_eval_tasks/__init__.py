"""Runners for lm-eval, as an installed package, so that a registered task is found wherever it is asked for.

`helmbench/` holds the tasks; `registering` copies their YAML files into the installed lm-eval and takes them back.
"""
