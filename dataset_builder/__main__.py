"""`python -m dataset_builder COMMAND`, from an old README: prints the command that replaced it."""

import sys

sys.exit(sys.stderr.write(f"python -m dataset_builder is now: helmbench {' '.join(sys.argv[1:2]) or '--help'}\n") and 2)
