"""The frontmatter of a skill: read, and written without touching other lines."""

from __future__ import annotations

import pytest

from skillopt_es.skill.frontmatter import fields_of, with_head


def test_a_key_is_written_and_the_others_stay() -> None:
    """A text without frontmatter gets one."""
    text = "---\nname: a # mine\ndescription: >\n  long\n  text\ntags: [x]\n---\nbody\n"
    assert with_head(text, description="short") == "---\ndescription: short\nname: a # mine\ntags: [x]\n---\nbody\n"
    assert with_head("body\n", name="a") == "---\nname: a\n---\n\nbody\n"


def test_what_is_no_mapping_is_said_with_its_line() -> None:
    """As a sentence goes on."""
    assert fields_of("---\nname: a\n---\n") == {"name": "a"}
    assert fields_of("") == {}
    with pytest.raises(ValueError, match=r"frontmatter is not YAML \(line 3\)"):
        fields_of("---\nname: [\n---\n")
