"""Tests mirror modules: whoever opens a module finds the tests that speak of it."""

from __future__ import annotations

from support.mirrors import ROOT, TESTS, files_of_tests, modules, speaking_of, spoken_of

TESTS_OF_NO_ROOM = {"acceptance", "hostile", "shape", "support", "weaknesses"}


def test_every_module_is_spoken_of_by_a_test() -> None:
    """It is imported by a test, has one of its name, is a door that tests ask for, or only helps such a neighbour."""
    known = spoken_of()
    files = {name: file for name, file in modules().items() if file.stem not in ("__init__", "__main__")}
    assert sorted(str(file.relative_to(ROOT)) for name, file in files.items() if name not in known) == []


def test_the_folders_of_tests_are_those_of_the_modules() -> None:
    """A room that moves takes its tests along."""
    rooms = {file.parent for file in modules().values()}
    wanted = {TESTS / str(room.relative_to(ROOT)).removeprefix("skillopt_es").lstrip("/") for room in rooms}
    there = {file.parent for file in files_of_tests() if file.name.startswith("test_")}
    strange = {str(folder.relative_to(TESTS)) for folder in there - wanted}
    assert {folder.split("/")[0] for folder in strange} <= TESTS_OF_NO_ROOM, strange


def test_the_nearest_tests_come_first() -> None:
    """One of the module's own name before all who import it."""
    found = [str(test.relative_to(TESTS)) for test in speaking_of("skillopt_es.gate.verdicts")]
    assert found[0] == "gate/test_verdicts.py"
