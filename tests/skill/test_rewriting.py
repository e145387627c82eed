"""Whatever a rewrite does to protected parts, they come out as they were, and what was done is named."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.protected import protected_parts

from skillopt_es.events.values import Repair
from skillopt_es.skill.regions import APPENDIX_END, APPENDIX_START, SLOW_END, SLOW_START
from skillopt_es.skill.rewriting import frontmatter, own_words, repaired

FRONT = "---\nname: x\n---\n"
SLOW = f"{SLOW_START}\n- check twice\n{SLOW_END}"
NOTES = f"{APPENDIX_START}\n- note\n{APPENDIX_END}"
SKILL = f"{FRONT}\n# Skill\n\n- rule\n\n{NOTES}\n\n{SLOW}\n"

PIECES = [SLOW_START, SLOW_END, APPENDIX_START, APPENDIX_END, "\n", "\n\n", "- a\n", "b c", "---\n", "name: x\n", " "]
SCRAPS = st.lists(st.sampled_from([*PIECES, "<!-- SLOW", "_UPDATE_START -->", SLOW, NOTES]), max_size=12).map("".join)


@given(SCRAPS, SCRAPS)
def test_protected_parts_come_out_as_they_were(before: str, written: str) -> None:
    """None is lost, none altered, none made up; and a text that was repaired needs no repair."""
    new = repaired(before, written)
    assert sorted(protected_parts(new.text)) == sorted(protected_parts(before))
    assert repaired(before, new.text).repairs == ()
    assert new.text.endswith("\n")


@given(st.text(alphabet="ab- #\n", max_size=40))
def test_other_text_is_taken_as_it_was_written(written: str) -> None:
    """Around it, only blank lines are cut."""
    new = repaired(SKILL, f"{FRONT}\n{written}\n\n{NOTES}\n\n{SLOW}\n")
    assert new.repairs == ()
    assert own_words(new.text).strip() == written.strip()


@pytest.mark.parametrize(
    ("written", "repairs"),
    [
        (SKILL, ()),
        (SKILL.replace("- rule", "- better rule"), ()),
        ("# Skill\n\n- new\n", (("frontmatter", "put_back"), ("appendix", "put_back"), ("slow_update", "put_back"))),
        (SKILL.replace("name: x", "name: y"), (("frontmatter", "restored"),)),
        (SKILL.replace("check twice", "never check"), (("slow_update", "restored"),)),
        (SKILL.replace(NOTES, ""), (("appendix", "put_back"),)),
        (SKILL.replace(NOTES, f"{NOTES}\n{NOTES}"), (("appendix", "removed"),)),
        (f"{SKILL}\n{SLOW_START}\nand more", (("slow_update", "removed"),)),
        (SKILL.replace(SLOW_END, ""), (("slow_update", "removed"), ("slow_update", "put_back"))),
        (SKILL.replace("- rule", f"- rule {APPENDIX_END}"), (("appendix", "removed"),)),
    ],
    ids=[
        "same",
        "other rule",
        "all dropped",
        "frontmatter altered",
        "guidance altered",
        "appendix dropped",
        "appendix twice",
        "second block, open",
        "end marker dropped",
        "stray marker",
    ],
)
def test_each_repair_is_named(written: str, repairs: tuple[tuple[str, str], ...]) -> None:
    """What was dropped is put back, what was altered restored, what was made up removed."""
    new = repaired(SKILL, written)
    assert new.repairs == tuple(Repair(*each) for each in repairs)  # type: ignore[arg-type]
    assert sorted(protected_parts(new.text)) == sorted(protected_parts(SKILL))


@pytest.mark.parametrize(
    ("before", "written", "text", "repairs"),
    [
        ("# A\n", "\n \n# B\n", "# B\n", ()),
        (f"{FRONT}\n# A\n", "\n\n# B\n", f"{FRONT}\n# B\n", (("frontmatter", "put_back"),)),
        (
            f"{FRONT}\n# A\n",
            f"{NOTES}\n\n\n# B\n",
            f"{FRONT}\n# B\n",
            (("frontmatter", "put_back"), ("appendix", "removed")),
        ),
        (f"{FRONT}\n# A\n", f"{FRONT}\n\n# B\n", f"{FRONT}\n\n# B\n", ()),
        (
            "# A\n",
            f"{NOTES}\n{FRONT}\n\n# B\n",
            "# B\n",
            (("frontmatter", "removed"), ("appendix", "removed")),
        ),
        ("# A\n", f"{FRONT}\n{FRONT}\n# B\n", "# B\n", (("frontmatter", "removed"),)),
        (
            f"# A\n\n{SLOW_START}\nnever closed",
            "# B\n",
            f"# B\n\n{SLOW_START}\nnever closed\n",
            (("slow_update", "put_back"),),
        ),
        (
            f"# A\n\n{SLOW_START}\nnever closed",
            f"# B\n{SLOW_START}\nnever closed\n",
            f"# B\n\n{SLOW_START}\nnever closed\n",
            (),
        ),
    ],
    ids=[
        "blank lines first",
        "frontmatter dropped",
        "frontmatter dropped, notes made up",
        "frontmatter kept",
        "frontmatter behind made-up notes",
        "two frontmatters made up",
        "open block dropped",
        "open block kept",
    ],
)
def test_what_stands_around_the_repairs_is_what_was_written(
    before: str, written: str, text: str, repairs: tuple[tuple[str, str], ...]
) -> None:
    """Blank lines at the top go, and one stands between frontmatter that is put back and what follows."""
    new = repaired(before, written)
    assert (new.text, new.repairs) == (text, tuple(Repair(*each) for each in repairs))  # type: ignore[arg-type]


def test_made_up_parts_are_removed_from_a_skill_that_has_none() -> None:
    """A rewrite cannot install guidance, notes or a name."""
    new = repaired("# Skill\n", SKILL)
    assert new.text.split() == ["#", "Skill", "-", "rule"]
    assert {each.action for each in new.repairs} == {"removed"}
    assert {each.part for each in new.repairs} == {"frontmatter", "appendix", "slow_update"}


def test_a_rule_at_the_top_is_no_frontmatter() -> None:
    """Dashes around something that is no YAML are text like any other."""
    assert frontmatter("---\n\nHello.\n\n---\n") == ""
    assert frontmatter("---\n# about\nname: x\n---") == "---\n# about\nname: x\n---"
    assert frontmatter(f"---\nname: {SLOW_START}\n---\n") == ""
    assert frontmatter("---\r\nname: x\r\n---\r\n# A\r\n") == "---\r\nname: x\r\n---\r\n"


def test_markers_within_markers_take_no_long_time() -> None:
    """Removing one forms the next, twenty thousand times."""
    began = time.monotonic()
    nested = repaired("# A\n", "<!-- SLOW_" * 20_000 + "UPDATE_START -->" * 20_000 + "- b")
    assert nested.text == "- b\n"
    assert time.monotonic() - began < 5
