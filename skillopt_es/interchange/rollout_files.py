"""
Rollouts as the original's `results.jsonl`, written and read, alone or as the one folder of an evaluation.

What was said is `conversation.json` with the two prompts beside it. The first system and user message are files of
their own; the evaluation is the entry that has the role `system`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from skillopt_es.engine.algorithms import fold
from skillopt_es.engine.evaluations import mean_score
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import Trajectory, unpacked
from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import RolloutCompleted, SkillScored
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.events.values import Json, Measured, Split
from skillopt_es.interchange.fields import Fields, Source
from skillopt_es.interchange.layout import CONVERSATION, EVALUATION, PROMPTS, ROWS, safe_name
from skillopt_es.interchange.original import Result
from skillopt_es.projections.state import AnyState

File = tuple[str, str]
"""A path in the result folder and its text."""


def dumped(value: Json) -> str:
    """A JSON file as the original writes it."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


@frozen
class OriginalRollouts:
    """Evaluations as files: the texts of the log, and how a benchmark tells that an answer holds an accepted one."""

    evidence: RecordedTexts
    holds: Callable[[str, Sequence[str]], bool] | None = None

    @property
    def untyped(self) -> bool:
        """Whether the original's rows of this benchmark name no kind of item: those of SearchQA, as `holds` says."""
        return self.holds is not None

    def files(self, folder: str, rows: Sequence[RolloutCompleted]) -> Iterator[File]:
        """The results of an evaluation, and each item's conversation; what was not measured is no result."""
        at = f"{folder}/" if folder else ""
        if not rows:
            return
        lines = []
        for row in rows:
            trajectory = unpacked(row, self.evidence) if row.trajectory else None
            if isinstance(row.outcome, Measured):
                found = self._row(row, row.outcome, trajectory)
                lines.append(json.dumps(found, ensure_ascii=False, allow_nan=False))
            if trajectory is not None:
                yield from _said(f"{at}predictions/{safe_name(row.item)}", trajectory)
        yield f"{at}{ROWS}", "".join(f"{line}\n" for line in lines)

    def task(self, row: RolloutCompleted) -> str:
        """What an item asks."""
        return unpacked(row, self.evidence).task if row.trajectory else row.item

    def _row(self, row: RolloutCompleted, outcome: Measured, trajectory: Trajectory | None) -> dict[str, Json]:
        task, answers = (trajectory.task, trajectory.answers) if trajectory else ("", ())
        replies = [text for kind, text in trajectory.records if kind == "reply"] if trajectory else []
        scores: dict[str, Json] = {}
        if self.holds is not None:
            held = outcome.passed or self.holds(row.prediction, answers)
            scores = {"em": outcome.hard, "f1": outcome.soft, "sub_em": float(held)}
        return {
            "id": row.item,
            **({"question": task} if task else {}),
            **scores,
            "hard": int(outcome.hard) if outcome.hard.is_integer() else outcome.hard,
            "soft": outcome.soft,
            "predicted_answer": row.prediction,
            **({"gold_answers": list(answers)} if answers else {}),
            **({"response": replies[-1]} if replies else {}),
            "fail_reason": fail_reason(row),
            "agent_ok": True,
            **({} if row.turns is None else {"n_turns": row.turns}),
            **({"task_type": row.task_type} if row.task_type else {}),
            **({"task_description": task} if task else {}),
        }


def fail_reason(row: RolloutCompleted) -> str:
    """Why an item failed, the kind before a colon as the original groups them."""
    return f"{row.failure}: {row.detail}" if row.detail else row.failure


def _said(folder: str, trajectory: Trajectory) -> Iterator[File]:
    records = list(trajectory.records)
    for kind, name in PROMPTS.items():
        if records and records[0][0] == kind:
            yield f"{folder}/{name}", records.pop(0)[1]
    entries: list[Json] = []
    turn = 0
    for kind, text in records:
        turn += kind == "reply"
        entries.append(_entry(kind, text, turn))
    yield f"{folder}/{CONVERSATION}", dumped(entries)


def _entry(kind: str, text: str, turn: int) -> Json:
    if kind == "reply":
        return {"type": "message", "turn": turn, "content": text}
    return {"role": "system" if kind == "feedback" else kind, "content": text}


_SPLITS: Mapping[Split, str] = {"train": "train", "val": "valid_seen", "test": "valid_unseen"}


def evaluation_files(log: EventLog, out: Path, rollouts: OriginalRollouts) -> Iterator[File]:
    """The files of every split's score, which is that of its first draw; raises NotInRun where there is none yet."""
    state = fold(recorded.event for recorded in log.read())
    scored = {} if state is None else _standing(state)
    if state is None or not scored:
        raise NotInRun(f"{log.run.name} has no score to export", hint="the same `skillopt-es eval` continues it")
    rows = [row for each in scored.values() for row in state.rollouts[each.place].values()]
    skill = Path("skills") / state.started.skill.main
    score = mean_score([row.outcome for row in rows])
    yield from rollouts.files("", rows)
    yield from ((f"skills/{path}", text) for path, text in state.started.skill.files.items())
    split = "all" if len(scored) > 1 else _SPLITS[next(iter(scored))]
    means = {"n_items": score.measured, "hard": score.hard, "soft": score.soft}
    yield EVALUATION, dumped({"skill": str(out / skill), "split": split, **means})


def _standing(state: AnyState) -> dict[Split, SkillScored]:
    """Each split's newest score of its first draw, in the order of the splits."""
    first = {each.split: each for each in state.scored.values() if Place(each.place).repeat == 1}
    return {split: first[split] for split in _SPLITS if split in first}


_KINDS = {"assistant": "reply", "system": "feedback"}
"""What an entry's role stands for; the evaluation is the original's system."""


def read_results(source: Source, folder: str) -> tuple[Result, ...] | None:
    """The rows of an evaluation, each item's last one; None when they are not there."""
    path = f"{folder}/{ROWS}"
    lines = source.lines(path)
    if lines is None:
        return None
    rows: dict[str, Result] = {}
    for line in lines:
        item, hard, soft = line.shown("id"), line.number("hard"), line.number("soft")
        if not item or hard is None or soft is None:
            source.say(path, "a line without id, hard or soft cannot be used")
            continue
        rows[item] = _result(line, item, (hard, soft), _conversation(source, folder, item))
    return tuple(rows.values())


def _result(
    line: Fields, item: str, measured: tuple[float, float], conversation: tuple[tuple[str, str], ...] | None
) -> Result:
    return Result(
        item=item,
        hard=measured[0],
        soft=measured[1],
        task_type=line.shown("task_type") or line.shown("instruction_type"),
        turns=line.whole("n_turns"),
        reason=line.shown("fail_reason"),
        prediction=line.shown("predicted_answer") or line.shown("answer"),
        task=line.shown("question") or line.shown("task_description") or line.shown("instruction"),
        answers=line.texts("gold_answers"),
        conversation=conversation,
    )


def _conversation(source: Source, folder: str, item: str) -> tuple[tuple[str, str], ...] | None:
    for name in dict.fromkeys((item, safe_name(item))):
        if "/" in name or name in (".", "..") or "\0" in name or len(name) > 200:  # an id is not a path
            continue
        at = f"{folder}/predictions/{name}"
        value = source.json(f"{at}/{CONVERSATION}")
        if isinstance(value, list):
            prompts = ((kind, source.text(f"{at}/{file}")) for kind, file in PROMPTS.items())
            return (
                *((kind, text) for kind, text in prompts if text is not None),
                *(_spoken(number, entry) for number, entry in enumerate(value)),
            )
    return None


def _spoken(number: int, entry: Json) -> tuple[str, str]:
    """One message: who said it, and all of it as text."""
    if not isinstance(entry, dict):
        return "reply", str(entry)
    fields = Fields("", entry, [])
    role = fields.shown("role")
    if role and "content" in entry:
        first = number == 0 and role == "system"  # no evaluation comes before an answer
        return "system" if first else _KINDS.get(role, role), fields.shown("content")
    if entry.get("type") == "message":
        return "reply", fields.shown("content")
    parts = [f"{key}: {fields.shown(key)}" for key in entry if key not in ("role", "type", "step")]
    return "tool" if entry.get("type") == "tool_call" else "reply", "\n".join(parts)
