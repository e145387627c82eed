"""Where a rule goes that is for more tasks than one which is in the skill already."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from algorithms.search.test_search import grader, of_type
from attrs import evolve as replace

import skillopt_es as so
from skillopt_es.algorithms.search.placing import aimed, only_new, placed, put_in, rules_in
from skillopt_es.algorithms.search.state import Kept, Tried
from skillopt_es.algorithms.search.steps import OpenStep
from skillopt_es.algorithms.search.taking import NOTHING_NEW, Asked, taken
from skillopt_es.events.catalog import EditsRanked, PatchProposed
from skillopt_es.events.places import Place
from skillopt_es.events.values import Batch, Edit, Minibatch, SkillTree
from skillopt_es.skill.edits import apply_edits
from skillopt_es.skill.regions import SLOW_END, SLOW_START

TASKS = {
    "t1": "Sort the pears: anjou",
    "t2": "Sort the pears: bosc",
    "t3": "Sort the apples: gala",
    "t4": "Sort the apples: fuji",
    "t5": "Sort the plums: opal",
}


def kept(content: str, *items: str, file: str = "") -> Kept:
    """An edit that is in the skill, and the tasks that it has fixed."""
    edit = Edit(id="p#1", op="append", content=content, file=file)
    return Kept(step=1, edit=edit, items=items, place=Place("e1/s1/b0"), types=frozenset())


ANJOU, GALA = kept("- anjou: backwards", "t1"), kept("- gala: twice", "t3")
PEARS = Edit(id="p#3", op="append", content="- pears: by weight", claims=("t2",))
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
        Edit(id="p#9", op="append", content="- pears, as gala: by weight", claims=("t3",)),
        Edit(id="p#10", op="append", content="- pears: by weight", file="notes.md"),
    ],
    ids=["other tasks", "the same tasks", "no tasks", "several lines", "a place of its own", "for others", "elsewhere"],
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


def test_a_word_that_two_rules_have_by_chance_makes_neither_an_exception() -> None:
    """Here “they”."""
    tasks = {
        "m1": "Note what they paid: 12 euros",
        "m2": "Note the price: 9 dollars",
        "p1": "Note where they called: 0049 30",
        "d1": "Note the day: 3 May",
        "n1": "Note who came: Maria Lopez",
    }
    phone = kept("- called: begin it by a plus", "p1")
    money = Edit(id="p#2", op="append", content="- price, or what they paid: two decimals", claims=("m1", "m2"))
    skill = SkillTree({"SKILL.md": f"# Rules\n\n{phone.edit.content}\n"})
    assert placed(money, [phone], skill, tasks) == money


@pytest.mark.parametrize(
    "text",
    [
        f"# Rules\n\n{SLOW_START}\nMind:\n- anjou: backwards\n{SLOW_END}\n",
        f"# Rules\n\n{SLOW_START}\nMind.\n{SLOW_END}\n- anjou: backwards\n",
        "---\nname: fruit\ndescription: |\n  of fruit\n- anjou: backwards\n---\n# Rules\n",
        "---\nname: fruit\n---\n- anjou: backwards\n",
    ],
    ids=["in a protected block", "behind one", "in the frontmatter", "behind it"],
)
def test_where_nothing_may_be_put_in_a_rule_is_appended(text: str) -> None:
    """It would have been lost, or stood where no agent reads it as a rule."""
    assert placed(PEARS, [ANJOU], SkillTree({"SKILL.md": text}), TASKS) == PEARS


def test_general_rules_of_one_step_stand_in_their_order() -> None:
    """Both go right behind the same lines."""
    skill = SkillTree({"SKILL.md": "# Rules\n\n- anjou: backwards\n"})
    pears = placed(PEARS, [ANJOU], skill, TASKS)
    fruit = replace(pears, id="p#4", content="- all pears: twice", claims=())
    group = Minibatch(id="p", kind="failure", place=Place("e1/s1/b0"), items=("t1", "t2"))
    rules = (replace(pears, origins=("p",)), replace(fruit, origins=("p",)))
    patch = PatchProposed(patch="p", step=1, kind="failure", items=group.items, result="edits", edits=rules)
    step = OpenStep(number=1, batch=Batch(seed=1, items=("t1", "t2")), rounds=((group,),), patches={"p": patch})
    text = apply_edits(skill, step.edits, close_gaps=True)[0].text
    said = [line for line in text.splitlines() if line]
    assert said == ["# Rules", "- all pears: twice", "- pears: by weight", "- anjou: backwards"]


def test_a_line_that_is_moved_is_not_lost_beside_a_rule_for_the_same_place() -> None:
    """What takes it out and what puts it back stay together."""
    skill = SkillTree({"SKILL.md": "# Rules\n\n- anjou: backwards\n\n- pears: by weight\n\n- plums: by size\n"})
    group = Minibatch(id="p", kind="failure", place=Place("e1/s1/b0"), items=("t1", "t2"))
    out, back = put_in(replace(PEARS, origins=("p",)), [ANJOU], skill, TASKS, close_gaps=True)
    fruit = replace(back, id="p#4", content="- all fruit: twice", claims=())
    patch = PatchProposed(
        patch="p", step=1, kind="failure", items=group.items, result="edits", edits=(out, back, fruit)
    )
    batch = Batch(seed=1, items=group.items)
    step = OpenStep(number=1, batch=batch, rounds=((group,),), patches={"p": patch})
    text = apply_edits(skill, step.edits, close_gaps=True)[0].text
    said = [line for line in text.splitlines() if line]
    assert sorted(said) == sorted([*filter(None, skill.text.splitlines()), fruit.content])
    assert said.index(PEARS.content) < said.index("- anjou: backwards")


def test_a_general_rule_that_is_said_again_stays_before_its_exceptions() -> None:
    skill = SkillTree({"SKILL.md": "# Rules\n\n- pears: by weight\n\n- plums: by size\n\n- anjou: backwards\n"})
    out, back = put_in(PEARS, [ANJOU], skill, TASKS, close_gaps=True)
    assert (out.op, out.target) == ("delete", PEARS.content)
    after, _ = apply_edits(skill, [out, back], close_gaps=True)
    assert after.text.split("\n\n") == ["# Rules", "- plums: by size", "- pears: by weight", "- anjou: backwards\n"]


RULES = SkillTree({"SKILL.md": "# Rules\n\n- a\n- b\n\n- c\n"})
GIVEN_BACK = [
    ("- a\n- b\n- c\n\n- d\n", "- d"),
    ("# Rules\n\n- a\n- b\n\n- d\n- c\n\n- e", "- d\n\n- e"),
    ("- a\n- b\n- d\n- e", "- a\n- b\n- d\n- e"),
    ("- a\n- b\n- c\n```\nd\n```", "```\nd\n```"),
    ("```markdown\n# Rules\n- a\n- b\n- c\n- d\n```", "- d"),
    ("# Rules\n\n\n- a\n\n- b\n- c\n", None),
    ("# Others\n- a\n- b\n- c", "# Others\n- a\n- b\n- c"),
]


@pytest.mark.parametrize(
    ("said", "left"),
    GIVEN_BACK,
    ids=[
        "one rule more",
        "rules between",
        "two lines by chance",
        "a block",
        "in a fence",
        "nothing new",
        "the same steps of something else",
    ],
)
def test_who_gives_the_whole_text_back_has_said_what_is_new(said: str, left: str | None) -> None:
    """Each time the skill would be twice as long otherwise."""
    found = only_new(Edit(id="p#1", op="append", content=said), RULES)
    assert (None if found is None else found.content) == left


SEVERAL = "- pears: by weight\n- take care\n- gala: twice\n- be quick"


def test_several_rules_in_one_edit_are_tried_one_by_one() -> None:
    """Each for its own tasks; what is for none in particular by itself, too."""
    edit = Edit(id="p#1", op="append", content=SEVERAL, claims=("t2", "t3"))
    parts = rules_in(edit, [*TASKS], TASKS)
    assert [(each.content, each.claims) for each in parts] == [
        ("- pears: by weight", ("t2",)),
        ("- gala: twice", ("t3",)),
        ("- take care\n- be quick", ()),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "- pears: by weight\n- anjou: backwards",
        "Apples:\n- pears: by weight\n- gala: twice",
        "1. pears: by weight\n2. gala: twice",
        "- pears: by weight\n  - gala: twice",
        "- pears: by weight\n- take care",
        "Write pears by weight and\ngala twice, unless\nsomebody says otherwise.",
        "| pears | by weight |\n|---|---|\n| gala | twice |",
    ],
    ids=["one corrects the other", "under a heading", "steps", "indented", "a single rule", "a sentence", "a table"],
)
def test_what_belongs_together_stays_together(content: str) -> None:
    edit = Edit(id="p#1", op="append", content=content, claims=("t1",))
    assert rules_in(edit, [*TASKS], TASKS) == (edit,)
    assert rules_in(replace(edit, content=SEVERAL), ["t2"], TASKS) == (replace(edit, content=SEVERAL),)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("- Pears: by weight.", "- pears: by weight"),
        ("pears by weight", "- pears: by weight"),
        ("- pears: by weight", "- pears: by weight"),
        ("- pears: by size", "- pears: by size"),
        ("- plums", "- plums"),
        ("", ""),
    ],
    ids=["capitals and a stop", "without its signs", "as it stands", "other words", "two such lines", "none"],
)
def test_a_target_that_is_written_a_little_otherwise_is_found(target: str, found: str) -> None:
    """In the words of one line of the skill; a guess at more would hit the wrong one."""
    skill = SkillTree({"SKILL.md": "# Rules\n\n- pears: by weight\n\n- Plums!\n- plums.\n"})
    edit = Edit(id="p#1", op="replace", target=target, content="- pears: twice")
    assert aimed(edit, skill).target == found


def asked(*, old: Kept | None = None, skill: SkillTree = RULES, shown: SkillTree = RULES) -> Asked:
    """A question about all of the tasks."""
    return Asked(
        skill=skill,
        shown=shown,
        failing=tuple(TASKS),
        tasks=TASKS,
        known={},
        kept=(ANJOU,),
        old=old,
        told=(Tried(step=1, edit=replace(PEARS, op="insert_after", target="# Rules", claims=("t1", "t2")), why="no"),),
        form="json",
        prompt="",
        close_gaps=True,
    )


def test_a_refused_rule_is_known_wherever_it_would_go() -> None:
    """The optimizer appends it; it was tried in its place."""
    again = Edit(id="p#1", op="append", content="- pears: by weight")
    found = taken([again, Edit(id="p#2", op="append", content="- plums: by size")], asked())
    assert [edit.content for edit in found.edits] == ["- plums: by size"]
    assert found.refused == {"- pears: by weight": "it was refused before"}


def test_another_edit_that_is_the_old_one_is_refused() -> None:
    """It would take the place of itself."""
    old = kept("- c", "t1")
    told = (Tried(step=1, edit=old.edit, why="too narrow"),)
    found = taken([Edit(id="p#1", op="append", content="- c")], replace(asked(old=old), told=told))
    assert found.refused == {"- c": "it was refused before"}


def test_a_skill_given_back_as_another_edit_brings_only_what_is_new() -> None:
    """The question shows it without the edit that is to be replaced."""
    old = kept("- c", "t1")
    shown = SkillTree({"SKILL.md": "# Rules\n\n- a\n- b\n"})
    back = Edit(id="p#1", op="append", content="# Rules\n\n- a\n- b\n\n- plums: by size")
    [edit] = taken([back], asked(old=old, shown=shown)).edits
    assert (edit.op, edit.target, edit.content) == ("replace", "- c", "- plums: by size")
    same = taken([replace(back, content=RULES.text)], asked())
    assert not same.edits
    assert [*same.refused.values()] == [NOTHING_NEW]


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


def test_a_rule_for_a_family_that_is_learned_late_breaks_no_exception(tmp_path: Path) -> None:
    """It stands before the exception, which an agent then follows."""
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
            "train": {"algorithm": "search", "num_epochs": 9, "batch_size": 24},
            "evaluation": {"eval_test": False},
            "search": {"examples": "off", "rounds": 1, "first_batch": 24, "together": 24},
            "gradient": {"minibatch_size": 24},
        },
        name="run",
        runs=tmp_path,
        target=so.ChatFunction(agent),
        optimizer=taught,
        grader=grader,
    )
    ops = {each.content: each.op for event in of_type(run, PatchProposed) for each in event.edits}
    assert ops["RULE pears weight"] == "insert_after"
    assert not any(each.broke for event in of_type(run, EditsRanked) for each in event.credits)
    said = run.skill("best").text
    assert said.index("weight") < said.index("back")
