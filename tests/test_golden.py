"""Logs of every release fold for ever, to the state they had then, and their decisions are derived again."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from support.make_golden import GOLDEN, state_digest
from support.tamper import with_unknown_event

from skillopt_es.audit.check import check
from skillopt_es.events.errors import LogTooNew
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import verify
from skillopt_es.sessions.session import read_state

RELEASES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


@pytest.fixture
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a golden run, so that no test touches the original."""
    return Path(shutil.copytree(GOLDEN / request.param / "run", tmp_path / "run"))


@pytest.mark.parametrize(("copied", "release"), [(name, name) for name in RELEASES], indirect=["copied"])
def test_a_golden_log_folds_to_the_state_it_had(copied: Path, release: str) -> None:
    """The digest that was written down at its release."""
    expected = json.loads((GOLDEN / release / "expected.json").read_text())
    assert state_digest(read_state(copied)) == expected["state"]
    assert verify(copied).ok


@pytest.mark.parametrize("copied", RELEASES, indirect=True)
def test_the_decisions_of_a_golden_log_are_derived_again(copied: Path) -> None:
    """New code decides as the release did."""
    with EventLog.open(copied) as log:
        report = asyncio.run(check(log, Journal(log.reader), copied))
    assert [str(each) for each in report.mismatches] == []  # all of them, each with its event and both values


@pytest.mark.parametrize("copied", RELEASES[-1:], indirect=True)
def test_a_log_with_an_event_from_the_future_is_refused_by_name(copied: Path, tmp_path: Path) -> None:
    """The one golden log that must fail: it says which event is too new."""
    changed = with_unknown_event(copied, tmp_path / "changed", "SomethingNew")
    with pytest.raises(LogTooNew, match="SomethingNew"):
        read_state(changed)
