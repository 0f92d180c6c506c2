"""`python -m judge`, as an old README had it: says which command replaced it."""

import sys

sys.exit(sys.stderr.write("python -m judge is now: helmbench score (see helmbench --help)\n") and 2)
