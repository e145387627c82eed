"""`adopt`: the files that a run was trained from become what it trained, and back; nothing of anybody's is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_es.deploy.adopt import Adoption, adopt, take_back
from skillopt_es.deploy.install import STORE
from skillopt_es.errors import OutputRefused
from skillopt_es.events.plain import is_executable
from skillopt_es.events.values import FileContent, digest_of

FIRST = {"SKILL.md": "old\n"}
BEST = {"SKILL.md": "new\n", "references/a.md": "more\n"}


def adoption(files: dict[str, str]) -> Adoption:
    """Of these files."""
    return Adoption(
        run="r", skill="s", before={}, after={path: digest_of(text.encode()) for path, text in files.items()}
    )


def put(folder: Path, files: dict[str, str] = BEST, first: dict[str, str] = FIRST) -> bool:
    """Adopts the files."""
    return adopt(folder, "SKILL.md", adoption(files), contents(files), first=contents(first))


def contents(files: dict[str, str], *executable: str) -> dict[str, FileContent]:
    """Texts as files."""
    return {path: FileContent(text.encode(), path in executable) for path, text in files.items()}


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


FOLDER = {"dates/SKILL.md": "days\n", "days/SKILL.md": "days, too\n", "days/references/a.md": "a\n"}
MERGED = {"dates/SKILL.md": "all days\n"}


def write(folder: Path, files: dict[str, str]) -> None:
    """Somebody's own files."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def seen(folder: Path) -> dict[str, str]:
    """What is there: files with their texts, folders by their paths."""
    return {
        path.relative_to(folder).as_posix(): path.read_text() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
        if STORE not in path.parts
    }


def test_what_the_skill_has_no_more_is_taken_away_and_comes_back(tmp_path: Path) -> None:
    """A merged skill beside what it was merged into is a folder that nobody has measured."""
    write(tmp_path, {**FOLDER, "README.md": "mine\n"})
    before = seen(tmp_path)
    assert put(tmp_path, MERGED, first=FOLDER)
    assert seen(tmp_path) == {"README.md": "mine\n", "dates": "", **MERGED}
    assert not put(tmp_path, MERGED, first=FOLDER)
    take_back(tmp_path, "SKILL.md")
    assert seen(tmp_path) == before
    assert not (tmp_path / STORE).exists()


def test_what_somebody_has_changed_is_not_taken_away_either(tmp_path: Path) -> None:
    """With force it is, and comes back as it was changed."""
    write(tmp_path, {**FOLDER, "days/SKILL.md": "mine\n"})
    with pytest.raises(OutputRefused, match=r"days/SKILL\.md is not what the run began with"):
        put(tmp_path, MERGED, first=FOLDER)
    adopt(tmp_path, "SKILL.md", adoption(MERGED), contents(MERGED), first=contents(FOLDER), force=True)
    take_back(tmp_path, "SKILL.md")
    assert (tmp_path / "days/SKILL.md").read_text() == "mine\n"


def test_night_after_night_what_was_never_there_does_not_come_back(tmp_path: Path) -> None:
    """Nor does what an earlier night took away stay away."""
    write(tmp_path, FOLDER)
    put(tmp_path, {**MERGED, "sums/SKILL.md": "sums\n"}, first=FOLDER)
    put(tmp_path, MERGED, first={**MERGED, "sums/SKILL.md": "sums\n"})
    put(tmp_path, {**MERGED, "more/SKILL.md": "more\n"}, first=MERGED)
    take_back(tmp_path, "SKILL.md")
    assert {path: text for path, text in seen(tmp_path).items() if text} == FOLDER


def test_an_adoption_that_died_half_way_is_finished(tmp_path: Path) -> None:
    """What is as it is to be counts as no change of anybody's."""
    write(tmp_path, FOLDER)
    write(tmp_path, MERGED)  # written, and then the process died
    assert put(tmp_path, MERGED, first=FOLDER)
    assert seen(tmp_path) == {"dates": "", **MERGED}


def test_a_script_may_be_run_after_an_adoption_and_after_it_is_taken_back(tmp_path: Path) -> None:
    """A file that differs in that alone is written; what is not text is written as it is."""
    script, picture = {"run.sh": "#!/bin/sh\n"}, {"logo.png": FileContent(b"\x89PNG\xff")}
    write(tmp_path, script)
    runs = {**contents(script, "run.sh"), **picture}
    after = Adoption(
        run="r", skill="s", before={}, after={path: digest_of(each.content) for path, each in runs.items()}
    )
    assert adopt(tmp_path, "SKILL.md", after, runs, first=contents(script))
    assert is_executable(tmp_path / "run.sh")
    assert (tmp_path / "logo.png").read_bytes() == b"\x89PNG\xff"
    assert not adopt(tmp_path, "SKILL.md", after, runs, first=contents(script))
    take_back(tmp_path, "SKILL.md")
    assert not is_executable(tmp_path / "run.sh")
    (tmp_path / "run.sh").chmod(0o755)
    plain = contents(script)
    assert adopt(tmp_path, "SKILL.md", adoption(script), plain, first=plain)
    take_back(tmp_path, "SKILL.md")
    assert is_executable(tmp_path / "run.sh")
