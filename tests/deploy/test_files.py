"""What commands write: in its own place, never through a link, and never over what a run keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_es.deploy.files import refuse_run_files, write_file
from skillopt_es.errors import OutputRefused
from skillopt_es.sweeps.log import LOG_FILE as SWEEP_FILE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run's folder, as far as it is known by its log."""
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "log.db").write_bytes(b"log")
    return folder


@pytest.mark.parametrize(
    "name",
    [
        *("log.db", "log.db-wal", "log.db-shm", "log.db.new", "head.json", "tail", "lock", "now.json"),
        *("overview.json", "usage.json", "logs.jsonl", "in-flight.jsonl", "inbox/order.json", "best/SKILL.md"),
    ],
)
def test_what_a_run_keeps_is_not_written_over(folder: Path, name: str) -> None:
    """By force either, by another way to the folder either; and none of it is made where it is not there."""
    (folder.parent / "way").symlink_to(folder)
    for place in (folder / name, folder.parent / "way" / name, folder / "below" / ".." / name):
        with pytest.raises(OutputRefused, match="belongs to the run one"):
            write_file(place, "text")
    assert [path.name for path in folder.iterdir()] == ["log.db"]
    assert (folder / "log.db").read_bytes() == b"log"


def test_a_place_beside_that_is_free(folder: Path) -> None:
    """A page in the run's folder; the same names in a folder that is no run."""
    write_file(folder / "report.html", "page")
    write_file(folder.parent / "head.json", "text")
    assert (folder / "report.html").read_text() == "page"


def test_a_plan_of_a_sweep_is_kept(tmp_path: Path) -> None:
    """It is to a sweep what the log is to a run."""
    (tmp_path / SWEEP_FILE).write_text("plan")
    with pytest.raises(OutputRefused, match="belongs to the sweep"):
        refuse_run_files(tmp_path / SWEEP_FILE)


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    """Also by a draft's name, and also one that leads nowhere: that takes force."""
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "mine").symlink_to("theirs")
    (tmp_path / ".mine.new").symlink_to("theirs")
    write_file(tmp_path / "mine", "new", force=True)
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert not (tmp_path / "mine").is_symlink()
    (tmp_path / "nowhere").symlink_to("missing")
    with pytest.raises(OutputRefused, match="exists already"):
        write_file(tmp_path / "nowhere", "new", force=False)
    write_file(tmp_path / "nowhere", "new", force=True)
    assert not (tmp_path / "missing").exists()
