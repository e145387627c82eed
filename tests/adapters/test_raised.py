"""What is said of an error in the user's own code: the line of theirs where it failed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skillopt_es.adapters.background import finished, in_background
from skillopt_es.adapters.loading import CannotLoadError, load_function
from skillopt_es.adapters.raised import raised_words

CODE = """
import json
import asyncio

def plain(found):
    return deep(found)

def deep(found):
    return found["missing"] or "sk-of-my-own"

def in_library(found):
    return json.loads("{")

async def later(found):
    await asyncio.sleep(0)
    return deep(found)

def silent(found):
    assert not found, ""

def long(found):
    raise ValueError("x" * 900)
"""


def raised_by(folder: Path, name: str) -> BaseException:
    """What a function in the user's file raises, called as agents and graders are."""
    (folder / "mine.py").write_text(CODE)
    function: Callable[[dict[str, str]], object] = load_function("mine.py", name, folder)

    def called() -> object:
        result = function({"a": "b"})
        return finished(result, seconds=60) if asyncio.iscoroutine(result) else result

    with pytest.raises(BaseException) as caught:  # noqa: PT011 -- any of them
        asyncio.run(in_background(lambda _: called(), seconds=60))
    return caught.value


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plain", "KeyError: 'missing' (mine.py:9, in deep)"),
        ("later", "KeyError: 'missing' (mine.py:9, in deep)"),
        ("silent", "AssertionError (mine.py:19, in silent)"),
    ],
)
def test_the_last_line_of_the_users_own_code_is_named(tmp_path: Path, name: str, said: str) -> None:
    """Also where the function is async; nothing is quoted of it, because a key may stand there."""
    assert raised_words(raised_by(tmp_path, name), tmp_path) == said


def test_an_error_inside_a_library_is_shown_where_it_was_called(tmp_path: Path) -> None:
    """That is the line which can be changed."""
    said = raised_words(raised_by(tmp_path, "in_library"), tmp_path)
    assert said.startswith("JSONDecodeError: ")
    assert said.endswith("(mine.py:12, in in_library)")


def test_a_long_message_does_not_hide_the_place(tmp_path: Path) -> None:
    """It is cut, and the place stands behind it."""
    said = raised_words(raised_by(tmp_path, "long"), tmp_path)
    assert said.endswith("… (mine.py:22, in long)")
    assert len(said) < 400


def test_an_error_of_no_code_has_no_place() -> None:
    """Nor has one of ours alone."""
    assert raised_words(ValueError("none"), Path("/")) == "ValueError: none"
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    assert "test_raised.py" in raised_words(caught.value, Path("/"))


def test_a_module_that_cannot_be_imported_says_where(tmp_path: Path) -> None:
    """Before a run begins."""
    (tmp_path / "mine.py").write_text("import json\nLIMIT = int('ten')\n")
    with pytest.raises(CannotLoadError) as caught:
        load_function("mine.py", "answer", tmp_path)
    assert caught.value.said.endswith("(mine.py:2)")
