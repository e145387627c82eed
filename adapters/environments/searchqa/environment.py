"""
The SearchQA environment: ask, perhaps let the target check its answer, grade.

Grading is exact match and token F1 after SQuAD normalisation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from attrs import field, frozen

from skillopt_es.adapters.environments.benchmark import Benchmark, Graded, Talk, untagged
from skillopt_es.adapters.environments.data import RawItem, or_build
from skillopt_es.adapters.environments.episodes import TASK_LIMIT, records_of, without_answer
from skillopt_es.adapters.environments.options import parsed_by, positive_int
from skillopt_es.adapters.environments.searchqa.prompt import GUIDE, RECHECK, system_prompt, user_prompt
from skillopt_es.adapters.environments.splits import load_splits
from skillopt_es.adapters.environments.text import answer_in, last_tagged, normalise, overlap_f1, shorten
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import Ask, EnvironmentSettings, Episode, Item, Message, Splits, TrajectoryRecord


@frozen
class SearchQAOptions:
    """SearchQA's own keys under `env:`."""

    max_turns: int = field(default=1, metadata=parsed_by(positive_int))
    context_budget: int = field(default=6000, metadata=parsed_by(positive_int))


class SearchQA(Benchmark[SearchQAOptions]):
    """Questions over web snippets: hard is exact match, soft is token F1."""

    regrades = True
    """A recorded answer is all that its grade depends on."""
    guide = GUIDE

    def __init__(self, settings: EnvironmentSettings, options: SearchQAOptions) -> None:
        super().__init__(settings, options, system_prompt)

    @property
    def worked(self) -> str:
        """Each accepted answer is right; it belongs inside its tag."""
        return "<answer>{answer}</answer>"

    def load(self) -> Splits:
        """The items; raises DataError with file, line and what to do."""
        parse: partial[SearchQAItem] = partial(searchqa_item, context_budget=self._options.context_budget)
        return load_splits(self._settings.data, parse)

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Ask one question under one skill and grade the answer."""
        assert isinstance(item, SearchQAItem)
        messages, again = self._opening(item.prompt, skill), Message("user", RECHECK)
        talk = await self._checked(messages, ask, again, most=self._options.max_turns, due=_due)
        records = [*records_of(talk.messages), TrajectoryRecord("reply", talk.reply.text)]
        task = shorten(item.question, TASK_LIMIT)
        unanswered = without_answer(talk.reply, task, records, turns=talk.turns)
        return unanswered or _graded(item, talk.reply.text).episode(task, records, talk.turns)


def _due(talk: Talk) -> bool:
    """Whether another turn is due: always a second one, then only while there is no answer tag."""
    return talk.turns < 2 or untagged(talk)


def _graded(item: SearchQAItem, reply: str) -> Graded:
    prediction = answer_in(reply)
    result = grade(prediction, item.golds)
    return Graded(
        hard=float(result.exact),
        soft=result.f1,
        why=("", "") if result.exact else _failure(item, reply, prediction, result),
        said=[
            f"Question: {item.question}",
            f"Predicted answer: {prediction!r}",
            f"Gold answers: {list(item.answers)!r}",
            f"Exact Match: {int(result.exact)}",
            f"F1: {result.f1:.4f}",
        ],
        prediction=prediction,
        answers=item.answers,
    )


def _failure(item: SearchQAItem, reply: str, prediction: str, result: Grade) -> tuple[str, str]:
    expected = f"expected one of {list(item.answers)!r}"
    if not prediction:
        return "no_answer", f"the reply holds no answer, {expected}"
    detail = f"predicted {shorten(prediction, TASK_LIMIT)!r}, {expected}"
    if last_tagged(reply, "answer") is None:
        return "format", f"{detail}; the answer is not inside <answer> tags"
    if result.f1 > 0:
        return "near_miss", f"{detail}; one contains the other" if result.sub_em else detail
    return "wrong_answer", detail


@frozen
class SearchQAItem:
    """A question, the message that asks it, and its accepted answers."""

    id: str
    task_type: str
    question: str
    prompt: Message
    answers: tuple[str, ...]
    golds: tuple[Gold, ...]


def searchqa_item(raw: RawItem, *, context_budget: int) -> SearchQAItem:
    """The item in a row of the data; raises DataError for what cannot be asked or graded."""
    question = _text(raw, "question")
    if not question.strip():
        raise raw.refusal(
            "`question` is missing or blank", or_build("searchqa", raw, "question", 'add "question": "…"')
        )
    answers = _answers(raw)
    prompt = user_prompt(_text(raw, "context"), question, budget=context_budget)
    return SearchQAItem(
        id=raw.id,
        task_type=_text(raw, "task_type") or "qa",
        question=question,
        prompt=Message("user", prompt),
        answers=answers,
        golds=tuple(gold_of(answer) for answer in answers),
    )


def _text(raw: RawItem, key: str) -> str:
    value = raw.fields.get(key, "")
    if not isinstance(value, str):
        raise raw.refusal(f"`{key}` must be text", f'write "{key}": "…"')
    return value


def _answers(raw: RawItem) -> tuple[str, ...]:
    value = raw.fields.get("answers")
    if not isinstance(value, list) or not value:
        what = (
            "`answers` is missing" if "answers" not in raw.fields else "`answers` must be a list of at least one text"
        )
        raise raw.refusal(what, 'write the accepted answers as a list: "answers": ["…"]')
    if not all(isinstance(answer, str) for answer in value):
        raise raw.refusal("`answers` must hold only text", 'put each accepted answer in quotes: "answers": ["1889"]')
    return tuple(str(answer) for answer in value)


@frozen
class Gold:
    """One accepted answer in the forms that grading compares."""

    normal: str
    words: Counter[str]


@frozen
class Grade:
    """How a prediction compares with the best of the accepted answers; `sub_em`: one of the two contains the other."""

    exact: bool
    f1: float
    sub_em: bool


def gold_of(answer: str) -> Gold:
    """An accepted answer, made ready once for all its gradings."""
    normal = normalise(answer)
    return Gold(normal, Counter(normal.split()))


def grade(prediction: str, golds: Sequence[Gold]) -> Grade:
    """Exact match, best F1, and whether prediction and an accepted answer contain one another."""
    normal = normalise(prediction)
    words = Counter(normal.split())
    if words:
        f1 = max((overlap_f1(words, gold.words) for gold in golds), default=0.0)
    else:
        f1 = 1.0 if any(not gold.words for gold in golds) else 0.0
    return Grade(
        exact=any(normal == gold.normal for gold in golds),
        f1=f1,
        sub_em=any(gold.normal in normal or normal in gold.normal for gold in golds),
    )
