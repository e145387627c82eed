"""`ui`: the page to watch, compare and steer runs."""

from __future__ import annotations

from pathlib import Path

import click

from skillopt_es.cli.options import directory_option
from skillopt_es.cli.terminal import tell
from skillopt_es.errors import ConfigError, extra_hint

_OTHERS = (
    "other machines can reach this page. Anyone who has the token can run commands on this machine as you. "
    "The page uses plain HTTP, so the token crosses the network unencrypted"
)


@click.command("ui")
@directory_option
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 takes any free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address lets other machines in.")
@click.option("--read-only", is_flag=True, help="Nothing can be started, stopped or changed from the page.")
def ui_command(directory: Path, port: int, host: str, read_only: bool) -> None:
    """
    A page in your browser to watch, compare, start and steer the runs of a directory.

    It runs until Ctrl-C. Only this machine can reach it, unless --host says otherwise. The printed address holds the
    token of this session, and no page opens without it. Anyone who has it can run commands as you. Needs the extra
    `ui`: in the checkout, pip install '.[ui]'.

    \b
    skillopt-es ui
    skillopt-es ui --dir /data/runs --port 9000 --read-only
    """
    try:
        from skillopt_es.ui.serving import listening, serve
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if name not in ("starlette", "uvicorn", "anyio"):
            raise
        raise ConfigError("the page needs starlette and uvicorn", hint=extra_hint("ui")) from None
    from skillopt_es.sessions.opening import close_memory
    from skillopt_es.ui.safety import Rules, is_loopback

    close_memory()  # the token is in it
    with listening(host, port) as socket:
        rules = Rules(host=host, port=socket.getsockname()[1], read_only=read_only)
        if not is_loopback(host):
            tell("warning", _OTHERS, level="warning")
        click.echo(rules.address)
        tell("ui", f"showing the runs in {directory}; Ctrl-C ends it")
        serve(directory, rules, socket)
