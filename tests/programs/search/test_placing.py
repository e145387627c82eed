"""Where a rule goes that is for more tasks than one which is in the skill already."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from programs.search.test_search import grader, of_type

import skillopt_es as so
from skillopt_es.events.catalog import EditsRanked, PatchProposed
from skillopt_es.events.values import Edit, SkillTree
from skillopt_es.programs.search.placing import only_new, placed

TASKS = {
    "t1": "Sort the pears: anjou",
    "t2": "Sort the pears: bosc",
    "t3": "Sort the apples: gala",
    "t4": "Sort the apples: fuji",
    "t5": "Sort the plums: opal",
}
ANJOU, GALA, PEARS = (
    Edit(id="p#1", op="append", content="- anjou: backwards"),
    Edit(id="p#2", op="append", content="- gala: twice"),
    Edit(id="p#3", op="append", content="- pears: by weight"),
)
SKILL = SkillTree({"SKILL.md": "# Rules\n\n- gala: twice\n\n- anjou: backwards\n"})


def test_a_rule_for_many_tasks_stands_before_the_rule_for_one_of_them() -> None:
    found = placed(PEARS, [GALA, ANJOU], SKILL, TASKS)
    assert (found.op, found.target, found.content) == ("insert_after", "- gala: twice", PEARS.content)


@pytest.mark.parametrize(
    "edit",
    [
        Edit(id="p#4", op="append", content="- plums: by size"),
        Edit(id="p#5", op="append", content="- anjou: once more"),
        Edit(id="p#6", op="append", content="- take your time"),
        Edit(id="p#7", op="append", content="- pears: by weight\n- bosc: twice"),
        Edit(id="p#8", op="replace", target="- gala: twice", content="- pears: by weight"),
    ],
    ids=["other tasks", "the same tasks", "no tasks", "several lines", "a place of its own"],
)
def test_everything_else_goes_where_it_would(edit: Edit) -> None:
    assert placed(edit, [GALA, ANJOU], SKILL, TASKS) == edit


def test_what_was_there_from_the_beginning_is_no_exception() -> None:
    """Nothing was measured of it; and what begins the file has nothing before it that it could follow."""
    assert placed(PEARS, [], SKILL, TASKS) == PEARS
    assert placed(PEARS, [ANJOU], SkillTree({"SKILL.md": "- anjou: backwards\n"}), TASKS) == PEARS


def test_the_place_is_named_by_as_many_lines_as_stand_nowhere_before_it() -> None:
    skill = SkillTree({"SKILL.md": "- a\n\n- b\n\n- a\n\n- anjou: backwards\n"})
    assert placed(PEARS, [ANJOU], skill, TASKS).target == "- b\n\n- a"


RULES = SkillTree({"SKILL.md": "# Rules\n\n- a\n- b\n\n- c\n"})


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("- a\n- b\n- c\n\n- d\n", "- d"),
        ("# Rules\n\n- a\n- b\n\n- d\n- c\n\n- e", "- d\n\n- e"),
        ("- a\n- b\n- d\n- e", "- a\n- b\n- d\n- e"),
        ("- a\n- b\n- c\n- d\n- e\n- f\n- g", "- a\n- b\n- c\n- d\n- e\n- f\n- g"),
        ("- a\n- b\n- c", "- a\n- b\n- c"),
        ("- a\n- b\n- c\n```\nd\n```", "- a\n- b\n- c\n```\nd\n```"),
    ],
    ids=["one rule more", "rules between", "two lines by chance", "mostly new", "nothing new", "a block"],
)
def test_who_gives_the_whole_text_back_has_said_what_is_new(said: str, left: str) -> None:
    """Each time the skill would be twice as long otherwise."""
    edit = Edit(id="p#1", op="append", content=said)
    assert only_new(edit, RULES).content == left


KINDS = {"anjou": "pears", "bosc": "pears", "gala": "apples", "fuji": "apples", "opal": "plums", "mirabelle": "plums"}
RULE = re.compile(r"RULE (\w+) (\w+)")


def agent(request: so.ChatRequest) -> str:
    """Goes by the last rule for a task's kind or family."""
    kind, family, word = re.findall(r"\w+", request.messages[-1].content)[-3:]
    said = [how for whom, how in RULE.findall(request.messages[0].content) if whom in (kind, family)]
    return f"{word}-{said[-1] if said else 'none'}"


def taught(request: so.ChatRequest) -> str:
    """The exception first, and the rule for the family once that is in the skill."""
    text = request.messages[-1].content
    rule = "RULE pears weight" if "RULE anjou back" in text else "RULE anjou back"
    edit = {"op": "append", "target": "", "content": rule, "items": [], "hypothesis": "no rule"}
    return json.dumps({"reasoning": "seen", "edits": [edit]})


@pytest.mark.parametrize(("version", "broken"), [(3, False), (2, True)])
def test_a_rule_for_a_family_that_is_learned_late_breaks_no_exception(
    tmp_path: Path, version: int, *, broken: bool
) -> None:
    """As version 2 had it, the rule came last, and the exception failed."""
    rows = []
    for split in ("train", "val"):
        for number in range(24):
            kind = list(KINDS)[number % len(KINDS)]
            how = "back" if kind == "anjou" else "weight" if KINDS[kind] == "pears" else "none"
            word = f"{split}{number}"
            row = {"id": word, "split": split, "input": f"{kind} {KINDS[kind]} {word}", "type": kind}
            rows.append({**row, "expected": f"{word}-{how}"})
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "SKILL.md").write_text("# Skill\n")
    run = so.train(
        {
            "env": {
                "name": "tasks",
                "data_path": str(tmp_path / "tasks.jsonl"),
                "split_mode": "field",
                "skill_init": str(tmp_path / "SKILL.md"),
            },
            "train": {"program": "search", "num_epochs": 9, "batch_size": 24},
            "evaluation": {"eval_test": False},
            "search": {"examples": "off", "rounds": 1, "first_batch": 24, "together": 24, "version": version},
            "gradient": {"minibatch_size": 24},
        },
        name="run",
        runs=tmp_path,
        target=agent,
        optimizer=taught,
        grader=grader,
    )
    ops = {each.content: each.op for event in of_type(run, PatchProposed) for each in event.edits}
    assert ops["RULE pears weight"] == ("append" if broken else "insert_after")
    assert any(each.broke for event in of_type(run, EditsRanked) for each in event.credits) == broken
    said = run.skill("best").text
    assert ("weight" in said and said.index("weight") < said.index("back")) != broken
