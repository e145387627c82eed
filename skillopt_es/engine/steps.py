"""What an agent did on its way to an answer: how it is kept in the journal and how it is shown."""

from __future__ import annotations

import json
from collections.abc import Sequence

from attrs import asdict

from skillopt_es.events.erasures import ErasedText
from skillopt_es.ports import Step


def steps_text(steps: Sequence[Step]) -> str:
    """The steps as one text; what says nothing is left out."""
    rows = [{key: value for key, value in asdict(step).items() if value not in (None, "")} for step in steps]
    return json.dumps(rows, sort_keys=True, separators=(",", ":"))


def steps_of(text: str) -> tuple[Step, ...]:
    """The steps, read back; where they were erased, one that says so."""
    if isinstance(text, ErasedText):
        return (Step(kind="message", text=text),)
    return tuple(Step(**row) for row in json.loads(text))


def shown_step(step: Step) -> str:
    """One step for a reader: what was done, what came of it, and whether it failed."""
    did = f"$ {step.text}" if step.kind == "command" else step.text
    if step.kind not in ("command", "tool", "message"):
        did = f"({step.kind}) {did}"
    failed = f"(exit code {step.exit_code})" if step.exit_code else "(failed)" if step.ok is False else ""
    return "\n".join(part for part in (did, step.output.rstrip(), failed) if part)
