"""The line between the writer and a worker: whole values, nobody else, and encrypted where Ray is."""

from __future__ import annotations

import asyncio
import pickle
import shutil
import socket
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from skillopt_es.adapters.executors.travels import LineClosed
from skillopt_es.adapters.executors.wire import Door, Wire, reach

Scene = Callable[[Door], Awaitable[None]]


def play(scene: Scene) -> None:
    """A scene at an open door."""

    async def played() -> None:
        door = Door("127.0.0.1")
        await door.open()
        try:
            await scene(door)
        finally:
            door.close()
            for wire in _OPENED:
                wire.close()
            _OPENED.clear()
            await asyncio.sleep(0)  # an end that is closed is gone in the next turn of the loop

    asyncio.run(asyncio.wait_for(played(), 20))


_OPENED: list[Wire] = []


async def joined(door: Door) -> tuple[Wire, Wire]:
    """Both ends of a line: the writer's, and the worker's."""
    word, expected = door.expect()
    there = await reached(door, word)
    here = await expected
    assert isinstance(here, Wire)
    _OPENED.append(here)
    return here, there


async def reached(door: Door, word: bytes) -> Wire:
    """A worker's end."""
    _OPENED.append(await reach(door.host, door.port, word))
    return _OPENED[-1]


def test_values_arrive_whole_and_in_order_both_ways() -> None:
    """Small and large ones."""

    async def scene(door: Door) -> None:
        here, there = await joined(door)
        values = ["one", {"two": 2}, "x" * 3_000_000, ("last",)]
        for value in values:
            here.send(value)
            there.send(value)
        assert [await there.hear() for _ in values] == values
        assert [await here.hear() for _ in values] == values

    play(scene)


def test_what_arrives_in_pieces_is_put_together() -> None:
    """Byte by byte."""

    async def scene(_: Door) -> None:
        wire, packed = Wire(), pickle.dumps("word")
        for byte in (len(packed).to_bytes(4, "big") + packed) * 2:
            wire.data_received(bytes([byte]))
        assert [await wire.hear(), await wire.hear()] == ["word", "word"]

    play(scene)


def test_whoever_hears_is_told_that_the_other_end_is_gone() -> None:
    """After what it said last, and for ever."""

    async def scene(door: Door) -> None:
        here, there = await joined(door)
        here.send("last")
        assert await there.hear() == "last"
        here.close()
        here.send("lost")
        for _ in range(2):
            with pytest.raises(LineClosed):
                await there.hear()
            with pytest.raises(LineClosed):
                await here.hear()

    play(scene)


def test_nothing_is_read_of_a_stranger() -> None:
    """Without the word of a worker that is expected the connection ends; nothing that was said is unpickled."""

    async def scene(door: Door) -> None:
        stranger = await reached(door, bytes(32))
        stranger.send(_Trap())
        with pytest.raises(LineClosed):
            await stranger.hear()
        assert not _SPRUNG
        word, expected = door.expect()
        await reached(door, word)
        _OPENED.append(cast(Wire, await expected))
        again = await reached(door, word)  # a word is for one worker
        with pytest.raises(LineClosed):
            await again.hear()

    play(scene)


_SPRUNG: list[int] = []


class _Trap:
    def __reduce__(self) -> tuple[Callable[[int], None], tuple[int]]:
        return _SPRUNG.append, (1,)


def test_a_writer_that_cannot_be_reached_is_tried_some_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """And then told as any other error of the system."""
    monkeypatch.setattr("skillopt_es.adapters.executors.wire._BETWEEN", 0.0)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="Connect call failed"):
            asyncio.run(reach("127.0.0.1", nobody.getsockname()[1], bytes(32)))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_it_is_encrypted_where_ray_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Ray's certificates; whoever has none does not come in."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    subprocess.run(
        [*made, "-subj", "/CN=node", "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    monkeypatch.setenv("RAY_USE_TLS", "1")
    for name, file in (("SERVER_CERT", certificate), ("SERVER_KEY", key), ("CA_CERT", certificate)):
        monkeypatch.setenv(f"RAY_TLS_{name}", str(file))

    async def scene(door: Door) -> None:
        here, there = await joined(door)
        here.send("hidden")
        assert await there.hear() == "hidden"
        monkeypatch.setenv("RAY_USE_TLS", "0")
        other, _ = door.expect()
        plain = await reached(door, other)
        with pytest.raises(LineClosed):
            await plain.hear()

    play(scene)
