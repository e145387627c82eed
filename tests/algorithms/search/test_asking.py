"""What the question tells of edits that were refused, and what becomes of edits that name no tasks."""

from skillopt_es.algorithms.search.asking import tried_section
from skillopt_es.algorithms.search.placing import moved
from skillopt_es.algorithms.search.state import Tried
from skillopt_es.algorithms.search.taking import with_claims
from skillopt_es.events.values import Edit, SkillTree
from skillopt_es.replies.proposals import PatchReply, read_patch

SKILL = SkillTree({"SKILL.md": "# Rules\n\n- first rule\n\n- second rule\n"})


def test_an_append_of_what_is_there_moves_it_to_the_end() -> None:
    """A later rule may overrule it, and to say it again is to want it last."""
    again = Edit(id="p#1", op="append", content="- first rule")
    taken_out, put_back = moved(again, SKILL)
    assert (taken_out.op, taken_out.target, put_back) == ("delete", "- first rule", again)
    assert moved(Edit(id="p#1", op="append", content="- second rule"), SKILL)[0].op == "append"
    assert len(moved(Edit(id="p#1", op="append", content="- third rule"), SKILL)) == 1


def test_what_was_refused_is_told_with_the_reason() -> None:
    """Inside fences, for its words come from outside."""
    tried = Tried(step=2, edit=Edit(id="p#1", op="append", content="- shout"), why="validation lost 2 tasks and won 0")
    said = tried_section([tried])
    assert "step 2: [append]  content='- shout'\n  refused: validation lost 2 tasks and won 0" in said
    assert tried_section([]) == ""


def test_claims_are_read_as_they_come() -> None:
    """A name without a list, another key, tasks that were not shown; and nothing of it where nobody asked."""
    text = (
        '{"edits": [{"op": "append", "content": "- a", "items": "t1", "hypothesis": "no\\nrule"},'
        ' {"op": "append", "content": "- b", "claims": ["t2", "t9", "t2"]}, {"op": "append", "content": "- c"}]}'
    )
    found = read_patch(text, patch="p", kind="failure", support=3, most=9, claimable=["t1", "t2", "t3"])
    assert isinstance(found, PatchReply)
    assert [(edit.claims, edit.support) for edit in found.edits] == [(("t1",), 1), (("t2",), 1), ((), 3)]
    assert found.edits[0].hypothesis == "no rule"
    plain = read_patch(text, patch="p", kind="failure", support=3, most=9)
    assert isinstance(plain, PatchReply)
    assert not any(edit.claims or edit.hypothesis for edit in plain.edits)


TASKS = {"t1": "Sort the amber list", "t2": "Sort the birch list", "t3": "Sort the cedar list"}


def test_of_what_an_edit_claims_it_is_tried_first_on_what_it_speaks_of() -> None:
    """Nothing that it claims is lost."""
    edit = Edit(id="p#1", op="append", content="- birch: write it backwards", claims=("t1", "t2"))
    found = with_claims(edit, ["t1", "t2", "t3"], TASKS)
    assert found.claims == ("t2", "t1")
    assert not found.claims_assumed


def test_an_edit_that_names_other_tasks_than_it_speaks_of_is_tried_on_both() -> None:
    """It mixed them up, or is more general than its words."""
    edit = Edit(id="p#1", op="append", content="- birch: write it backwards", claims=("t1", "t3"))
    found = with_claims(edit, ["t1", "t2", "t3"], TASKS)
    assert found.claims == ("t2", "t1")
    assert found.claims_assumed


def test_an_edit_that_speaks_of_no_task_keeps_its_claims() -> None:
    """A rule for all tasks has no rare word."""
    edit = Edit(id="p#1", op="append", content="- sort the list", claims=("t1", "t3"))
    assert with_claims(edit, ["t1", "t2", "t3"], TASKS) == edit
