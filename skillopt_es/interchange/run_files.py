"""A whole result folder of the original, written from a log alone: every file's path and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from attrs import define, field

from skillopt_es.algorithms.classic.state import ClassicState, classic
from skillopt_es.algorithms.evaluation.algorithm import EVALUATION
from skillopt_es.engine.algorithms import evolve
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.errors import NotInRun, OutputRefused
from skillopt_es.events.catalog import CandidateGated, RolloutCompleted, RunCompleted, RunStarted, SkillScored
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import BASELINE, FINAL_TEST, FINAL_VAL
from skillopt_es.events.values import ImportedUsage, Json, Score
from skillopt_es.interchange.epoch_files import EpochFiles
from skillopt_es.interchange.flat_config import flat_config
from skillopt_es.interchange.layout import (
    BASELINE_FOLDER,
    BEST,
    CONFIG,
    FINAL_FOLDER,
    HISTORY,
    LR_HISTORY,
    STATE,
    SUMMARY,
    TESTS,
    skill_file,
    step_folder,
)
from skillopt_es.interchange.rollout_files import File, OriginalRollouts, dumped, evaluation_files
from skillopt_es.interchange.segments import Segment, segments
from skillopt_es.interchange.step_files import StepFiles
from skillopt_es.interchange.step_parts import counted_usage, decision_line, usage_by_step, with_totals
from skillopt_es.projections.state import Origin
from skillopt_es.projections.usage import RunUsage, usage_of
from skillopt_es.sessions.opening import holds_answer

Record = dict[str, Json]
FORMAT = "skillopt-0.1.0"
"""What the original calls the format of its summary."""


def result_files(log: EventLog, out: Path) -> Iterator[File]:
    """The files of the run so far, as they would lie in `out`; of a path that comes twice the last text counts."""
    return _Folder(log, out.resolve()).files()


@define
class _Folder:
    """The run-wide files, gathered while the parts go by."""

    log: EventLog
    out: Path
    history: list[Json] = field(factory=list)
    choices: list[str] = field(factory=list)
    usage: RunUsage = field(init=False)
    by_step: Mapping[int, Mapping[str, ImportedUsage]] = field(init=False)
    measured: dict[str, tuple[Score, tuple[RolloutCompleted, ...]]] = field(factory=dict)
    baseline: Score | None = None
    final: Score | None = None
    seconds: float = 0.0
    origin: str = ""

    def __attrs_post_init__(self) -> None:
        self.usage = usage_of(Journal(self.log.reader).read())
        self.by_step = usage_by_step(Journal(self.log.reader))

    def files(self) -> Iterator[File]:
        first = next(self.log.read(until=1), None)
        if first is None or not isinstance(first.event, RunStarted):
            raise NotInRun(f"{self.log.run.name} has not begun: it has nothing to export yet")
        started, rollouts = first.event, self._rollouts(first.event)
        if started.algorithm == EVALUATION.name:
            yield from evaluation_files(self.log, self.out, rollouts)
            return
        yield from self._opening(started)
        state = classic(evolve(None, started))
        for part in segments(self.log.read()):
            state, started = part.after, part.after.started
            self.seconds += sum(part.seconds.values())
            self.origin = _origin(part, self.origin)
            yield from self._part(part, started, rollouts)
        yield from self._closing(state, started)

    def _rollouts(self, started: RunStarted) -> OriginalRollouts:
        section = started.config.get("env")
        name = section.get("name") if isinstance(section, dict) else None
        holds = holds_answer(name) if isinstance(name, str) else None
        return OriginalRollouts(RecordedTexts(self.log, Journal(self.log.reader)), holds)

    def _opening(self, started: RunStarted) -> Iterator[File]:
        if len(started.skill.files) > 1:
            raise OutputRefused(
                f"the skill of {self.log.run.name} has {len(started.skill.files)} files, and the original knows one",
                hint="`skillopt-es export --format skill` writes them all",
            )
        yield CONFIG, dumped(self._config(started))
        yield skill_file(0), started.skill.text

    def _config(self, started: RunStarted) -> Record:
        flat = flat_config(started.config)
        per_epoch = started.steps_per_epoch
        derived: Record = {"steps_per_epoch": per_epoch, "out_root": str(self.out)}
        accumulation = flat.get("accumulation")
        if isinstance(accumulation, int):
            derived["batches_per_epoch"] = per_epoch * accumulation
        if started.splits.digests:
            size = len(started.splits.train)
            derived |= {"train_size": size, "samples_per_epoch": size}
        whole: Record = {"skill_update_mode": "patch", **flat, **derived}
        return {key: whole[key] for key in sorted(whole)}

    def _part(self, part: Segment, started: RunStarted, rollouts: OriginalRollouts) -> Iterator[File]:
        for scored in part.all(SkillScored):
            if scored.purpose == "selection" and scored.exact:
                self.measured.setdefault(scored.skill, (scored.score, part.rollouts(scored.place)))
        match part.kind:
            case "start":
                first = part.scored("selection")
                self.baseline = self.baseline or (first.score if first else None)
                yield from rollouts.files(BASELINE_FOLDER, part.rollouts(BASELINE))
            case "step":
                yield from self._step(part, started, rollouts)
            case "epoch_end":
                yield from EpochFiles(part, flat_config(started.config), rollouts).files()
            case "end":
                yield from self._end(part, rollouts)

    def _step(self, part: Segment, started: RunStarted, rollouts: OriginalRollouts) -> Iterator[File]:
        config, usage = flat_config(started.config), self.by_step.get(part.number, {})
        step = StepFiles(part, started.steps_per_epoch, config, usage, rollouts, self.origin)
        yield from step.files()
        self.choices.append(decision_line(part, rollouts.evidence))
        record = step.record()
        if record is not None:
            self.history.append(record)
            yield f"{step_folder(part.number)}/step_record.json", dumped(record)

    def _end(self, part: Segment, rollouts: OriginalRollouts) -> Iterator[File]:
        skills = {
            "initial": part.after.started.skill.hash,
            "best": part.after.best.skill.hash,
            "final": part.after.current.skill.hash,
        }
        yield from self._final(part, skills, rollouts)
        tested = [row for row in part.all(SkillScored) if row.purpose == "test"]
        by_skill, by_place = {row.skill: row for row in tested}, {row.place: row for row in tested}
        for name, folder in TESTS.items():
            scored = by_place.get(FINAL_TEST / name, by_skill.get(skills[name]))
            if scored is None:
                continue
            # A text is tried once with us; the original has the best skill's results also where it is the initial one.
            if scored.place == FINAL_TEST / name or name == "best":
                yield from rollouts.files(folder, part.rollouts(scored.place))
            yield f"{folder}/{SUMMARY}", dumped(_table(scored, untyped=rollouts.untyped))

    def _final(self, part: Segment, skills: Mapping[str, str], rollouts: OriginalRollouts) -> Iterator[File]:
        """The last skill's evaluation, where it is not the best one: made at the end, or before and not again."""
        scored = part.scored("selection", FINAL_VAL)
        if scored is not None:
            self.final = scored.score if scored.exact else None
            yield from rollouts.files(FINAL_FOLDER, part.rollouts(FINAL_VAL))
        elif part.after.completed is not None and part.after.completed.test_best and skills["final"] != skills["best"]:
            score, rows = self.measured.get(skills["final"], (None, ()))
            self.final = score
            yield from rollouts.files(FINAL_FOLDER, rows)

    def _closing(self, state: ClassicState, started: RunStarted) -> Iterator[File]:
        yield HISTORY, dumped(self.history)
        if any(self.choices):
            yield LR_HISTORY, "".join(self.choices)
        if self.history or state.best.value is not None:
            yield BEST, state.best.skill.text
            yield STATE, dumped(self._runtime_state(state))
        if state.completed is not None:
            yield SUMMARY, dumped(self._summary(state, started, state.completed))

    def _runtime_state(self, state: ClassicState) -> Record:
        current, best = self._values(state)
        return {
            "last_completed_step": state.steps_done,
            "current_skill_path": str(self.out / skill_file(state.steps_done)),
            "current_score": current,
            "current_origin": self.origin,
            "best_skill_path": str(self.out / BEST),
            "best_score": best,
            "best_step": state.best.step,
            "best_origin": str(state.best.origin),
        }

    def _values(self, state: ClassicState) -> tuple[Json, Json]:
        """The scores of the current and the best skill, which an imported run has in its last record."""
        last = cast("Record", self.history[-1]) if self.history and state.imported is not None else {}
        current, best = state.current.value, state.best.value
        return (last.get("current_score") if current is None else current), (
            last.get("best_score") if best is None else best
        )

    def _summary(self, state: ClassicState, started: RunStarted, done: RunCompleted) -> Record:
        rows = [cast("Record", row) for row in self.history]
        same = state.current.skill.hash == state.best.skill.hash
        _, best = self._values(state)
        tested, there = bool(done.test_best), state.imported
        final_hard = best if same else (self.final.hard if self.final else None)
        return {
            "version": FORMAT,
            "config": self._config(started),
            "baseline_selection_hard": _hard(self.baseline),
            "best_selection_hard": best,
            "final_selection_hard": final_hard if tested else None,
            "final_selection_soft": self.final.soft if tested and self.final and not same else None,
            "best_step": state.best.step,
            "current_origin": self.origin,
            "best_origin": str(state.best.origin),
            "total_steps": len(rows),
            **_counted(rows, "total_"),
            "epoch_stats": _epoch_stats(rows),
            "baseline_test_hard": _hard(done.test_initial),
            "baseline_test_soft": _soft(done.test_initial),
            "test_hard": _hard(done.test_best),
            "test_soft": _soft(done.test_best),
            "final_test_hard": _hard(done.test_final),
            "final_test_soft": _soft(done.test_final),
            "test_delta_hard": _gain(done.test_best, done.test_initial),
            "final_test_delta_hard": _gain(done.test_final, done.test_initial),
            "total_wall_time_s": round(self.seconds, 1) if there is None else there.seconds.get("run"),
            "token_summary": with_totals(counted_usage(self.usage) if there is None else there.usage),
        }


def _origin(part: Segment, before: str) -> str:
    """Where the current skill comes from; to the original, reminder notes do not make another one of it."""
    origin, gated = part.after.current.origin, part.last(CandidateGated)
    only_notes = origin.kind == "appendix" or (origin.kind == "unknown" and origin.place == "start")
    if only_notes and gated is not None and gated.verdict.action != "reject":
        return str(Origin(kind="step", step=gated.step))
    return before or "initial_skill" if only_notes else str(origin)


def _table(scored: SkillScored, *, untyped: bool) -> Record:
    """A test by kind of item. The original's rows of SearchQA name no kind, so all of its items count as others."""
    whole = _accuracy(scored.score)
    if untyped:
        return {"qa": {"total": 0, "hard_acc": 0.0}, "overall": whole, "other": whole}
    return {**{kind: _accuracy(score) for kind, score in scored.by_type.items()}, "overall": whole}


def _accuracy(score: Score) -> Record:
    return {"total": score.measured, "hard_acc": score.hard}


def _hard(score: Score | None) -> float | None:
    return None if score is None else score.hard


def _soft(score: Score | None) -> float | None:
    return None if score is None else score.soft


def _gain(score: Score | None, base: Score | None) -> float | None:
    return None if score is None or base is None else (score.hard or 0) - (base.hard or 0)


def _counted(rows: list[Record], prefix: str) -> Record:
    actions = [str(row["action"]) for row in rows]
    return {
        f"{prefix}accepts": sum("accept" in action for action in actions),
        f"{prefix}rejects": sum(action == "reject" for action in actions),
        f"{prefix}skips": sum(action == "skip_no_patches" for action in actions),
    }


def _epoch_stats(rows: list[Record]) -> list[Json]:
    epochs: dict[Json, list[Record]] = {}
    for row in rows:
        epochs.setdefault(cast("str", row["epoch"]), []).append(row)
    return [
        {
            "epoch": epoch,
            "steps": [row["step"] for row in own],
            **_counted(own, ""),
            "best_score_at_epoch_end": own[-1]["best_score"],
            "current_score_at_epoch_end": own[-1]["current_score"],
        }
        for epoch, own in epochs.items()
    ]
