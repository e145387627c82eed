"""`steer`: orders to a run that is open, each an event with who gave it and why."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import cast, get_args

import click

from skillopt_es.cli.options import TextCommand, budget_options, directory_option, json_option
from skillopt_es.cli.printing import print_json
from skillopt_es.events.values import Json, Order


@click.command("steer", cls=TextCommand)
@click.argument("run")
@click.argument("order", type=click.Choice(get_args(Order)))
@click.argument("text", required=False, default="")
@click.option("--why", required=True, help="Why, for those who read the log.")
@click.option("--by", default=getpass.getuser, help="Who gives the order; by default your user name.")
@click.option("--wait", type=click.FloatRange(min=0), default=10.0, show_default=True, help="Seconds to wait for it.")
@budget_options
@directory_option
@json_option
def steer_command(
    run: str,
    order: str,
    text: str,
    why: str,
    by: str,
    wait: float,
    directory: Path,
    as_json: bool,
    **budget: float | None,
) -> int:
    """
    Steer a run that is open: each order becomes an event with who gave it and why.

    The process that trains RUN follows an order between two tasks; a run at rest follows it when it is resumed.

    \b
    pause            stop after what is in flight; `resume` continues
    stop             end the training after the open step; the final evaluation follows
    budget           other limits: --max-calls, --max-tokens, --max-cost, --max-minutes
    hint TEXT        tell those who propose edits something
    pin LINE         no edit may take this line of the skill away; `unpin LINE` ends that
    strike LINE      take this line out of the current skill, after the open step
    take [HASH]      take the candidate that waits for its verdict, whatever the rule says
    refuse [HASH]    refuse it
    retract ITEM     leave this train or validation task out, after the open step; what was made of it stays

    \b
    skillopt-es steer my-run hint "dates are always ISO" --why "the grader's manual says so"
    skillopt-es steer my-run strike "- Give durations in minutes." --why "the format has changed"

    A steered run is a run like any other: `replay --check` derives all that follows from its orders.
    """
    from skillopt_es.door.steer import awaited, how_it_goes_on, steer
    from skillopt_es.runs.folders import find_run

    folder = find_run(run, directory)
    settings: dict[str, Json] = {f"budget.{name}": value for name, value in budget.items() if value is not None}
    asked = steer(folder, cast("Order", order), by=by, why=why, text=text, settings=settings)
    followed = awaited(folder, asked, wait)
    if as_json:
        print_json({"run": folder.name, "order": order, "name": asked.name, "followed": followed})
    elif followed:
        click.echo(f"{folder.name}: {order}, followed")
    else:
        click.echo(f"{folder.name}: {order}, left. {how_it_goes_on(folder)}")
    return 0
