"""The small functions that make markup: nothing that a run says can become markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.report.html import Html, el, fold, join, prose, text


class _Seen(HTMLParser):
    """What a browser would find: tags with their attributes, and the text."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.said = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a tag."""
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        """Notes a text."""
        self.said += data


@given(st.text(), st.text())
def test_any_text_stays_a_text(child: str, attribute: str) -> None:
    """As a child and as an attribute, whatever is in it."""
    seen = _Seen(el("p", child, title=attribute))
    [(tag, attributes)] = seen.tags
    assert tag == "p"
    assert [name for name, _ in attributes] == ["title"]
    named = {ord(mark) for mark in child if text(mark).startswith("⟨")}
    assert seen.said == child.translate({mark: f"⟨U+{mark:04X}⟩" for mark in named})


def test_what_was_made_here_is_not_escaped_again() -> None:
    """And what was not, is."""
    assert el("p", el("b", "a < b"), " & ", None, "<i>") == "<p><b>a &lt; b</b> &amp; &lt;i&gt;</p>"
    assert isinstance(join(["<"]), Html)


@pytest.mark.parametrize(
    "mark", ["\x00", "\x1b", "\x9b", "\u202e", "\u2066", "\u200b", "\ufeff", "\ud800", "\U000e0041"]
)
def test_what_cannot_be_seen_is_named(mark: str) -> None:
    """A model reads it, so a person has to see it; and the page stays one that can be written."""
    assert text(f"a{mark}b") == f"a⟨U+{ord(mark):04X}⟩b"
    text(f"a{mark}b").encode()


def test_writing_in_other_scripts_stays_as_it_is() -> None:
    """Joiners of Persian and of emoji, marks of direction, line breaks and tabs mean something."""
    for said in ("می\u200cخواهم", "👩\u200d🔬", "a\u200fb", "one\n\ttwo", "naïve – “é”"):
        assert text(said) == said


def test_attributes_are_named_as_in_a_page() -> None:
    """Dashes for underscores, no underscore at the end, nothing for what is not there."""
    assert el("a", class_="x", aria_label="y", href=None, open=False, hidden=True, r=1.0) == (
        '<a class="x" aria-label="y" hidden r="1"></a>'
    )
    assert el("meta", name="viewport") == '<meta name="viewport">'
    assert fold("more", "text", open_=True) == "<details open><summary>more</summary>text</details>"
    with pytest.raises(ValueError, match="names no element"):
        el("a onclick=x")


def test_backticks_are_code_where_they_come_in_pairs() -> None:
    """A single one is a backtick."""
    assert prose("run `a <b>` now") == "run <code>a &lt;b&gt;</code> now"
    assert prose("one ` only") == "one ` only"
