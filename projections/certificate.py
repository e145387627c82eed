"""
What a run has proved: the certified text, the bets that were won, and what was bet on the best text since.

Whoever folds a run has its wagers; this reads them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from skillopt_es.events.catalog import CertificateWagered, RunStarted
from skillopt_es.events.values import Setting
from skillopt_es.projections.state import AnyState

KEY = "evaluation.certificate"
"""The setting that asks for it."""


@frozen(kw_only=True)
class Certificate:
    """All that was bet in a run; the first text and the best one by hash; whether a certificate was `wanted`."""

    wanted: bool
    initial: str
    best: str
    wagers: Sequence[CertificateWagered]

    @property
    def moves(self) -> tuple[CertificateWagered, ...]:
        """The bets that were won."""
        return tuple(wager for wager in self.wagers if wager.moved)

    @property
    def certified(self) -> str:
        """The hash of the certified text."""
        return self.moves[-1].challenger if self.moves else self.initial

    @property
    def last(self) -> CertificateWagered | None:
        """The last bet on the best text, where it is another one than the certified."""
        if self.certified == self.best:
            return None
        on_best = [wager for wager in self.wagers if wager.challenger == self.best]
        return on_best[-1] if on_best else None


def wants_certificate(started: RunStarted) -> bool:
    """Whether a run was started with a certificate."""
    evaluation = started.config.get("evaluation")
    return isinstance(evaluation, dict) and evaluation.get("certificate") is True


def still_wants(wanted: bool, overrides: Iterable[Setting]) -> bool:
    """Whether it goes on with one, after these settings were changed."""
    for setting in overrides:
        wanted = setting.value is True if setting.key == KEY else wanted
    return wanted


def certificate_of(state: AnyState) -> Certificate:
    """The certificate of a run that has begun."""
    return Certificate(
        wanted=state.overrides.get(KEY, wants_certificate(state.started)) is True,
        initial=state.started.skill.hash,
        best=state.best.skill.hash,
        wagers=state.wagers,
    )
