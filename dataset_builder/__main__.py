"""`python -m dataset_builder …` is `helmbench …`, under the name of the first release."""

import sys

from helmbench_cli.app import main

if __name__ == "__main__":
    sys.exit(main(program="python -m dataset_builder"))
