"""Where services of a user's session listen."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

import pytest

from skillopt_es.adapters.sandboxes.services import named_sockets, service_folders

USER = os.getuid()
NAMED: Mapping[str, tuple[str, str]] = {
    "TMUX": ("/srv/t/sock,123,0", "/srv/t/sock"),
    "SSH_AUTH_SOCK": ("/srv/agent", "/srv/agent"),
    "GPG_AGENT_INFO": ("/srv/gpg:1:1", "/srv/gpg"),
    "GNUPGHOME": ("/srv/keys", "/srv/keys/S.gpg-agent"),
    "HOME": ("/srv/home", "/srv/home/.gnupg/S.gpg-agent"),
    "DOCKER_HOST": ("unix:///srv/docker.sock", "/srv/docker.sock"),
    "CONTAINER_HOST": ("unix:///srv/podman.sock", "/srv/podman.sock"),
    "WAYLAND_DISPLAY": ("/srv/wayland-1", "/srv/wayland-1"),
    "DBUS_SESSION_BUS_ADDRESS": ("unix:abstract=/x;unix:guid=1,path=/srv/a%20bus", "/srv/a bus"),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_socket_is_where_its_variable_says(name: str) -> None:
    """In the form of each program."""
    value, socket = NAMED[name]
    assert socket in named_sockets({name: value})
    assert socket not in named_sockets({})


def test_other_values_name_no_socket() -> None:
    """Machines, abstract names, nothing."""
    environ = {"DOCKER_HOST": "tcp://127.0.0.1:1", "DBUS_SESSION_BUS_ADDRESS": "unix:abstract=/x", "TMUX": ""}
    assert named_sockets(environ) == []
    assert named_sockets({"WAYLAND_DISPLAY": "wayland-1", "XDG_RUNTIME_DIR": "/srv/run"}) == ["/srv/run/wayland-1"]


def test_folders_of_services_have_the_login_name_or_the_users_number() -> None:
    """Screen's folders have the name, the others the number."""
    found = service_folders({"TMUX_TMPDIR": "/srv/t", "HOME": "/srv/home"})
    name = pwd.getpwuid(USER).pw_name
    assert {f"/run/user/{USER}", f"/tmp/tmux-{USER}", f"/srv/t/tmux-{USER}"} <= set(found)
    assert {f"/run/screen/S-{name}", "/srv/home/.screen", "/srv/home/.ssh/agent"} <= set(found)


def test_a_named_folder_counts_if_it_is_the_users_alone(tmp_path: Path) -> None:
    """A variable may name a folder that others use, too."""
    for name in ("XDG_RUNTIME_DIR", "SCREENDIR"):
        tmp_path.chmod(0o700)
        assert str(tmp_path) in service_folders({name: str(tmp_path)})
        tmp_path.chmod(0o755)
        assert str(tmp_path) not in service_folders({name: str(tmp_path)})
