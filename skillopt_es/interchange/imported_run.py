"""A result folder of the original as the events of a log: what is recorded, and a marker for what is not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path, PurePosixPath

from attrs import frozen

from skillopt_es.algorithms.classic.state import ClassicState, classic
from skillopt_es.algorithms.imported.algorithm import IMPORTED
from skillopt_es.algorithms.imported.original_edits import noted_by_original
from skillopt_es.engine.algorithms import evolve, fold
from skillopt_es.events.catalog import (
    BestPromoted,
    EpochCompleted,
    EpochPlanned,
    Event,
    RunCompleted,
    RunImported,
    RunStarted,
)
from skillopt_es.events.create import Contents
from skillopt_es.events.places import BASELINE, FINAL_TEST, FINAL_VAL, Place
from skillopt_es.events.values import Score, SkillTree, SplitIds, digest_of
from skillopt_es.events.writer import RunWriter
from skillopt_es.interchange.builder import Builder, score_of
from skillopt_es.interchange.flat_config import nested_config
from skillopt_es.interchange.imported_edits import write_notes
from skillopt_es.interchange.imported_epochs import import_epoch_end
from skillopt_es.interchange.imported_steps import follow_text, import_step
from skillopt_es.interchange.layout import BEST
from skillopt_es.interchange.original import Original, SummaryRecord


@frozen
class Imported:
    """The events of an imported run, and the texts that they refer to."""

    events: tuple[Event, ...]
    texts: tuple[str, ...]


def imported_run(original: Original) -> Imported:
    """The whole run, as far as its folder goes."""
    per_epoch, why = _steps_per_epoch(original)
    build = Builder.begin(original, _started(original, per_epoch))
    build.add(_imported(original))
    for problem in original.problems:
        build.gap("folder", problem.path, problem.why)
    if why:
        build.gap("folder", "how many steps an epoch has", why)
    _baseline(build)
    _empty_appendix(build)
    last = max(original.steps, default=0)
    for epoch in range(1, (last - 1) // per_epoch + 2 if last else 1):
        _epoch(build, epoch, per_epoch, last)
    _end(build)
    return Imported(tuple(build.events), tuple(build.texts))


def _started(original: Original, per_epoch: int) -> RunStarted:
    config = original.config
    name = config.get("skill_init")
    main = PurePosixPath(name).name if isinstance(name, str) and name.endswith(".md") else "SKILL.md"
    epochs = config.get("num_epochs")
    last = max(original.steps, default=0)
    planned = epochs * per_epoch if isinstance(epochs, int) and not isinstance(epochs, bool) else 0
    return RunStarted(
        software="skillopt (imported)",
        config=nested_config(config),
        folder=".",
        skill=SkillTree(files={main: original.initial}, main=main),
        splits=SplitIds(train=(), val=(), test=(), digests={}),
        steps_per_epoch=per_epoch,
        total_steps=max(planned, last, per_epoch),
        notes=("the items of the splits are not in a result folder",),
        algorithm=IMPORTED.name,
    )


def _steps_per_epoch(original: Original) -> tuple[int, str]:
    """How many steps an epoch has, and what is uncertain about it."""
    configured = original.config.get("steps_per_epoch")
    if isinstance(configured, int) and not isinstance(configured, bool) and configured > 0:
        return configured, ""
    records = [step.record for step in original.steps.values() if step.record is not None]
    for record in records:
        if record.epoch is not None and record.index is not None and record.epoch > 1:
            first = record.step - 1 - record.index
            if first > 0 and first % (record.epoch - 1) == 0:
                return first // (record.epoch - 1), ""
    return max(original.steps, default=1), "the settings do not say, and the records are of one epoch only"


def _imported(original: Original) -> RunImported:
    seconds: dict[str, float | None] = {"run": original.summary.seconds if original.summary else None}
    for number, epoch in original.epochs.items():
        seconds[Place.of_epoch(number).slow] = epoch.slow.seconds if epoch.slow else None
        seconds[Place.of_epoch(number) / "meta"] = epoch.meta.seconds if epoch.meta else None
    return RunImported(
        source="skillopt",
        folder=original.folder,
        seconds={place: each for place, each in seconds.items() if each is not None},
        usage=original.summary.usage if original.summary else {},
    )


def _baseline(build: Builder) -> None:
    rows, skill = build.original.baseline, build.current.skill.hash
    build.rollouts(BASELINE, "selection", skill, rows)
    if build.scored(BASELINE, "selection", skill, rows) is None:
        build.gap(BASELINE, "what the initial skill measured", "selection_eval_baseline/results.jsonl is not there")


def _empty_appendix(build: Builder) -> None:
    """With reminder notes the original's first step has another text than the one that was measured."""
    skill = build.current.skill
    if not build.of_original or not build.original.config.get("use_skill_aware_reflection"):
        return
    text = noted_by_original(skill.text, ())
    if text != skill.text:
        why = "it is the initial skill with an empty appendix for reminder notes, which was not measured"
        build.gap("start", "the score of the first step's skill", why, skill=build.tree(text))


def _epoch(build: Builder, epoch: int, per_epoch: int, last: int) -> None:
    """One epoch: its steps, and its end where there is one."""
    original = build.original
    earlier = original.epochs.get(epoch - 1)
    meta_skill = earlier.meta.content if earlier and earlier.meta and earlier.meta.action == "write_meta_skill" else ""
    build.add(EpochPlanned(epoch=epoch, batches=(), meta_skill=meta_skill))
    final = epoch * per_epoch
    for number in range(final - per_epoch + 1, min(final, last) + 1):
        import_step(build, original.steps[number], epoch, last=number == last)
        write_notes(build, original.steps[number], kept=number != final)
        if build.state.steps_done == number and number != final:
            follow_text(build, number, original.steps[number].skill, Place.of_step(epoch, number))
    if build.state.steps_done < final:
        return
    import_epoch_end(build, epoch)
    follow_text(build, final, original.steps[final].skill, Place.of_epoch(epoch))
    if last > final or original.summary is not None or _ended(build, epoch):
        build.add(EpochCompleted(epoch=epoch))


def _ended(build: Builder, epoch: int) -> bool:
    """Whether all that the settings ask for at an epoch's end was done."""
    config, end = build.original.config, build.original.epochs.get(epoch)
    slow, meta = config.get("use_slow_update"), config.get("use_meta_skill")
    return (
        bool(config)
        and (not slow or (end is not None and end.slow is not None))
        and (not meta or (end is not None and end.meta is not None))
    )


def _end(build: Builder) -> None:
    """The final evaluation, the tests and the summary."""
    original, summary = build.original, build.original.summary
    known = not build.of_original and build.current.skill.hash in build.state.measured  # our export repeats it
    if not known and (original.final is not None or (summary and summary.final_soft is not None)):
        skill = build.current.skill.hash
        build.rollouts(FINAL_VAL, "selection", skill, original.final)
        recorded = (summary.final_hard, summary.final_soft) if summary else (None, None)
        build.scored(FINAL_VAL, "selection", skill, original.final, recorded=recorded)
    if original.best is not None and original.best != build.best.skill.text:
        _other_best(build, original.best)
    if summary is None:
        return
    scores = {name: _test(build, summary, name) for name in ("initial", "best", "final")}
    build.add(
        RunCompleted(
            best=build.best.skill.hash,
            final=build.current.skill.hash,
            test_initial=scores["initial"],
            test_best=scores["best"],
            test_final=scores["final"],
        )
    )


def _other_best(build: Builder, text: str) -> None:
    """The best skill is not the one that the verdicts lead to: the final one took its place, or nobody knows why."""
    summary = build.original.summary
    value = build.current.value if summary is None or summary.best_value is None else summary.best_value
    if text == build.current.skill.text and value is not None and summary is not None:
        build.add(
            BestPromoted(
                skill=build.current.skill.hash,
                value=value,
                previous=build.best.skill.hash,
                previous_value=build.best.value,
            )
        )
    else:
        build.gap("end", "how the best skill came about", f"{BEST} is not the text that the recorded verdicts lead to")


def _test(build: Builder, summary: SummaryRecord, name: str) -> Score | None:
    record, recorded = build.original.tests.get(name), summary.tests[name]
    rows = record.rows if record else None
    count = record.table.get("overall", (None, None))[0] if record else None
    skills = {"initial": build.state.started.skill, "best": build.best.skill, "final": build.current.skill}
    skill, place = skills[name].hash, FINAL_TEST / name
    if not build.of_original and skill in build.state.tests:  # one of equal texts was tried, and our export repeats it
        return score_of(rows, recorded, count)
    build.rollouts(place, "test", skill, rows)
    if rows is not None or (record is not None and skill not in build.state.tests):
        build.scored(place, "test", skill, rows, recorded=recorded, measured=count)
    return score_of(rows, recorded, count)


def write_run(imported: Imported, folder: Path, *, now: Callable[[], datetime]) -> ClassicState:
    """A new run in a folder that has none; the state that its log leads to."""
    run_id = digest_of(f"{folder.name} {now().isoformat()}".encode())[:16]
    contents = Contents(imported.events, imported.texts)
    RunWriter.create(folder, run_id=run_id, name=folder.name, now=now, contents=contents).close()
    first, *others = imported.events
    return classic(fold(others, evolve(None, first)))
