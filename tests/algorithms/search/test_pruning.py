"""Lines of which the skill has no use are tried without, once a step has earned nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from algorithms.search.test_search import agent, failed_in, of_type, searched
from support.command import command

import skillopt_es as so
from skillopt_es.algorithms.search.pruning import lines_to_spare
from skillopt_es.events.catalog import CandidateGated, EditsRanked, PatchProposed
from skillopt_es.events.values import Edit

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
    said = command("why-not", "search", "--dir", ".", "--last", "999", cwd=tmp_path).out.splitlines()
    for each in needed:
        at = next(number for number, line in enumerate(said) if each.edit in line.split())
        assert said[at + 1].strip() == f"it is needed by {', '.join(each.broke)}"


@pytest.mark.parametrize("off", [{"search.prune": False}])
def test_it_can_be_left_out(tmp_path: Path, off: dict[str, object]) -> None:
    run = searched(tmp_path, teach=chatty, **off)
    assert "Think hard" in run.skill("best").text


ABOUT = {
    "# Rules": (),
    "parcels with a stamp: harbour desk": ("p1", "i1"),
    "invoices with a stamp: blue tray": ("i1", "p1", "n1"),
    "read it twice": (),
}


@pytest.mark.parametrize(
    ("content", "own", "found"),
    [
        ("parcels with a stamp: harbour desk", ["p1"], [("parcels with a stamp: harbour desk", "p1")]),
        ("parcels with a stamp: harbour desk", ["p2"], []),
        ("invoices with a stamp: blue tray", ["i1"], []),
        ("invoices with a stamp: blue tray\nread it twice", ["n1"], [
            ("invoices with a stamp: blue tray", "n1"), ("read it twice", "n1"),
        ]),
        ("# Rules\ninvoices with a stamp: blue tray", ["i1"], []),
        ("1. look at the stamp\n2. read it twice", ["p1"], []),
    ],
    ids=["its own task", "no later line has its task", "the last one", "several lines", "under a heading", "steps"],
)  # fmt: skip
def test_a_line_is_tried_without_on_the_task_that_it_has_fixed(
    content: str, own: list[str], found: list[tuple[str, str]]
) -> None:
    """Not on one with which it has a common word: that one passes without it, and the rule would be lost."""
    edit = Edit(id="p#1", op="append", content=content)
    assert list(lines_to_spare(edit, ABOUT, own)) == found


def test_a_line_that_several_edits_brought_is_tried_without_once(tmp_path: Path) -> None:
    """It is deleted for the tasks of all of them, and no task is tried twice at one place."""

    def again(request: so.ChatRequest) -> str:
        edits = json.loads(chatty(request))["edits"]
        rows = [{**row, "content": f"Read it twice.\n{row['content'].splitlines()[-1]}"} for row in edits]
        return json.dumps({"edits": rows})

    run = searched(tmp_path, teach=again)
    assert run.status == "completed"
    assert "Read it twice" not in run.skill("best").text


def test_where_the_target_varies_no_line_is_tried_without(tmp_path: Path) -> None:
    """A coin would pass without a line that is needed."""
    seen: dict[str, int] = {}

    def tossing(request: so.ChatRequest) -> str:
        key = f"{request.messages[0].content}|{request.messages[-1].content}"
        seen[key] = seen.get(key, 0) + 1
        kind, word = request.messages[-1].content.split()[-2:]
        lucky = kind == "kind03" and seen[key] % 2 == 0
        return f"{word}-{kind[::-1]}" if lucky else agent(request)

    run = searched(tmp_path, teach=chatty, agent=tossing, **{"train.patience": 4})
    varied = [event.step for event in of_type(run, EditsRanked) for credit in event.credits if credit.varied]
    pruned = [event.step for event in of_type(run, PatchProposed) if event.kind == "pruning"]
    assert varied
    assert all(step <= min(varied) for step in pruned)
    assert "Think hard" in run.skill("best").text
