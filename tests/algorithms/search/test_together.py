"""What all kept edits of a step do together to tasks that are solved, before the gate looks at them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from algorithms.search.test_search import agent, of_type, rules_in, searched, spoiler
from support.params import parametrized

import skillopt_es as so
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
    checks = {step: each for step, each in reversed(tries) if each.place.endswith("together")}
    assert checks
    assert all(len(each.items) <= 3 for each in checks.values())
    [found] = [event.step for event in of_type(run, EditsRanked) if any(each.broke for each in event.credits)]
    blamed = {
        step
        for step, each in tries
        if step in checks and set(each.items) & set(checks[step].items) and "edit-" in each.place
        if each.draw > checks[step].draw
    }
    assert blamed == {found}


def test_it_can_be_left_out(tmp_path: Path) -> None:
    run = searched(tmp_path, **{"search.together": 0})
    assert not any(each.place.endswith("together") for event in of_type(run, TriesPlanned) for each in event.tries)


ALONE = {"search.together": 30, "search.rounds": 1}
"""Every solved task meets what is kept, and each edit is tried on the current text."""
FIRST = "wr0"


def blamed(run: so.Run) -> list[str]:
    """The edits that are said to have broken a task."""
    return [each.edit for event in of_type(run, EditsRanked) for each in event.credits if each.broke]


def overfull(request: so.ChatRequest) -> str:
    """The agent, which needs no rule for one task, and cannot do it any more once there are five rules."""
    kind, word = request.messages[-1].content.split()[-2:]
    if word != FIRST:
        return agent(request)
    return f"{word}-{kind[::-1] if len(rules_in(request.messages[0].content)) < 5 else 'none'}"


def lucky_once(request: so.ChatRequest) -> str:
    """The agent, which does one task by luck, the first time that it is asked."""
    _, word = request.messages[-1].content.split()[-2:]
    if word != FIRST:
        return agent(request)
    lucky = not asked and not rules_in(request.messages[0].content)
    asked.append(word)
    return f"{word}-{'00dnik' if lucky else 'none'}"


asked: list[str] = []


@parametrized("target", [overfull, lucky_once], by_default=1)
def test_nobody_is_blamed_for_a_task_that_fails_without_any_edit(
    tmp_path: Path, target: Callable[[so.ChatRequest], str]
) -> None:
    """Be it that the current text breaks it, or that it was solved by luck."""
    asked.clear()
    settings = {"train.batch_size": 12, "search.first_batch": 12, "env.workers": 1, **ALONE}
    assert blamed(searched(tmp_path, agent=target, **settings)) == []
