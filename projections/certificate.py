"""
What a run has proved: the certified text, the bets that were won, and what was bet on the best text since.

Whoever folds a run has its wagers; this reads them. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from skillopt_es.events.catalog import CertificateWagered
from skillopt_es.projections.deciding import CERTIFICATE, setting_in
from skillopt_es.projections.state import AnyState


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


def certificate_of(state: AnyState) -> Certificate:
    """The certificate of a run that has begun."""
    return Certificate(
        wanted=state.overrides.get(CERTIFICATE, setting_in(state.started, CERTIFICATE)) is True,
        initial=state.started.skill.hash,
        best=state.best.skill.hash,
        wagers=state.wagers,
    )
