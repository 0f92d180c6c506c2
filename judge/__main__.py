"""`python -m judge …`, as the first release spelt it: the same commands as `helmbench …`."""

import sys
from collections.abc import Sequence

from helmbench_cli.aliases import today
from helmbench_cli.app import main as helmbench


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    return helmbench(today(sys.argv[1:] if arguments is None else arguments), program="python -m judge")


if __name__ == "__main__":
    sys.exit(main())
