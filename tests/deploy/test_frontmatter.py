"""The frontmatter of exported skills: the rules of the Agent Skills format, what is kept, what is added."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.deploy.frontmatter import completed, described, own_name, problems_of
from skillopt_es.errors import OutputRefused
from skillopt_es.skill.frontmatter import is_name
from skillopt_es.skill.rewriting import frontmatter

TEXT = "# Front desk\n\nAnswers questions. Use it at the desk.\n\n- One rule.\n"


@pytest.mark.parametrize("name", ["a", "front-desk", "7-of-9", "x" * 64])
def test_names_that_the_format_allows(name: str) -> None:
    """Letters, digits, single hyphens."""
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a--b", "a_b", "a b", "ä", "x" * 65, "a/b", "..", "a\n"])
def test_names_that_it_does_not(name: str) -> None:
    """They are refused with the rule, and with what to do."""
    assert not is_name(name)
    with pytest.raises(OutputRefused, match="is not a name for a skill: up to 64 lower-case letters") as refused:
        completed(TEXT, name, None)
    assert "--name" in refused.value.hint


def test_a_skill_without_frontmatter_gets_one() -> None:
    """Its description is its title and first paragraph, nothing made up."""
    head = completed(TEXT, "front-desk", None)
    assert yaml.safe_load(head.text.strip("-\n")) == {
        "name": "front-desk",
        "description": "Front desk: Answers questions. Use it at the desk.",
    }
    assert (head.written, head.measured, head.described_by) == ("added", "", "text")
    assert frontmatter(head.text + TEXT) == head.text


OWN = "---\n# who made it\nname: front-desk\nlicense: MIT\nmetadata:\n  version: '1'\n---\n"


def test_what_a_skill_has_is_kept_word_for_word() -> None:
    """Comments and order too; only the missing key is written."""
    head = completed(OWN + TEXT, "front-desk", "At the desk.")
    assert head.text == OWN.replace("---\n# who", "---\ndescription: At the desk.\n# who")
    assert (head.written, head.measured, head.described_by) == ("completed", OWN, "option")


def test_a_complete_frontmatter_stays_as_it_is() -> None:
    """Byte for byte."""
    whole = OWN.replace("license", "description: At the desk.\nlicense")
    head = completed(whole + TEXT, own_name(whole + TEXT), None)
    assert (head.text, head.written, head.described_by) == (whole, "kept", "skill")
    assert problems_of(whole + TEXT, "front-desk") == ""


def test_a_name_and_a_description_that_are_given_replace_those_of_the_skill() -> None:
    """With all the lines that they take, and no others."""
    own = "---\nname: old\ndescription: >\n  One line,\n\n  another.\nlicense: MIT\n---\n"
    head = completed(own + TEXT, "new", "Two\n words")
    assert yaml.safe_load(head.text.strip("-\n")) == {"name": "new", "description": "Two words", "license": "MIT"}
    assert "another" not in head.text


def test_what_other_clients_know_is_kept_and_told() -> None:
    """Keys beyond the format are nobody's loss."""
    head = completed("---\nname: a\ndescription: b\nmodel: opus\n---\n" + TEXT, "a", None)
    assert head.notes == ("the Agent Skills format does not know model; kept as it is",)
    assert "model: opus" in head.text


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("name: a\ndescription: 7", "description is not a text"),
        (f"name: a\ndescription: {'x' * 1025}", "description has 1,025 characters, and 1,024 are allowed"),
        (f"name: a\ndescription: b\ncompatibility: {'x' * 501}", "compatibility has 501 characters"),
        ("name: a\ndescription: b\nlicense: [MIT]", "license is not a text"),
        ("name: a\ndescription: b\nmetadata: {x: [1]}", "metadata is not a map"),
        ("name: a\ndescription: b\nmetadata: text", "metadata is not a map"),
        ("name: 'a", r"is not YAML \(line \d\)"),
    ],
)
def test_what_agents_could_not_load_is_refused(own: str, said: str) -> None:
    """In a sentence."""
    with pytest.raises(OutputRefused, match=said):
        completed(f"---\n{own}\n---\n{TEXT}", "a", None)


@pytest.mark.parametrize("text", ["", "# Title\n", "- a\n- b\n", "# T\n\n1. one\n2. two\n", "```\ncode\n```\n"])
def test_a_description_is_asked_for_where_the_text_has_none(text: str) -> None:
    """Nothing is invented."""
    with pytest.raises(OutputRefused, match="no first paragraph to make one of") as refused:
        described(text)
    assert "--description" in refused.value.hint


def test_a_long_first_paragraph_is_cut_between_sentences() -> None:
    """Or between words, when its first sentence is too long."""
    assert described("A rule. " * 200) == ("A rule. " * 128).strip()
    words = described("word " * 400)
    assert len(words) <= 1024
    assert words.endswith("word…")


@given(st.text(max_size=3000).map(lambda text: text.encode("utf-8", "replace").decode().replace("\r", "")))
def test_any_text_gets_a_frontmatter_that_loads_or_is_refused(text: str) -> None:
    """And what follows it is the text that was measured."""
    try:
        head = completed(text, "any", "What it does.")
    except OutputRefused:
        assert frontmatter(text)
        return
    exported = head.text + text[len(head.measured) :]
    assert problems_of(exported, "any") == ""
    assert re.match(r"---\n", exported)
    assert head.measured + exported[len(head.text) :] == text
