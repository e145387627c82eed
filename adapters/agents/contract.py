"""
The one object that goes to every agent of the user's, and the one that comes back; docs/agents.md shows both.

    {"version": 1, "task": …, "skill": {…}, "seed": …, …}   ->   {"answer": …, "steps": […], "usage": {…}, …}

An answer alone may stand for the whole object. A key that is not known is an error: it may be a misspelt one. Where
answers are graded as JSON, an object or a list may be the answer: it is written as JSON text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import cast

from attrs import asdict, field, frozen

from skillopt_es.adapters.agents.trajectories import UnreadableError, read_messages, read_spans, read_steps
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.values import Json
from skillopt_es.ports import AgentStep, AgentTask, Usage

VERSION = 1  # of the object that agents are given: one with other keys has another number, so that an agent can tell
_TRAJECTORIES = {"steps": read_steps, "messages": read_messages, "spans": read_spans}
_KEYS = ("answer", *_TRAJECTORIES, "usage", "cost", "score", "model", "error")
_TOKENS = {
    "input": ("input", "input_tokens", "prompt_tokens"),
    "output": ("output", "output_tokens", "completion_tokens"),
    "cached": ("cached", "cached_tokens"),
    "reasoning": ("reasoning", "reasoning_tokens"),
}
# No attempt makes a trillion of them, and a log holds no more than 64 bits.
_MOST_TOKENS = 10**12
_SHOWN = 200  # two lines of a terminal: an error quotes what is no answer, and that may be a whole page


@frozen(kw_only=True)
class AgentAnswer:
    """What an agent came to; `error` is why it has no answer, in its own words."""

    text: str
    steps: tuple[AgentStep, ...] = ()
    usage: Usage = field(factory=Usage)
    cost: Decimal | None = None
    model: str = ""
    error: str = ""


def task_json(task: AgentTask) -> dict[str, Json]:
    """The object that an agent gets."""
    gateway = task.gateway
    return {
        "version": VERSION,
        "item": task.item,
        "task": task.task,
        "instructions": task.instructions,
        "fields": dict(task.fields),
        "messages": [{"role": message.role, "content": message.content} for message in task.messages],
        "skill": cast(Json, {**asdict(task.skill), "files": dict(task.skill.files)}),
        "seed": task.seed,
        "deadline_seconds": task.deadline_seconds,
        "gateway": None if gateway is None else cast(Json, asdict(gateway)),
    }


def read_printed(output: str, *, as_json: bool = False) -> AgentAnswer:
    """The answer in what a program printed: all of it, else its last line; raises UnreadableError."""
    for text in (output, output.rstrip().rsplit("\n", 1)[-1]):
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return read_answer(value, as_json=as_json)
    if not output.strip():
        raise UnreadableError("it printed nothing")
    raise UnreadableError(f"it printed {_shown(output.strip())}, which is not a JSON object with `answer`")


def read_answer(value: object, *, as_json: bool = False) -> AgentAnswer:
    """
    The answer in what an agent returned: a text, or the object; raises UnreadableError.

    With `as_json`, an object or a list that is none of ours is the answer itself.
    """
    try:
        return _answer_in(value, as_json)
    except RecursionError as error:
        raise UnreadableError("its answer is nested too deeply") from error
    except (TypeError, ValueError) as error:  # a function may return anything
        raise UnreadableError(f"its answer cannot be written as JSON: {error}") from error


def _answer_in(value: object, as_json: bool) -> AgentAnswer:
    if isinstance(value, str):
        return AgentAnswer(text=value)
    if as_json and _is_the_answer(value):
        return AgentAnswer(text=json.dumps(value, ensure_ascii=False))
    if not isinstance(value, Mapping):
        raise UnreadableError(f"{_shown(value)} is neither a text nor an object with `answer`")
    for key in value:
        if key not in _KEYS:
            close = get_close_matches(str(key), _KEYS, n=1)
            hint = f"did it mean {close[0]!r}?" if close else f"it may have {', '.join(_KEYS)}"
            if not close and "answer" not in value:
                hint += "; an object that is itself the answer needs env.grader: json"
            raise UnreadableError(f"its answer has an unknown key {key!r}: {hint}")
    if value.get("error"):
        return AgentAnswer(text="", error=str(value["error"]))
    steps, said = _trajectory(value)
    text = value.get("answer", said)
    if as_json and isinstance(text, Mapping | list):
        text = json.dumps(text, ensure_ascii=False)
    if not isinstance(text, str):
        raise UnreadableError(f"its answer {_no_text(text)}")
    told = [step for step in steps if not (step is steps[-1] and step.kind == "message" and step.text == text)]
    return AgentAnswer(
        text=text,
        steps=(*told, *_score(value.get("score"))),
        usage=_usage(value.get("usage")),
        cost=_cost(value.get("cost")),
        model=str(value.get("model") or ""),
    )


def _is_the_answer(value: object) -> bool:
    """Whether this is what was asked for, and not the object around it."""
    if isinstance(value, Mapping):
        return "answer" not in value and any(key not in _KEYS for key in value)
    return isinstance(value, list)


def _no_text(answer: object) -> str:
    if answer is None:
        return "has no `answer`"
    said = f"has {_shown(answer)} as `answer`, which is not text"
    wanted = "; give it as JSON text, or set env.grader: json, which takes it as it is"
    return said + wanted if isinstance(answer, Mapping | list) else said


def _trajectory(value: Mapping[str, object]) -> tuple[list[AgentStep], str | None]:
    """The steps of whichever form they have, and what the agent said last in them."""
    given = [name for name in _TRAJECTORIES if value.get(name) is not None]
    if len(given) > 1:
        raise UnreadableError(f"its answer has both `{given[0]}` and `{given[1]}`: one of them says it all")
    if not given:
        return [], None
    steps = _TRAJECTORIES[given[0]](value[given[0]])
    last = next((step.text for step in reversed(steps) if step.kind == "message"), None)
    return steps, last


def _usage(value: object) -> Usage:
    """Tokens by our names or by OpenAI's; what is not said is not known."""
    if value is None:
        return Usage()
    if not isinstance(value, Mapping):
        raise UnreadableError(f"its `usage` is {_shown(value)}, not an object")
    found: dict[str, int | None] = {}
    for kind, names in _TOKENS.items():
        counts = [value[name] for name in names if value.get(name) is not None]
        found[kind] = _count(kind, counts[0]) if counts else None
    return Usage(**found)


def _count(kind: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_TOKENS:
        raise UnreadableError(f"its `usage` has {_shown(value)} as {kind} tokens, which is no count")
    return value


def _score(value: object) -> list[AgentStep]:
    """The agent's own score as a step: the `reported` grader takes it, and analysts see it."""
    if value is None:
        return []
    given = value if isinstance(value, Mapping) else {"soft": value}
    unknown = set(given) - {"hard", "soft", "note"}
    soft = _share(given.get("soft", given.get("hard")))
    hard = _share(given["hard"]) if "hard" in given else float(soft >= 1)
    if unknown:
        raise UnreadableError(
            f"its `score` has {', '.join(sorted(map(str, unknown)))}; it may hold hard, soft and note"
        )
    said: dict[str, Json] = {"hard": hard, "soft": soft}
    if given.get("note"):
        said["note"] = str(given["note"])
    return [AgentStep(kind="score", text=canonical_json(said))]


def _share(value: object) -> float:
    share = float(value) if isinstance(value, int | float) else float("nan")
    if math.isnan(share) or not 0 <= share <= 1:
        raise UnreadableError(f"its `score` is {_shown(value)}, which is no number from 0 to 1")
    return share


def _cost(value: object) -> Decimal | None:
    """What the agent says that it spent."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value >= 0):
        raise UnreadableError(f"its `cost` is {_shown(value)}, which is no amount")
    return Decimal(str(value))  # the shortest text of a float is what somebody wrote


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 -- of a class of the user's it is user code
        text = f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
