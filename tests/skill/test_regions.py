"""Protected regions: where they are, what stands in them, and how a text gets one."""

from __future__ import annotations

import pytest

from skillopt_es.skill.regions import (
    APPENDIX_END,
    APPENDIX_START,
    SLOW_END,
    SLOW_START,
    Span,
    protected_spans,
    slow_guidance,
    with_slow_guidance,
    with_slow_placeholder,
    without_empty_block,
    without_protected_blocks,
)

BLOCK = f"{SLOW_START}\nlook twice\n{SLOW_END}"
NOTES = f"{APPENDIX_START}\n- note\n{APPENDIX_END}"


@pytest.mark.parametrize(
    ("start", "end", "meets"),
    [(0, 2, False), (0, 3, True), (2, 4, True), (3, 3, True), (3, 9, True), (4, 6, False), (0, 9, True)],
)
def test_ranges_that_touch_share_nothing(start: int, end: int, meets: bool) -> None:
    """Half-open ranges; one without a character meets what it lies inside of."""
    assert Span(2, 4).meets(start, end) is meets


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"a{BLOCK}b", "ab"),
        (f"{NOTES}a{BLOCK}", "a"),
        (f"a{NOTES}{BLOCK}b{BLOCK}c", "abc"),
        (f"a{SLOW_START}b", "a"),
        (f"a{SLOW_END}b", f"a{SLOW_END}b"),
    ],
    ids=["one", "at both ends", "several", "never closed", "never begun"],
)
def test_what_edits_may_change_is_what_stands_outside_every_block(text: str, rest: str) -> None:
    """Wherever the blocks stand, in whatever order."""
    assert without_protected_blocks(text) == rest
    spans = protected_spans(text)
    assert list(spans) == sorted(spans, key=lambda span: span.start)


@pytest.mark.parametrize(
    ("text", "guidance"),
    [
        (f"{BLOCK}\n# A\n", "look twice"),
        (f"# A\n{BLOCK}", "look twice"),
        (f"# A\n{SLOW_START}\nnever closed", ""),
        (f"# A\n{SLOW_END}\n", ""),
        (f"{SLOW_END}\nno guidance\n{SLOW_START}", ""),
        ("# A\n", ""),
    ],
    ids=["first", "last", "never closed", "never begun", "in disorder", "no block"],
)
def test_guidance_is_what_stands_in_a_closed_block(text: str, guidance: str) -> None:
    """At either end of a text, too; half a block has none."""
    assert slow_guidance(text) == guidance


def test_a_text_gets_a_place_for_guidance_unless_it_has_one() -> None:
    """One marker alone is no place."""
    place = f"{SLOW_START}\n{SLOW_END}\n"
    assert with_slow_placeholder("# A\n\n\n") == f"# A\n\n{place}"
    assert with_slow_placeholder(f"# A\n{SLOW_END}\n") == f"# A\n{SLOW_END}\n\n{place}"
    assert with_slow_placeholder(f"# A\n{BLOCK}") == f"# A\n{BLOCK}"


def test_an_agent_does_not_read_an_empty_place() -> None:
    """It says nothing to it; guidance stays where it stands, markers and all."""
    placed = with_slow_placeholder("# Skill\n\nrule\n")
    assert without_empty_block(placed) == "# Skill\n\nrule\n"
    guided = with_slow_guidance(placed, "Take care.")
    assert without_empty_block(guided) == guided
