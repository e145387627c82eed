"""What a shell completes: commands, options and the names of runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.command import COMMAND, command, environment

SCRIPT = """
eval "$(_SKILLOPT_ES_COMPLETE=bash_source skillopt-es)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_skillopt_es_completion skillopt-es
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", SCRIPT, "bash", "skillopt-es", *words],
        cwd=folder,
        env=environment(PATH=path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed here")
def test_bash_completes_commands_options_and_runs(tmp_path: Path) -> None:
    """As README says to set it up."""
    assert command("run", "--name", "first-run", "--quiet", "--max-calls", "1", cwd=tmp_path).code == 3
    assert completed(tmp_path, "res") == ["resume", "rescore"]
    assert completed(tmp_path, "usage", "fi") == ["first-run"]
    assert completed(tmp_path, "usage", "--b") == ["--by"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_their_script(shell: str, tmp_path: Path) -> None:
    """Click's own, with our name."""
    done = command(cwd=tmp_path, env=environment(_SKILLOPT_ES_COMPLETE=f"{shell}_source"))
    assert (done.code, "skillopt-es" in done.out, done.err) == (0, True, "")
