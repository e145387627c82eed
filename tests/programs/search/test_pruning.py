"""Lines of which the skill has no use are tried without, once a step has earned nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs.search.test_search import failed_in, of_type, searched

import skillopt_es as so
from skillopt_es.events.catalog import CandidateGated, EditsRanked, PatchProposed
from skillopt_es.events.values import Edit
from skillopt_es.programs.search.pruning import doubtful_lines

LAST = "kind11"


def chatty(request: so.ChatRequest) -> str:
    """Finds every rule but one, and adds a line to each that nobody can follow."""
    kinds = {kind: items for kind, items in failed_in(request).items() if kind != LAST}
    edits = [
        {"op": "append", "content": f"Think hard about {kind}.\nRULE {kind} {kind[::-1]}", "items": items}
        for kind, items in kinds.items()
    ]
    return json.dumps({"edits": edits})


def test_a_line_without_which_its_task_passes_goes(tmp_path: Path) -> None:
    """And one that its task needs stays; nobody is asked."""
    run = searched(tmp_path, teach=chatty)
    text = run.skill("best").text
    assert "RULE kind01" in text
    assert "Think hard" not in text
    pruned = [event for event in of_type(run, PatchProposed) if event.kind == "pruning"]
    assert pruned
    assert not any(event.calls for event in pruned)
    assert {edit.op for event in pruned for edit in event.edits} == {"delete"}
    steps = {event.step for event in pruned}
    taken = [event for event in of_type(run, CandidateGated) if event.step in steps]
    assert taken
    assert all(event.verdict.taken for event in taken)


def test_what_a_task_needs_is_not_taken_out(tmp_path: Path) -> None:
    """The credit says which task fails without the line; that it was tried is no news for the optimizer."""
    run = searched(tmp_path, teach=chatty)
    proposed = {edit.id: edit for event in of_type(run, PatchProposed) for edit in event.edits}
    needed = [
        each
        for event in of_type(run, EditsRanked)
        for each in event.credits
        if proposed[each.edit].source == "pruning" and each.edit not in event.chosen
    ]
    assert all(each.broke for each in needed)
    told = "; ".join(event.reasoning for event in of_type(run, EditsRanked))
    assert "is of no use to " in told
    assert all(proposed[each.edit].target.startswith("RULE") for each in needed)


@pytest.mark.parametrize("off", [{"search.prune": False}])
def test_it_can_be_left_out(tmp_path: Path, off: dict[str, object]) -> None:
    run = searched(tmp_path, teach=chatty, **off)
    assert "Think hard" in run.skill("best").text


def test_a_line_that_is_the_last_to_speak_of_a_task_is_not_in_doubt() -> None:
    """A rule for many goes on to be of use beside an exception for one of them."""
    about = {"for all": ("t1", "t2"), "but t1": ("t1",)}
    general = Edit(id="p#1", op="append", content="for all")
    assert list(doubtful_lines(general, about, covered=True)) == []
    assert list(doubtful_lines(general, about, covered=False)) == [("for all", "t1")]
    about["but t2"] = ("t2",)
    assert list(doubtful_lines(general, about, covered=True)) == [("for all", "t1")]
    both = Edit(id="p#2", op="append", content="but t1\nbut t2")
    assert list(doubtful_lines(both, about, covered=True)) == [("but t1", "t1"), ("but t2", "t2")]
