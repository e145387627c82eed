"""A request and what many requests have in common."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from support.event_runs import address, client, create, failed, fill, finished, reopen, with_writer

from skillopt_es.events.codec import canonical_json
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.requests import RecordedRequest, join_request, split_request
from skillopt_es.events.verify import verify

_DIGEST = st.binary(min_size=32, max_size=32).map(bytes.hex)
_PIECE = st.sampled_from(['"', "#", '"#"', '#"', "\\", "", "a", '["user",', "]", "0" * 64, '"' + "0" * 64]) | _DIGEST


@given(st.lists(_PIECE | _DIGEST.map(lambda digest: f'"{digest}"'), max_size=8).map("".join))
def test_any_request_comes_back(request: str) -> None:
    """Whatever marks and digests it has of its own."""
    form, texts = split_request(request)
    assert join_request(form, texts) == request


def test_a_request_says_what_was_asked_and_keeps_its_bytes() -> None:
    """Its messages, images and parameters are values; what is not there is empty."""
    said = {
        "images": [[0, "image/png", "low", "c" * 64]],
        "messages": [["user", "a" * 64]],
        "params": {"max_tokens": 9},
    }
    request = RecordedRequest(canonical_json(said))
    assert request.messages == (("user", "a" * 64),)
    assert request.images == ((0, "image/png", "low", "c" * 64),)
    assert (request.params, request.max_tokens) == ({"max_tokens": 9}, 9)
    assert list(request.digests) == ["a" * 64, "c" * 64]
    assert request == RecordedRequest(canonical_json(request.said))
    assert request.digest("m") == address(f"m\n{canonical_json(said)}") != request.digest("n")
    bare = RecordedRequest("{}")
    assert (bare.messages, bare.images, bare.params, list(bare.digests)) == ((), (), {}, [])


def test_requests_that_differ_in_their_texts_have_one_form() -> None:
    """The digests are what is left out, and 32 bytes each."""
    asked = [canonical_json({"messages": [["user", address(text)], ["user", address("x")]]}) for text in ("a", "b")]
    (form, texts), (other, _) = map(split_request, asked)
    assert form == other == '{"messages":[["user","#"],["user","#"]]}'
    assert texts == bytes.fromhex(address("a") + address("x"))


@pytest.mark.parametrize("texts", [bytes(31), bytes(32), bytes(96)])
def test_a_form_with_other_texts_than_it_has_places_for_is_damage(texts: bytes) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="places"):
        join_request('["#","#"]', texts)


def test_a_form_is_stored_once(tmp_path: Path) -> None:
    """In one group, in later ones and by the next writer."""
    folder = tmp_path / "run"
    with create(folder) as writer:

        async def work() -> None:
            await asyncio.gather(*(writer.record(*finished(f"slot-{n}", f"q{n}", "a")) for n in range(5)))
            await writer.record(failed("slot-0"))

        asyncio.run(work())
    with reopen(folder) as writer:
        call, texts = finished("slot-9", "q9", "a")
        asyncio.run(writer.record(call, texts))
        asyncio.run(writer.record(evolve(call, role="optimizer"), texts))
        assert [row.call.role for row in writer.journal.attempts("slot-9")] == ["target", "optimizer"]
    with closing(client(folder)) as connection:
        forms = connection.execute("select form from calls order by n").fetchall()
        assert connection.execute("select count(*) from forms").fetchone() == (3,)
    assert [form for (form,) in forms] == [1, 1, 1, 1, 1, 2, 1, 3]
    assert verify(folder).ok


def test_views_show_digests_in_hex(tmp_path: Path) -> None:
    """What people see is what the Python side says."""
    folder = tmp_path / "run"
    fill(folder, 2)
    with closing(client(folder)) as connection:
        events = connection.execute("select seq, prev_hash, hash, data from log_events order by seq").fetchall()
        calls = connection.execute("select n, model, response, hash, texts from log_calls order by n").fetchall()
        digests = {digest for (digest,) in connection.execute("select digest from log_blobs order by 1")}
        found = connection.execute(
            "select json_extract(data, '$.item') from events where seq = 2 order by 1"
        ).fetchone()
    assert found == ("item-0",)
    with EventLog.open(folder) as log:
        assert [row[:3] for row in events] == [(each.seq, each.prev_hash, each.hash) for each in log.read()]
        rows = list(Journal(log.reader).read())
        assert [row[:4] for row in calls] == [(row.n, row.call.model, row.call.response, row.hash) for row in rows]
        asked = [digest for row in rows for _, digest in row.call.request.messages]
        assert "".join(row[4] for row in calls) == "".join(asked)
        assert digests.issuperset(asked)


def test_a_new_writer_numbers_forms_on(tmp_path: Path) -> None:
    """An operation that fails takes no number of a form along."""
    folder = tmp_path / "run"

    async def work(writer: object) -> None:
        good, texts = finished("good", "q", "a")
        bad = evolve(failed("bad"), latency_ms=2**70)
        results = await asyncio.gather(
            writer.record(bad),  # type: ignore[attr-defined]
            writer.record(good, texts),  # type: ignore[attr-defined]
            return_exceptions=True,
        )
        assert [type(result).__name__ for result in results] == ["OverflowError", "CallRow"]

    with_writer(folder, work)  # type: ignore[arg-type]
    assert verify(folder).ok
