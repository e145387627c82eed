"""Reading a result folder of the original: what is there becomes typed values, what is broken is listed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from skillopt_es.errors import DataError
from skillopt_es.events.values import Json
from skillopt_es.interchange.fields import Fields, Source, record
from skillopt_es.interchange.layout import (
    BASELINE_FOLDER,
    BEST,
    CONFIG,
    FINAL_FOLDER,
    HISTORY,
    STATE,
    SUMMARY,
    TESTS,
    meta_file,
    meta_folder,
    safe_name,
    skill_file,
    slow_folder,
)
from skillopt_es.interchange.original import (
    Epoch,
    MetaResult,
    Original,
    Result,
    SlowResult,
    StateRecord,
    SummaryRecord,
    TestRecord,
)
from skillopt_es.interchange.rollout_files import read_results
from skillopt_es.interchange.step_folders import read_steps, read_usage

_EPOCH = re.compile(r"epoch_(\d{1,9})")
_KNOWN = (CONFIG, HISTORY, STATE, SUMMARY, "steps", "skills")


def read_folder(folder: Path) -> Original:
    """What a result folder says; raises DataError for one that is none, or has no skill to start from."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder", hint="name the folder that the original wrote its results to")
    source = Source(folder)
    if not any(source.exists(name) for name in _KNOWN):
        raise DataError(
            f"{folder} is not a result folder of SkillOpt", hint=f"such a folder has {CONFIG}, {HISTORY} and skills/"
        )
    initial = source.text(skill_file(0))
    if initial is None:
        why = source.problems[-1].why if source.problems else "it is not there"
        raise DataError(f"{folder}/{skill_file(0)}: {why}", hint="without the initial skill nothing can be followed")
    summary, state = source.fields(SUMMARY), source.fields(STATE)
    return Original(
        folder=folder.resolve().name,
        config=_config(source, summary),
        steps=read_steps(source),
        epochs={number: _epoch(source, number) for number in _epoch_numbers(source)},
        initial=initial,
        best=source.text(BEST),
        baseline=read_results(source, BASELINE_FOLDER),
        final=read_results(source, FINAL_FOLDER),
        tests={name: _test(source, at) for name, at in TESTS.items() if source.exists(at)},
        summary=None if summary is None else _summary(summary),
        state=None if state is None else record(StateRecord, state),
        problems=tuple(source.problems),
    )


def _config(source: Source, summary: Fields | None) -> Mapping[str, Json]:
    config = source.fields(CONFIG)
    if config is None and summary is not None:
        config = summary.inner("config")
    if config is None:
        source.say(CONFIG, "the settings are not there")
        return {}
    return config.values


def _epoch_numbers(source: Source) -> list[int]:
    names = {*source.folders("slow_update"), *source.folders("meta_skill")}
    return sorted(int(match[1]) for name in names if (match := _EPOCH.fullmatch(name)))


# --- the rest ------------------------------------------------------------------------------------------------------


def _epoch(source: Source, number: int) -> Epoch:
    folder = slow_folder(number)
    compared = folder if source.exists(f"{folder}/rollout_curr") else meta_folder(number)
    slow, meta = source.fields(f"{folder}/slow_result.json"), source.fields(meta_file(number))
    if not source.exists(compared):
        compared = folder
    pairs = source.rows(f"{compared}/comparison_pairs.json")
    further = _further(source, compared)
    return Epoch(
        number=number,
        slow=None if slow is None else record(SlowResult, slow),
        pairs=None if pairs is None else tuple((row.shown("id"), row.shown("category")) for row in pairs),
        candidate=source.text(f"{folder}/candidate_skill.md"),
        previous=_compared(source, f"{compared}/rollout_prev", further),
        current=_compared(source, f"{compared}/rollout_curr", further),
        further=tuple(further),
        selection=read_results(source, f"{folder}/selection_eval"),
        standing=read_results(source, f"{folder}/selection_eval_current"),
        meta=None if meta is None else record(MetaResult, meta),
    )


def _further(source: Source, folder: str) -> list[str]:
    """The items that were compared on top of the drawn ones, in the order in which they were drawn."""
    there = set(source.folders(f"{folder}/rollout_curr/topup"))
    if not there:
        return []
    rows = source.rows(f"{folder}/comparison_pairs_all.json") or ()
    return [item for item in (row.shown("id") for row in rows) if safe_name(item) in there]


def _compared(source: Source, folder: str, further: Sequence[str]) -> tuple[Result, ...] | None:
    """One skill's results: of the drawn items, then of each that came on top."""
    rows = read_results(source, folder)
    more = [read_results(source, f"{folder}/topup/{safe_name(item)}") for item in further]
    return None if rows is None else (*rows, *(row for each in more for row in each or ()))


def _test(source: Source, folder: str) -> TestRecord:
    table = source.fields(f"{folder}/{SUMMARY}")
    rows: dict[str, tuple[int | None, float | None]] = {}
    for kind in table.values if table else ():
        row = table.inner(kind) if table else None
        if row is not None:
            rows[kind] = (row.whole("total"), row.number("hard_acc"))
    return TestRecord(rows=read_results(source, folder), table=rows)


def _summary(row: Fields) -> SummaryRecord:
    names = {"initial": "baseline_test", "best": "test", "final": "final_test"}
    tests = {name: (row.number(f"{key}_hard"), row.number(f"{key}_soft")) for name, key in names.items()}
    return record(SummaryRecord, row, tests=tests, usage=read_usage(row.inner("token_summary")))
