"""Changes of whole files: what they make of a folder of skills, and whose the lines are afterwards."""

from __future__ import annotations

import pytest
from support.skills import folder, skill

from skillopt_es.events.values import Edit, EditOp, EditReport, SkillTree
from skillopt_es.skill.alignment import Origin, changes
from skillopt_es.skill.edits import apply_edits
from skillopt_es.skill.folders import ids_of, listing_of

TREE = folder(
    money=skill("money", "Sums.", "- two decimals\n- code EUR"), prices=skill("prices", "Prices.", "- no sign\n- tax")
)


def edit(op: EditOp, name: str = "", content: str = "", target: str = "", change: str = "", number: int = 1) -> Edit:
    """An edit of a skill's main file."""
    file = f"{name}/SKILL.md" if name and "/" not in name else name
    return Edit(id=f"p#{number}", op=op, file=file, content=content, target=target, change=change)


def after(*edits: Edit, tree: SkillTree = TREE) -> tuple[SkillTree, list[str]]:
    """The tree after some edits, and their statuses."""
    changed, reports = apply_edits(tree, edits)
    return changed, [report.status for report in reports]


def test_skills_are_created_described_renamed_and_retired() -> None:
    """Each says what was done."""
    tree, done = after(
        edit("create", "dates", skill("dates", "Days.")),
        edit("create", "dates/references/months.md", "May", number=2),
        edit("describe", "money", "Sums of money.", number=3),
        edit("rename", "costs", target="prices", number=4),
        edit("retire", "money", number=5),
    )
    assert done == ["applied_create", "applied_create", "applied_describe", "applied_rename", "applied_retire"]
    assert listing_of(tree) == "- costs: Prices.\n- dates: Days."
    assert tree.files["dates/references/months.md"] == "May\n"
    assert "name: costs\n" in tree.files["costs/SKILL.md"]


def test_lines_that_a_merge_keeps_are_known_as_those_of_the_skills_before() -> None:
    """Both texts are its source, in turn."""
    merge = edit("merge", "amounts", skill("amounts", "Both.", "- tax\n- two decimals\n- new"), "money prices")
    tree, done = after(merge)
    assert (done, ids_of(tree)) == (["applied_merge"], ("amounts",))
    [change] = changes(TREE, tree, Origin(reports=(EditReport("p#1", "applied_merge"),), proposals={"p#1": merge}))
    assert (change.file, change.sources) == ("amounts/SKILL.md", ("money/SKILL.md", "prices/SKILL.md"))
    assert change.before == TREE.files["money/SKILL.md"] + TREE.files["prices/SKILL.md"]


def test_files_of_one_name_are_carried_by_a_merge_with_the_links_to_them() -> None:
    """The second is called after its skill; its own lines and files lead to it. Equal files are one."""
    tree = folder(
        money=skill("money", "Sums.", "- see references/more.md\n- both [it](./references/same.md)"),
        prices=skill("prices", "Prices.", "- prices are in [more](./references/more.md#tax)\n- see references/more.md"),
    )
    more = {
        "money/references/more.md": "Of money.\n",
        "money/references/same.md": "The same.\n",
        "prices/references/more.md": "Of prices.\n",
        "prices/references/same.md": "The same.\n",
        "prices/references/other.md": "As in [more](more.md), not in references/more.mdx.\n",
    }
    tree = SkillTree(files={**tree.files, **more}, main="")
    text = skill("amounts", "Both.", "- see references/more.md\n- prices are in [more](./references/more.md#tax)")
    merged, done = after(edit("merge", "amounts", text, "money prices"), tree=tree)
    assert done == ["applied_merge"]
    assert dict(merged.files) == {
        "amounts/SKILL.md": text.replace("(./references/more.md#tax)", "(./references/prices-more.md#tax)").strip()
        + "\n",
        "amounts/references/more.md": "Of money.\n",
        "amounts/references/same.md": "The same.\n",
        "amounts/references/prices-more.md": "Of prices.\n",
        "amounts/references/other.md": "As in [more](prices-more.md), not in references/more.mdx.\n",
    }


def test_a_merge_into_one_of_its_skills_takes_no_name_that_is_there() -> None:
    """Whatever the files are called already."""
    files = {
        "money/a.md": "1\n",
        "money/prices-a.md": "2\n",
        "prices/a.md": "3\n",
    }
    tree = SkillTree(files={**TREE.files, **files}, main="")
    merged, done = after(edit("merge", "money", skill("money", "Both.", "- both"), "money prices"), tree=tree)
    assert done == ["applied_merge"]
    others = {path: text for path, text in merged.files.items() if not path.endswith("SKILL.md")}
    assert others == {"money/a.md": "1\n", "money/prices-a.md": "2\n", "money/prices-2-a.md": "3\n"}


def test_what_is_no_text_goes_where_its_skill_goes() -> None:
    """Renamed, merged (after its skill where that name is taken) and retired; a script may be run still."""
    scripts = {"money/run.sh": "1\n", "prices/run.sh": "2\n"}
    tree = SkillTree(
        files={**TREE.files, **scripts},
        main="",
        assets={"money/a.png": "QQ==", "prices/a.png": "Qg==", "prices/b.png": "Qw=="},
        executable=("money/run.sh", "prices/b.png", "prices/run.sh"),
    )
    renamed, _ = after(edit("rename", "costs", target="prices"), tree=tree)
    assert dict(renamed.assets) == {"money/a.png": "QQ==", "costs/a.png": "Qg==", "costs/b.png": "Qw=="}
    assert renamed.executable == ("costs/b.png", "costs/run.sh", "money/run.sh")
    merged, _ = after(edit("merge", "money", skill("money", "Both.", "- both"), "money prices"), tree=tree)
    assert dict(merged.assets) == {"money/a.png": "QQ==", "money/prices-a.png": "Qg==", "money/b.png": "Qw=="}
    assert merged.executable == ("money/b.png", "money/prices-run.sh", "money/run.sh")
    new, _ = after(edit("merge", "amounts", skill("amounts", "Both.", "- both"), "money prices"), tree=tree)
    assert dict(new.assets) == {"amounts/a.png": "QQ==", "amounts/prices-a.png": "Qg==", "amounts/b.png": "Qw=="}
    retired, _ = after(edit("retire", "prices"), tree=tree)
    assert (dict(retired.assets), retired.executable) == ({"money/a.png": "QQ=="}, ("money/run.sh",))
    described, _ = after(edit("describe", "money", "Sums of money."), tree=tree)
    assert (described.assets, described.executable) == (tree.assets, tree.executable)


def test_a_merge_keeps_each_file_and_leads_each_link_to_its_own() -> None:
    """Also where the name that a file would get is taken, and where a text links to a picture."""
    linked = {"prices/SKILL.md": f"{TREE.files['prices/SKILL.md']}- see ![the list](a.png)\n"}
    tree = SkillTree(
        files={**TREE.files, **linked},
        main="",
        assets={"money/a.png": "QQ==", "money/prices-a.png": "Qw==", "prices/a.png": "Qg=="},
    )
    both = skill("money", "Both.", "- both\n- see ![the list](a.png)")
    merged, _ = after(edit("merge", "money", both, "money prices"), tree=tree)
    assert dict(merged.assets) == {
        "money/a.png": "QQ==",
        "money/prices-a.png": "Qw==",
        "money/prices-2-a.png": "Qg==",
    }
    assert "- see ![the list](prices-2-a.png)" in merged.files["money/SKILL.md"]


def test_the_parts_of_a_change_come_together_or_not_at_all() -> None:
    """A split whose second part has a taken name leaves the skill as it is; another change is not touched by that."""
    parts = [
        edit("split", "decimals", skill("decimals"), "money", "c1", 1),
        edit("create", "dates", skill("dates"), number=2),
        edit("split", "prices", skill("prices"), "money", "c1", 3),
        edit("retire", "money", change="c1", number=4),
    ]
    tree, done = after(*parts)
    assert done == ["skipped_with_its_change", "applied_create", "skipped_file_exists", "skipped_with_its_change"]
    assert ids_of(tree) == ("dates", "money", "prices")
    whole, _ = after(parts[0], edit("split", "codes", skill("codes"), "money", "c1", 3), parts[3])
    assert ids_of(whole) == ("codes", "decimals", "prices")


@pytest.mark.parametrize(
    ("what", "status", "note"),
    [
        (edit("create", "dates", "- no frontmatter"), "skipped_format", "no frontmatter"),
        (edit("create", "../x", "text"), "skipped_format", "is no path below"),
        (edit("create", "a/../../b.md", "text"), "skipped_format", "is no path below"),
        (edit("create", "money", skill("money")), "skipped_file_exists", "already"),
        (edit("create", "dates/notes.md", "x"), "skipped_unknown_file", "there is no skill dates"),
        (edit("create", "dates", " "), "skipped_empty_content", ""),
        (edit("describe", "dates", "x"), "skipped_unknown_file", "there is no"),
        (edit("describe", "money", "x" * 1025), "skipped_too_long", "1,024"),
        (edit("describe", "money", "Sums."), "skipped_no_change", ""),
        (edit("rename", "Bad Name", target="money"), "skipped_format", "not a name"),
        (edit("rename", "prices", target="money"), "skipped_file_exists", "already"),
        (edit("rename", "x", target="dates"), "skipped_unknown_skill", "no skill dates"),
        (edit("merge", "one", skill("one"), "money money"), "skipped_nothing_to_merge", "two"),
        (edit("merge", "one", "text", "money prices"), "skipped_format", "frontmatter"),
        (edit("retire", "dates"), "skipped_unknown_skill", "no skill"),
        (edit("delete", "money", target="name: money"), "skipped_format", "its name is None"),
        (edit("append", "money/nothing.md", "x"), "skipped_unknown_file", "no file"),
    ],
)
def test_what_cannot_be_done_is_skipped_and_said(what: Edit, status: str, note: str) -> None:
    """Nothing raises, and nothing that agents could not load gets into a folder."""
    tree, [report] = apply_edits(TREE, [what])
    assert (report.status, tree) == (status, TREE)
    assert note in report.note


def test_one_skill_of_several_files_has_its_edits_name_theirs() -> None:
    """In a tree that is no folder of skills the format is the user's own."""
    tree = SkillTree({"SKILL.md": "- a\n", "references/b.md": "- b\n"})
    edits = [
        Edit(id="1", op="append", content="- c", file="references/b.md"),
        Edit(id="2", op="create", content="- d", file="references/d.md"),
        Edit(id="3", op="create", content="- d", file="/etc/d.md"),
    ]
    changed, reports = apply_edits(tree, edits)
    assert [report.status for report in reports] == ["applied_append", "applied_create", "skipped_format"]
    assert changed.files == {**tree.files, "references/b.md": "- b\n\n- c\n", "references/d.md": "- d\n"}
