"""Searches with skills of several files, calls that fail now and then, and tasks that nobody vouches for."""

from __future__ import annotations

import json
from pathlib import Path

from algorithms.search.test_search import KINDS, agent, failed_in, of_type, searched

import skillopt_es as so
from skillopt_es.events.catalog import CandidateGated, EditsRanked, PatchProposed, RolloutCompleted, StepSkipped
from skillopt_es.ports import CallFailed

CALLS = {"budget.max_calls": 120}


def test_edits_go_into_the_file_that_they_name(tmp_path: Path) -> None:
    """Where the skill has several, each is tried and credited as any."""

    def filing(request: so.ChatRequest) -> str:
        edits = [
            {"op": "append", "file": "rules.md", "content": f"RULE {kind} {kind[::-1]}", "items": items}
            for kind, items in failed_in(request).items()
        ]
        return json.dumps({"edits": edits})

    files = {"SKILL.md": "# Skill\nThe rules are in rules.md.\n", "rules.md": "# Rules\n"}
    run = searched(tmp_path, teach=filing, skill=files, **CALLS)
    best = run.skill("best")
    assert "RULE" not in best.files["SKILL.md"]
    assert best.files["rules.md"].count("RULE") > 8


def test_calls_that_are_sent_again_end_no_search(tmp_path: Path) -> None:
    """They count, and the run is complete within its calls."""
    asked = 0

    def failing(request: so.ChatRequest) -> str:
        nonlocal asked
        asked += 1
        if asked % 15 == 0:
            raise CallFailed("timeout", "nobody was there")
        return agent(request)

    run = searched(tmp_path, agent=failing, **CALLS, **{"env.workers": 1})
    answered = sum(len(event.calls) for event in of_type(run, RolloutCompleted))
    assert answered < asked
    assert run.status == "completed"
    assert run.usage().usage.total.calls <= CALLS["budget.max_calls"]
    assert any(event.verdict.taken for event in of_type(run, CandidateGated))
    judged = {each.edit: each for event in of_type(run, EditsRanked) for each in event.credits}
    assert not any(each.broke for each in judged.values())


def test_what_rests_on_untrusted_tasks_alone_takes_no_other_edit_with_it(tmp_path: Path) -> None:
    """It is dropped at the screen; the candidate has all that somebody vouches for."""
    clause = {"evaluation.no_untrusted_only": True, "gradient.minibatch_size": 1, "search.rounds": 1}
    run = searched(tmp_path, untrusted=KINDS[:6], **CALLS, **clause)
    proposed = {edit.id: edit for event in of_type(run, PatchProposed) for edit in event.edits}
    [first] = [
        event for event in of_type(run, EditsRanked) if event.step == 1
    ]  # nothing trusted passes beside them yet
    fixed = {each.edit for each in first.credits if each.fixed}
    doubtful = {name for name in fixed if any(kind in proposed[name].content for kind in KINDS[:6])}
    assert doubtful
    assert set(first.chosen) == fixed - doubtful
    assert not [event for event in of_type(run, StepSkipped) if event.reason == "untrusted_only"]
    assert any(event.verdict.taken for event in of_type(run, CandidateGated))
