"""Payloads of older releases are lifted one version at a time."""

from __future__ import annotations

import pytest
from attrs import frozen

from skillopt_es.events import codec
from skillopt_es.events.catalog import CATALOG, Event
from skillopt_es.events.codec import decode
from skillopt_es.events.errors import LogDamaged, LogTooNew
from skillopt_es.events.strict import strict_converter
from skillopt_es.events.upcasts import UPCASTS, Payload, Upcast, lifted, upcast

STEPS: dict[tuple[str, int], Upcast] = {}


@frozen(kw_only=True)
class LampLit(Event):
    """An event that has moved on twice since its first release."""

    VERSION = 3

    color: str
    watts: int


@upcast("LampLit", version=1, upcasts=STEPS)
def _renamed(payload: Payload) -> Payload:
    return {"color": payload["colour"]}


@upcast("LampLit", version=2, upcasts=STEPS)
def _measured(payload: Payload) -> Payload:
    return {**payload, "watts": 60}


def test_nothing_was_released_yet() -> None:
    """Every event has its first version, and there is nothing to lift."""
    assert {kind.VERSION for kind in CATALOG} == {1}
    assert UPCASTS == {}


def test_a_payload_climbs_every_version() -> None:
    """Version 1 goes through 2 to 3, version 3 stays."""
    assert lifted("LampLit", 1, 3, {"colour": "red"}, STEPS) == {"color": "red", "watts": 60}
    assert lifted("LampLit", 2, 3, {"color": "red"}, STEPS) == {"color": "red", "watts": 60}
    assert lifted("LampLit", 3, 3, {"color": "red"}, STEPS) == {"color": "red"}


def test_a_missing_step_is_named() -> None:
    """A version that nothing lifts is not guessed at."""
    with pytest.raises(LogDamaged, match="from version 0 of LampLit to version 1"):
        lifted("LampLit", 0, 3, {}, STEPS)


def test_a_newer_version_says_so() -> None:
    """A payload from the future asks for a newer software."""
    with pytest.raises(LogTooNew, match="LampLit in version 4") as caught:
        lifted("LampLit", 4, 3, {}, STEPS)
    assert "newer" in caught.value.hint


@pytest.fixture
def _lamps(monkeypatch: pytest.MonkeyPatch) -> None:
    """LampLit is in the catalogue."""
    structure = strict_converter(detailed=False).get_structure_hook(LampLit)
    monkeypatch.setitem(codec._readers, "LampLit", (LampLit, LampLit.VERSION, structure))


@pytest.mark.usefixtures("_lamps")
def test_decoding_lifts_old_payloads() -> None:
    """An event class that has moved on still reads what its first version wrote."""
    event = decode("LampLit", 1, '{"colour":"red"}', str, upcasts=STEPS)
    assert event == LampLit(color="red", watts=60)  # type: ignore[comparison-overlap]


@pytest.mark.usefixtures("_lamps")
def test_an_upcast_that_gives_nonsense_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an upcast returns is checked like any payload."""
    monkeypatch.setitem(codec.BY_NAME, "LampLit", LampLit)
    with pytest.raises(LogDamaged, match="LampLit"):
        decode("LampLit", 2, "{}", str, upcasts={("LampLit", 2): lambda _: {"color": 3, "watts": 60}})
