"""docs/python.md: its code runs from top to bottom, in one folder, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "python.md"


def test_the_page_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And prints what it says: scores that rise, a run that is complete."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    said = capsys.readouterr().out
    assert "completed" in said
    assert "test 1.0 measured" in said or "test 0." in said
    assert "completed 1.0" in said  # the own agent learned from the own teacher
    assert [row["step"] for row in names["rows"]]  # type: ignore[attr-defined]
