"""Whatever a script does to its sandbox is the script's own end, and it takes nothing with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.environments import CONFINED
from support.ordinary_user import PROJECT

HERE = Path(__file__).parent
SCRIPTS = sorted((HERE / "scripts").glob("*.py"))
ATTACK = [sys.executable, str(HERE / "attack.py")]
ORDINARY = [sys.executable, str(PROJECT / "tests" / "support" / "ordinary_user.py")]
USERS = {"root": ATTACK, "ordinary": [*ORDINARY, *ATTACK]} if os.geteuid() == 0 else {"ordinary": ATTACK}

pytestmark = pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")


@pytest.fixture(
    scope="module", params=[pytest.param(user, marks=pytest.mark.slow if user == "root" else ()) for user in USERS]
)
def told(request: pytest.FixtureRequest) -> Mapping[str, dict[str, Any]]:
    """What came of each script; they all run side by side, once for each user."""
    done = subprocess.run(USERS[request.param], capture_output=True, text=True, check=False)
    if done.returncode and "[Errno 1] Operation not permitted: 'unshare'" in done.stderr:
        pytest.skip("this root may not become another user in mount spaces of its own")
    assert done.returncode == 0, done.stderr
    return {each["script"]: each for each in json.loads(done.stdout)}


@pytest.mark.parametrize("script", SCRIPTS, ids=[each.stem for each in SCRIPTS])
def test_a_hostile_script_ends_as_its_own_failure(told: Mapping[str, dict[str, Any]], script: Path) -> None:
    """It is measured, it reaches nothing, and it ends as its second line says."""
    came = told[script.stem]
    expected = re.search(r"^# ends: (\w+)$", script.read_text(), re.MULTILINE)
    assert expected is not None
    assert "unmeasured" not in came, came
    assert "ESCAPED" not in came["stdout"], came
    assert "Traceback" not in came["stderr"], came
    assert came["ended_by"] == expected[1], came


def test_nobody_writes_a_result_when_its_script_is_over(told: Mapping[str, dict[str, Any]]) -> None:
    """Whoever was left behind is gone before files are collected: a file is whole. Links and pipes are no files."""
    assert told["left_behind"]["files"].get("result.json", "forged") == "forged"
    assert set(told["own_room"]["files"]) == {"main.py", "result.json"}
