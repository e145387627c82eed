"""Where a run's config lies, as its log says it."""

from __future__ import annotations

from pathlib import Path

from skillopt_es.config.places import config_folder, packaged, recorded_place


def test_a_folder_is_seen_from_the_run(tmp_path: Path) -> None:
    """So that both can be moved together."""
    project, run = tmp_path / "project", tmp_path / "project" / "runs" / "one"
    assert recorded_place(str(project), run) == "../.."
    assert config_folder("../..", run) == project.resolve()


def test_what_comes_with_the_package_is_found_wherever_it_is_installed(tmp_path: Path) -> None:
    """Its log does not say where it was installed once."""
    recorded = recorded_place(str(packaged("demo")), tmp_path)
    assert recorded == "packaged:demo"
    assert config_folder(recorded, tmp_path / "elsewhere") == packaged("demo").resolve()
