"""Azure's tokens by its command: `az account get-access-token`, as whoever ran `az login`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping

from skillopt_es.adapters.models.credentials import Source, Token, read_token
from skillopt_es.adapters.models.endpoint import refused
from skillopt_es.adapters.models.errors import Failure, failure
from skillopt_es.ports import ModelSettings

CLI_SECONDS = 10.0


def azure_cli(resource: str, environ: Mapping[str, str], settings: ModelSettings) -> Source:
    """Tokens of whoever ran `az login`; raises ConfigError when there is no such command."""
    program = shutil.which("az", path=environ.get("PATH"))
    if program is None:
        raise refused(
            settings,
            "auth_mode",
            " is azure_cli, but there is no `az` command",
            hint="install the Azure CLI and run `az login`, or name a key's variable in model.api_key_env",
        )
    command = (program, "account", "get-access-token", "--output", "json", "--resource", resource)
    own = {name: value for name, value in environ.items() if name != settings.api_key_env}
    return lambda now: _ask_cli(command, {**own, "AZURE_CORE_NO_COLOR": "true"}, now)


async def _ask_cli(command: tuple[str, ...], environ: Mapping[str, str], now: float) -> Token | Failure:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=dict(environ), start_new_session=True
    )
    try:
        async with asyncio.timeout(CLI_SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        return failure("transport", f"`az account get-access-token` did not answer within {CLI_SECONDS:g} s")
    finally:
        await _end(process)
    if process.returncode != 0:
        said = " ".join(err.decode(errors="replace").split())
        if "az login" in said:
            return failure("auth", "the Azure CLI is not logged in: run `az login`")
        return failure("auth", f"`az account get-access-token` failed: {said[:300]}")
    return read_token(out, now, "`az account get-access-token`")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Also what it started, when it is given up."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
