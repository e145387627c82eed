"""`doctor`: is everything in place for a run?"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import config_here, directory_option, json_option, set_option
from skillopt_es.cli.printing import print_json
from skillopt_es.cli.terminal import Toned, print_hanging
from skillopt_es.presenting.documents import plain
from skillopt_es.presenting.palette import tone_of

if TYPE_CHECKING:
    from skillopt_es.sessions.checks import Check
    from skillopt_es.sessions.doctor import Examination


_INDENT = 22  # a check's name and status stand in these columns: the lines below hang behind them


@click.command("doctor")
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--demo", metavar="NAME", help="Check a bundled demo: demo, or a benchmark's name.")
@set_option("Set a config key for this check.")
@click.option("--no-calls", is_flag=True, help="Ask no model and try no grader; nothing is sent anywhere.")
@click.option(
    "--grade",
    is_flag=True,
    help="Grade the expected answer, none and a wrong one for an item of each type; a judge is asked several times.",
)
@directory_option
@json_option
def doctor_command(
    config: Path | None,
    demo: str | None,
    overrides: tuple[str, ...],
    no_calls: bool,
    grade: bool,
    directory: Path,
    as_json: bool,
) -> int:
    """
    Check config, skill, data, grader, key, endpoint and models before a run.

    Without CONFIG, checks config.yaml of the current folder; without that, the bundled offline demo.

    The grader is tried on made-up answers, and each model is asked one tiny question. Exit codes: 0 nothing is in the
    way, 1 something is.
    """
    from skillopt_es.config import demo_config
    from skillopt_es.sessions.doctor import Examination

    if no_calls and grade:
        raise click.UsageError("--grade asks the grader, and --no-calls asks nobody: give one of them")
    if config is not None and demo is not None:
        raise click.UsageError("give a CONFIG or a --demo, not both")
    if demo is None:
        config = config or config_here()
    elif demo != "demo":
        config = demo_config(demo)
    what = Examination(
        config=config, overrides=overrides, directory=directory, environ=os.environ, calls=not no_calls, grade=grade
    )
    checks = asyncio.run(_collect(what, quiet=as_json))
    problems = sum(check.status == "problem" for check in checks)
    warnings = sum(check.status == "warning" for check in checks)
    if as_json:
        print_json({"ok": not problems, "checks": [plain(check) for check in checks]})
    else:
        click.echo(f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}")
    return 1 if problems else 0


async def _collect(what: Examination, *, quiet: bool) -> list[Check]:
    from skillopt_es.sessions.doctor import examine

    checks = []
    async for check in examine(what):
        checks.append(check)
        if not quiet:
            _print(check)
    return checks


def _print(check: Check) -> None:
    lead = Toned(f"{check.status:<8} ", tone_of(check.status))
    print_hanging(f"{check.name:<12} {check.message}", lead=lead, hang=_INDENT)
    if check.fix:
        print_hanging(f"-> {check.fix}", lead=Toned(" " * _INDENT, "plain"), hang=_INDENT + 3)


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
