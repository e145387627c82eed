"""What is hidden is known by what it is: moved, it is missed; removed or written anew, it is not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from skillopt_es.adapters.processes import NotStartedError
from skillopt_es.adapters.sandboxes.covers import Covers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hides files")


def mark(path: Path) -> str:
    facts = path.stat()
    return f"{facts.st_dev}.{facts.st_ino}:{path}"


def test_what_is_there_is_marked_and_what_comes_later_too(tmp_path: Path) -> None:
    """What is not there needs no cover."""
    one, later, more = (tmp_path / name for name in ("one", "later", "more"))
    one.write_text("x")
    more.mkdir()
    covers = Covers([str(one), str(later)])
    assert covers.marked("hidden") == [mark(one)]
    later.write_text("x")
    assert covers.marked("hidden", [str(more)]) == covers.marked("hidden") == [mark(one), mark(later), mark(more)]
    assert covers.marked("private") == []


def test_what_an_editor_writes_anew_is_covered_as_it_is_now(tmp_path: Path) -> None:
    """The old file is gone, so that nothing of it can be read."""
    env = tmp_path / ".env"
    env.write_text("x")
    covers = Covers([str(env)])
    (tmp_path / "new").write_text("y")
    (tmp_path / "new").rename(env)
    assert covers.marked("hidden") == [mark(env)]
    env.unlink()
    assert covers.marked("hidden") == []


@pytest.mark.parametrize("way", ["renamed", "replaced", "linked", "above", "link"])
def test_what_has_another_name_now_is_missed(tmp_path: Path, way: str) -> None:
    """Itself, with something else in its place, by a second name, with its folder, and behind a link."""
    folder = tmp_path / "a"
    folder.mkdir()
    env = folder / ".env"
    (folder / "real").write_text("x")
    if way == "link":
        env.symlink_to("real")
    else:
        (folder / "real").rename(env)
    covers = Covers([str(env)])
    assert len(covers.marked("hidden")) == 1
    if way == "above":
        folder.rename(tmp_path / "b")
        folder.mkdir()
    elif way == "linked":
        os.link(env, tmp_path / "other")
        env.unlink()
    else:
        env.rename(tmp_path / "other")
    if way in ("replaced", "above"):
        env.write_text("decoy")
    with pytest.raises(NotStartedError, match=r"\.env has to be hidden, but it was moved during the run and is now /"):
        covers.marked("hidden")
