"""Which types of tasks stand side by side in a question."""

from skillopt_es.programs.search.families import families

TASKS = [
    ("anjou", "Sort the pears: anjou 12"),
    ("anjou", "Sort the pears: anjou 13"),
    ("bosc", "Sort the pears: bosc 12"),
    ("gala", "Sort the apples: gala 13"),
    ("fuji", "Sort the apples: fuji 14"),
    ("opal", "Sort the plums: opal 15"),
    ("", "Sort the pears: any"),
]


def test_types_that_share_a_word_are_a_family() -> None:
    """Every task of each has it; what all types have names none, and a type of its own has no family."""
    assert families(TASKS) == {"anjou": "pears", "bosc": "pears", "gala": "apples", "fuji": "apples"}


def test_a_word_that_only_some_tasks_of_a_type_have_is_no_family() -> None:
    found = families([*TASKS, ("gala", "Sort them: gala 12")])
    assert "gala" not in found
    assert "fuji" not in found


def test_without_types_there_are_none() -> None:
    assert families([("", task) for _, task in TASKS]) == {}
