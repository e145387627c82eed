"""What is certified, in words and as JSON: beside what is best so far, for whoever shows a run."""

from __future__ import annotations

from collections.abc import Iterator

from skillopt_es.counting import counted
from skillopt_es.events.catalog import CertificateWagered
from skillopt_es.events.values import Json
from skillopt_es.gate.bets import ENOUGH, ERROR, least_wealth
from skillopt_es.presenting.numbers import change
from skillopt_es.projections.certificate import Certificate


def wager_words(wager: CertificateWagered) -> str:
    """What the bets on a challenger have come to so far."""
    ahead = f"{change(wager.gain)} on {counted(wager.pairs, 'fresh item')}"
    if wager.moved:
        return f"{ahead}{_at_least(wager)}: certified at error {ERROR:g}"
    return f"{ahead}; bets worth {least_wealth(wager):.2g} of {ENOUGH:g}, not certified"


def _at_least(wager: CertificateWagered) -> str:
    return f", at least {change(wager.least)}" if wager.least else ""


def certificate_lines(found: Certificate) -> Iterator[str]:
    """What is certified, and what is known of the best text if that is another one; nothing where nobody asked."""
    if not found.wanted and not found.wagers:
        return
    if not found.moves:
        yield "the initial skill; of no other is it proved that it is better"
    else:
        last = found.moves[-1]
        which = "the best skill" if found.certified == found.best else f"skill {found.certified[:8]}"
        before = "the initial one" if last.certified == found.initial else f"{last.certified[:8]}, certified before it"
        ahead = f"{change(last.gain)}{_at_least(last)} on {counted(last.pairs, 'fresh item')}"
        yield f"{which}: {ahead} against {before}; error {ERROR:g} in the whole run{_OF_TYPES}"
    if found.certified == found.best or found.best == found.initial:
        return
    if found.last is None:
        yield f"the best skill, {found.best[:8]}, has met no fresh items beside it"
    else:
        yield f"the best skill, {found.best[:8]}, is not certified: {_so_far(found.last)}"


_OF_TYPES = ", for tasks of the types in your data"


def _so_far(wager: CertificateWagered) -> str:
    worth = f"bets worth {least_wealth(wager):.2g}, {ENOUGH:g} are enough"
    return f"{change(wager.gain)} on {counted(wager.pairs, 'fresh item')}; {worth}"


def certificate_json(found: Certificate) -> Json:
    """The same for programs; null where nobody asked."""
    if not found.wanted and not found.wagers:
        return None
    return {
        "error": ERROR,
        "enough": ENOUGH,
        "certified": found.certified,
        "is_best": found.certified == found.best,
        "moves": [wager_json(wager) for wager in found.moves],
        "best_so_far": None if found.last is None else wager_json(found.last),
        "wagers": len(found.wagers),
    }


def wager_json(wager: CertificateWagered) -> Json:
    """One bet, without its single items."""
    return {
        "place": wager.place,
        "certified": wager.certified,
        "challenger": wager.challenger,
        "fresh_items": wager.pairs,
        "gain": wager.gain,
        "least": wager.least,
        "wealth": least_wealth(wager),
        "moved": wager.moved,
    }
