"""The LiveMathematicianBench environment: show the choices in a drawn order, ask, grade the label."""

from __future__ import annotations

from attrs import evolve, field, frozen

from skillopt_es.adapters.environments.benchmark import Benchmark, Graded
from skillopt_es.adapters.environments.episodes import REFERENCE, TASK_LIMIT, records_of, without_answer
from skillopt_es.adapters.environments.livemath import choices as choosing
from skillopt_es.adapters.environments.livemath.choices import Choices, Scoring, chosen
from skillopt_es.adapters.environments.livemath.items import LiveMathItem, livemath_item, read_months
from skillopt_es.adapters.environments.livemath.prompt import GUIDE, RECHECK, system_prompt, user_prompt
from skillopt_es.adapters.environments.options import one_of, parsed_by, positive_int, yes_or_no
from skillopt_es.adapters.environments.splits import load_splits
from skillopt_es.adapters.environments.text import answer_in, last_tagged, shorten
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import Ask, EnvironmentSettings, Episode, Item, Message, Splits, TrajectoryRecord


@frozen
class LiveMathOptions:
    """LiveMathematicianBench's own keys under `env:`."""

    max_turns: int = field(default=1, metadata=parsed_by(positive_int))
    shuffle_choices: bool = field(default=True, metadata=parsed_by(yes_or_no))
    use_theorem: bool = field(default=False, metadata=parsed_by(yes_or_no))
    use_sketch: bool = field(default=False, metadata=parsed_by(yes_or_no))
    show_reference: bool = field(default=False, metadata=parsed_by(yes_or_no))
    scoring: Scoring = field(default="skillopt", metadata=parsed_by(one_of("skillopt", "extended")))


class LiveMath(Benchmark[LiveMathOptions]):
    """Multiple choice: hard and soft are 1 for the right label, else 0."""

    regrades = True
    """A recorded answer is all that its grade depends on."""
    guide = GUIDE

    def __init__(self, settings: EnvironmentSettings, options: LiveMathOptions) -> None:
        super().__init__(settings, options, system_prompt)

    def load(self) -> Splits:
        """The items; raises DataError with file, line and what to do."""
        splits = load_splits(self._settings.data, livemath_item, read=read_months)
        if not self._options.show_reference:
            return splits
        return evolve(splits, train=[evolve(_own(item), told=True) for item in splits.train])

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Ask one question under one skill and grade the choice."""
        item, options = _own(item), self._options
        shown = choosing.shuffled(item.choices, item=item.id, seed=seed) if options.shuffle_choices else item.choices
        theorem = item.theorem if options.use_theorem else ""
        sketch = item.sketch if options.use_sketch else ""
        asked = Message("user", user_prompt(item.question, shown, theorem=theorem, sketch=sketch))
        messages, again = self._opening(asked, skill), Message("user", RECHECK)
        talk = await self._checked(
            messages, ask, again, most=options.max_turns, due=lambda talk: not _tagged(talk.reply.text)
        )
        records = [*records_of(talk.messages), TrajectoryRecord("reply", talk.reply.text), *_reference(item)]
        task = shorten(item.question, TASK_LIMIT)
        unanswered = without_answer(talk.reply, task, records, turns=talk.turns)
        return unanswered or _graded(shown, task, talk.reply.text, options.scoring).episode(task, records, talk.turns)


def _own(item: Item) -> LiveMathItem:
    assert isinstance(item, LiveMathItem)
    return item


def _reference(item: LiveMathItem) -> list[TrajectoryRecord]:
    """The theorem and the sketch of its proof, for analysts of an item that tells them."""
    parts = (("Theorem", item.theorem), ("Proof sketch", item.sketch))
    text = "\n".join(f"{title}:\n{said}" for title, said in parts if said.strip())
    return [TrajectoryRecord("feedback", f"{REFERENCE}\n{text}")] if item.told and text else []


def _tagged(reply: str) -> bool:
    return last_tagged(reply, "answer") is not None


def _graded(shown: Choices, task: str, reply: str, scoring: Scoring) -> Graded:
    prediction = answer_in(reply)
    label = chosen(prediction, shown, scoring)
    right = label == shown.correct
    return Graded(
        hard=float(right),
        soft=float(right),
        why=("", "") if right else _failure(shown, reply, prediction, label),
        said=[
            f"Question: {task}",
            f"Chosen: {label or 'nothing'} {shown.text_of(label)}".rstrip(),
            f"Correct: {shown.correct} {shown.text_of(shown.correct)}",
            f"Exact Match: {int(right)}",
        ],
        prediction=prediction,
        answers=(shown.text_of(shown.correct),),
    )


def _failure(shown: Choices, reply: str, prediction: str, label: str) -> tuple[str, str]:
    expected = f"the right choice is {shown.correct}"
    if not prediction:
        return "no_answer", f"the reply holds no answer, {expected}"
    if shown.text_of(label):
        return "wrong_choice", f"chose {label}, {expected}"
    said = f"{shorten(prediction, TASK_LIMIT)!r} names no choice, {expected}"
    return "format", said if _tagged(reply) else f"{said}; the answer is not inside <answer> tags"
