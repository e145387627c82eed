"""Telling somebody outside that a run or a sweep has paused or ended: by a webhook, or by a command of the user's."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx
from attrs import field, frozen

from skillopt_es.adapters.user_environment import user_variables
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Json
from skillopt_es.ports import Notifier

SECONDS = 30.0  # after a run has ended: longer than any answer takes, and short enough for a job's end
_IN_A_VARIABLE = "env:"
_OF_SHELLS = frozenset({">", ">>", "<", "|", "&&", "||", ";", "&"})


@frozen
class Webhook:
    """A POST of the notice as JSON; its `text` is what Slack and others show. The address may hold a secret."""

    url: str = field(repr=False)

    def tell(self, notice: Mapping[str, Json]) -> str:
        """Posts it once."""
        host = urlsplit(self.url).hostname
        try:
            reply = httpx.post(self.url, json=dict(notice), timeout=SECONDS)
        except httpx.HTTPError as error:
            return f"{host} was not told: {type(error).__name__}"
        return "" if reply.is_success else f"{host} answered with HTTP {reply.status_code}"


@frozen
class Command:
    """The user's command, with the notice as JSON on its standard input."""

    argv: tuple[str, ...]

    def tell(self, notice: Mapping[str, Json]) -> str:
        """Runs it once; what it prints goes nowhere."""
        try:
            ended = subprocess.run(  # noqa: S603 - a program that the user named, without a shell
                self.argv,
                input=f"{json.dumps(notice)}\n".encode(),  # a line, so that a file may gather them
                env=user_variables(os.environ),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=SECONDS,
                check=False,
            )
        except OSError as error:
            return f"{self.argv[0]} cannot be started: {error.strerror}"
        except subprocess.TimeoutExpired:
            return f"{self.argv[0]} took longer than {SECONDS:g} seconds"
        if ended.returncode == 0:
            return ""
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        return f"{self.argv[0]} ended with exit code {ended.returncode}" + (f": {said[-1][:200]}" if said else "")


def open_notifier(how: str, environ: Mapping[str, str]) -> Notifier:
    """The way that `how` names: an address, a command, or `env:NAME` for a variable that has one of these."""
    said = how.strip()
    if said.startswith(_IN_A_VARIABLE):
        name = said.removeprefix(_IN_A_VARIABLE)
        said = environ.get(name, "").strip()
        if not said:
            raise ConfigError(f"--notify names the environment variable {name}, which is not set")
    if said.startswith(("http://", "https://")):
        if not urlsplit(said).hostname:
            raise ConfigError("--notify is an address with no host in it")
        return Webhook(said)
    try:
        argv = tuple(shlex.split(said))
    except ValueError as error:
        raise ConfigError(f"--notify is not a command as for a shell: {error}") from error
    if not argv:
        raise ConfigError("--notify is empty", hint="give a command, an address, or env:NAME")
    of_shells = [word for word in argv[1:] if word in _OF_SHELLS]
    if of_shells:
        raise ConfigError(
            f"--notify starts a program and no shell, to which {of_shells[0]!r} would be a word like any other",
            hint="let a shell read it: --notify \"sh -c '…'\"",
        )
    return Command(argv)
