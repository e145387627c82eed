"""The installed command in a process of its own, and the project of `init` with an endpoint that plays both models."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from attrs import frozen

from support import ready
from support.desk import Process
from support.model_server import Answer
from support.ready import COMMAND

KEY = "sk-house-0123456789abcdef"
RULES = "P1: paid twice, a whole team locked out, data lost. P3: other money matters, defects with a way round."


@frozen
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on stdout."""
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    """The variables of a plain machine: nothing of this one's keys or proxies."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "OPENAI_API_KEY": KEY, "PYTHONWARNINGS": "error", **more}


def command(*words: str | Path, cwd: Path, env: Mapping[str, str] | None = None, stdin: str | None = None) -> Done:
    """Runs `skillopt-es` to its end; no command may show a traceback or the key."""
    with TemporaryFile() as into, TemporaryFile() as out, TemporaryFile() as err:
        into.write((stdin or "").encode())
        into.seek(0)
        streams = into.fileno(), out.fileno(), err.fileno()
        code = _process(words, cwd, env or environment(), streams).wait(ready.PATIENCE)
        done = Done(code, *(_text(file) for file in (out, err)))
    assert "Traceback" not in done.err, done.err
    assert KEY not in done.out + done.err
    return done


def _process(words: Sequence[str | Path], cwd: Path, env: Mapping[str, str], streams: tuple[int, int, int]) -> Process:
    if ready.is_plain(env):
        return ready.start(words, cwd, env, streams)
    into, out, err = streams
    return subprocess.Popen([COMMAND, *map(str, words)], cwd=cwd, env=env, stdin=into, stdout=out, stderr=err)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def start(*words: str | Path, cwd: Path) -> subprocess.Popen[str]:
    """Starts `skillopt-es`; the caller ends it."""
    return subprocess.Popen(
        [COMMAND, *map(str, words)],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


CLASSIC = """train:
  num_epochs: 2
  batch_size: 8
gradient:
  minibatch_size: 4
optimizer:
  learning_rate: 4
  min_learning_rate: 2
  slow_update_samples: 8
evaluation:
  gate_metric: mixed
"""
"""What a classic run of so few tasks is set to."""


def project(folder: Path, base_url: str = "", *, algorithm: str = "classic") -> Path:
    """A project as `init` writes it, which is one of `search`, or for classic training, set to this endpoint."""
    done = command("init", folder, cwd=folder.parent)
    assert done.code == 0, done.err
    config = folder / "config.yaml"
    if algorithm == "classic":
        before, found, _ = config.read_text(encoding="utf-8").partition("train:\n  algorithm: search")
        assert found
        config.write_text(before + CLASSIC, encoding="utf-8")
    if base_url:
        edit(config, "https://api.openai.com/v1", base_url)
    return config


def unsealed(config: Path) -> Path:
    """The same config, whose test items anybody may try."""
    edit(config, "  name: tasks\n", "  name: tasks\n  seal_test: false\n")
    return config


def edit(file: Path, old: str, new: str) -> None:
    """Replaces a text that must be in a file."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


class Clerk:
    """Plays both models of the `init` project: without the house rules its target says P2 to everything."""

    def __init__(self, tasks: Path) -> None:
        rows = [json.loads(line) for line in tasks.read_text(encoding="utf-8").splitlines()]
        self._expected = {row["input"]: row["expected"] for row in rows}

    def __call__(self, body: Any, headers: Mapping[str, str]) -> Answer:
        if headers.get("Authorization") != f"Bearer {KEY}":
            return Answer(status=401, error={"message": "wrong key", "code": "invalid_api_key"})
        if "response_format" in body:
            return Answer(text=json.dumps(_advice(body["response_format"]["json_schema"]["name"])))
        expected = self._expected.get(body["messages"][-1]["content"], "ready")
        knows = RULES in body["messages"][0]["content"]
        return Answer(text=expected if knows else f"{expected.split()[0]} P2")


def _advice(stage: str) -> dict[str, Any]:
    edit = {"op": "append", "target": "", "content": RULES}
    return {
        "probe": {"ready": True},
        "analyst": {"failure_summary": [], "patch": {"reasoning": "the rules are missing", "edits": [edit]}},
        "merge": {"reasoning": "they are the same", "edits": [{**edit, "from": ["A"], "support_count": 4}]},
        "ranking": {"reasoning": "the first", "selected_indices": [0]},
        "slow_update": {"reasoning": "", "slow_update_content": "Keep to the rules."},
        "meta_skill": {"reasoning": "", "meta_skill_content": "Rules first."},
    }[stage]
