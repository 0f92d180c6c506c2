"""lm-eval drives generation: a class task, live turns in rounds, a layer that one bad sample doesn't end. See
README.md.
"""
