"""How the page says numbers, verdicts and places, everywhere alike."""

from __future__ import annotations

from skillopt_es.report.html import Html, el

VERDICTS = {
    "accept_new_best": ("accepted, new best", "good"),
    "accept": ("accepted", "good"),
    "force_accept": ("taken without a gate", "info"),
    "reject": ("rejected", "bad"),
    "indecisive": ("indecisive", "idle"),
    "placeholder": ("place for guidance", "info"),
    "written": ("written", "info"),
    "unchanged": ("unchanged", "idle"),
    "postponed": ("postponed", "idle"),
    "no_content": ("no guidance", "idle"),
    "unknown": ("end unknown", "idle"),
    "": ("not judged yet", "idle"),
}
DASH = "–"


def verdict_words(verdict: str) -> str:
    """A verdict, or why a step was skipped."""
    known = VERDICTS.get(verdict)
    return known[0] if known else f"skipped: {verdict.replace('_', ' ').removeprefix('skip ')}"


def badge(verdict: str) -> Html:
    """A verdict that is seen at a glance; its words say it, its colour only repeats them."""
    return el("span", verdict_words(verdict), class_=f"badge {VERDICTS.get(verdict, ('', 'idle'))[1]}")


def score(value: float | None) -> str:
    """A score; a dash for one that was not measured."""
    return DASH if value is None else f"{value:.4f}"


def change(value: float) -> str:
    """A difference, with its sign."""
    if abs(value) < 1e-9:
        return "no difference"
    return f"{value:+.4f}".replace("-", "−")


def chance(probability: float) -> str:
    """A probability in as many digits as say something, on one line."""
    said = "p < 0.0001" if probability < 0.0001 else f"p = {probability:.2g}"
    return said.replace(" ", "\N{NO-BREAK SPACE}")


def count(number: int | None) -> str:
    """How many; a dash for what is not known."""
    return DASH if number is None else f"{number:,}"


def moment(recorded_at: str) -> str:
    """When something was recorded."""
    return f"{recorded_at[:19].replace('T', ' ')} UTC"


def listed(names: list[str]) -> str:
    """Names as one says them: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "none"
