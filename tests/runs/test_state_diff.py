"""What differs between two moments of a run."""

from __future__ import annotations

from pathlib import Path

from skillopt_es.events.values import SkillTree
from skillopt_es.runs.state_diff import skill_diff, state_diff
from skillopt_es.sessions.session import read_state


def test_a_state_does_not_differ_from_itself(demo_run: Path) -> None:
    """No line, no key, no item."""
    state = read_state(demo_run)
    same = state_diff(state, state, {})
    assert (same.state, same.config) == ((), ())
    assert all(each.before == each.after and not each.lines for each in same.skills)
    assert all(not each.won and not each.lost for each in same.scores)


def test_skills_differ_file_by_file() -> None:
    """A file that is only on one side stands against nothing."""
    lines = skill_diff(SkillTree(files={"SKILL.md": "a\n", "x": "1\n"}), SkillTree(files={"SKILL.md": "b\n"}))
    assert lines == (
        "--- SKILL.md", "+++ SKILL.md", "@@ -1 +1 @@", "-a", "+b", "--- x", "+++ /dev/null", "@@ -1 +0,0 @@", "-1"
    )  # fmt: skip
