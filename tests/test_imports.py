"""Imports point one way: events <- projections <- skillopt_es -> its ports <- adapters; only wiring knows adapters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {"events": "events", "projections": "projections", "adapters": "adapters", "skillopt_es": ""}
ALLOWED = {
    "events": ("skillopt_es.events",),
    "projections": ("skillopt_es.events", "skillopt_es.projections"),
    "adapters": (
        "skillopt_es.adapters",
        "skillopt_es.errors",
        "skillopt_es.events.values",
        "skillopt_es.events.codec",
        "skillopt_es.ports",
    ),
    "skillopt_es": ("skillopt_es",),
}


def ours(file: Path) -> Iterator[str]:
    """The modules of ours that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if name.startswith("skillopt_es"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_only_what_it_may(folder: str) -> None:
    """The arrows of the architecture, over every file."""
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in files
        for name in ours(file)
        if not any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED[folder])
    ]
    assert not wrong


def test_only_wiring_knows_adapters() -> None:
    """Everything else in the trainer sees ports; data of benchmarks has a door of its own, which no run opens."""
    knowing = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "skillopt_es").rglob("*.py")
        if any(name.startswith("skillopt_es.adapters") for name in ours(file))
    }
    assert knowing == {"skillopt_es/sessions/benchmarks.py", "skillopt_es/sessions/wiring.py"}


LAYERS = (
    ("errors", "ports", "version", "counting", "logs"),
    ("skill", "prompts"),
    ("config",),
    ("replies",),
    ("engine",),
    ("gate",),
    ("programs",),
    ("runs",),
    ("sessions",),
    ("interchange", "estimating", "cassettes"),
    ("audit",),
    ("deploy", "exports"),
    ("presenting",),
    ("report",),
    ("door",),
    ("cli",),
    ("testing", "__init__", "__main__"),
)
OUTSIDE = {"adapters", "configs", "events", "projections"}
AGAINST_THE_ARROWS: set[str] = set()


def test_inside_the_trainer_a_room_imports_only_those_below_it() -> None:
    """From what a skill is up to the command; rooms of one row do not know each other."""
    heights = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}
    inside = ROOT / "skillopt_es"
    wrong = set()
    for file in inside.rglob("*.py"):
        path = file.relative_to(inside)
        here = path.parts[0].removesuffix(".py")
        for name in ours(file):
            there = [*name.split("."), ""][1]
            if there in {"", here} | OUTSIDE:
                continue
            if heights[there] >= heights[here]:
                wrong.add(f"{path} imports {there}")
    assert wrong == AGAINST_THE_ARROWS


def test_nobody_knows_a_program_by_name() -> None:
    """A program's parts are looked up; only what reads and writes the original's folders is about classic training."""
    inside = ROOT / "skillopt_es"
    knowing = {
        file.relative_to(inside).parts[0]
        for file in inside.rglob("*.py")
        if any(name.startswith("skillopt_es.programs.classic") for name in ours(file))
    }
    assert knowing == {"interchange", "programs"}


PURE = [
    "projections",
    *(
        f"skillopt_es/{place}"
        for place in (
            "audit/blame.py",
            "audit/headlines.py",
            "audit/line_costs.py",
            "engine/evaluations.py",
            "engine/scores.py",
            "gate/compare.py",
            "gate/draws.py",
            "gate/early_stop.py",
            "gate/rules.py",
            "gate/steps.py",
            "gate/verdicts.py",
            "programs/classic/candidate.py",
            "programs/classic/contests.py",
            "programs/classic/decisions.py",
            "programs/classic/epoch_end.py",
            "programs/classic/epoch_events.py",
            "programs/classic/evaluations.py",
            "programs/classic/plan_epoch_end.py",
            "programs/classic/plan_step.py",
            "programs/classic/planner.py",
            "programs/classic/state.py",
            "programs/classic/step_events.py",
            "skill",
        )
    ),
]
IMPURE = {
    "time",
    "datetime",
    "os",
    "random",
    "secrets",
    "socket",
    "pathlib",
    "httpx",
    "sqlite3",
    "subprocess",
    "asyncio",
}
DISK_PROJECTIONS = {"projections/tables.py"}


@pytest.mark.parametrize("place", PURE)
def test_the_core_imports_no_clock_no_chance_and_no_io(place: str) -> None:
    """The reducer, the projections, the skill algebra, the planner and the decisions are pure."""
    path = ROOT / place
    for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
        if str(file.relative_to(ROOT)) in DISK_PROJECTIONS:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not IMPURE & {name.split(".")[0] for name in names}, file


def test_every_package_is_listed_for_the_wheel() -> None:
    """A folder with modules that packaging forgets would be missing from an installation."""
    listed = set((ROOT / "pyproject.toml").read_text().split("packages = [")[1].split("]")[0].replace('"', "").split())
    packages = {name.rstrip(",") for name in listed}
    for folder, inner in FOLDERS.items():
        for file in (ROOT / folder).rglob("*.py"):
            parts = file.parent.relative_to(ROOT / folder).parts
            name = ".".join(["skillopt_es", *([inner] if inner else []), *parts])
            assert name in packages, f"{name} ({file})"
