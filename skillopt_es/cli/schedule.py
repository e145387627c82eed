"""`schedule`: what starts a run each night, printed for cron, systemd or launchd; nothing is installed."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from xml.sax.saxutils import escape

import click
from attrs import frozen

from skillopt_es.errors import ConfigError
from skillopt_es.events.plain import real_path


@frozen
class _Nightly:
    """A command, the folder that it is run in, and when."""

    words: tuple[str, ...]
    folder: Path
    hour: int
    minute: int
    name: str

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self.folder / "nightly.log"


@click.command("schedule")
@click.argument("config", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--for", "system", type=click.Choice(("cron", "systemd", "launchd")), help="By default this system's.")
@click.option("--at", "moment", default="03:00", show_default=True, metavar="HH:MM", help="When, each night.")
@click.option("--max-calls", type=click.IntRange(1), help="The most requests of one night.")
@click.option("--max-cost", type=click.FloatRange(0, min_open=True), help="The most money of one night.")
@click.option("--notify", metavar="WHAT", help="Tell somebody when it has ended, as `run --notify` does.")
def schedule_command(
    config: Path, system: str | None, moment: str, max_calls: int | None, max_cost: float | None, notify: str | None
) -> None:
    """
    Print what starts a run of CONFIG each night, with a budget. Nothing is installed: put it where it says.

    Keys are read from the environment or from a `.env` beside the config, as always; none of them is printed.

    \b
    skillopt-es schedule config.yaml --max-calls 500 --for systemd
    """
    if not config.is_file():
        raise ConfigError(f"{config}: no such config file", hint="`skillopt-es init DIR` writes one")
    if max_calls is None and max_cost is None:
        raise click.UsageError("a run that nobody watches needs a limit: --max-calls N or --max-cost N")
    clock = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", moment)
    if clock is None:
        raise click.UsageError(f"--at {moment}: write a time of day as HH:MM")
    path = real_path(config)
    words = [_command(), "run", path.name, "--quiet"]
    for option, value in (("--max-calls", max_calls), ("--max-cost", max_cost), ("--notify", notify)):
        words += [] if value is None else [option, f"{value:g}" if isinstance(value, float) else str(value)]
    name = "skillopt-es-" + (re.sub(r"[^a-z0-9]+", "-", path.parent.name.lower()).strip("-") or "nightly")
    nightly = _Nightly(tuple(words), path.parent, int(clock[1]), int(clock[2]), name)
    click.echo(_WRITERS[system or ("launchd" if sys.platform == "darwin" else "cron")](nightly), nl=False)


def _command() -> str:
    """This very command, which a scheduler does not find by its name alone."""
    beside = Path(sys.executable).with_name("skillopt-es")
    return str(beside) if beside.exists() else "skillopt-es"


def _cron(nightly: _Nightly) -> str:
    folder, log = shlex.quote(str(nightly.folder)), shlex.quote(str(nightly.log))
    line = f"cd {folder} && {shlex.join(nightly.words)} >> {log} 2>&1"
    safe = line.replace("%", r"\%")  # in a crontab a % ends the command
    return f"# add this line with `crontab -e`\n{nightly.minute} {nightly.hour} * * * {safe}\n"


def _systemd(nightly: _Nightly) -> str:
    words = " ".join(_systemd_word(word) for word in nightly.words)
    return _filled("systemd", nightly, folder=str(nightly.folder).replace("%", "%%"), words=words)


def _systemd_word(word: str) -> str:
    """A word of a command line as a unit file has it, where % and $ mean something."""
    quoted = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{quoted}"' if re.search(r"[^\w./:=@+-]", word) else quoted


def _launchd(nightly: _Nightly) -> str:
    words = "\n".join(f"    <string>{escape(word)}</string>" for word in nightly.words)
    folder, log = escape(str(nightly.folder)), escape(str(nightly.log))
    return _filled("launchd", nightly, folder=folder, words=words, log=log)


def _filled(system: str, nightly: _Nightly, **parts: str) -> str:
    template = resources.files(__package__).joinpath(f"schedule.{system}.txt").read_text(encoding="utf-8")
    return template.format(name=nightly.name, hour=nightly.hour, minute=nightly.minute, **parts)


_WRITERS: Mapping[str, Callable[[_Nightly], str]] = {"cron": _cron, "systemd": _systemd, "launchd": _launchd}
