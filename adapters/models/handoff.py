"""
A model without an endpoint: each question waits in the run folder until somebody answers it.

`skillopt-es handoff` lists the questions and takes the answers; the run pauses when all that can be asked is asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.ports import ALONE, ChatModel, ChatReply, ChatRequest, Course, ModelSettings, Unanswered


def open_model(settings: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """A model that hands every question to whoever answers it; needs no key and no network."""
    return Handoff(settings.model)


class Handoff:
    """One role's questions, left for others; their answers are found in the journal and never come here."""

    def __init__(self, model: str) -> None:
        self._model = model

    @property
    def identity(self) -> str:
        """Says that the answers come from outside, and under which name."""
        return f"handoff {self._model}"

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """There is no answer yet."""
        raise Unanswered

    async def aclose(self) -> None:
        """Nothing to give back."""
