"""Events of an imported run as they come about: each is folded at once, so that the next can lean on the state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from attrs import define, field

from skillopt_es.algorithms.classic.state import ClassicState, classic
from skillopt_es.engine.algorithms import evolve
from skillopt_es.engine.evaluations import mean_score
from skillopt_es.events.catalog import Event, GapFound, RolloutCompleted, RunStarted, SkillScored
from skillopt_es.events.values import GateMetric, Json, Measured, Purpose, Score, SkillTree, Split, text_digest
from skillopt_es.interchange.original import Original, Result
from skillopt_es.projections.state import Standing

_METRICS = ("hard", "soft", "mixed")


@define
class Builder:
    """The events so far, the state that they lead to, and the texts that they refer to."""

    original: Original
    state: ClassicState
    events: list[Event] = field(factory=list)
    texts: list[str] = field(factory=list)

    @classmethod
    def begin(cls, original: Original, started: RunStarted) -> Builder:
        """With the event that the run begins with."""
        return cls(original, classic(evolve(None, started)), events=[started])

    def add(self, event: Event) -> None:
        """One more event."""
        self.events.append(event)
        self.state = classic(evolve(self.state, event))

    def gap(self, place: str, what: str, why: str, *, step: int | None = None, skill: SkillTree | None = None) -> None:
        """Says that something is unknown."""
        self.add(GapFound(place=place, what=what, why=why, step=step, skill=skill))

    @property
    def of_original(self) -> bool:
        """Whether the original wrote the folder, and not an export of ours, whose texts follow our rules."""
        return "skillopt.follow" not in self.original.config

    @property
    def current(self) -> Standing:
        """The skill that is current."""
        return self.state.current

    @property
    def best(self) -> Standing:
        """The best skill."""
        return self.state.best

    def tree(self, text: str) -> SkillTree:
        """A skill of the run with this text."""
        return self.current.skill.with_text(text)

    def metric(self, recorded: str = "") -> GateMetric | None:
        """The gate's metric: as recorded, or as configured; None for one that is unknown."""
        name = recorded or self.original.config.get("gate_metric", "hard")
        name = name.strip().lower() if isinstance(name, str) else "hard" if name is None else name
        return cast("GateMetric", name) if name in _METRICS else None

    def value(self, score: Score) -> float | None:
        """What the gate would have compared; None when the settings do not say."""
        config = self.original.config
        if config.get("use_semantic_density") or not config:
            return None
        match self.metric():
            case "hard":
                return score.hard
            case "soft":
                return score.soft
            case "mixed":
                weight = config.get("gate_mixed_weight", 0.5)
                return (1 - weight) * score.hard + weight * score.soft if isinstance(weight, int | float) else None
            case _:
                return None

    def rollouts(self, place: str, purpose: Purpose, skill: str, rows: Sequence[Result] | None) -> None:
        """The rollouts of an evaluation, as far as they are there."""
        for row in rows or ():
            code, colon, detail = row.reason.partition(": ")
            self.add(
                RolloutCompleted(
                    place=place,
                    purpose=purpose,
                    item=row.item,
                    skill=skill,
                    outcome=Measured(row.hard, row.soft),
                    task_type=row.task_type,
                    turns=row.turns,
                    failure=code if colon else row.reason,
                    detail=detail,
                    prediction=row.prediction,
                    trajectory=self._trajectory(row),
                )
            )

    def _trajectory(self, row: Result) -> str:
        if row.conversation is None:
            return ""
        records: list[Json] = [[kind, text] for kind, text in row.conversation]
        blob = {"task": row.task, "records": records, **({"answers": row.answers} if row.answers else {})}
        # One spelling for each trajectory: its digest is its name in the log.
        text = json.dumps(blob, sort_keys=True, separators=(",", ":"))
        self.texts.append(text)
        return text_digest(text)

    def scored(
        self,
        place: str,
        purpose: Purpose,
        skill: str,
        rows: Sequence[Result] | None,
        *,
        recorded: tuple[float | None, float | None] = (None, None),
        measured: int | None = None,
        value: float | None = None,
    ) -> SkillScored | None:
        """A whole evaluation: by its recorded means, else by its rows; nothing when neither is there."""
        score = score_of(rows, recorded, measured)
        if score is None:
            return None
        if purpose == "selection" and value is None:
            value = self.value(score)
        split: Split = {"selection": "val", "test": "test"}.get(purpose, "train")  # type: ignore[assignment]
        event = SkillScored(
            place=place,
            purpose=purpose,
            split=split,
            skill=skill,
            score=score,
            value=value if purpose == "selection" else None,
            by_type=_by_type(rows),
        )
        self.add(event)
        return event


def score_of(
    rows: Sequence[Result] | None, recorded: tuple[float | None, float | None], measured: int | None = None
) -> Score | None:
    """The recorded means over as many items as there are rows; the rows' own means when none are recorded."""
    hard, soft = recorded
    count = len(rows) if rows is not None else measured
    if hard is not None and soft is not None:
        return Score(hard=hard, soft=soft, measured=count, unmeasured=None)
    if not rows:
        return None
    mean = mean_score([Measured(row.hard, row.soft) for row in rows])
    return Score(hard=mean.hard, soft=mean.soft, measured=mean.measured, unmeasured=None)


def _by_type(rows: Sequence[Result] | None) -> Mapping[str, Score]:
    groups: dict[str, list[Result]] = {}
    for row in rows or ():
        groups.setdefault(row.task_type or "other", []).append(row)
    scores = {kind: score_of(group, (None, None)) for kind, group in groups.items()}
    return {kind: score for kind, score in scores.items() if score is not None}
