"""Commands."""

from __future__ import annotations

from typing import Annotated

import typer

from helmbench_cli.app import app
from helmbench_cli.common import RUNS, Json, Quiet, figures


@app.command("tasks", rich_help_panel=RUNS)
def tasks(
    register: Annotated[
        bool, typer.Option("--register", help="Copy the tasks into the installed lm-eval, for every directory.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take the copies away again.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Lists the tasks that lm_eval runs and says where they are registered, or registers them.

    Example: helmbench tasks --register
    """
    from lm_eval_tasks import registering

    if register and remove:
        raise ValueError("helmbench tasks: --register and --remove exclude each other")
    folder = registering.place()
    if register or remove:
        found = (registering.register if register else registering.remove)(folder)
        done = f"helmbench tasks {'registered in' if register else 'removed from'} {folder.parent}"
    else:
        found = registering.look(folder)
        done = registering.listing(registering.tasks(), found)
    figures(registering.plain(registering.tasks(), found), done, as_json=as_json, quiet=quiet)
