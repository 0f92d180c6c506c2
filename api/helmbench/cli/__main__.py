"""`python -m helmbench.cli` is `helmbench`, for environments without the installed script."""

from helmbench.cli.app import run

if __name__ == "__main__":
    run()
