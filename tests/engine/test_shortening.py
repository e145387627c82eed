"""Long records are cut to their heads and tails, and short ones stay whole."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.engine.trajectories import fitted, shortened

MARK = re.compile(r"\n\[… \d+ characters cut …\]\n")


def test_one_long_record_does_not_hide_the_others() -> None:
    """It alone is cut, and its head and tail stay."""
    records = ["[task] " + "page " * 4000 + "end", "[agent] an answer", "[evaluation] wrong, expected 7"]
    text = fitted(records, 3000)
    assert text.startswith("[task] page")
    assert text.endswith("page end\n[agent] an answer\n[evaluation] wrong, expected 7")
    assert len(MARK.findall(text)) == 1


def test_many_records_are_cut_once() -> None:
    """A few signs of each would say nothing."""
    text = fitted([f"[agent] step {number} " + "x" * 100 for number in range(100)], 2000)
    assert text.startswith("[agent] step 0 ")
    assert len(MARK.findall(text)) == 1


@given(st.lists(st.text(alphabet="ab", max_size=3000), max_size=8), st.integers(200, 4000))
def test_what_is_shown_keeps_to_the_budget(records: list[str], most: int) -> None:
    """But for the marks; what fits is whole."""
    text = fitted(records, most)
    assert len(MARK.sub("", text)) <= most
    if len("\n".join(records)) <= most:
        assert text == "\n".join(records)


@given(st.text(max_size=300), st.integers(0, 200))
def test_a_cut_says_how_much_is_gone(text: str, most: int) -> None:
    """Nothing is said twice."""
    cut = MARK.search(shortened(text, most)) if len(text) > most else None
    if cut:
        assert f" {len(text) - most} " in cut[0]
        assert len(shortened(text, most)) == most + len(cut[0])
