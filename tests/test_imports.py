"""Imports point one way: events <- projections <- skillopt_es -> its ports <- adapters; one room opens adapters."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support.mirrors import import_statements

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
        "skillopt_es.events.plain",
        "skillopt_es.ports",
    ),
    "skillopt_es": ("skillopt_es",),
}


def ours(file: Path) -> list[str]:
    """The modules of ours that a file imports, also inside functions."""
    return [module for module, _ in import_statements(file) if module.startswith("skillopt_es")]


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


def test_only_what_opens_adapters_knows_them() -> None:
    """Everything else in the trainer sees ports; what is read from other tools has doors that no run opens."""
    knowing = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "skillopt_es").rglob("*.py")
        if any(name.startswith("skillopt_es.adapters") for name in ours(file))
    }
    assert knowing == {
        "skillopt_es/sessions/benchmarks.py",
        "skillopt_es/sessions/conversations.py",
        "skillopt_es/sessions/tasksets.py",
        "skillopt_es/sessions/opening.py",
    }


# Whole subjects that no training needs: a run may do without any of them, and each has its own doors.
PLUGGED_IN = (
    "adapters.benchmarks",
    "adapters.conversations",
    "adapters.harnesses",
    "adapters.executors.on_ray",
    "adapters.executors.ray_cluster",
    "exports",
    "harvest",
    "interchange",
    "sweeps",
    "ui",
)
DOORS = {
    "adapters/executors",
    "skillopt_es/cli",  # each command imports its room when it is called
    "skillopt_es/sessions/benchmarks.py",
    "skillopt_es/sessions/conversations.py",
    "skillopt_es/sessions/harvesting.py",
}


def test_the_core_does_without_what_is_plugged_in() -> None:
    """Benchmarks, harnesses, Ray, harvest, sweeps, the page and SkillOpt's folders are looked up, not imported."""
    inside = {f"{'' if room.startswith('adapters') else 'skillopt_es.'}{room}".replace(".", "/") for room in PLUGGED_IN}
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for top in ("skillopt_es", "events", "projections", "adapters")
        for file in (ROOT / top).rglob("*.py")
        if not any(str(file.relative_to(ROOT)).startswith(room) for room in inside | DOORS)
        for name in ours(file)
        if any(f"{name}.".startswith(f"skillopt_es.{room}.") for room in PLUGGED_IN)
    ]
    assert not wrong


LAYERS = (
    ("errors", "ports", "version", "counting", "logs"),
    ("skill", "prompts", "harvest"),
    ("config",),
    ("replies",),
    ("engine",),
    ("gate",),
    ("algorithms",),
    ("runs",),
    ("sessions",),
    ("interchange", "estimating", "cassettes"),
    ("audit",),
    ("deploy", "exports", "sweeps"),
    ("presenting",),
    ("report",),
    ("door",),
    ("ui",),
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


def test_the_gate_looks_up_no_algorithm() -> None:
    """It is given its policy."""
    inside = ROOT / "skillopt_es" / "gate"
    assert not [file.name for file in inside.glob("*.py") if "skillopt_es.engine.algorithms" in ours(file)]


def test_ports_have_one_door() -> None:
    """The modules inside keep their subjects apart; everybody else imports from the package."""
    files = [file for folder in (*OUTSIDE, "skillopt_es", "tests") for file in (ROOT / folder).rglob("*.py")]
    others = [file for file in files if file.parent != ROOT / "skillopt_es" / "ports"]
    assert not [str(file) for file in others if any(name.startswith("skillopt_es.ports.") for name in ours(file))]


@pytest.mark.parametrize(
    ("algorithm", "rooms"),
    [
        ("classic", {"interchange"}),  # what reads and writes the original's folders is about it
        ("search", {"audit"}),  # why an answer was left out that had been refused before: `refused_again.py`
        ("skills", {"audit"}),  # what each skill was good for, and what parts of a candidate did: `tried.py`
    ],
)
def test_nobody_knows_an_algorithm_by_name(algorithm: str, rooms: set[str]) -> None:
    """Its parts are looked up."""
    inside = ROOT / "skillopt_es"
    knowing = {
        file.relative_to(inside).parts[0]
        for file in inside.rglob("*.py")
        if any(name.startswith(f"skillopt_es.algorithms.{algorithm}") for name in ours(file))
    }
    assert knowing == {"algorithms", *rooms}


def test_algorithms_do_not_lean_on_each_other() -> None:
    """What two of them need lies beside both; only an imported run is one of classic training."""
    algorithms = ROOT / "skillopt_es" / "algorithms"
    leaning = {
        (file.parent.name, name.split(".")[2])
        for file in algorithms.glob("*/*.py")
        for name in ours(file)
        if name.startswith("skillopt_es.algorithms.") and (algorithms / name.split(".")[2]).is_dir()
    }
    assert {(one, other) for one, other in leaning if one != other} == {("imported", "classic")}


PURE = ("projections", *(f"skillopt_es/{room}" for room in ("skill", "replies", "gate", "algorithms", "engine")))
ALSO_PURE = tuple(f"skillopt_es/audit/{name}.py" for name in ("blame", "headlines"))
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
NOT_PURE = {
    "projections/tables.py": {"pathlib", "sqlite3"},  # what it makes is a file
    "skillopt_es/engine/ahead.py": {"asyncio"},
    "skillopt_es/engine/calls.py": {"asyncio"},
    "skillopt_es/engine/loop.py": {"asyncio"},
    "skillopt_es/engine/algorithm.py": {"pathlib"},  # names a folder, opens none
    "skillopt_es/engine/budget.py": {"asyncio"},
    "skillopt_es/engine/draws.py": {"random"},  # draws by the run's seed, as all that follow
    "skillopt_es/engine/run_config.py": {"pathlib"},  # names a folder, opens none
    "skillopt_es/gate/calibration.py": {"random"},
    "skillopt_es/gate/flips.py": {"random"},
    "skillopt_es/gate/power.py": {"random"},
    "skillopt_es/algorithms/evaluation/algorithm.py": {"pathlib"},
    "skillopt_es/algorithms/imported/algorithm.py": {"pathlib"},
}


def test_the_core_imports_no_clock_no_chance_and_no_io() -> None:
    """The reducer, the projections, the skill algebra, the gate, the planner and the decisions are pure."""
    files = [file for room in PURE for file in sorted((ROOT / room).rglob("*.py"))]
    found: dict[str, set[str]] = {}
    for file in [*files, *(ROOT / name for name in ALSO_PURE)]:
        if impure := IMPURE & {module.split(".")[0] for module, _ in import_statements(file)}:
            found[str(file.relative_to(ROOT))] = impure
    assert found == NOT_PURE


def test_every_package_is_listed_for_the_wheel() -> None:
    """A folder with modules that packaging forgets would be missing from an installation."""
    listed = set((ROOT / "pyproject.toml").read_text().split("packages = [")[1].split("]")[0].replace('"', "").split())
    packages = {name.rstrip(",") for name in listed}
    for folder, inner in FOLDERS.items():
        for file in (ROOT / folder).rglob("*.py"):
            parts = file.parent.relative_to(ROOT / folder).parts
            name = ".".join(["skillopt_es", *([inner] if inner else []), *parts])
            assert name in packages, f"{name} ({file})"


def test_imports_are_read_as_python_reads_them(tmp_path: Path) -> None:
    """Without the parser, which takes thirty times as long over all files."""
    file = tmp_path / "some.py"
    file.write_text(
        '"""\nimport in_a_docstring\n"""\nimport os, sys as system\nfrom a.b import c as d, e  # noqa: F401\n'
        'def f():\n    from g import (\n        h,  # why\n        i as j,\n    )\n    return "import k"\n'
    )
    expected = (("os", ()), ("sys", ()), ("a.b", ("c", "e")), ("g", ("h", "i")))
    assert import_statements(file) == expected
    parsed = []
    for node in ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            parsed.append((node.module, tuple(alias.name for alias in node.names)))
        elif isinstance(node, ast.Import):
            parsed += [(alias.name, ()) for alias in node.names]
    assert list(import_statements(Path(__file__))) == parsed
