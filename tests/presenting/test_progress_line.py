"""The line of progress says what is under way and the time; what does not fit beside these is left out."""

from __future__ import annotations

from skillopt_es.presenting.progress_line import progress_line, shown_clock
from skillopt_es.runs.now import Now

NOW = Now(where="step 2/9", stage="trying training items", done=3, total=40, tokens=1200, elapsed=75.0, left=3700.0)


def test_the_line_fits() -> None:
    """The tokens go first, then where the run is; a stage that is too long is cut."""
    state = None
    whole = "step 2/9 · trying training items 3/40 · 1,200 tokens · 1:15 elapsed, about 1:01:40 left"
    assert progress_line(NOW, state, 200) == whole
    assert progress_line(NOW, state, len(whole) - 1) == whole.replace(" · 1,200 tokens", "")
    assert progress_line(NOW, state, 65) == "trying training items 3/40 · 1:15 elapsed, about 1:01:40 left"
    cut = progress_line(NOW, state, 55)
    assert len(cut) == 55
    assert cut.startswith("trying t")
    assert "… 3/40 · 1:15" in cut


def test_a_clock_shows_hours_where_there_are_some() -> None:
    """As people write them."""
    assert [shown_clock(seconds) for seconds in (0.4, 75, 3700)] == ["0:00", "1:15", "1:01:40"]
