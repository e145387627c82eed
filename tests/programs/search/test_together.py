"""What all kept edits of a step do together to tasks that are solved, before the gate looks at them."""

from __future__ import annotations

from pathlib import Path

from programs.search.test_search import of_type, searched, spoiler

from skillopt_es.events.catalog import CandidateGated, EditsRanked, PatchProposed, TriesPlanned

TOGETHER = {"gradient.minibatch_size": 20}


def test_an_edit_that_breaks_what_others_have_fixed_is_found_before_the_gate(tmp_path: Path) -> None:
    """It is right for the task that it was tried on alone; without it the others get in at once."""
    spoilt: list[str] = []
    run = searched(tmp_path, teach=spoiler(spoilt), **TOGETHER)
    assert all(event.verdict.taken for event in of_type(run, CandidateGated))
    proposed = {edit.id: edit for event in of_type(run, PatchProposed) for edit in event.edits}
    [ranked] = [event for event in of_type(run, EditsRanked) if any(each.broke for each in event.credits)]
    [culprit] = [each.edit for each in ranked.credits if each.broke]
    assert " x" in proposed[culprit].content
    assert culprit not in ranked.chosen
    assert len(ranked.chosen) > 1
    assert " x" not in run.skill("best").text


def test_each_kept_edit_meets_a_broken_task_and_nothing_more(tmp_path: Path) -> None:
    """Three solved tasks for all together; the first broken one for each alone, and only where one was broken."""
    run = searched(tmp_path, teach=spoiler([]), **TOGETHER)
    tries = [(event.step, each) for event in of_type(run, TriesPlanned) for each in event.tries]
    checks = {step: each for step, each in tries if each.place.endswith("together")}
    assert checks
    assert all(len(each.items) <= 3 for each in checks.values())
    [found] = [event.step for event in of_type(run, EditsRanked) if any(each.broke for each in event.credits)]
    blamed = {
        step
        for step, each in tries
        if step in checks and set(each.items) & set(checks[step].items) and not each.place.endswith("together")
    }
    assert blamed == {found}


def test_it_can_be_left_out(tmp_path: Path) -> None:
    run = searched(tmp_path, **{"search.together": 0})
    assert not any(each.place.endswith("together") for event in of_type(run, TriesPlanned) for each in event.tries)
