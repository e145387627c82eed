"""SearchQA's items, each made ready once for all its attempts."""

from __future__ import annotations

from attrs import frozen

from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.searchqa.evaluator import Gold, gold_of
from skillopt_es.adapters.environments.searchqa.prompt import user_prompt
from skillopt_es.ports import Message


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
        raise raw.refusal("`question` is missing or blank", 'add "question": "…"')
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
