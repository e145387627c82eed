"""Old payloads are lifted one version at a time."""

from __future__ import annotations

import json

import pytest

from skillopt_es.events import codec
from skillopt_es.events.catalog import CandidateGated, RunPaused, RunResumed, RunStarted, SlowUpdateApplied
from skillopt_es.events.codec import decode
from skillopt_es.events.errors import LogDamaged, LogTooNew
from skillopt_es.events.upcasts import Payload, as_said, upcast
from skillopt_es.events.values import GateVerdict, Json, Score, SkillTree

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


SCORE: Json = {"hard": 0.5, "soft": 0.5, "measured": 4, "unmeasured": 0}


def gated(action: str, value: float, best: float | None) -> CandidateGated:
    """A verdict as version 1 wrote it."""
    payload = {
        "step": 2,
        "candidate": "c",
        "action": action,
        "metric": "hard",
        "candidate_score": SCORE,
        "candidate_value": value,
        "current_score": SCORE,
        "current_value": 0.5,
        "best_value": best,
        "compared": 4,
        "lost": ["v1"],
        "reason": "items_lost",
    }
    event = decode("CandidateGated", 1, json.dumps(payload, separators=(",", ":")), str)
    assert isinstance(event, CandidateGated)
    return event


@pytest.mark.parametrize(
    ("action", "value", "best", "new_best"),
    [
        ("accept_new_best", 0.5, 0.9, True),
        ("accept", 0.9, 0.5, False),
        ("reject", 0.9, None, False),
        ("force_accept", 0.5, None, True),
        ("force_accept", 0.6, 0.5, True),
        ("force_accept", 0.5, 0.5, False),
        ("force_accept", 0, 0.5, False),
    ],
)
def test_an_old_verdict_says_whether_its_text_became_the_best(
    action: str, value: float, best: float | None, *, new_best: bool
) -> None:
    """As every reader of that time worked it out."""
    verdict = gated(action, value, best).verdict
    assert (verdict.action, verdict.new_best, verdict.best_value) == (action, new_best, best)


def test_an_old_verdict_keeps_all_that_it_said() -> None:
    """What was left out has the default that it had."""
    event = gated("reject", 0.25, 0.75)
    assert (event.step, event.candidate) == (2, "c")
    assert event.verdict == GateVerdict(
        action="reject",
        metric="hard",
        candidate_score=Score(0.5, 0.5, 4),
        candidate_value=0.25,
        current_score=Score(0.5, 0.5, 4),
        current_value=0.5,
        best_value=0.75,
        compared=4,
        lost=("v1",),
        reason="items_lost",
    )


@pytest.mark.parametrize(
    ("action", "new_best"), [("accept_new_best", True), ("accept", False), ("force_accept", False)]
)
def test_old_guidance_is_the_best_text_only_where_it_won(action: str, *, new_best: bool) -> None:
    """Forced guidance never was."""
    payload = {"epoch": 1, "action": action, "skill": {"files": {"SKILL.md": "x"}, "main": "SKILL.md"},
               "candidate_value": 0.9, "best_value": 0.5}  # fmt: skip
    event = decode("SlowUpdateApplied", 1, json.dumps(payload, separators=(",", ":")), str)
    assert isinstance(event, SlowUpdateApplied)
    assert (event.verdict.new_best, event.verdict.compared) == (new_best, None)


def test_guidance_derived_anew_is_compared_by_what_its_version_could_say() -> None:
    """Version 1 did not count which items turned."""
    verdict = GateVerdict(action="accept", metric="soft", current_score=Score(0.5, 0.5, 4), compared=4, won=("v0",),
                          lost=("v1",), candidate_value=0.5, draws=2)  # fmt: skip
    event = SlowUpdateApplied(epoch=2, skill=SkillTree({"SKILL.md": "x"}), verdict=verdict)
    assert as_said(event, 2) == event
    less = as_said(event, 1)
    assert isinstance(less, SlowUpdateApplied)
    assert less.verdict == GateVerdict(action="accept", candidate_value=0.5, draws=2)
    resumed = RunResumed(software="x")
    assert as_said(resumed, 1) == resumed


def test_a_forced_verdict_without_a_number_is_damage() -> None:
    """A log that was tampered with is not read as something else."""
    with pytest.raises(LogDamaged, match="CandidateGated"):
        decode("CandidateGated", 1, '{"action":"force_accept","best_value":0.5,"candidate_value":"x"}', str)
