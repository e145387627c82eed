"""Old payloads are lifted one version at a time."""

from __future__ import annotations

import json

import pytest

from skillopt_es.events import codec
from skillopt_es.events.catalog import RunPaused, RunResumed, RunStarted
from skillopt_es.events.codec import decode
from skillopt_es.events.errors import LogDamaged, LogTooNew
from skillopt_es.events.upcasts import Payload, upcast

STEPS = {
    ("Thing", 1): lambda payload: {"title": payload["name"]},
    ("Thing", 2): lambda payload: {**payload, "size": 0},
}


def test_a_payload_climbs_every_version() -> None:
    """Version 1 goes through 2 to 3, version 3 stays."""
    assert upcast("Thing", 1, 3, {"name": "x"}, STEPS) == {"title": "x", "size": 0}
    assert upcast("Thing", 3, 3, {"title": "x"}, STEPS) == {"title": "x"}


def test_a_missing_step_is_named() -> None:
    """A version nobody can lift is not guessed at."""
    with pytest.raises(LogDamaged, match="from version 0 of Thing to version 1"):
        upcast("Thing", 0, 3, {}, STEPS)


def test_a_newer_version_says_so() -> None:
    """A payload from the future asks for a newer software."""
    with pytest.raises(LogTooNew, match="Thing in version 4") as caught:
        upcast("Thing", 4, 3, {}, STEPS)
    assert "newer" in caught.value.hint


def test_decoding_lifts_old_payloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event class that has moved on still reads what its first version wrote."""
    reader = codec._readers["RunResumed"]
    monkeypatch.setitem(codec._readers, "RunResumed", (reader[0], 2, reader[2]))

    def renamed(payload: Payload) -> Payload:
        return {"software": payload["program"]}

    event = decode("RunResumed", 1, '{"program":"x"}', str, upcasts={("RunResumed", 1): renamed})
    assert event == RunResumed(software="x")


def test_a_pause_of_an_older_release_names_its_limit() -> None:
    """The key that began its message; other pauses have none."""
    told = {"reason": "budget", "message": "budget.max_calls is 3, with 3 calls made so far"}
    event = decode("RunPaused", 1, json.dumps(told), str)
    assert event == RunPaused(reason="budget", message=told["message"], key="budget.max_calls")
    other = decode("RunPaused", 1, '{"message":"budget","reason":"interrupt"}', str)
    assert other == RunPaused(reason="interrupt", message="budget")


def test_an_upcast_that_gives_nonsense_is_damage() -> None:
    """What an upcast returns is checked like any payload."""
    with pytest.raises(LogDamaged, match="RunResumed"):
        decode("RunResumed", 0, "{}", str, upcasts={("RunResumed", 0): lambda _: {"software": 3}})


@pytest.mark.parametrize(
    ("software", "per_epoch", "total", "program"),
    [
        ("skillopt-es 0.1.0", 4, 8, "classic"),
        ("skillopt-es 0.1.0", 0, 0, "evaluation"),
        ("skillopt (imported)", 4, 8, "imported"),
    ],
)
def test_logs_from_before_there_were_programs_say_which_they_are_of(
    software: str, per_epoch: int, total: int, program: str
) -> None:
    """By the signs that they have; what they were trained by is not written in them."""
    payload = {
        "software": software,
        "config": {},
        "folder": ".",
        "skill": {"files": {"SKILL.md": ""}},
        "splits": {"train": [], "val": [], "test": [], "digests": {}},
        "steps_per_epoch": per_epoch,
        "total_steps": total,
    }
    event = decode("RunStarted", 1, json.dumps(payload), str)
    assert isinstance(event, RunStarted)
    assert event.program == program
