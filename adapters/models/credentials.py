"""A secret that changes while a run goes on: who asks for it gets one that is good for a while longer."""

from __future__ import annotations

from typing import Protocol

from skillopt_es.adapters.models.errors import Failure


class Credential(Protocol):
    """Bearer tokens of one role; safe to ask concurrently."""

    async def token(self) -> str | Failure:
        """A token that is valid now, or why there is none."""
        ...

    def forget(self) -> None:
        """The endpoint refused the last token: get another one next time."""
        ...
