"""`target_backend: command`: a program of the user's, one process an attempt; one JSON object in, one out."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from skillopt_es.adapters.agents.agent import AttemptFailedError, OwnAgent, check_settings
from skillopt_es.adapters.agents.contract import AgentAnswer, read_printed, task_json
from skillopt_es.adapters.agents.trajectories import UnreadableError
from skillopt_es.adapters.models.endpoint import refused
from skillopt_es.adapters.models.errors import failure
from skillopt_es.adapters.processes import Ended, NotStartedError, Program
from skillopt_es.adapters.sandboxes.apart import distance, run_apart
from skillopt_es.adapters.sandboxes.covers import Covers
from skillopt_es.adapters.user_environment import named_variables, secrets_in, user_variables
from skillopt_es.ports import AgentTask, ChatModel, ModelSettings, provider

GRACE_SECONDS = 2.0  # after a SIGTERM, to end well; an attempt that is late or stopped waits so much longer at most
_MOST_LAST_WORDS = 400  # the end of a Python traceback, which says what failed; all of stderr would fill a report


@frozen
class CommandWay:
    """Runs the command in the config's folder, with a clean environment, apart from this machine's other processes."""

    argv: tuple[str, ...]
    folder: Path
    variables: Mapping[str, str] = field(repr=False)
    most_output: int
    keys: Covers
    isolated: bool
    as_json: bool = False

    @property
    def identity(self) -> str:
        """Which command it is."""
        return f"agent command {shlex.join(self.argv)}"

    async def answer(self, task: AgentTask) -> AgentAnswer:
        """What the command prints."""
        program = Program(
            argv=self.argv,
            folder=self.folder,
            environment={**self.variables, **_gateway_variables(task)},
            stdin=json.dumps(task_json(task)).encode(),
            seconds=task.deadline_seconds,
            most_output=self.most_output,
            grace=GRACE_SECONDS,
        )
        try:
            ended = await run_apart(program, hidden=self.keys, isolated=self.isolated)
        except NotStartedError as error:
            raise AttemptFailedError(failure("config", str(error))) from error
        return self._read(ended)

    async def within_reach(self) -> str:
        """What of the user's keys the command can reach all the same."""
        return (await distance(isolated=self.isolated)).said

    def _read(self, ended: Ended) -> AgentAnswer:
        said = _last_words(ended.errors.replace(str(self.folder), "."))
        told = f"; its last words on stderr: {said}" if said else ""
        if ended.how == "late":
            raise TimeoutError(told.removeprefix("; "))
        if ended.how == "flooded":
            raise UnreadableError(f"it printed more than {self.most_output} bytes")
        if ended.code:
            how = f"exit code {ended.code}" if ended.code > 0 else f"signal {-ended.code}"
            raise AttemptFailedError(failure("crash", f"the agent ended with {how}{told}"))
        try:
            return read_printed(ended.output.decode(errors="replace"), as_json=self.as_json)
        except UnreadableError as error:
            raise UnreadableError(f"{error}{told}") from error


def _last_words(errors: str) -> str:
    """The end of what a program said on stderr, from a line's beginning on where that fits."""
    if len(errors) <= _MOST_LAST_WORDS:
        return errors
    end = errors[-_MOST_LAST_WORDS:]
    return "… " + (end.partition("\n")[2] or end)


def _gateway_variables(task: AgentTask) -> Mapping[str, str]:
    """What makes OpenAI's own libraries ask the run's gateway."""
    gateway = task.gateway
    if gateway is None:
        return {}
    return {
        "OPENAI_BASE_URL": gateway.base_url,
        "OPENAI_API_KEY": gateway.api_key,
        "OPENAI_MODEL": gateway.model,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


@provider(agent=True)
def open_model(settings: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """The agent as configured; raises ConfigError when there is no such program."""
    check_settings(settings)
    assert settings.agent is not None
    folder = Path(settings.agent.folder)
    argv = settings.agent.argv
    if not argv:
        raise refused(settings, "command", " is not set", hint='write it as a list: ["node", "agent.js"]')
    _check_program(settings, argv[0], folder, environ)
    named = named_variables(settings, environ)
    variables = {**user_variables(environ), **named}
    own = settings.agent
    way = CommandWay(
        argv, folder, variables, settings.max_reply_bytes, Covers(own.keys), own.isolated, own.json_answers
    )
    return OwnAgent(way, settings, secrets_in((*named.values(),), environ))


def _check_program(settings: ModelSettings, name: str, folder: Path, environ: Mapping[str, str]) -> None:
    own = folder / name
    if os.access(own, os.X_OK) if "/" in name else shutil.which(name, path=environ.get("PATH")):
        return
    hint = "name one that is on the PATH, or a file beside the config, such as ./agent.sh"
    if own.is_file():
        hint = f"write ./{name}" if "/" not in name else f"make it executable: chmod +x {name}"
    raise refused(settings, "command", f": there is no program {name!r} to run", hint=hint)
