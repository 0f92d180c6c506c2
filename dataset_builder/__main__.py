"""`python -m dataset_builder`, as an old README had it: says which command replaced it."""

import sys

sys.exit(sys.stderr.write("python -m dataset_builder is now: helmbench build (see helmbench --help)\n") and 2)
