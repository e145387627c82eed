"""`docs/commands.md`, made from the commands themselves: `python tests/support/command_docs.py` writes it anew."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from skillopt_es.cli.main import COMMANDS, cli

FILE = Path(__file__).parent.parent.parent / "docs" / "commands.md"
HEAD = """# Commands

Data goes to stdout, progress and errors to stderr; `--json` is for programs. RUN is a name or a folder and defaults to
the newest run, which is the one that was written to last. Exit codes: 0 done, 1 failed or paused by an error, 2 usage,
config or data, 3 waits for answers from outside (`handoff`) or for more budget, 130 interrupted.
With `--json`, stdout holds one document whatever happens (`log`: one line an event). A command that fails before it has
a result prints `{"error": {"message": …, "hint": …, "exit_code": …}}`; a result that is no success says so itself: a
paused run in `paused`, an evaluation that is no score in its splits' `problem`, a check that fails in `mismatch`.
`skillopt-es --debug …` shows tracebacks.

`skillopt-es --log-format json …` writes stderr for programs: one JSON object a line with `event` (a recorded event's
type, or a word such as `stage`, `call`, `waiting`, `warning`, `error`), `level` (`info`, `warning`, `error`),
`timestamp` (UTC), and where they are known `run`, `place` (where in the run: `e1/s2`), `message` (the sentence that
people read) and `hint`. What anybody else writes there comes as `output`. A run keeps the same lines in its
`logs.jsonl`, whatever the format.

A terminal gets colours (`NO_COLOR=1` takes them away, `FORCE_COLOR=1` gives them to a pipe, too), tables that fit its
width, and a pager for what is longer than the screen (`PAGER`, by default `less`; `--no-pager` is without). A pipe gets
one line a row. What models, endpoints, items and skills say is printed with everything spelled out that would act on a
terminal or hide in it, such as `\\x1b` or `\\u202e`; `--json` and files have it exactly.

This page is generated from the commands' own help.
"""


def command_docs() -> str:
    """The whole page."""
    parts = [HEAD]
    with click.Context(cli, info_name="skillopt-es", help_option_names=["-h", "--help"]) as parent:
        for name in COMMANDS:
            command = cli.get_command(parent, name)
            assert command is not None
            parts += _pages(command, name, parent)
    return "\n".join(parts)


def _pages(command: click.Command, name: str, parent: click.Context) -> list[str]:
    """A command's help, and that of the commands below it."""
    with click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100) as at:
        heading = at.command_path.removeprefix("skillopt-es ")
        pages = [f"## {heading}\n\n```text\n{command.get_help(at)}\n```\n"]
        below = command.commands if isinstance(command, click.Group) else {}
        return pages + [page for inner in below for page in _pages(below[inner], inner, at)]


if __name__ == "__main__":
    FILE.write_text(command_docs())
    sys.exit(0)
