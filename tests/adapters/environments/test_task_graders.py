"""Each built-in grader tells right from wrong, and near from far, on the answers that models give."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from support.environments import grade_one, open_rows
from support.ready import PATIENCE

from skillopt_es.adapters.environments.tasks.patterns import quick
from skillopt_es.errors import DataError
from skillopt_es.events.values import Failed, Measured

RIGHT = (1.0, 1.0, "")
WRONG = (0.0, 0.0, "wrong_answer")
UNREADABLE = (0.0, 0.0, "format")
CITIES = {"choices": ["Paris", "New York", "New York City"]}


def graded(folder: Path, grader: str, expected: object, reply: str, **fields: Any) -> tuple[float, float, str]:
    episode = grade_one(folder, {"grader": grader, "expected": expected, **fields}, reply)
    assert isinstance(episode.outcome, Measured)
    return episode.outcome.hard, round(episode.outcome.soft, 4), episode.failure


@pytest.mark.parametrize(
    ("grader", "expected", "reply", "verdict"),
    [
        ("exact", "Paris", "  Paris\n", RIGHT),
        ("exact", "Paris", "paris", WRONG),
        ("exact", ["Paris", "Lutetia"], "Lutetia", RIGHT),
        ("exact", 42, "42", RIGHT),
        ("exact", 1.5, "1.5", RIGHT),
        ("normalized", "The Beatles", "beatles!", RIGHT),
        ("normalized", "U.S.A.", "USA", RIGHT),
        ("normalized", "“quoted”", "quoted", RIGHT),
        ("normalized", "Straße", "STRASSE", RIGHT),
        ("normalized", "1,000", "1000", RIGHT),
        ("normalized", "1.5", "15", WRONG),
        ("normalized", "-3", "3", WRONG),
        ("normalized", ".5", "5", WRONG),
        ("normalized", "+", "+", RIGHT),
        ("normalized", "+", "-", WRONG),
        ("normalized", "the", "a", WRONG),
        ("contains", "Ada  Lovelace", "It was ada lovelace.", RIGHT),
        ("contains", "4", "It is 14.", WRONG),
        ("contains", "4", "It is 14, no, 4.", RIGHT),
        ("contains", "$5", "costs US$5 today", RIGHT),
        ("contains", "東京", "答えは東京です。", RIGHT),
        ("contains", ["x", "y"], "only y here", RIGHT),
        ("contains", "run", "running", WRONG),
        ("regex", r"^\d{4}$", "1889", RIGHT),
        ("regex", r"^\d{4}$", "in 1889", WRONG),
        ("regex", ["(?i)yes", "ja"], "YES", RIGHT),
        ("regex", r"(\w+ )+end", "one two end", RIGHT),
        ("regex", r"(\w+ )+end", "one two", WRONG),
        ("f1", "new york city", "New York City.", RIGHT),
        ("f1", "Abraham Lincoln", "Lincoln", (0.0, 0.6667, "near_miss")),
        ("f1", ["New York", "the city of New York"], "new york city", (0.0, 0.8571, "near_miss")),
        ("f1", "Lincoln", "Kennedy", WRONG),
    ],
)
def test_text_graders(
    tmp_path: Path, grader: str, expected: object, reply: str, verdict: tuple[float, float, str]
) -> None:
    """Expected text may be one or a list of alternatives."""
    assert graded(tmp_path, grader, expected, reply) == verdict


@pytest.mark.parametrize(
    ("expected", "reply", "verdict"),
    [
        (1000.5, "1,000.5", RIGHT),
        ("1,000.5", "The total is $1000.50.", RIGHT),
        (42, "I think 7 times 6 is 42.", RIGHT),
        (42, "42 apples, not 41", WRONG),
        (5, "5kg", RIGHT),
        (5, "about 5 km/h", RIGHT),
        (-5, "-5", RIGHT),
        (-5, "−5", RIGHT),
        (5, "-5", WRONG),
        (20, "10-20", RIGHT),
        (-12, "-$12", RIGHT),
        (0.5, ".5", RIGHT),
        (50, "50%", RIGHT),
        (0.5, "50 %", RIGHT),
        ("50%", "0.5", RIGHT),
        ("50%", "50", RIGHT),
        ("50%", "50 percent", RIGHT),
        ("50%", "5%", WRONG),
        (0.5, r"$50\%$", RIGHT),
        (1.5e3, "1.5e3", RIGHT),
        (0.3, "0.30000000000000004", RIGHT),
        (0, "0.0", RIGHT),
        ([3, 4], "4", RIGHT),
        (3, "three", UNREADABLE),
        (3, "1e9999", UNREADABLE),
        (3, "v3", UNREADABLE),
    ],
)
def test_the_number_grader(tmp_path: Path, expected: object, reply: str, verdict: tuple[float, float, str]) -> None:
    """The last number counts, with thousands, currencies, units and percent signs understood."""
    assert graded(tmp_path, "number", expected, reply) == verdict


@pytest.mark.parametrize(
    ("tolerance", "reply", "right"),
    [
        (0, "100.1", False),
        (0.1, "100.1", True),
        (0.1, "100.2", False),
        ("0.1", "99.9", True),
        ("1%", "101", True),
        ("1%", "101.5", False),
    ],
)
def test_numbers_may_be_off_by_the_tolerance(tmp_path: Path, tolerance: object, reply: str, right: bool) -> None:
    """A plain tolerance is absolute, one with a percent sign is a share of the expected value."""
    assert graded(tmp_path, "number", 100, reply, tolerance=tolerance) == (RIGHT if right else WRONG)


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("B", "B"),
        ("b", "B"),
        ("(B)", "B"),
        ("B.", "B"),
        ("**B**", "B"),
        (r"$\boxed{B}$", "B"),
        ("B) New York", "B"),
        ("B: because it is big", "B"),
        ("new york", "B"),
        ("New York City.", "C"),
        ("It must be New York City, I am sure", "C"),
        ("The answer is (B).", "B"),
        ("Answer: B", "B"),
        ("Option A is wrong and option C is wrong, so the answer is B", "B"),
        ("I choose option C", "C"),
        ("A or B", ""),
        ("Paris or New York", ""),
        ("The answer is a city", ""),
        ("D", ""),
        ("no idea", ""),
    ],
)
def test_the_choice_grader_reads_letters_and_texts(tmp_path: Path, reply: str, label: str) -> None:
    """The label is found in the usual phrasings; two or none are a failure of form."""
    verdict = RIGHT if label == "B" else WRONG if label else UNREADABLE
    assert graded(tmp_path, "choice", "B", reply, **CITIES) == verdict
    assert graded(tmp_path, "choice", "new york", reply, **CITIES) == verdict


def test_choices_may_be_labelled_or_absent(tmp_path: Path) -> None:
    """A mapping gives its own labels; without choices any single letter is one; config choices serve all items."""
    assert graded(tmp_path, "choice", "1", "1", choices={"1": "yes", "2": "no"}) == RIGHT
    assert graded(tmp_path, "choice", "c", "(C)") == RIGHT
    assert graded(tmp_path, "choice", "c", "D") == WRONG
    episode = grade_one(tmp_path, {"expected": "no"}, "B", grader="choice", choices=["yes", "no"])
    assert episode.outcome == Measured(1.0, 1.0)


@pytest.mark.parametrize(
    ("expected", "reply", "verdict"),
    [
        ({"a": 1, "b": "x"}, '{"b": "x", "a": 1.0, "more": null}', RIGHT),
        ({"a": 1, "b": "x"}, 'Sure:\n```json\n{"a": 1, "b": "y"}\n```', (0.0, 0.5, "near_miss")),
        ({"a": 1}, '{"a": 2}', WRONG),
        ({"a": 1}, '{"a": true}', WRONG),
        ({"a": True}, '{"a": true}', RIGHT),
        ({"a": [1, {"b": 2}]}, '{"a": [1, {"b": 2}]}', RIGHT),
        ({"a": [1, {"b": 2}]}, '{"a": [1, {"b": 2, "c": 3}]}', WRONG),
        ({"a": 1}, 'First {"a": 2}, no: {"a": 1} it is', RIGHT),
        ({"a": 1}, "nothing", UNREADABLE),
        ({"a": 1}, '{"a": 1', UNREADABLE),
        ({"a": 1}, "[1]", UNREADABLE),
        ({"a": 1}, '{"a": ' * 50_000, UNREADABLE),
        ([1, 2], "The list: [1, 2.0]", RIGHT),
        ([1, 2], "[2, 1]", WRONG),
        ('{"a": 1}', '{"a": 1}', RIGHT),
    ],
)
def test_the_json_grader(tmp_path: Path, expected: object, reply: str, verdict: tuple[float, float, str]) -> None:
    """Each expected field must be equal, and soft is the share that is."""
    assert graded(tmp_path, "json", expected, reply) == verdict


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"expected": ""}, "`expected` must not be blank"),
        ({"expected": []}, "`expected` must be text or a list of texts"),
        ({"expected": None}, "`expected` must be text"),
        ({"expected": True}, "`expected` must be text"),
        ({"expected": {"a": 1}}, "`expected` must be text"),
        ({}, "`expected` is missing"),
        ({"expected": "(", "grader": "regex"}, "must be a regular expression"),
        ({"expected": "a{99999999999}", "grader": "regex"}, "must be a regular expression"),
        ({"expected": "many", "grader": "number"}, "must be a number"),
        ({"expected": [], "grader": "number"}, "at least one number"),
        ({"expected": 1, "grader": "number", "tolerance": -1}, "`tolerance` must be a number"),
        ({"expected": 1, "grader": "number", "tolerance": "x%"}, "`tolerance` must be a number"),
        ({"expected": "Rome", "grader": "choice", **CITIES}, "must be one of the choices: A, B, C"),
        ({"expected": "Rome", "grader": "choice"}, "a single letter"),
        ({"expected": "A", "grader": "choice", "choices": []}, "`choices` must be a list"),
        ({"expected": "A", "grader": "choice", "choices": [1]}, "`choices` must be a list"),
        ({"expected": "A", "grader": "choice", "choices": {"AB": "x"}}, "single letters"),
        ({"expected": "words", "grader": "json"}, "must be an object with fields, or a list"),
        ({"expected": {}, "grader": "json"}, "must be an object with fields, or a list"),
        ({"expected": "x", "grader": "exakt"}, "unknown grader 'exakt'"),
        ({"expected": "x", "grader": 3}, "unknown grader 3"),
        ({"expected": "x", "grader": "python:os:system"}, "only the config can name"),
        ({"expected": "x", "grader": "command"}, "only the config can name"),
        ({"expected": "x", "grader": {"command": ["rm"]}}, "only the config can name"),
    ],
)
def test_an_item_that_cannot_be_graded_is_a_data_error(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    """The error names the item's line when the data is loaded, long before any call is paid."""
    with pytest.raises(DataError) as caught:
        open_rows(tmp_path, "tasks", [{"id": "1", "input": "?", **fields}])
    assert "items.jsonl:1: item '1': " in str(caught.value)
    assert says in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("pattern", "length", "here"),
    [
        ("colou?r", 1000, True),
        (r"\bfoo.*bar\b", 3000, True),
        (r"\bfoo.*bar\b", 100_000, False),
        ("(a+)+$", 10, False),
        ("(a|a)*$", 10, False),
        ("a?" * 30 + "a" * 30, 30, False),
        ("(a|a)" * 30, 30, False),
        (r"[*+(]\*\+", 100_000, True),
    ],
)
def test_patterns_that_might_backtrack_for_long_go_elsewhere(pattern: str, length: int, here: bool) -> None:
    """Only what must be quick is searched inside the event loop."""
    assert quick(pattern, length) is here


def test_a_pattern_that_never_ends_is_a_broken_grader(tmp_path: Path) -> None:
    """Catastrophic backtracking costs the time limit, not the run, and says nothing about the answer."""
    start = time.monotonic()
    episode = grade_one(tmp_path, {"grader": "regex", "expected": "(a+)+$"}, "a" * 40 + "b", timeout=0.3)
    assert isinstance(episode.outcome, Failed)
    assert episode.outcome.kind == "grader"
    assert "took longer than 0.3 seconds" in episode.outcome.message
    assert time.monotonic() - start < PATIENCE


@pytest.mark.parametrize(
    "reply", ["<answer>" * 20_000, "{" * 50_000, "(A" * 30_000, "1," * 30_000, "```json\n" * 8_000]
)
@pytest.mark.parametrize("grader", ["exact", "normalized", "contains", "f1", "number", "choice", "json"])
def test_no_reply_makes_a_grader_slow(tmp_path: Path, grader: str, reply: str) -> None:
    """Degenerate replies of models that loop are graded in moments."""
    expected = {"number": 1, "choice": "A", "json": {"a": 1}}.get(grader, "x")
    start = time.process_time()
    row = {"grader": grader, "expected": expected, **CITIES}
    assert isinstance(grade_one(tmp_path, row, reply, answer_tag="answer").outcome, Measured)
    assert time.process_time() - start < 2
