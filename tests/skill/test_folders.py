"""A folder of skills as agents see it, and what keeps them from loading one."""

from __future__ import annotations

import pytest
from support.skills import folder, skill

from skillopt_es.events.values import SkillTree
from skillopt_es.skill.folders import EMPTY, entries_of, index_of, listing_of, problem_of, skills_in


def test_names_and_descriptions_are_listed_and_nothing_else() -> None:
    """In the order of the names; a skill that is always shown stands below with its own words."""
    tree = folder(
        money=skill("money", "Sums in euros."), house=skill("house", body="- be brief", more="always: true\n")
    )
    assert listing_of(tree) == "- money: Sums in euros."
    assert "- a rule" not in index_of(tree)
    assert index_of(tree).endswith("- money: Sums in euros.\n\n### house\n- be brief")
    assert index_of(EMPTY) == ""
    assert problem_of(tree) == problem_of(EMPTY) == ""


def test_a_skill_has_its_other_files_beside_it() -> None:
    """By their paths in the folder of skills."""
    tree = SkillTree({"money/SKILL.md": skill("money"), "money/references/codes.md": "EUR"}, main="")
    [entry] = entries_of(tree)
    assert (entry.id, entry.body, entry.others) == ("money", "- a rule", ("money/references/codes.md",))
    assert skills_in(("money/references/codes.md", "dates/SKILL.md", "money/SKILL.md")) == ("dates", "money")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"money/SKILL.md": "- a rule\n"}, "money/SKILL.md has no frontmatter"),
        ({"money/SKILL.md": "---\nname: [\n---\n"}, "its frontmatter is not YAML"),
        ({"money/SKILL.md": skill("dates")}, "says that its name is 'dates', and its folder is called money"),
        ({"money/SKILL.md": skill("money", '""')}, "has no description"),
        ({"money/SKILL.md": skill("money", "x" * 1025)}, "its description has 1,025 characters, and 1,024"),
        ({"Money/SKILL.md": skill("Money")}, "'Money' is not a name for a skill"),
        ({"../out/SKILL.md": skill("out")}, "'../out/SKILL.md' is no path below"),
        ({"money/../../x": "x"}, "is no path below"),
        ({"SKILL.md": skill("money")}, "SKILL.md belongs to no skill"),
        ({"money/notes.md": "x"}, "money has no SKILL.md"),
        ({"money/SKILL.md": skill("money"), "money/data": "\x00"}, "money/data is not text"),
        ({"money/SKILL.md": skill("money", body="x" * 100_001)}, "characters, and 100,000 are allowed"),
        ({f"s{n}/SKILL.md": skill(f"s{n}") for n in range(300)}, "there are 300 skills"),
        ({f"money/{n}.md": "x" for n in range(64)} | {"money/SKILL.md": skill("money")}, "money has 65 files"),
    ],
)
def test_what_agents_could_not_load_is_said_in_a_sentence(files: dict[str, str], said: str) -> None:
    """Before anything is paid for."""
    assert said in problem_of(SkillTree(files, main=""))
