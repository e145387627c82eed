"""Test suites of other tools: promptfoo, Inspect, OpenAI Evals, DSPy and SkillOpt-Sleep."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import cast

import yaml

from skillopt_es.adapters.environments.data import read_rows, text_of
from skillopt_es.adapters.environments.tasks.checks import read_checks
from skillopt_es.adapters.tasksets.rows import Row, Taken, read_dataset, read_table, settled, tasks_of
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json

_VARIABLE = re.compile(r"\{\{-?\s*([\w.]+)\s*-?\}\}")
_ASSERTS = {"equals": "exact", "icontains": "contains", "contains": "contains", "regex": "regex", "llm-rubric": "judge"}


def read_taskset(path: Path, kind: str, mapping: Mapping[str, str]) -> tuple[str, Taken]:
    """The tasks in a file or folder, and which kind of file it is; raises DataError."""
    if not path.exists():
        raise DataError(f"there is no file {path}", hint="check its name")
    kind = kind or kind_of(path)
    return kind, READERS[kind](path, mapping)


_SUFFIXES = {".yaml": "promptfoo", ".yml": "promptfoo", ".eval": "inspect"}
_OBJECTS = {"inspect": {"eval", "samples"}, "dspy": {"demos", "signature"}, "promptfoo": {"tests"}}
_ROWS = {"sleep": {"intent"}, "openai": {"input", "ideal"}, "inspect": {"input", "target"}}


def kind_of(path: Path) -> str:
    """What kind of file it is, by its name and how it begins."""
    if path.is_dir():
        return "huggingface"
    if path.suffix in _SUFFIXES or path.suffix in (".csv", ".tsv", ".parquet", ".arrow"):
        return _SUFFIXES.get(path.suffix, "table")
    value = whole = _whole(path)
    if isinstance(value, dict):
        keys = value.keys()
        value = value.get("tasks", value.get("data"))
        if found := [name for name, needed in _OBJECTS.items() if needed <= keys]:
            return found[0]
        if _predictors(whole):
            return "dspy"
    rows = value if isinstance(value, list) else [row for _, row in read_rows(path)]
    first = rows[0] if rows and isinstance(rows[0], dict) else {}
    return next((name for name, needed in _ROWS.items() if needed <= first.keys()), "table")


def _whole(path: Path) -> Json:
    """All of a JSON file; None for one that has a value a line."""
    try:
        found: Json = json.loads(text_of(path))
    except (ValueError, RecursionError):
        return None
    return found


def _table(path: Path, mapping: Mapping[str, str]) -> Taken:
    return tasks_of(read_table(path), mapping, path.stem)


def _huggingface(path: Path, mapping: Mapping[str, str]) -> Taken:
    rows = read_dataset(path) if path.is_dir() else read_table(path)
    if not rows:
        raise DataError(f"{path} has no .arrow files", hint="name the folder that `save_to_disk` wrote")
    return tasks_of(rows, mapping, path.name)


def _rows_of(path: Path, *keys: str) -> list[tuple[str, Row]]:
    """The objects of a list, of a list under one of these keys, or one a line."""
    value = _whole(path)
    for key in keys:
        if isinstance(value, dict) and isinstance(value.get(key), list):
            value = value[key]
    if not isinstance(value, list):
        return read_table(path)
    if not all(isinstance(row, dict) for row in value):
        raise DataError(f"{path}: not a list of objects", hint="each task is one JSON object")
    return [(f"{path}:{number}", cast(Row, row)) for number, row in enumerate(value, start=1)]


def _inspect(path: Path, mapping: Mapping[str, str]) -> Taken:
    if path.suffix == ".eval":
        raise DataError(
            f"{path.name} is packed in Inspect's own way", hint="unpack it first: inspect log convert --to json"
        )
    tasks: list[Row] = []
    left: list[tuple[str, str]] = []
    rows = _rows_of(path, "samples")
    for number, (where, row) in enumerate(rows, start=1):
        if row.get("epoch", 1) != 1:
            left.append((where, "a further epoch of a sample that is there"))
            continue
        if row.get("files") or row.get("sandbox"):
            left.append((where, "it needs files or a sandbox"))
            continue
        task: Row = {"id": row.get("id"), "expected": row.get("target"), **_asked(row.get("input"))}
        if row.get("choices"):
            task |= {"choices": row["choices"], "grader": "choice"}
            listed = "\n".join(f"{chr(65 + n)}) {each}" for n, each in enumerate(cast("list[Json]", row["choices"])))
            if "input" in task:
                task["input"] = f"{task['input']}\n\n{listed}"
        if row.get("metadata"):
            task["metadata"] = row["metadata"]
        tasks.append(settled(task, path.stem, number))
    return Taken(tasks=tuple(tasks), left=tuple(left), notes=("solver, tools and scorer stay behind",))


def _asked(value: Json) -> Row:
    """A question, or a conversation of texts."""
    if not isinstance(value, list):
        return {"input": value}
    messages = [each for each in value if isinstance(each, dict)]
    return {"messages": [{"role": each.get("role"), "content": each.get("content")} for each in messages]}


def _openai(path: Path, mapping: Mapping[str, str]) -> Taken:
    tasks = []
    for number, (_, row) in enumerate(_rows_of(path), start=1):
        asked = _asked(row.get("input"))
        listed = asked.get("messages")
        if isinstance(listed, list) and listed and all(isinstance(each, dict) for each in listed):
            last = cast("dict[str, Json]", listed[-1])
            if last["role"] == "system":  # theirs often ask in a system message alone
                last["role"] = "user"
        tasks.append(settled({"id": row.get("id"), "expected": row.get("ideal"), **asked}, path.stem, number))
    return Taken(tasks=tuple(tasks))


def _dspy(path: Path, mapping: Mapping[str, str]) -> Taken:
    value = _whole(path)
    if predictors := _predictors(value):
        parts = [
            row for one in predictors for key in ("train", "demos") for row in cast("list[Row]", one.get(key) or [])
        ]
        rows = [(f"{path}:{number}", row) for number, row in enumerate(parts, start=1)]
    else:
        rows = _rows_of(path)
    return tasks_of(rows, mapping, path.stem)


def _predictors(value: Json) -> list[Mapping[str, Json]]:
    """The predictors of a saved program: it is one, or it holds them by their names."""
    if not isinstance(value, dict):
        return []
    within = [value, *value.values()]
    return [each for each in within if isinstance(each, dict) and _OBJECTS["dspy"] <= each.keys()]


def _sleep(path: Path, mapping: Mapping[str, str]) -> Taken:
    tasks: list[Row] = []
    left: list[tuple[str, str]] = []
    for number, (where, row) in enumerate(_rows_of(path, "tasks"), start=1):
        kind, reference = row.get("reference_kind", "none"), row.get("reference")
        asked = "\n\n".join(str(row[key]) for key in ("intent", "context_excerpt") if row.get(key))
        task: Row = {"id": row.get("id"), "split": _OLD_SPLITS.get(str(row.get("split")), row.get("split", "train"))}
        if kind == "exact" and reference:
            task |= {"expected": reference, "grader": "normalized"}
        elif kind == "rubric" and reference:
            task |= {"grader": "judge", "rubric": {"rubric": reference}}
        elif kind == "rule" and not (problem := _rule_problem(row.get("judge"))):
            task |= {"grader": "checks", "checks": cast(Json, [*_rule_checks(row["judge"])])}
        else:
            left.append((where, problem if kind == "rule" else "it has no reference"))
            continue
        if not asked:
            left.append((where, "it asks nothing"))
            continue
        system = row.get("system")
        own = [{"role": "system", "content": system}, {"role": "user", "content": asked}]
        task |= {"messages": cast(Json, own)} if system else {"input": asked}
        # Mined from sessions: nobody vouches for what stands in them.
        tasks.append(settled({**task, "trust": "untrusted", "origin": row.get("origin", "real")}, path.stem, number))
    ruled = any(task.get("grader") == "checks" for task in tasks)
    return Taken(tasks=tuple(tasks), left=tuple(left), notes=(_AS_CHECKS,) if ruled else ())


_AS_CHECKS = (
    "rules became checks: a section has to have that very heading, and something below it; what must not be "
    "contained is looked for as whole words"
)
_RULES: Mapping[str, Callable[[Json], Row]] = {
    "section_present": lambda arg: {"check": "section_contains", "section": str(arg)},
    "contains": lambda arg: {"check": "contains", "text": str(arg)},
    "not_contains": lambda arg: {"check": "lacks", "text": str(arg)},
    "regex": lambda arg: {"check": "matches", "pattern": str(arg)},
    "max_chars": lambda arg: {"check": "at_most", "count": _whole_number(arg), "of": "characters"},
    "min_chars": lambda arg: {"check": "at_least", "count": _whole_number(arg), "of": "characters"},
    "tool_called": lambda arg: {"check": "tool_called", "name": str(arg)},
}
"""The checks of its rules that we have, too."""


def _whole_number(value: Json) -> Json:
    return int(value) if isinstance(value, str) and value.strip().isdecimal() else value


def _rules(judge: Json) -> list[Mapping[str, Json]]:
    """The checks of a rule; none where it has not the form that is known."""
    checks = judge.get("checks") if isinstance(judge, dict) else None
    if not isinstance(checks, list) or not all(isinstance(each, dict) for each in checks):
        return []
    return cast("list[Mapping[str, Json]]", checks)


def _rule_checks(judge: Json) -> Iterator[Row]:
    for each in _rules(judge):
        yield _RULES[str(each["op"])](each.get("arg"))


def _rule_problem(judge: Json) -> str:
    """Why a rule cannot be taken; nothing where it can."""
    rules = _rules(judge)
    if not rules:
        return "its rule has no checks in a form that is known"
    unknown = [str(each.get("op")) for each in rules if str(each.get("op")) not in _RULES]
    if unknown:
        return f"its rule has the check {unknown[0]!r}, which has no counterpart here"
    try:
        read_checks(cast(Json, [*_rule_checks(judge)]))
    except ValueError as error:
        return f"its rule {error}"
    return ""


_OLD_SPLITS = {"replay": "train", "holdout": "val"}


def _promptfoo(path: Path, mapping: Mapping[str, str]) -> Taken:
    try:
        suite = yaml.safe_load(text_of(path))
    except yaml.YAMLError as error:
        raise DataError(f"{path} is not YAML: {error}", hint="correct it first") from error
    tests = suite.get("tests") if isinstance(suite, dict) else suite
    if not isinstance(tests, list):
        raise DataError(
            f"{path} has no list of `tests`", hint="tests in another file (file://…) are imported from that file"
        )
    prompts = suite.get("prompts", []) if isinstance(suite, dict) else []
    prompt = next((each for each in prompts if isinstance(each, str) and not each.startswith("file://")), "")
    default = (suite.get("defaultTest") or {}) if isinstance(suite, dict) else {}
    tasks: list[Row] = []
    left: list[tuple[str, str]] = []
    for number, test in enumerate(tests, start=1):
        where = f"{path}: test {number}"
        if not isinstance(test, dict):
            left.append((where, "it stands in another file"))
            continue
        given = {**(default.get("vars") or {}), **(test.get("vars") or {})}
        graders = list(_graders([*(default.get("assert") or []), *(test.get("assert") or [])]))
        if len(graders) != 1:
            left.append((where, "it has no assertion with a counterpart here" if not graders else "it has several"))
            continue
        if problem := _unfilled(prompt, given):
            left.append((where, problem))
            continue
        every = [*_combined(given)]
        for nth, variables in enumerate(every, start=1):
            asked = _filled(prompt, variables) if prompt else next((str(value) for value in variables.values()), "")
            grader = {
                key: _filled(value, variables) if isinstance(value, str) else value for key, value in graders[0].items()
            }
            task = settled({"id": test.get("id"), "input": asked, **grader}, path.stem, number)
            tasks.append(task if len(every) == 1 else {**task, "id": f"{task['id']}-{nth}"})
    notes = [f"of {len(prompts)} prompts the first was taken"] if len(prompts) > 1 else []
    if any(task["grader"] == "contains" for task in tasks):
        notes.append("contains looks for whole words here, in any case")
    return Taken(tasks=tuple(tasks), left=tuple(left), notes=tuple(notes))


def _combined(given: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """One test for each combination of values, as a list of values means there."""
    choices = [value if isinstance(value, list) else [value] for value in given.values()]
    for values in product(*choices):
        yield dict(zip(given, values, strict=True))


def _unfilled(prompt: str, given: Mapping[str, Json]) -> str:
    """Why a prompt cannot be filled with these variables; nothing where it can."""
    for name, value in given.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict | list):
                return f"its variable {name} is no text"
            if isinstance(each, str) and each.startswith("file://"):
                return f"its variable {name} stands in another file"
    rest = _VARIABLE.sub(lambda found: "" if found[1] in given else found[0], prompt)
    return "its prompt needs what no variable gives" if "{{" in rest or "{%" in rest else ""


def _filled(prompt: str, given: Mapping[str, Json]) -> str:
    return _VARIABLE.sub(lambda found: str(given.get(found[1], found[0])), prompt)


def _graders(asserts: list[Json]) -> Iterator[Row]:
    for each in asserts:
        kind = each.get("type") if isinstance(each, dict) else None
        if isinstance(each, dict) and isinstance(kind, str) and kind in _ASSERTS and each.get("value") is not None:
            grader, value = _ASSERTS[kind], each["value"]
            yield {"grader": grader, **({"rubric": {"rubric": value}} if grader == "judge" else {"expected": value})}


READERS: Mapping[str, Callable[[Path, Mapping[str, str]], Taken]] = {
    "table": _table,
    "huggingface": _huggingface,
    "promptfoo": _promptfoo,
    "inspect": _inspect,
    "dspy": _dspy,
    "openai": _openai,
    "sleep": _sleep,
}
