"""`skillopt-es`: the command's door. Sub-commands are imported only when they are used, so that --help is quick."""

from __future__ import annotations

import gc
import importlib
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import click

from skillopt_es.cli.printing import Output, print_json_error
from skillopt_es.cli.terminal import Stderr, print_error, safe_streams, tell, telling_on_stderr

if TYPE_CHECKING:
    from skillopt_es.events.errors import SkillOptError

# A command makes many values that live until it ends: looking for garbage among them costs a fifth and finds none.
GARBAGE_THRESHOLD = 100_000

# name -> (module, what it does in one line)
COMMANDS = {
    "run": ("run", "Train a skill; without CONFIG, the offline demo."),
    "resume": ("run", "Continue a run that stopped."),
    "continue": ("run", "Train on from a run's best skill, as a new run."),
    "sweep": ("sweep", "Train many settings and seeds, and compare them in one table."),
    "schedule": ("schedule", "Print what starts a run each night: for cron, systemd or launchd."),
    "estimate": ("estimate", "Estimate a run's calls, tokens, money and time."),
    "steer": ("steer", "Pause, stop, limit or guide a run while it is open; each order is an event."),
    "fork": ("fork", "Start another run from any moment of a run, with other settings if you like."),
    "replay": ("replay", "Rebuild any moment of a run from its log; --check derives every decision again."),
    "log": ("log", "The events of a run."),
    "runs": ("status", "All runs in a directory."),
    "status": ("status", "Where a run stands."),
    "show": ("log", "One event or one call, whole."),
    "compare": ("compare", "Runs and forks side by side."),
    "regate": ("regate", "What another rule of the gate would have decided, from the recorded results."),
    "gate": ("gate", "How often the gate accepts a skill that is no better, and what gain it can detect."),
    "rescore": ("regate", "What another grader would have given the recorded answers, and the verdicts that follow."),
    "lineage": ("lineage", "Which skill came from which, and how each was judged."),
    "explain": ("explain", "What led to a step's verdict; --item follows one task through the run."),
    "why-not": ("why_not", "What was proposed and not taken, and why."),
    "blame": ("blame", "Who wrote each line of a skill, and what it cost."),
    "skills": ("skill_table", "What each skill of a folder was good for, and which kinds of task opened what."),
    "diff": ("diff", "What differs between two moments of a run, or between two runs."),
    "retract": ("retract", "What descends from an item; a fork without it; its texts erased."),
    "bisect": ("bisect", "When a task began to fail or to pass."),
    "report": ("report", "A run as one HTML page to look at and to send."),
    "ui": ("ui", "A page in your browser to watch, compare, start and steer runs."),
    "usage": ("usage", "Calls, tokens and money by stage and step."),
    "verify": ("verify", "Check that nothing in a log was changed."),
    "eval": ("evaluate", "Score any skill on a split."),
    "export": ("export", "Write a run's skill, events or results to files."),
    "freeze": ("freeze", "Pack a run with its journal into one file, for tests and for others."),
    "thaw": ("freeze", "Unpack such a file into a run that can be read."),
    "install": ("install", "Put a run's skill where a coding agent finds it."),
    "adopt": ("adopt", "Put a run's best skill in the place of the file that it was trained from."),
    "uninstall": ("install", "Remove an installed skill and restore what was there before."),
    "import": ("importing", "Read a result folder of the original SkillOpt into a run."),
    "handoff": ("handoff", "Answer the questions of a run whose model is you, or whoever answers."),
    "import-tasks": ("import_tasks", "Tasks from CSV, Parquet, promptfoo, inspect_ai, DSPy and others."),
    "data": ("data", "Benchmarks: what to download, splits built from it, and a check."),
    "harvest": ("harvest", "Tasks from your conversations with coding agents, each kept by you."),
    "init": ("init", "Write a small working project for your own tasks."),
    "new-environment": ("init", "Write a package with an environment of your own."),
    "doctor": ("doctor", "Check config, data, key, endpoint and models before a run."),
}


PAGED = {
    *("estimate", "log", "runs", "status", "show", "compare", "regate", "rescore", "lineage", "explain", "why-not"),
    *("blame", "skills", "diff", "retract", "bisect", "usage"),
}
"""The commands whose output may be longer than a screen."""


class UnknownCommand(click.UsageError):
    """There is no command of that name; `hint` says which is meant."""

    def __init__(self, message: str, hint: str, ctx: click.Context) -> None:
        super().__init__(message, ctx)
        self.hint = hint

    def format_message(self) -> str:
        """What people read, in one sentence."""
        return f"{self.message}: {self.hint}"


class LazyGroup(click.Group):
    """A group that knows its commands' names and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of a user's day."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"skillopt_es.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        if cmd_name not in PAGED or any(each.name == "no_pager" for each in command.params):
            return command
        from skillopt_es.cli.pager import with_pager

        return with_pager(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; for none, which name is close."""
        if args[0] in COMMANDS or args[0].startswith("-"):
            name, command, rest = super().resolve_command(ctx, args)
            from skillopt_es.cli.options import moments_apart

            return name, command, rest if command is None else moments_apart(command, rest)
        from difflib import get_close_matches

        close = " or ".join(f"`{name}`" for name in get_close_matches(args[0], COMMANDS, n=2))
        more = f"did you mean {close}?" if close else "`skillopt-es --help` lists them"
        raise UnknownCommand(f"there is no command {args[0]}", more, ctx)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click says so
        """Runs the command; when the reader of our output has gone (`| head`), that is no failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # here, because click would make it exit 1
            _drop_output()
            return 0

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in COMMANDS.items()])


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from skillopt_es.version import software_version

        click.echo(software_version())
        ctx.exit()


def _log_format(ctx: click.Context, _: click.Parameter, value: str) -> None:
    output = ctx.find_object(Output)
    if value == "json" and output is not None:
        output.stderr.switch_to_json()


_COMPLETE = "_SKILLOPT_ES_COMPLETE"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    is_eager=True,
    expose_value=False,
    callback=_log_format,
    help="What is told on stderr while a command works: text for people, or one JSON object a line.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
def cli(debug: bool) -> None:
    """
    Train the skill a frozen agent reads: every step is an event, any moment can be replayed.

    \b
    skillopt-es run                    the offline demo
    skillopt-es init my-project        a project for your own tasks
    skillopt-es run my-project/config.yaml
    """


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs the command and exits; errors of ours are one sentence and the next step."""
    _complete_for_a_shell()
    _replace_closed_streams()
    gc.set_threshold(GARBAGE_THRESHOLD, 50, 100)
    with safe_streams(), telling_on_stderr() as stderr:
        code = _called(list(sys.argv[1:] if argv is None else argv), Output(stderr))
        _drop_output()
    sys.exit(code)


def _complete_for_a_shell() -> None:
    """Answers a shell that completes a command line, and exits; its bytes are not for our own streams."""
    import os

    instruction = os.environ.get(_COMPLETE, "")
    if instruction:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(cli, {}, "skillopt-es", _COMPLETE, instruction))


def _called(words: list[str], output: Output) -> int:
    """Runs the command; its exit code. With --json, stdout gets a document whatever goes wrong, and only one."""
    try:
        # Our own printer decides about colours; click would take pieces out of a text that is none of ours.
        code: Any = cli.main(words, prog_name="skillopt-es", standalone_mode=False, color=True, obj=output)
    except Exception as error:  # noqa: BLE001 - nobody is left who could tell of it
        message, hint, code = _failure(error, output.stderr, debug="--debug" in words)
        if "--json" in words and not output.has_document:
            with suppress(OSError):
                print_json_error(message, hint, code)
    return code if isinstance(code, int) else 0


def _failure(error: Exception, stderr: Stderr, *, debug: bool) -> tuple[str, str, int]:
    """Says on stderr what went wrong; the sentence, what to do next, and the exit code it calls for."""
    if isinstance(error, click.exceptions.Abort):
        return "interrupted", "", 130
    if isinstance(error, click.ClickException):
        message, hint = error.format_message(), ""
        if isinstance(error, UnknownCommand):
            message, hint = error.message, error.hint
        if stderr.json:
            print_error(message, hint)
        else:
            error.show()
        return message, hint, 2
    from skillopt_es.errors import Interrupted

    if debug:
        tell("traceback", traceback.format_exc().rstrip(), level="error")
    message, hint, code = _sentence(error)
    if isinstance(error, Interrupted):  # as asked: that is no error
        tell("stopped", message, hint=hint)
    else:
        print_error(message, hint)
    return message, hint, code


def _sentence(error: Exception) -> tuple[str, str, int]:
    """An error in one sentence, what to do next, and the exit code it calls for."""
    from skillopt_es.cli.process import few_files
    from skillopt_es.events.errors import SkillOptError

    few = few_files(error)
    if few:
        hint = "`ulimit -n 1024` allows more (then `skillopt-es resume`), and a smaller env.workers needs fewer"
        return few, hint, 1
    if isinstance(error, SkillOptError):
        return str(error), _hint(error), error.exit_code
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        hint = "the system refused: check the disk and the permissions"
        return f"{place}{error.strerror or error}", hint, 1
    hint = "this is a bug in skillopt-es; `skillopt-es --debug …` shows where"
    return f"{type(error).__name__}: {error}", hint, 1


def _hint(error: SkillOptError) -> str:
    """The next step; of several mistakes in a config that of the first, and where to see the others."""
    from skillopt_es.counting import counted
    from skillopt_es.errors import ConfigError

    if not isinstance(error, ConfigError) or not error.others:
        return error.hint
    more = f"{counted(len(error.others), 'more mistake')}: `skillopt-es doctor CONFIG` shows all of them"
    return "; ".join(filter(None, (error.hint, more)))


def _drop_output() -> None:
    """Where the reader of our output has gone, writing the rest would only fail again at exit."""
    import os

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _replace_closed_streams() -> None:
    """Who closed a stream (`2>&-`) wants no output; but no file of ours may get its number."""
    import os

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - it stays open


if __name__ == "__main__":
    main()
