"""Where the services of a user's session listen: their default places, and those that the environment names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

_TEMPORARY = "/tmp"  # noqa: S108 -- where these services put their sockets
_GPG = ("S.gpg-agent", "S.gpg-agent.ssh", "S.gpg-agent.extra", "S.gpg-agent.browser", "S.scdaemon", "S.keyboxd")


def service_folders(environ: Mapping[str, str]) -> list[str]:
    """Folders that hold nothing but sockets of a user's services, whether or not they are there."""
    user, name = os.getuid(), _login_name()
    tmux = {_TEMPORARY, environ.get("TMUX_TMPDIR", _TEMPORARY)}
    agents = {_TEMPORARY, environ.get("TMPDIR", _TEMPORARY)}
    screen = ("/run/screen", "/var/run/screen", f"{_TEMPORARY}/screens", f"{_TEMPORARY}/uscreens")
    home = environ.get("HOME", "")
    found = [f"/run/user/{user}", *_own_folders(environ), *(f"{folder}/tmux-{user}" for folder in tmux)]
    found += [f"{folder}/S-{name}" for folder in screen] if name else []
    found += [f"{home}/.screen", f"{home}/.ssh/agent"] if home else []
    found += [str(place) for folder in agents if folder.startswith("/") for place in Path(folder).glob("ssh-*")]
    return _absolute(found)


def named_sockets(environ: Mapping[str, str]) -> list[str]:
    """Sockets that lie elsewhere, by the variables with which programs find them; links are followed."""
    runtime, gpg = environ.get("XDG_RUNTIME_DIR", ""), environ.get("GNUPGHOME", "")
    home = environ.get("HOME", "")
    found = [
        environ.get("TMUX", "").split(",")[0],
        environ.get("SSH_AUTH_SOCK", ""),
        environ.get("GPG_AGENT_INFO", "").split(":")[0],
        str(Path(runtime, environ.get("WAYLAND_DISPLAY", ""))) if environ.get("WAYLAND_DISPLAY") else "",
        *(environ.get(name, "").removeprefix("unix://") for name in ("DOCKER_HOST", "CONTAINER_HOST")),
        *_on_the_bus(environ.get("DBUS_SESSION_BUS_ADDRESS", "")),
        *(f"{gpg or f'{home}/.gnupg'}/{name}" for name in _GPG if gpg or home),
    ]
    return [os.path.realpath(path) for path in _absolute(found)]


def _own_folders(environ: Mapping[str, str]) -> Iterator[str]:
    """Folders that variables name; a variable may name anything, so only those that are the user's alone."""
    for name in ("XDG_RUNTIME_DIR", "SCREENDIR"):
        folder = environ.get(name, "")
        with suppress(OSError):
            facts = os.stat(folder)  # noqa: PTH116 -- an empty text is no path here, and the current folder there
            alone = stat.S_ISDIR(facts.st_mode) and not facts.st_mode & 0o077
            if alone and facts.st_uid == os.getuid():
                yield folder


def _on_the_bus(addresses: str) -> Iterator[str]:
    """The paths in addresses of D-Bus: `unix:path=/run/user/1000/bus,guid=…`, with `;` between them."""
    for address in addresses.split(";"):
        kind, _, rest = address.partition(":")
        pairs = [pair.partition("=") for pair in rest.split(",")] if kind == "unix" else []
        yield from (unquote(value) for key, _, value in pairs if key == "path")


def _login_name() -> str:
    import pwd  # noqa: PLC0415 -- not on every system

    with suppress(KeyError):  # in a container a user may have no name
        return pwd.getpwuid(os.getuid()).pw_name
    return ""


def _absolute(paths: list[str]) -> list[str]:
    return [path for path in dict.fromkeys(map(os.path.normpath, filter(None, paths))) if path.startswith("/")]
