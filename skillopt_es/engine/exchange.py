"""One call as evidence: what was sent, what was answered, what an agent did in between."""

from __future__ import annotations

from attrs import frozen

from skillopt_es.ports import Step


@frozen
class Exchange:
    """One call: the texts that were sent, in order, the answer, and what an agent did before it."""

    sent: tuple[str, ...]
    answer: str
    steps: tuple[Step, ...] = ()
