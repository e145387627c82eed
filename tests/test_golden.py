"""Logs of every release fold for ever, to the state they had then, and their decisions are derived again."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.make_golden import GOLDEN, state_digest
from support.tamper import with_unknown_event

from skillopt_es.audit.check import check
from skillopt_es.engine.algorithm import Algorithm
from skillopt_es.engine.algorithms import algorithm_of
from skillopt_es.engine.loop import derive
from skillopt_es.engine.work import Decide, Work
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    PatchProposed,
    RunPaused,
    RunStarted,
    SkillScored,
    TriesPlanned,
)
from skillopt_es.events.errors import LogTooNew
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import verify
from skillopt_es.gate.course import gate_decisions
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


@pytest.mark.parametrize(
    ("copied", "unmet"),
    [
        ("0.1.0-search", {"skip:unchanged", "skip:too_large", "skip:untrusted_only"}),
        (
            "0.1.0-skills",
            {
                "stop",
                "pause_for_parts",
                "skip:nothing_asked",
                "skip:unchanged",
                "skip:too_large",
                "skip:untrusted_only",
            },
        ),
    ],
    indirect=["copied"],
)
def test_a_golden_log_meets_what_its_algorithm_decides(
    copied: Path, unmet: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but what is named here, so that a change of any other decision is noticed."""
    made: set[str] = set()

    def noting(algorithm: Algorithm[Any], work: Work, *more: Any) -> Any:
        made.update([work.name] if isinstance(work, Decide) else [])
        return derive(algorithm, work, *more)

    monkeypatch.setattr("skillopt_es.audit.check.derive", noting)
    with EventLog.open(copied) as log:
        asyncio.run(check(log, Journal(log.reader), copied))
        [first] = log.read(until=1)
    assert isinstance(first.event, RunStarted)
    algorithm = algorithm_of(first.event)
    own = algorithm.decisions.keys() - (gate_decisions(algorithm.gate).keys() - {"gate_candidate"})
    assert own - made == unmet


def test_the_golden_search_meets_what_has_no_decision_of_its_own(tmp_path: Path) -> None:
    """What is tried together and drawn again, what is replaced, and a verdict for which what turned was drawn again."""
    with EventLog.open(shutil.copytree(GOLDEN / "0.1.0-search" / "run", tmp_path / "run")) as log:
        found = [recorded.event for recorded in log.read()]
    ranked = [event for event in found if isinstance(event, EditsRanked)]
    earned = [credit for event in ranked for credit in event.credits]
    assert any(credit.varied for credit in earned)
    assert any(credit.broke for credit in earned)
    kept = " ".join(name for event in ranked for name in event.chosen)
    assert all(word in kept for word in ("anew-", "saved-", "pruning-", "examples-"))
    tries = [tries for event in found if isinstance(event, TriesPlanned) for tries in event.tries]
    assert any(each.place.endswith("/together") for each in tries)
    refused = [event.verdict for event in found if isinstance(event, CandidateGated) and not event.verdict.taken]
    assert [verdict.retested for verdict in refused if verdict.repeats == 4] != []
    assert {event.reason for event in found if isinstance(event, RunPaused)} == {"optimizer"}


def test_the_golden_folder_meets_every_kind_of_change(tmp_path: Path) -> None:
    """Of a skill's text and of the list; parts of a refused candidate are drawn, and stay; results are carried."""
    with EventLog.open(shutil.copytree(GOLDEN / "0.1.0-skills" / "run", tmp_path / "run")) as log:
        found = [recorded.event for recorded in log.read()]
    edits = {edit.id: edit for event in found if isinstance(event, PatchProposed) for edit in event.edits}
    reports = [report for event in found if isinstance(event, CandidateBuilt) for report in event.reports]
    ops = {edits[report.edit].op for report in reports if report.status.startswith("applied")}
    assert ops == {"create", "append", "replace", "merge", "split", "rename", "describe", "retire"}
    assert "skipped_too_early" in {report.status for report in reports}
    places = [tries.place for event in found if isinstance(event, TriesPlanned) for tries in event.tries]
    assert any("/parts/" in place for place in places)
    assert {Path(place).name for place in places} >= {"should", "should-not", "none"}
    assert "misrouted" in {
        event.together.reason for event in found if isinstance(event, EditsRanked) and event.together
    }
    assert any(event.carried for event in found if isinstance(event, SkillScored))


@pytest.mark.parametrize("copied", ["0.1.0"], indirect=True)
def test_a_log_with_an_event_from_the_future_is_refused_by_name(copied: Path, tmp_path: Path) -> None:
    """The one golden log that must fail: it says which event is too new."""
    changed = with_unknown_event(copied, tmp_path / "changed", "SomethingNew")
    with pytest.raises(LogTooNew, match="SomethingNew"):
        read_state(changed)
