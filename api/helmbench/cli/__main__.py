"""`python -m helmbench_cli` is `helmbench`, where no script was installed."""

from helmbench.cli.app import run

if __name__ == "__main__":
    run()
