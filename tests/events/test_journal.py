"""The journal: what is found again of a call, by its slot, its model or its number, and what names it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import attrs
import pytest
from support.event_runs import failed, finished, forge, with_writer

from skillopt_es.events.codec import canonical_json
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.journal import FinishedCall, Journal, is_sealed
from skillopt_es.events.reader import Columns, Reader
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.values import Cell
from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter


def call(**fields: object) -> FinishedCall:
    """A call about which everything is known, but for these fields."""
    known = FinishedCall(
        slot="s",
        role="target",
        stage="rollout",
        model="m",
        request=RecordedRequest("{}"),
        outcome="answered",
        response="a" * 64,
        trace="b" * 64,
        finish="stop",
        error_kind="x",
        error_message="y",
        input_tokens=1,
        output_tokens=2,
        cached_tokens=3,
        reasoning_tokens=4,
    )
    return attrs.evolve(known, **fields)  # type: ignore[arg-type]


def recorded(folder: Path, *calls: FinishedCall) -> Path:
    """The folder of a run whose journal has these calls."""

    async def work(writer: RunWriter) -> None:
        await asyncio.gather(*(writer.record(call) for call in calls))

    with_writer(folder, work)
    return folder


def journal(folder: Path) -> Journal:
    """The journal of a run."""
    return Journal(Reader(folder))


def answered(slot: str, **fields: object) -> FinishedCall:
    """An answered call without texts."""
    return call(slot=slot, response=None, trace=None, **fields)


ONE_TRY = '[{"kind":"timeout","message":"ä","status":null,"waited_ms":1}]'


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"ahead": True},
        {"repeats": "e1/s1/train/item/ä"},
        {"tries": ONE_TRY},
        {"tries": ONE_TRY, "ahead": True},
        {"tries": '[{"kind":"aheads"}]'},
        {"tries": '[{"kind":"timeout"},{"kind":"ahead"}]'},
    ],
    ids=str,
)
def test_a_call_is_read_as_it_was_recorded(said: dict[str, object], tmp_path: Path) -> None:
    """So is its charge; the log is whole, and it knows whether calls were made ahead or repeat others."""
    made = answered("a", input_tokens=5, **said)
    found = journal(recorded(tmp_path / "run", made))
    (row,), (charge,) = found.read(), found.charges()
    assert row.call == made
    assert (charge.call.tries, charge.call.ahead, charge.call.repeats) == (made.tries, made.ahead, made.repeats)
    assert (found.has_ahead(), found.asked()) == (made.ahead, 0 if made.repeats else 1)
    assert len(found.plain_sums(0, 1)) == (said == {})
    assert (found.first_changed(), verify(tmp_path / "run").problems) == (None, ())


@pytest.mark.parametrize(
    "other",
    [
        {"slot": "t"},
        {"role": "optimizer"},
        {"stage": "gate"},
        {"model": "n"},
        {"request": RecordedRequest('{"params":{}}')},
        {"outcome": "failed"},
        {"response": "c" * 64},
        {"response": None},
        {"trace": "c" * 64},
        {"trace": None},
        {"finish": "length"},
        {"error_kind": ""},
        {"error_message": ""},
        {"input_tokens": None},
        {"output_tokens": None},
        {"cached_tokens": None},
        {"reasoning_tokens": None},
    ],
    ids=str,
)
def test_what_came_of_a_call_has_a_name_of_its_own(other: dict[str, object]) -> None:
    """Whatever else was asked or came back."""
    assert call(**other).digest != call().digest


def test_when_and_how_a_call_was_made_does_not_name_it() -> None:
    """Nor which server said so; the name has 128 bits."""
    same = call(latency_ms=9, ahead=True, request_id="r", reply_model="m-2026")
    assert same.digest == call().digest
    assert re.fullmatch("[0-9a-f]{32}", call().digest)


def test_what_nobody_said_of_a_call_is_empty(tmp_path: Path) -> None:
    """Also after it was recorded and read again; it counts as no tokens, which is not 0 tokens."""
    bare = FinishedCall(
        slot="s", role="target", stage="x", model="m", request=RecordedRequest("{}"), outcome="answered"
    )
    recorded(tmp_path / "run", bare)
    (row,) = journal(tmp_path / "run").read()
    assert row.call == bare
    assert (bare.finish, bare.reply_model, bare.request_id, bare.error_kind, bare.error_message) == ("",) * 5
    assert (bare.input_tokens, bare.output_tokens, bare.cached_tokens, bare.reasoning_tokens) == (None,) * 4
    assert (bare.response, bare.trace, bare.latency_ms, bare.tries) == (None, None, 0, "[]")


def test_calls_are_found_by_slot_and_model_once_they_are_answered(tmp_path: Path) -> None:
    """Failed calls are attempts, and answer for nobody; those that nobody was asked for are not counted as asked."""
    calls = [failed("a"), answered("a"), answered("a"), failed("b"), answered("c", model="n", repeats="a")]
    found = journal(recorded(tmp_path / "run", *calls))
    assert [row.attempt for row in found.attempts("a")] == [1, 2, 3]
    assert [row.attempt for row in found.answers("a")] == [2, 3]
    assert (len(found.attempts("b")), found.answers("b")) == (1, [])
    assert found.slots() == {"a", "c"}
    assert [found.has_answer_of(model) for model in ("m", "n", "o")] == [True, True, False]
    assert (len(found), found.asked()) == (5, 4)


def test_a_model_that_only_failed_has_answered_nothing(tmp_path: Path) -> None:
    """And an empty journal holds nothing at all."""
    empty = journal(recorded(tmp_path / "empty"))
    assert (len(empty), empty.asked(), empty.slots(), list(empty.read())) == (0, 0, frozenset(), [])
    assert not journal(recorded(tmp_path / "run", failed("a"))).has_answer_of("m")


def test_an_entry_is_what_was_recorded(tmp_path: Path) -> None:
    """Its number, its attempt and its place in the chain; events refer to it by slot and digest."""

    async def work(writer: RunWriter) -> None:
        made = [await writer.record(*finished("a", "q", "x")), await writer.record(failed("a"))]
        assert list(writer.journal.read()) == made
        assert [(row.n, row.attempt) for row in made] == [(1, 1), (2, 2)]
        assert made[1].prev_hash == made[0].hash
        assert (made[0].ref.slot, made[0].ref.digest) == ("a", finished("a", "q", "x")[0].digest)

    with_writer(tmp_path / "run", work)


def test_charges_say_what_calls_cost_and_whether_the_same_was_asked(tmp_path: Path) -> None:
    """In the order of the calls, from any number on; what was asked is named as it is among the calls of this log."""

    async def work(writer: RunWriter) -> None:
        for slot, question in (("a", "q"), ("b", "r"), ("c", "q")):
            await writer.record(*finished(slot, question, "x"))
        first, second, third = writer.journal.charges()
        assert [row.n for row in (first, second, third)] == [1, 2, 3]
        assert first.call.request_digest == third.call.request_digest != second.call.request_digest
        assert (first.call.slot, first.call.input_tokens, first.call.output_tokens) == ("a", 30, 5)
        assert [row.n for row in writer.journal.charges(after=2)] == [3]
        assert [row.n for row in writer.journal.read(after=1)] == [2, 3]

    with_writer(tmp_path / "run", work)


def test_a_journal_longer_than_one_query_is_read_whole(tmp_path: Path) -> None:
    """The chunks join without a seam."""
    long = journal(recorded(tmp_path / "run", *(failed(f"s{number}") for number in range(1002))))
    assert [row.n for row in long.read()] == [row.n for row in long.charges()] == list(range(1, 1003))


def test_a_call_that_was_changed_is_told_as_damage(tmp_path: Path) -> None:
    """Whoever reads it whole; one that lost its form is told by its charge, too."""
    folder = recorded(tmp_path / "run", answered("a"), answered("b"), answered("c"))
    forge(folder, "update calls set texts = x'00' where n = 2")
    with pytest.raises(LogDamaged, match="call 2 was changed after it was recorded"):
        list(journal(folder).read())
    forge(folder, "update calls set form = 99 where n = 3")
    with pytest.raises(LogDamaged, match="call 3 was changed after it was recorded"):
        list(journal(folder).read(after=2))
    with pytest.raises(LogDamaged, match="call 3 is damaged: what it has in common with others is missing"):
        list(journal(folder).charges())


def test_a_call_that_comes_twice_is_told_as_damage(tmp_path: Path) -> None:
    """As where a page of the file is linked twice: each of its rows is as it was recorded."""

    class Doubled(Reader):
        def rows(self, sql: str, values: Sequence[Cell] = ()) -> list[Columns]:
            return [row for row in super().rows(sql, values) for _ in range(2)]

    with pytest.raises(LogDamaged, match="call 1 stands after call 1"):
        list(Journal(Doubled(recorded(tmp_path / "run", answered("a")))).read())


STRANGE = 'no\x08 \x0b\x0c\x1f\x7f / \\ " ä \u2028 \U0001f600'


def test_the_first_call_that_was_changed_is_named(tmp_path: Path) -> None:
    """From any number on, and whatever signs a call has."""
    calls = [answered("a"), failed("b", STRANGE), failed("c", STRANGE[:12]), answered("d", finish="fertig, ä")]
    folder = recorded(tmp_path / "run", *calls)
    assert journal(folder).first_changed() is None
    assert [row.call.slot for row in journal(folder).read()] == list("abcd")
    forge(folder, "update calls set latency_ms = 7 where n in (2, 4)")
    assert [journal(folder).first_changed(after) for after in (0, 1, 2, 3, 4)] == [2, 2, 4, 4, None]
    forge(folder, "update calls set form = 99 where n = 1")
    assert journal(folder).first_changed() == 1


def test_a_call_is_sealed_by_its_own_json() -> None:
    """What is no JSON at all is not; signs beyond ASCII count in the form that was recorded."""
    assert is_sealed("[1, 2]", sha256(b"[1, 2]").digest())
    assert is_sealed('["ä"]', sha256(canonical_json(["ä"]).encode()).digest())
    assert not is_sealed("[1, 2]", sha256(b"[1,2]").digest())
    assert not is_sealed(None, sha256(b"null").digest())
    assert not is_sealed("ä]", sha256("ä]".encode()).digest())


def test_calls_that_were_answered_at_once_are_summed_by_place(tmp_path: Path) -> None:
    """The others are told one by one; whether any was made ahead is known."""
    slow = '[{"kind":"timeout","message":"","status":null,"waited_ms":1}]'
    slots = ("e1/s1/train/a", "e1/s1/train/b", "e1/s1/train/c")
    calls = [answered(slot, tries=tries, input_tokens=5) for slot, tries in zip(slots, ("[]", "[]", slow), strict=True)]
    found = journal(recorded(tmp_path / "run", *calls))
    (sums,) = found.plain_sums(0, 3)
    assert [row.call.slot for row in found.charges(plain=False)] == ["e1/s1/train/c"]
    assert [row.n for row in found.charges(until=2)] == [1, 2]
    assert (sums.calls, sums.input_tokens, sums.role, sums.stage) == (2, 10, "target", "rollout")
    assert not found.has_ahead()
    assert journal(recorded(tmp_path / "other", answered("a"), answered("b", ahead=True))).has_ahead()
