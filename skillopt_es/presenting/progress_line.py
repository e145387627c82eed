"""The line that says how far a session is, in a terminal or in a notebook."""

from __future__ import annotations

from skillopt_es.presenting.escaping import shown_inline
from skillopt_es.presenting.numbers import shown_value
from skillopt_es.projections.deciding import metric_in
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.now import Now


def progress_line(now: Now, state: AnyState | None, width: int) -> str:
    """As much as fits beside what is under way and the time: of the rest, the last goes first."""
    doing = f"{now.stage} {now.done}/{now.total}"
    values = _standings(state)
    tokens = f"{now.tokens:,}{'' if now.all_reported else '+?'} tokens"
    parts = (now.where, doing, values, tokens, _pace(now))
    line, over = "", 0
    for left_out in ((), (tokens,), (tokens, values), (tokens, values, now.where)):
        line = shown_inline(" · ".join(part for part in parts if part and part not in left_out))
        over = len(line) - width
        if over <= 0:
            return line
    return line.replace(now.stage, f"{now.stage[: max(0, len(now.stage) - over - 1)]}…", 1)


def shown_clock(seconds: float) -> str:
    """A stretch of time as a clock shows it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _standings(state: AnyState | None) -> str:
    """What the current and the best skill reach by the metric that decides."""
    if state is None:
        return ""
    metric = metric_in(state.started, state.overrides)
    values = f"current {shown_value(state.current.value)} best {shown_value(state.best.value)}"
    return f"{metric}: {values}" if metric else values


def _pace(now: Now) -> str:
    """How long the session has taken, and how long the rest will take where that is known."""
    text = f"{shown_clock(now.elapsed)} elapsed"
    return text if now.left is None else f"{text}, about {shown_clock(now.left)} left"
