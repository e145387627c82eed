"""Events become canonical JSON and come back exactly, or are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.event_runs import rollout
from support.event_strategies import instances

from skillopt_es.events.catalog import (
    CATALOG,
    Event,
    PatchProposed,
    RolloutCompleted,
    RunPaused,
    RunResumed,
    RunStarted,
)
from skillopt_es.events.codec import BIG, canonical_json, decode, encode
from skillopt_es.events.errors import InvalidEvent, LogDamaged, LogTooNew
from skillopt_es.events.values import Failed, Json, Measured, NotRun, SkillTree, SplitIds, clean_text, digest_of


def round_trip(event: Event) -> Event:
    encoded = encode(event)
    blobs = dict(encoded.blobs)
    return decode(encoded.type, encoded.version, encoded.data, lambda digest: blobs[digest].decode())


def started(config: Mapping[str, Json], files: Mapping[str, str] | None = None) -> RunStarted:
    return RunStarted(
        software="1",
        config=config,
        algorithm="classic",
        folder="/data",
        skill=SkillTree(files or {"SKILL.md": ""}),
        splits=SplitIds((), (), (), {}),
        steps_per_epoch=1,
        total_steps=1,
    )


def no_blob(digest: str) -> str:
    raise AssertionError(f"asked for {digest}")


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", CATALOG, ids=lambda kind: kind.__name__)
def test_every_event_comes_back_as_it_was(kind: type[Event]) -> None:
    """Any event of any class equals what is read back, and its second writing has the same bytes."""

    @settings(suppress_health_check=list(HealthCheck), database=None)
    @given(instances(kind))
    def holds(event: Event) -> None:
        encoded, again = encode(event), round_trip(event)
        assert again == event
        assert encode(again) == encoded
        assert encoded.data.isascii()
        assert encoded.data == canonical_json(json.loads(encoded.data))

    holds()


@pytest.mark.parametrize("outcome", [Measured(1.0, 0.5), Failed("timeout", "30 s"), NotRun("budget")])
def test_outcomes_are_tagged_with_their_kind(outcome: Measured | Failed | NotRun) -> None:
    """Each arm of the union has its own tag on the wire."""
    event = attrs.evolve(rollout(1), outcome=outcome)
    tags = {Measured: "measured", Failed: "failed", NotRun: "not_run"}
    assert tags[type(outcome)] == json.loads(encode(event).data)["outcome"]["kind"]
    assert round_trip(event) == event


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"turns": "1"}, "turns"),
        ({"turns": True}, "turns"),
        ({"turns": 1.0}, "turns"),
        ({"item": None}, "item"),
        ({"item": 7}, "item"),
        ({"purpose": "practice"}, "purpose"),
        ({"calls": "abc"}, "calls"),
        ({"calls": (3,)}, "calls"),
        ({"outcome": None}, "outcome"),
        ({"outcome": Measured(hard=True, soft=0.5)}, "hard"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_before_it_is_written(change: dict[str, object], words: str) -> None:
    """Encoding names the field whose value could not be read back."""
    with pytest.raises(InvalidEvent, match=words):
        encode(attrs.evolve(rollout(1), **change))  # type: ignore[arg-type]


def test_nan_is_refused() -> None:
    """A number that JSON does not have is never written, wherever it hides."""
    with pytest.raises(InvalidEvent, match="RunStarted"):
        encode(started({"a": [float("nan")]}))
    with pytest.raises(ValueError, match="finite"):
        Measured(hard=float("inf"), soft=0.0)


@pytest.mark.parametrize("value", [(1, 2), {1: 2}, {"a": b"x"}, {"a": {"b": {3}}}])
def test_configuration_that_is_not_plain_json_is_refused(value: object) -> None:
    """A tuple or a numeric key would come back as something else."""
    with pytest.raises(InvalidEvent):
        encode(started({"a": value}))  # type: ignore[dict-item]


def test_an_event_outside_the_catalogue_is_refused() -> None:
    """Only what can be read back by name is written."""

    @attrs.frozen(kw_only=True)
    class RunResumed(Event):
        software: str

    with pytest.raises(InvalidEvent, match="catalogue"):
        encode(RunResumed(software="x"))


@pytest.mark.parametrize(
    "data",
    [
        "",
        "{",
        "[]",
        "7",
        "{}",
        '{"software":7}',
        '{"software":"x","more":1}',
        '{"software":"x"} ',
        '{"software":NaN}',
        '{"software":{"$blob":7}}',
        "[" * 5000,
    ],
)
def test_a_payload_that_does_not_fit_is_damage_and_names_the_event(data: str) -> None:
    """Reading never guesses."""
    with pytest.raises(LogDamaged, match=r"event 9 \(RunResumed\)") as caught:
        decode("RunResumed", 1, data, no_blob, seq=9)
    assert caught.value.seq == 9


@given(st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")) | st.text(max_size=60))
def test_any_text_is_read_or_refused(data: str) -> None:
    """No payload whatever makes decoding raise anything but the log's own error."""
    for name in ("RunResumed", "RolloutCompleted", "RunStarted"):
        with pytest.raises(LogDamaged):
            decode(name, 1, data, no_blob)


def test_unknown_types_and_newer_versions_are_told_apart_from_damage() -> None:
    """A log of a newer software says so, with the name of what is new."""
    with pytest.raises(LogTooNew, match=r"event 3 \(SkillDreamt\)"):
        decode("SkillDreamt", 1, "{}", no_blob, seq=3)
    with pytest.raises(LogTooNew, match="RunResumed in version 2"):
        decode("RunResumed", 2, "{}", no_blob)


def test_lone_surrogates_become_the_replacement_character() -> None:
    """A text that UTF-8 cannot hold is cleaned, in values and keys; a real pair stays."""
    event = started({"k\ud800": ["a\udfffb", "😀"]}, {"SKILL.md": "\udcff"})
    again = round_trip(event)
    assert again == started({"k\ufffd": ["a\ufffdb", "😀"]}, {"SKILL.md": "\ufffd"})
    assert clean_text("x\ud83d") == "x\ufffd"


@pytest.mark.parametrize("letter", ["a", "é", "語", "😀"])
def test_texts_of_four_kib_leave_the_payload(letter: str) -> None:
    """The bound is in UTF-8 bytes, and what is moved is named by its digest."""
    width = len(letter.encode())
    small, big = letter * (BIG // width - 1), letter * -(-BIG // width)
    encoded = encode(RunPaused(reason="error", message=small))
    assert encoded.blobs == ()
    encoded = encode(RunPaused(reason="error", message=big))
    assert encoded.blobs == ((digest_of(big.encode()), big.encode()),)
    assert json.loads(encoded.data)["message"] == {"$blob": digest_of(big.encode())}
    assert round_trip(RunPaused(reason="error", message=big)) == RunPaused(reason="error", message=big)


def test_a_payloads_own_blob_key_is_kept() -> None:
    """What looks like a reference and is none comes back as it was."""
    event = started({"$blob": "x", "$$blob": {"$blob": ["y" * BIG]}})
    assert round_trip(event) == event
    assert "$blob" not in json.loads(encode(event).data)["config"]


def test_one_big_text_in_many_places_is_one_blob() -> None:
    """Blobs of an event are named once each."""
    event = started({}, {"a.md": "x" * BIG, "b.md": "x" * BIG})
    assert len(encode(event).blobs) == 1


def test_a_whole_number_will_do_for_a_float() -> None:
    """JSON of other programs writes 1 for 1.0."""
    data = encode(rollout(1)).data.replace('"hard":1.0', '"hard":1')
    event = decode("RolloutCompleted", 1, data, no_blob)
    assert isinstance(event, RolloutCompleted)
    assert isinstance(event.outcome, Measured)
    assert isinstance(event.outcome.hard, float)


def test_fields_with_defaults_may_be_missing() -> None:
    """A payload from before an optional field was added is read with its default."""
    data = '{"kind":"failure","items":[],"patch":"p","result":"nothing","step":1}'
    event = decode("PatchProposed", 1, data, no_blob)
    assert event == PatchProposed(patch="p", step=1, kind="failure", items=(), result="nothing")


def test_canonical_json_is_one_text() -> None:
    """Sorted, compact, ASCII."""
    assert canonical_json({"b": 1.5, "a": ["é", None]}) == '{"a":["\\u00e9",null],"b":1.5}'


def test_encoded_events_know_their_version() -> None:
    """The version of the class goes with the payload, not into it."""
    encoded = encode(RunResumed(software="1"))
    assert (encoded.type, encoded.version, encoded.data) == ("RunResumed", 1, '{"software":"1"}')
