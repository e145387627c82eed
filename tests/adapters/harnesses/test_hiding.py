"""Which paths are hidden from an agent: all that hold answers, and nothing that it needs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from skillopt_es.adapters.harnesses.hiding import CannotHideError, covered, needed
from skillopt_es.ports import Answers


def places(*paths: Path, around: tuple[Path, ...] = ()) -> Answers:
    return Answers(places=paths, around=around)


def test_a_folder_without_anything_that_is_needed_is_hidden_whole(tmp_path: Path) -> None:
    """What lies in it needs no cover of its own; what is not there yet has one."""
    data, later = tmp_path / "p" / "data.jsonl", tmp_path / "p" / "runs" / "new"
    data.parent.mkdir()
    data.touch()
    assert covered(places(data, later, around=(tmp_path / "p",)), [tmp_path / "bin"]) == [str(tmp_path / "p")]
    assert covered(places(data, later), [tmp_path / "bin"]) == [str(data), str(later)]


def test_of_a_folder_with_what_is_needed_the_other_entries_are_hidden(tmp_path: Path) -> None:
    """The entry that has it stays whole, as programs have neighbours; a link is hidden with what it leads to."""
    for name in ("tools/bin", "tools/lib", "data", "runs"):
        (tmp_path / "p" / name).mkdir(parents=True)
    (tmp_path / "p" / "copy.jsonl").touch()
    found = covered(places(around=(tmp_path / "p",)), [tmp_path / "p" / "tools" / "bin" / "agent"])
    assert found == [str(tmp_path / "p" / name) for name in ("copy.jsonl", "data", "runs")]


def test_what_is_needed_itself_is_refused(tmp_path: Path) -> None:
    """A home, a folder of the PATH: nobody knows what in it is needed, so what lies beside the answers would show."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "data.jsonl").touch()
    (home / "grader.py").touch()
    with pytest.raises(CannotHideError, match="holds answers, and the agent needs it"):
        covered(places(home), [home])
    with pytest.raises(CannotHideError, match="home holds the config, data or runs, and the agent needs it as a whole"):
        covered(places(home / "data.jsonl", around=(home,)), [home])


def test_a_project_that_is_the_environment_of_this_python_is_hidden_but_for_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m venv .` puts Python's folders beside graders, keys and notes with answers."""
    for name in ("bin", "lib", "include", "runs"):
        (tmp_path / name).mkdir()
    for name in ("grader.py", "notes.md", "pyvenv.cfg", "tasks.jsonl", ".env"):
        (tmp_path / name).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    keep = needed("/usr/bin/agent", {"PATH": f"{tmp_path / 'bin'}:/usr/bin"})
    found = covered(places(tmp_path / "tasks.jsonl", around=(tmp_path, tmp_path / "runs")), keep)
    assert found == [str(tmp_path / name) for name in (".env", "grader.py", "notes.md", "runs", "tasks.jsonl")]


def test_a_link_leads_to_what_is_hidden(tmp_path: Path) -> None:
    """The path by which the config knows it does not matter."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert covered(places(tmp_path / "link"), []) == [str(tmp_path / "real")]


def test_what_an_agent_needs_is_named_by_its_program_and_its_variables(tmp_path: Path) -> None:
    """The program where it is found and where it lies, each folder of the PATH, a home; and the system."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "agent.js").touch()
    (tmp_path / "bin" / "agent").symlink_to("../lib/agent.js")
    found = needed(str(tmp_path / "bin" / "agent"), {"PATH": f"/usr/bin:{tmp_path / 'other'}", "LANG": "C", "TZ": "/"})
    wanted = {tmp_path / "bin" / "agent", tmp_path / "lib" / "agent.js", tmp_path / "other", Path("/etc")}
    assert wanted | {Path(tempfile.gettempdir()).resolve()} <= set(found)
    assert Path("/") not in found
