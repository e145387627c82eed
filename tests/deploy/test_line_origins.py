"""Which event wrote which line, in PROVENANCE.json and by the line numbers of an exported file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.in_process import Cli
from support.scripted import ScriptedWorld, config

from skillopt_es.sessions.session import start


@pytest.fixture
def folder(cli: Cli, demo_run: Path, tmp_path: Path) -> Path:
    """The demo's best skill, exported; it had no frontmatter, so that every line of it was moved."""
    out = tmp_path / "front-desk"
    done = cli("export", demo_run, f"{out}/")
    assert done.code == 0, done.err
    return out


def document(folder: Path) -> Any:
    """What the folder says of where it comes from."""
    return json.loads((folder / "PROVENANCE.json").read_text(encoding="utf-8"))


def changed(folder: Path, change: Callable[[Any], object]) -> None:
    """Changes what a folder says."""
    said = document(folder)
    change(said)
    (folder / "PROVENANCE.json").write_text(json.dumps(said), encoding="utf-8")


def test_every_line_has_the_event_that_wrote_it(cli: Cli, folder: Path, demo_run: Path) -> None:
    """The same as `blame` says; `moves_lines` leads from there to the file."""
    said = document(folder)
    runs, moved = said["facts"]["lines"]["SKILL.md"], said["folder"]["frontmatter"]["moves_lines"]
    found = {number: run for run in runs for number in range(run["first"], run["last"] + 1)}
    lines = cli("blame", demo_run, "--json").json["lines"]
    assert [*found] == [line["line"] for line in lines]
    text = (folder / "SKILL.md").read_text(encoding="utf-8").split("\n")
    assert moved == 4
    for line in lines:
        run = found[line["line"]]
        assert (run["written_by"]["seq"], run["kind"], run["step"]) == (line["event"], line["kind"], line["step"])
        assert text[line["line"] + moved - 1] == line["text"]


def test_blame_counts_as_an_exported_file_does(cli: Cli, folder: Path, demo_run: Path) -> None:
    """Line 11 there is line 11 here; what the export wrote itself has no event."""
    text = (folder / "SKILL.md").read_text(encoding="utf-8").split("\n")
    lines = cli("blame", demo_run, "--export", folder, "--json").json["lines"]
    assert lines[0]["line"] == 5
    assert all(text[line["line"] - 1] == line["text"] for line in lines)
    last = lines[-1]
    page = cli("blame", demo_run, "--export", folder, "--line", last["line"])
    assert page.lines[0].endswith(f"line {last['line']}: {last['text']}")
    assert (
        "line 2 belongs to the frontmatter that the export wrote"
        in cli("blame", demo_run, "--export", folder, "--line", 2).err
    )
    assert "no line 999" in cli("blame", demo_run, "--export", folder, "--line", 999).err
    assert cli("blame", demo_run, "--export", folder, "--at", "step", 1).code == 2


def test_a_folder_that_was_changed_is_not_blamed(cli: Cli, folder: Path, demo_run: Path) -> None:
    """Its lines are not those that the log has."""
    with (folder / "SKILL.md").open("a", encoding="utf-8") as file:
        file.write("- one more\n")
    done = cli("blame", demo_run, "--export", folder)
    assert done.code == 2
    assert "SKILL.md was changed after it was exported" in done.err


def test_a_wrong_origin_is_found_and_none_at_all_is_an_earlier_export(cli: Cli, folder: Path, demo_run: Path) -> None:
    """The log says who wrote what; an export from before has nothing that could be wrong."""
    changed(folder, lambda said: said["facts"]["lines"]["SKILL.md"][0].update(step=7))
    assert "facts" not in cli("verify", demo_run, "--export", folder).err
    assert "lines.SKILL.md[0].step is 7" in cli("verify", demo_run, "--export", folder).out
    changed(folder, lambda said: (said["facts"].pop("lines"), said["folder"]["frontmatter"].pop("moves_lines")))
    assert cli("verify", demo_run, "--export", folder).code == 0
    assert cli("blame", demo_run, "--export", folder, "--json").json["lines"][0]["line"] == 5


def test_frontmatter_that_a_skill_has_is_counted_once(cli: Cli, tmp_path: Path) -> None:
    """Exported under another name, with one line more: all that the skill had below is one line lower."""
    settings = ("train.num_epochs=1", "env.skill_init=SKILL.md")
    config(tmp_path)
    (tmp_path / "SKILL.md").write_text("---\nname: old\nlicense: MIT\n---\n# A\n\nText for it.\n")
    run, out = tmp_path / "runs" / "own", tmp_path / "new"
    asyncio.run(start(config(tmp_path, settings), run, ScriptedWorld().session()))
    assert cli("export", run, f"{out}/", "--name", "new").code == 0
    text = (out / "SKILL.md").read_text(encoding="utf-8").split("\n")
    assert text[:5] == ["---", "name: new", "description: 'A: Text for it.'", "license: MIT", "---"]
    lines = cli("blame", run, "--export", out, "--json").json["lines"]
    assert lines[0]["line"] == 6
    assert lines[0]["text"] == "# A"
    assert all(text[line["line"] - 1] == line["text"] for line in lines)
    assert document(out)["folder"]["frontmatter"]["moves_lines"] == 1
