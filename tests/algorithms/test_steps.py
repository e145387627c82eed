"""What steps share that ask for edits: how answers without edits end one, and which edits are refused."""

from __future__ import annotations

import pytest

from skillopt_es.algorithms.steps import all_failed, leaking, noted, optimizer_away, without_edits
from skillopt_es.events.catalog import PatchProposed
from skillopt_es.events.values import REFUSED_LEAK, Edit
from skillopt_es.skill.leaks import LeakGuard, Shown


def _patches(*results: str) -> dict[str, PatchProposed]:
    return {
        name: PatchProposed(patch=name, step=1, kind="failure", items=(), result=result, note=f"why {name}")
        for name, result in zip("abc", results, strict=False)
    }


@pytest.mark.parametrize(
    ("results", "decision"),
    [
        ((), "skip:nothing_to_fix"),
        (("nothing", "nothing"), "skip:nothing_proposed"),
        (("nothing", "unusable"), "skip:no_usable_patch"),
        (("failed", "nothing"), "skip:no_usable_patch"),
    ],
)
def test_a_step_without_edits_says_why(results: tuple[str, ...], decision: str) -> None:
    """An answer that could not be read is no proof that there is nothing to fix."""
    assert without_edits(_patches(*results), "nothing_to_fix").name == decision


def test_an_outage_is_that_no_question_was_answered() -> None:
    """One answer is enough, and a step without questions has met none; the pause names the first cause."""
    assert all_failed(_patches("failed", "failed").values())
    assert not all_failed(_patches("failed", "nothing").values())
    assert not all_failed(())
    assert optimizer_away(_patches("failed", "failed")).message.endswith("first, why a")
    assert noted(_patches("failed", "unusable")) == "a: why a; b: why b"


def test_an_edit_that_copies_an_item_is_refused() -> None:
    """The report says what it copies; other edits have none."""
    words = "the third of May in the year nineteen hundred and four"
    guard = LeakGuard([Shown(item="x", question=words, answers=(), text=words)], known="", span=6)
    edits = [Edit(id="copy", op="append", content=words), Edit(id="rule", op="append", content="Name the unit.")]
    found = leaking(edits, guard)
    assert [(name, report.status) for name, report in found.items()] == [("copy", REFUSED_LEAK)]
