"""Replies about a folder of skills, as models write them: what is meant is read, and what cannot be is said."""

from __future__ import annotations

import json

import pytest
from support.skills import folder, skill

from skillopt_es.events.values import Edit
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.proposals import PatchReply
from skillopt_es.replies.skill_changes import name_like, read_skill_changes, read_skill_edits, skill_text

TREE = folder(money=skill("money"), dates=skill("dates"))


def edits(*rows: object, viewed: tuple[str, ...] = ("money",)) -> tuple[Edit, ...] | str:
    """The edits of a reply, or why it cannot be used."""
    text = json.dumps({"edits": rows})
    found = read_skill_edits(text, patch="p", kind="failure", support=2, most=3, viewed=viewed, tree=TREE)
    return found.why if isinstance(found, Unusable) else found.edits


def changes(*rows: object) -> tuple[Edit, ...] | str:
    """The edits of a reply about the whole folder."""
    gone = {"old": {"old/SKILL.md": "text", "old/more.md": "more"}}
    found = read_skill_changes(json.dumps({"changes": rows}), patch="p", most=2, tree=TREE, gone=gone)
    return found.why if isinstance(found, Unusable) else found.edits


def test_an_edit_names_its_file_in_whatever_way() -> None:
    """By skill and file, by a path from the folder on, or not at all where one skill was open."""
    rows = (
        {"op": "append", "skill": "money", "content": "- a"},
        {"op": "append", "skill": "", "file": "money/references/codes.md", "content": "- b"},
        {"op": "replace", "content": "- c", "target": "- d"},
    )
    found = edits(*rows)
    assert [each.file for each in found if isinstance(each, Edit)] == [
        "money/SKILL.md",
        "money/references/codes.md",
        "money/SKILL.md",
    ]


def test_a_new_skill_gets_its_frontmatter_from_what_was_said() -> None:
    """Its name is made one that the format allows; a description may stand in the text."""
    [one] = edits({"op": "create", "skill": "Phone Numbers!", "description": "Any\nnumber.", "content": "- rule"})
    assert isinstance(one, Edit)
    assert (one.file, one.support, one.origins) == ("phone-numbers/SKILL.md", 2, ("p",))
    assert one.content == "---\nname: phone-numbers\ndescription: Any number.\n---\n\n- rule"
    own = skill_text("a", "", "---\ndescription: mine\n---\n- rule")
    assert own == "---\nname: a\ndescription: mine\n---\n- rule"
    assert name_like(f"{'x' * 70} y") == "x" * 64


def test_what_cannot_be_meant_takes_no_other_with_it() -> None:
    """Alone it is said, so that the model can be asked again."""
    good = {"op": "describe", "skill": "dates", "description": "Days."}
    [kept] = edits({"op": "append", "skill": "dates", "content": "- x"}, good)
    assert isinstance(kept, Edit)
    assert (kept.id, kept.op, kept.content) == ("p#1", "describe", "Days.")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"op": "append", "skill": "dates", "content": "- x"}, "dates was not open, so nothing shows"),
        ({"op": "append", "skill": "names", "content": "- x"}, "there is no skill 'names'; there are: dates, money"),
        ({"op": "merge", "skill": "money"}, "`op` must be one of append,"),
        ({"op": "create", "skill": "names", "content": "- x"}, "the new skill names needs a `description`"),
        ({"op": "create", "skill": "...", "description": "x", "content": "- x"}, "a new skill needs a name"),
        ("append", "each edit must be an object"),
    ],
)
def test_an_edit_that_cannot_be_used_says_why(row: object, said: str) -> None:
    """In words that can go back to the model."""
    assert said in str(edits(row))
    assert read_skill_edits("{}", patch="p", kind="failure", support=1, most=1, viewed=(), tree=TREE) == Unusable(
        "`edits` must be a list"
    )


PART = {"name": "One", "description": "When.", "content": "- rule"}


def test_a_change_is_the_edits_that_it_is_made_of() -> None:
    """A split retires what it came from, in one change; a restored skill has all its files."""
    other = {**PART, "name": "Two"}
    split, back = (
        changes({"kind": kind, "skills": skills, "into": into, "why": "a\nb"})
        for kind, skills, into in (("split", ["money"], [PART, other]), ("restore", "old", []))
    )
    told = [(each.op, each.file, each.target, each.change) for each in split if isinstance(each, Edit)]
    assert told == [
        ("split", "one/SKILL.md", "money", "p#1"),
        ("split", "two/SKILL.md", "money", "p#1"),
        ("retire", "money/SKILL.md", "", "p#1"),
    ]
    assert [(each.op, each.file, each.change) for each in back if isinstance(each, Edit)] == [
        ("create", "old/SKILL.md", "p#1"),
        ("create", "old/more.md", "p#1"),
    ]
    [renamed] = changes({"kind": "rename", "skills": ["money"], "into": PART, "why": "x"})
    assert isinstance(renamed, Edit)
    assert (renamed.file, renamed.target, renamed.change, renamed.hypothesis) == ("one/SKILL.md", "money", "", "x")


def test_no_more_changes_than_were_asked_for() -> None:
    """Each counts once, however many edits it is."""
    retire = {"kind": "retire", "skills": ["money", "dates"], "into": []}
    found = changes(retire, {"kind": "add", "skills": [], "into": [PART]}, retire)
    assert [each.id for each in found if isinstance(each, Edit)] == ["p#1.1", "p#1.2", "p#2"]
    assert isinstance(read_skill_changes('{"changes": []}', patch="p", most=1, tree=TREE, gone={}), PatchReply)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"kind": "melt"}, "`kind` must be one of merge,"),
        ({"kind": "merge", "skills": ["money"], "into": [PART]}, "a merge has at least 2 `skills` and 1 in `into`"),
        ({"kind": "retire", "skills": ["names"]}, "there is no skill 'names'"),
        ({"kind": "restore", "skills": ["money"]}, "there is no retired skill 'money'"),
        ({"kind": "add", "into": [{"name": "x"}]}, "each skill that comes of `add`"),
        ({"kind": "split", "skills": ["money"], "into": [PART, {**PART, "name": "money"}]}, "give the new one its own"),
        (7, "each change must be an object"),
    ],
)
def test_a_change_that_cannot_be_used_says_why(row: object, said: str) -> None:
    """In words that can go back to the model."""
    assert said in str(changes(row))
