"""`adopt`: the files that a run was trained from become what it trained, and back; nothing of anybody's is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_es.deploy.adopt import Adoption, adopt, take_back
from skillopt_es.errors import OutputRefused
from skillopt_es.events.values import digest_of

FIRST = {"SKILL.md": "old\n"}
BEST = {"SKILL.md": "new\n", "references/a.md": "more\n"}


def adoption(files: dict[str, str]) -> Adoption:
    """Of these files."""
    return Adoption(
        run="r", skill="s", before={}, after={path: digest_of(text.encode()) for path, text in files.items()}
    )


def put(folder: Path, files: dict[str, str] = BEST, first: dict[str, str] = FIRST) -> bool:
    """Adopts the files."""
    return adopt(folder, "SKILL.md", adoption(files), files, first=first)


def test_in_and_out_again(tmp_path: Path) -> None:
    """A file that was not there before goes; doing it twice does nothing."""
    (tmp_path / "SKILL.md").write_bytes(b"old\n")
    assert put(tmp_path)
    assert (tmp_path / "references/a.md").read_text() == "more\n"
    assert not put(tmp_path)
    assert take_back(tmp_path, "SKILL.md") == ["SKILL.md", "references/a.md"]
    assert (tmp_path / "SKILL.md").read_bytes() == b"old\n"
    assert not (tmp_path / "references/a.md").exists()
    with pytest.raises(OutputRefused, match="nothing was adopted"):
        take_back(tmp_path, "SKILL.md")


def test_line_ends_of_another_system_are_no_change(tmp_path: Path) -> None:
    """They come back byte for byte."""
    (tmp_path / "SKILL.md").write_bytes(b"old\r\n")
    put(tmp_path)
    take_back(tmp_path, "SKILL.md")
    assert (tmp_path / "SKILL.md").read_bytes() == b"old\r\n"


def test_what_somebody_has_changed_since_is_left_alone(tmp_path: Path) -> None:
    """On the way in and on the way out."""
    (tmp_path / "SKILL.md").write_text("mine\n")
    with pytest.raises(OutputRefused, match="somebody has changed it since"):
        put(tmp_path)
    (tmp_path / "SKILL.md").write_text("old\n")
    put(tmp_path)
    (tmp_path / "SKILL.md").write_text("mine\n")
    with pytest.raises(OutputRefused, match="was changed since it was adopted"):
        take_back(tmp_path, "SKILL.md")


def test_a_second_adoption_goes_back_to_what_was_there_first(tmp_path: Path) -> None:
    """Night after night: the person's own text is what comes back."""
    (tmp_path / "SKILL.md").write_text("old\n")
    put(tmp_path)
    put(tmp_path, {"SKILL.md": "newer\n"}, first=BEST)
    take_back(tmp_path, "SKILL.md")
    assert (tmp_path / "SKILL.md").read_text() == "old\n"
