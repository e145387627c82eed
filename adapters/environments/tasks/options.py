"""The own keys of the `tasks` environment under `env:`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from attrs import field, frozen

from skillopt_es.adapters.environments.options import one_of, parsed_by, positive_int, positive_number, text
from skillopt_es.adapters.environments.tasks.choices import read_choices
from skillopt_es.adapters.environments.tasks.numbers import read_tolerance
from skillopt_es.adapters.environments.tasks.rubrics import Criterion, read_rubric, read_weight
from skillopt_es.adapters.environments.tasks.verdicts import Tolerance
from skillopt_es.adapters.sandboxes.opening import Mode as SandboxMode
from skillopt_es.events.values import Json
from skillopt_es.ports import GraderFunction


@frozen
class BuiltIn:
    """One of the graders that are part of this package."""

    name: str


@frozen
class PythonCode:
    """A function of the user, in a module (`pkg.mod`) or in a file (`graders/mine.py`)."""

    module: str
    function: str


@frozen
class Command:
    """A program of the user."""

    argv: tuple[str, ...]


@frozen
class GivenCode:
    """A function that the caller of this package handed over; no config can name it."""

    function: GraderFunction


SingleGrader = BuiltIn | PythonCode | GivenCode | Command


@frozen
class Several:
    """Graders that all look at an answer, each with its share of the score."""

    parts: tuple[tuple[SingleGrader, float], ...]


GraderChoice = SingleGrader | Several


def read_graders(value: Json) -> GraderChoice:
    """A grader, or the list of several, each as it is or as `{grader: …, weight: 2}`."""
    if not isinstance(value, list):
        return read_grader(value)
    if not value:
        raise ValueError("must name a grader, or several")
    return Several(tuple(_weighted(each) for each in value))


def _weighted(value: Json) -> tuple[SingleGrader, float]:
    if not isinstance(value, dict) or "grader" not in value:
        return read_grader(value), 1.0
    if value.keys() - {"grader", "weight"}:
        raise ValueError("must have `grader` and `weight` in each of its parts, and nothing else")
    weight = value.get("weight", 1.0)
    return read_grader(value["grader"]), read_weight(weight)


def read_grader(value: Json) -> SingleGrader:
    """The grader in `exact`, `python:module:function`, `command:…`, `{python: …}` or `{command: …}`."""
    if isinstance(value, str):
        kind, colon, rest = value.partition(":")
        if not colon:
            return _built_in(value)
        value = {kind.strip(): rest.strip()}
    if isinstance(value, dict) and len(value) == 1:
        kind, given = next(iter(value.items()))
        if kind == "python" and isinstance(given, str):
            return _python(given)
        if kind == "command" and isinstance(given, str | list):
            return _command(given)
    raise ValueError(f"must be {_FORMS}")


def _built_in(name: str) -> BuiltIn:
    if name not in BUILT_IN_NAMES:
        raise ValueError(f"must be {_FORMS}")
    return BuiltIn(name)


def _python(given: str) -> PythonCode:
    module, _, function = given.rpartition(":")
    if not module or not function.isidentifier():
        raise ValueError("must name a python grader as module:function")
    return PythonCode(module, function)


def _command(given: str | list[Json]) -> Command:
    try:
        argv = shlex.split(given) if isinstance(given, str) else given
    except ValueError as error:
        raise ValueError(f"must be a command as for a shell ({error})") from error
    words = tuple(str(word) for word in argv if isinstance(word, str | int | float) and not isinstance(word, bool))
    if not words or len(words) < len(argv) or not words[0]:
        raise ValueError("must be a command: text, or a list of texts")
    return Command(words)


def _tag(value: Json) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z][\w.-]*|", value):
        raise ValueError("must be the name of a tag without brackets, such as answer")
    return value


def _share(value: Json) -> float:
    number = positive_number(value)
    if number > 1:
        raise ValueError("must be a number above 0, and at most 1")
    return number


def _field_name(value: Json) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be the name of a field that your items have, such as baseline")
    return value


def _their_field(value: Json) -> str:
    """The name of a field in the user's own data; nothing where its usual names will do."""
    if not isinstance(value, str):
        raise ValueError("must be the name of a field that your data have, such as question")
    return value.strip()


def _agent_fields(value: Json) -> tuple[str, ...]:
    names = tuple(_field_name(each) for each in (value if isinstance(value, list) else [value]))
    graded = sorted(_GRADED_BY.intersection(names))
    if graded:
        raise ValueError(f"must not name {graded[0]!r}: an agent must not see what it is graded by")
    return names


def _paths(value: Json) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list):
        raise ValueError("must be a list of files or folders beside the config")
    paths = tuple(path for path in given if isinstance(path, str) and path.strip())
    if len(paths) < len(given):
        raise ValueError("must be a list of files or folders beside the config")
    return paths


_GRADED_BY = frozenset({"expected", "rubric", "checks", "tolerance", "grader"})
BUILT_IN_NAMES = (
    "exact",
    "normalized",
    "contains",
    "regex",
    "choice",
    "number",
    "f1",
    "json",
    "checks",
    "reported",
    "judge",
)
_FORMS = f"one of {', '.join(BUILT_IN_NAMES)}, or python:module:function, or command:program arguments"


@frozen(kw_only=True)
class TaskOptions:
    """
    How tasks are read, put and graded; an item's own `grader`, `choices` and `tolerance` come before these.

    `input_field` and its like are what the data call the parts of a task; tables are looked through for usual names.

    `sandbox` is where a command grades, and `grader_files` what it finds there besides the files that it names. From
    `pass_score` on an answer is solved. `rubric`, `compare_with` and `judge_…` are for a judge. An agent gets the
    `agent_fields` of an item besides what is asked: they are named one by one, since any other may hold the answer.
    """

    grader: GraderChoice = field(default=BuiltIn("exact"), metadata=parsed_by(read_graders))
    system: str = field(default="", metadata=parsed_by(text))
    agent_fields: tuple[str, ...] = field(default=(), metadata=parsed_by(_agent_fields))
    input_field: str = field(default="", metadata=parsed_by(_their_field))
    expected_field: str = field(default="", metadata=parsed_by(_their_field))
    id_field: str = field(default="", metadata=parsed_by(_their_field))
    type_field: str = field(default="", metadata=parsed_by(_their_field))
    answer_tag: str = field(default="", metadata=parsed_by(_tag))
    tolerance: Tolerance = field(default=Tolerance(), metadata=parsed_by(read_tolerance))
    choices: Mapping[str, str] = field(factory=dict, metadata=parsed_by(read_choices))
    timeout: float = field(default=30.0, metadata=parsed_by(positive_number))
    sandbox: SandboxMode = field(default="confined", metadata=parsed_by(one_of("confined", "unconfined")))
    grader_files: tuple[str, ...] = field(default=(), metadata=parsed_by(_paths))
    pass_score: float | None = field(default=None, metadata=parsed_by(_share))
    rubric: tuple[Criterion, ...] = field(default=(), metadata=parsed_by(read_rubric))
    compare_with: str = field(default="", metadata=parsed_by(_field_name))
    judge_instructions: str = field(default="", metadata=parsed_by(text))
    judge_max_completion_tokens: int = field(default=2048, metadata=parsed_by(positive_int))

    @property
    def named_fields(self) -> dict[str, str]:
        """What the user's data call the parts of a task, as far as that is said."""
        said = {
            "input": self.input_field,
            "expected": self.expected_field,
            "id": self.id_field,
            "type": self.type_field,
        }
        return {ours: theirs for ours, theirs in said.items() if theirs}

    @property
    def graders(self) -> tuple[tuple[SingleGrader, float], ...]:
        """All graders, each with its weight."""
        return self.grader.parts if isinstance(self.grader, Several) else ((self.grader, 1.0),)
