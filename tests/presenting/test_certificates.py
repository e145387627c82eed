"""What is certified, said beside what is best."""

from __future__ import annotations

from attrs import evolve

from skillopt_es.events.catalog import CertificateWagered
from skillopt_es.events.values import Bets
from skillopt_es.presenting.certificates import certificate_json, certificate_lines
from skillopt_es.projections.certificate import Certificate

LOST = CertificateWagered(
    place="e2/s2",
    certified="aaaaaaaa1",
    challenger="bbbbbbbb2",
    by_item=Bets(stake=1.0, gains={"x": 0.5, "y": 0.0}, wealth=12.5),
    by_type=Bets(stake=1.0, gains={"k": 0.25}, wealth=1.25),
    pairs=2,
    gain=0.25,
)
WON = evolve(LOST, place="e3/s3", by_type=None, gain=0.5, least=0.125, pairs=20, moved=True)


def certificate(*wagers: CertificateWagered, best: str, wanted: bool = True) -> Certificate:
    """The certificate of a run whose best text is this one."""
    return Certificate(wanted=wanted, initial="aaaaaaaa1", best=best, wagers=wagers)


def test_nothing_is_said_where_nobody_asked() -> None:
    """And null for programs."""
    nothing = certificate(best="aaaaaaaa1", wanted=False)
    assert not list(certificate_lines(nothing))
    assert certificate_json(nothing) is None


def test_without_a_proof_the_initial_skill_is_certified() -> None:
    """And it is said how far the best one has come: by the lesser of its bets."""
    assert list(certificate_lines(certificate(best="aaaaaaaa1"))) == [
        "the initial skill; of no other is it proved that it is better"
    ]
    assert list(certificate_lines(certificate(LOST, best="bbbbbbbb2"))) == [
        "the initial skill; of no other is it proved that it is better",
        "the best skill, bbbbbbbb, is not certified: +0.2500 on 2 fresh items; bets worth 1.2, 20 are enough",
    ]


def test_a_proof_says_by_how_much_and_at_which_error() -> None:
    """Of the best skill, or of one before it."""
    [line] = certificate_lines(certificate(LOST, WON, best="bbbbbbbb2"))
    assert line == (
        "the best skill: +0.5000, at least +0.1250 on 20 fresh items against the initial one; "
        "error 0.05 in the whole run, for tasks of the types in your data"
    )
    first, second = certificate_lines(certificate(WON, best="cccccccc3"))
    assert first.startswith("skill bbbbbbbb: +0.5000")
    assert second == "the best skill, cccccccc, has met no fresh items beside it"


def test_algorithms_read_the_same() -> None:
    """With the bets that were won."""
    found = certificate_json(certificate(WON, best="cccccccc3"))
    assert isinstance(found, dict)
    assert (found["certified"], found["is_best"], found["error"]) == ("bbbbbbbb2", False, 0.05)
    assert found["moves"] == [
        {
            "place": "e3/s3",
            "certified": "aaaaaaaa1",
            "challenger": "bbbbbbbb2",
            "fresh_items": 20,
            "gain": 0.5,
            "least": 0.125,
            "wealth": 12.5,
            "moved": True,
        }
    ]
