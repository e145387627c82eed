"""Serving the page until somebody ends it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from skillopt_es.errors import ConfigError
from skillopt_es.ui.app import application
from skillopt_es.ui.safety import Rules


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens there; raises ConfigError where that cannot be."""
    try:
        [family, kind, number, _, where] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        server = socket.socket(family, kind, number)
    except OSError as error:
        raise ConfigError(f"--host {host}: {error.strerror}", hint="127.0.0.1 is this machine alone") from None
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(where)
        except (OSError, OverflowError) as error:
            hint = "another page may be open; --port 0 takes a free one"
            raise ConfigError(f"--port {port}: {error}", hint=hint) from None
        server.listen(128)
        yield server
    finally:
        server.close()


def serve(directory: Path, rules: Rules, server: socket.socket) -> None:
    """Answers until the process is asked to end; open pages do not hold it up."""
    config = uvicorn.Config(
        application(directory, rules),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        lifespan="off",
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[server])
