"""A user's function, found by its file or module and its name; what is wrong says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_es.adapters.loading import CannotLoadError, load_function


def test_a_function_is_found_by_its_file_and_by_its_module(tmp_path: Path) -> None:
    """A neighbour may be imported by it; what is installed is found by its dotted name."""
    (tmp_path / "neighbour.py").write_text("WORD = 'tea'\n")
    (tmp_path / "shop.py").write_text("from neighbour import WORD\ndef sell(): return WORD\n")
    assert load_function("shop.py", "sell", tmp_path)() == "tea"
    assert load_function("shop", "sell", tmp_path)() == "tea"
    assert load_function("json", "dumps", tmp_path)([]) == "[]"


@pytest.mark.parametrize(
    ("module", "code", "said", "hint"),
    [
        ("shop.py", "def sell(): ...", "has no function 'sel'", "did you mean 'sell'?"),
        ("shop.py", "import nothing_like_it", "needs a module that is not installed: nothing_like_it", ""),
        ("shop.py", "raise SystemExit(3)", "cannot be imported: SystemExit: 3", ""),
        ("other.py", "", "cannot be imported", "it is looked for at"),
        ("nothing_like_it", "", "there is no module", "or install its package"),
    ],
)
def test_what_cannot_be_loaded_says_why(tmp_path: Path, module: str, code: str, said: str, hint: str) -> None:
    """Whatever the module does while it is imported."""
    (tmp_path / "shop.py").write_text(code)
    with pytest.raises(CannotLoadError) as caught:
        load_function(module, "sel", tmp_path)
    assert said in caught.value.said
    assert hint in caught.value.hint
