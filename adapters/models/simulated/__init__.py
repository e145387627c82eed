"""
Simulated models: all roles answer offline, from the text of the request alone.

    target      obeys the house-style rules that it finds in the skill, good and bad ones, and now and then forgets one;
                it reads documents with tools, and of pictures only pages that are drawn with its own font
    optimizer   reads failed trajectories, proposes the rules that are missing, and now and then a bad one
    judge       gives points for the words that an answer shares with the reference

They are pure functions of the request: no randomness, no state, no clock. What looks like chance is a hash of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skillopt_es.adapters.models.simulated.judge import judge
from skillopt_es.adapters.models.simulated.optimizer import advise
from skillopt_es.adapters.models.simulated.target import respond
from skillopt_es.events.values import Role
from skillopt_es.ports import (
    ALONE,
    ChatModel,
    ChatReply,
    ChatRequest,
    Course,
    FinishReason,
    ModelSettings,
    ToolCall,
    Usage,
)

__all__ = ["Simulated", "open_model"]

_CHARACTERS_PER_TOKEN = 4  # of English, by OpenAI's rule of thumb
_ANSWERS: Mapping[Role, Callable[[ChatRequest], str | ToolCall | list[ToolCall]]] = {
    "target": respond,
    "optimizer": advise,
    "judge": judge,
}


def open_model(settings: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """The simulated model of the settings' role; needs no key and no network."""
    return Simulated(settings.role)


class Simulated:
    """One role's simulated model."""

    def __init__(self, role: Role) -> None:
        self._role = role

    @property
    def identity(self) -> str:
        """Says that the answers are simulated, and whose."""
        return f"simulated {self._role}"

    @property
    def provides(self) -> frozenset[str]:
        """What it can do; the target's eyes are those of `sight.py`."""
        return frozenset({"text", "messages", *({"tools", "images"} if self._role == "target" else ())})

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """The answer to this text, always the same one; cut off when it is longer than the request allows."""
        said = _ANSWERS[self._role](request)
        calls = () if isinstance(said, str) else (said,) if isinstance(said, ToolCall) else tuple(said)
        text = said if isinstance(said, str) else "".join(call.arguments for call in calls)
        cut = text[: request.max_tokens * _CHARACTERS_PER_TOKEN]
        finish: FinishReason = "length" if cut != text else "tools" if calls else "stop"
        return ChatReply(
            text="" if calls else cut,
            finish=finish,
            tool_calls=calls if finish == "tools" else (),
            usage=Usage(input=sum(_tokens(each.content) for each in request.messages), output=_tokens(cut)),
            model=f"simulated-{self._role}",
        )

    async def aclose(self) -> None:
        """Nothing to give back."""


def _tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)
