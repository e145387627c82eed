"""The ReAct mode: the target explores the workbook with two tools and leaves its script in solution.py."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import PurePosixPath

from attrs import define, field

from skillopt_es.adapters.environments.episodes import prompt_text, tools_in
from skillopt_es.adapters.environments.spreadsheetbench import child
from skillopt_es.adapters.sandboxes.launch import Launch, Limits, Sandbox
from skillopt_es.ports import ToolCall

MOST_OUTPUT = 4000  # the original's, which cuts to 200 less and says so
_MOST_SECONDS = 60.0  # the original's for one command
_MOST_CONTENT = 1 << 20  # what the target writes is text: a script of a megabyte is none
_MOST_FILES = 50  # files that are written are kept in memory and given to each command
TOOLS = tools_in(__package__)
PROTOCOL = prompt_text(__package__, "protocol").format(given=child.INPUT, script=child.SOLUTION, saved=child.OUTPUT)

# Places of this machine in what Python says: the folder of a launch without walls, and where Python itself is.
_JOB_FOLDER = re.compile(r"[^\s\"']*/skillopt-es-[^/\s\"']+")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


@define
class Desk:
    """The files of one attempt; each command has a fresh sandbox with copies of them."""

    sandbox: Sandbox
    given: bytes
    seconds: float
    files: dict[str, bytes] = field(factory=dict)

    @property
    def solution(self) -> str:
        """The script so far; empty when there is none."""
        return self.files.get(child.SOLUTION, b"").decode(errors="replace").strip()

    async def use(self, call: ToolCall) -> str:
        """What a tool says; a request that makes no sense is answered in one sentence. Raises SandboxError."""
        try:
            given = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return "The arguments are not JSON. Ask again with a JSON object."
        names = {"bash": ("cmd",), "write_file": ("path", "content")}.get(call.name)
        if names is None:
            return f"There is no tool {call.name!r}. There are: bash, write_file."
        values = [given.get(name) if isinstance(given, dict) else None for name in names]
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) < len(names):
            return f"{call.name} needs the texts {' and '.join(names)}."
        return await self._run(texts[0]) if call.name == "bash" else self._write(texts[0], texts[1])

    def _write(self, path: str, content: str) -> str:
        place = PurePosixPath(path.strip())
        if place.is_absolute() or ".." in place.parts or "\0" in path or not place.parts:
            return f"{path!r} is not a file in the work folder. Use a name such as {child.SOLUTION}."
        if str(place) in (child.INPUT, child.RESULT):
            return f"{path!r} cannot be written."
        data = content.encode(errors="replace")
        if len(data) > _MOST_CONTENT or (str(place) not in self.files and len(self.files) >= _MOST_FILES):
            return f"That is too much: at most {_MOST_FILES} files of {_MOST_CONTENT >> 20} MiB."
        self.files[str(place)] = data
        return f"Wrote {len(data)} bytes to {place}."

    async def _run(self, command: str) -> str:
        try:
            words = shlex.split(command)
        except ValueError as error:
            return f"The command cannot be read: {error}."
        if not words or words[0] not in ("python", "python3"):
            return "Only Python can be run: python FILE, or python -c CODE."
        ended = await self.sandbox.run(
            Launch(
                command=[self.sandbox.python, *words[1:]],
                files={**self.files, child.INPUT: self.given},
                collect=[child.OUTPUT],
                limits=Limits(wall_seconds=self.seconds, cpu_seconds=int(self.seconds) + 1),
            )
        )
        self.files.pop(child.OUTPUT, None)
        self.files.update(ended.files)
        said = _without_places(ended.stdout + ended.stderr)
        if len(said) > MOST_OUTPUT:
            said = f"{said[: MOST_OUTPUT - 200]}\n[… {len(said) - MOST_OUTPUT + 200} characters left out …]"
        end = {
            "timeout": f"(ended after {self.seconds:g} s)",
            "cpu": "(ended: too much processor time)",
            "memory": "(ended: too much memory)",
        }
        lines = [said.rstrip(), end.get(ended.ended_by, "" if ended.code == 0 else f"(exit code {ended.code})")]
        lines.append(f"({child.OUTPUT} {'is there' if child.OUTPUT in ended.files else 'is not there'})")
        return "\n".join(line for line in lines if line)


def seconds_for_tools(script_seconds: float) -> float:
    """How long one command may take."""
    return min(_MOST_SECONDS, script_seconds)


def _without_places(text: str) -> str:
    text = _ADDRESS.sub("0x…", _JOB_FOLDER.sub("/sandbox", text))
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix)):
        text = text.replace(f"{prefix}/", "/python/") if len(prefix) > 1 else text
    return text
