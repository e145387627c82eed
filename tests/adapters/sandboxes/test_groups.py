"""Where a launch gets a control group of its own, and where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillopt_es.adapters.sandboxes.groups import limited, memory_group, place_for_groups


def group(path: Path, controllers: str) -> Path:
    """A folder as the kernel shows a control group."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "cgroup.subtree_control").write_text(controllers)
    (path / "cgroup.procs").touch()
    return path


def test_a_group_is_made_beside_ones_own(tmp_path: Path) -> None:
    """Where the one above hands the limit of memory down, and may be written."""
    above = group(tmp_path / "user" / "app", "cpu memory pids\n")
    group(above / "mine", "")
    assert place_for_groups(tmp_path, "9:memory:/x\n0::/user/app/mine\n") == above
    above.joinpath("cgroup.subtree_control").write_text("cpu\n")
    assert place_for_groups(tmp_path, "0::/user/app/mine\n") is None


def test_the_first_group_of_all_may_hold_both(tmp_path: Path) -> None:
    """Processes and groups."""
    assert place_for_groups(group(tmp_path, "memory\n"), "0::/\n") == tmp_path / ""


@pytest.mark.parametrize("membership", ["", "9:memory:/x\n", "0::/gone/mine\n"])
def test_without_the_newer_tree_there_is_none(tmp_path: Path, membership: str) -> None:
    """Or where it cannot be seen."""
    assert place_for_groups(tmp_path, membership) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_tree_that_may_not_be_written_is_left_alone(tmp_path: Path) -> None:
    """It belongs to somebody else."""
    above = group(tmp_path / "user", "memory\n")
    above.chmod(0o555)
    assert place_for_groups(tmp_path, "0::/user/mine\n") is None


def test_a_group_that_cannot_be_limited_is_removed(tmp_path: Path) -> None:
    """A folder that is no group has no limits."""
    with pytest.raises(OSError, match=r"memory\.max"):
        limited(tmp_path, 1 << 30)
    assert list(tmp_path.iterdir()) == []


def test_there_is_always_an_answer() -> None:
    """A group of this machine, or none; nothing is left of it."""
    with memory_group(1 << 30) as made:
        assert made == "" or Path(made).is_dir()
    assert made == "" or not Path(made).exists()
