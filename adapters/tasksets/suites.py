"""Test suites of other tools: promptfoo, Inspect, OpenAI Evals, DSPy and SkillOpt-Sleep."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import cast

import yaml
from attrs import frozen

from skillopt_es.adapters.environments.data import read_rows, text_of
from skillopt_es.adapters.environments.tasks.checks import read_checks
from skillopt_es.adapters.tasksets.rows import (
    ASSERTED,
    Row,
    Taken,
    read_dataset,
    read_table,
    settled,
    tasks_of,
    with_splits,
)
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json

_VARIABLE = re.compile(r"\{\{-?\s*([\w.]+)\s*-?\}\}")


def read_taskset(path: Path, kind: str, mapping: Mapping[str, str]) -> tuple[str, Taken]:
    """The tasks in a file or folder, and which kind of file it is; raises DataError."""
    if not path.exists():
        raise DataError(f"there is no file {path}", hint="check its name")
    kind = kind or kind_of(path)
    return kind, with_splits(READERS[kind](path, mapping), path)


_SUFFIXES = {".yaml": "promptfoo", ".yml": "promptfoo", ".eval": "inspect"}
_OBJECTS = {"inspect": {"eval", "samples"}, "dspy": {"demos", "signature"}, "promptfoo": {"tests"}}
_ROWS = {"sleep": {"intent"}, "openai": {"input", "ideal"}, "inspect": {"input", "target"}}


def kind_of(path: Path) -> str:
    """What kind of file it is, by its name and how it begins."""
    if path.is_dir():
        return "huggingface"
    if path.suffix in (".csv", ".tsv") and any(
        ASSERTED.fullmatch(name) for _, row in read_table(path)[:1] for name in row
    ):
        return "promptfoo"
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
    if path.suffix in (".csv", ".tsv"):
        return _promptfoo_table(path, mapping)
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
    tests = [(f"{path}: test {number}", test) for number, test in enumerate(tests, start=1)]
    notes = [f"of {len(prompts)} prompts the first was taken"] if len(prompts) > 1 else []
    return _promptfoo_tests(tests, default, prompt, path.stem, notes)


def _promptfoo_table(path: Path, mapping: Mapping[str, str]) -> Taken:
    """Tests in a table: each column is a variable, but for those with two lines in front of their names."""
    rows = read_table(path)
    columns = [name for name in dict.fromkeys(name for _, row in rows for name in row) if not name.startswith("__")]
    asked = mapping.get("input", columns[0] if columns else "")
    if not columns:
        raise DataError(
            f"{path} has no column for the question of a task, only assertions about the answer",
            hint="add a column such as `input`",
        )
    if asked not in columns:
        raise DataError(f"{path}: there is no such field: {asked}", hint=f"there are: {', '.join(columns)}")
    tests: list[tuple[str, Json]] = []
    for where, row in rows:
        marks = [str(row[name]) for name in row if ASSERTED.fullmatch(name) and str(row[name] or "").strip()]
        variables = {name: row.get(name) for name in columns}
        own = {ours: row.get(theirs) for ours, theirs in mapping.items() if ours in ("id", "type", "split")}
        tests.append((where, {**own, "vars": variables, "assert": [_written_assert(mark) for mark in marks]}))
    notes = [f"input from {asked}; the prompt that the variables fill is not in the table"]
    return _promptfoo_tests(tests, {}, f"{{{{{asked}}}}}", path.stem, notes)


_WRITTEN = re.compile(r"(?P<kind>[a-z][a-z-]*)(?:\([^)]*\))?:\s*(?P<value>.*)", re.DOTALL)


def _written_assert(text: str) -> dict[str, Json]:
    """An assertion in a cell: `contains: X`; a text without a kind is what the answer has to be."""
    said = text.strip()
    if said in _ASSERTS and _ASSERTS[said].without_value:
        return {"type": said}
    found = _WRITTEN.fullmatch(said)
    if found is None or (found["kind"] not in _ASSERTS and found["kind"] not in _NOT_OURS):
        return {"type": "equals", "value": said}
    kind, value = found["kind"], found["value"].strip()
    listed: Json = [part.strip() for part in value.split(",")]
    return {"type": kind, "value": listed if kind in ("contains-all", "contains-any") else value}


def _promptfoo_tests(
    tests: Sequence[tuple[str, Json]], default: Mapping[str, Json], prompt: str, stem: str, notes: list[str]
) -> Taken:
    tasks: list[Row] = []
    left: list[tuple[str, str]] = []
    for number, (where, test) in enumerate(tests, start=1):
        if not isinstance(test, dict):
            left.append((where, "it stands in another file"))
            continue
        given = {**_mapping(default.get("vars")), **_mapping(test.get("vars"))}
        asserts = [*_listed(default.get("assert")), *_listed(test.get("assert"))]
        problem = _unfilled(prompt, given)
        grader = None if problem else _grader(asserts)
        if grader is None:
            left.append((where, problem or _why_no_grader(asserts)))
            continue
        every = [*_combined(given)]
        for nth, variables in enumerate(every, start=1):
            asked = _filled(prompt, variables) if prompt else next((str(value) for value in variables.values()), "")
            if not asked.strip():
                left.append((where, "it asks nothing"))
                continue
            own = {key: test[key] for key in ("id", "type", "split") if test.get(key) is not None}
            graded = cast(Row, _all_filled(grader, variables))
            task = settled({"id": None, **own, "input": asked, **graded}, stem, number)
            tasks.append(task if len(every) == 1 else {**task, "id": f"{task['id']}-{nth}"})
    if any(task["grader"] in ("contains", "checks") for task in tasks):
        notes.append("contains looks for whole words here, in any case; several assertions of a test are its checks")
    return Taken(tasks=tuple(tasks), left=tuple(left), notes=tuple(notes))


def _mapping(value: Json) -> Row:
    return value if isinstance(value, dict) else {}


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


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


def _all_filled(value: Json, given: Mapping[str, Json]) -> Json:
    if isinstance(value, dict):
        return {key: _all_filled(each, given) for key, each in value.items()}
    if isinstance(value, list):
        return [_all_filled(each, given) for each in value]
    return _filled(value, given) if isinstance(value, str) else value


@frozen
class _Assert:
    """An assertion that we have, too: as a grader of its own, where there is one, and as checks beside others."""

    grader: str
    checks: Callable[[Json], list[Row]] | None
    without_value: bool = False


def _texts(value: Json) -> list[str]:
    return [str(each) for each in (value if isinstance(value, list) else [value])]


def _one_of(texts: Sequence[str]) -> str:
    return "(?i)" + "|".join(re.escape(text) for text in texts)


def _has(value: Json) -> list[Row]:
    return [{"check": "contains", "text": text} for text in _texts(value)]


_ASSERTS: Mapping[str, _Assert] = {
    "equals": _Assert("exact", lambda value: [{"check": "matches", "pattern": rf"\A\s*{re.escape(str(value))}\s*\Z"}]),
    "contains": _Assert("contains", _has),
    "icontains": _Assert("contains", _has),
    "contains-all": _Assert("", _has),
    "icontains-all": _Assert("", _has),
    "contains-any": _Assert("", lambda value: [{"check": "matches", "pattern": _one_of(_texts(value))}]),
    "icontains-any": _Assert("", lambda value: [{"check": "matches", "pattern": _one_of(_texts(value))}]),
    "not-contains": _Assert("", lambda value: [{"check": "lacks", "text": str(value)}]),
    "not-icontains": _Assert("", lambda value: [{"check": "lacks", "text": str(value)}]),
    "starts-with": _Assert("", lambda value: [{"check": "starts_with", "text": str(value)}]),
    "regex": _Assert("regex", lambda value: [{"check": "matches", "pattern": str(value)}]),
    "is-json": _Assert("", lambda _: [{"check": "is_json"}], without_value=True),
    "llm-rubric": _Assert("judge", None),
    "grade": _Assert("judge", None),
}
_NOT_OURS = frozenset(
    {"javascript", "python", "fn", "eval", "similar", "is-valid-openai-function-call", "cost", "latency", "webhook",
     "rouge-n", "levenshtein", "factuality", "file", "context-recall", "answer-relevance", "model-graded-closedqa"}
)  # fmt: skip
"""Kinds of assertions that have no counterpart here, which a cell may name in front of a colon."""


def _grader(asserts: Sequence[Json]) -> Row | None:
    """What grades a test; None where an assertion has no counterpart, or several have none that goes with others."""
    known = [*_known(asserts)]
    if len(known) != len(asserts) or not known:
        return None
    [(ours, value), *others] = known
    if not others and ours.grader:
        return {
            "grader": ours.grader,
            **({"rubric": {"rubric": value}} if ours.grader == "judge" else {"expected": value}),
        }
    checks: list[Json] = []
    for each, of in known:
        if each.checks is None:
            return None
        checks += each.checks(of)
    return {"grader": "checks", "checks": checks}


def _why_no_grader(asserts: Sequence[Json]) -> str:
    if not asserts:
        return "it has no assertion"
    if len([*_known(asserts)]) == len(asserts):
        return "it has a rubric and other assertions"
    return "it has an assertion with no counterpart here"


def _known(asserts: Sequence[Json]) -> Iterator[tuple[_Assert, Json]]:
    for each in asserts:
        kind = each.get("type") if isinstance(each, dict) else None
        if not isinstance(each, dict) or not isinstance(kind, str) or kind not in _ASSERTS:
            continue
        if each.get("value") is not None or _ASSERTS[kind].without_value:
            yield _ASSERTS[kind], each.get("value")


READERS: Mapping[str, Callable[[Path, Mapping[str, str]], Taken]] = {
    "table": _table,
    "huggingface": _huggingface,
    "promptfoo": _promptfoo,
    "inspect": _inspect,
    "dspy": _dspy,
    "openai": _openai,
    "sleep": _sleep,
}
