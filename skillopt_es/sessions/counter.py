"""
A counter at which runs on other machines ask for their part of what all of them share.

The sweep's process has the file (`commons.py`), and serves it over HTTP on the cluster's network, at an address that
lies in the sweep's folder with a word that only its runs know. While that process is away nothing new is sent: runs
wait, and tell the next one what their calls have come to.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import httpx
from aiohttp import web
from attrs import define, field

from skillopt_es.engine.budget import Amount, Reached
from skillopt_es.errors import BackendError
from skillopt_es.events.plain import read_plain
from skillopt_es.sessions.commons import Commons, Full, Grant, Granted

_PATIENCE = 600.0  # seconds without a counter, until a run pauses
_TIMEOUT = 10.0  # the counter is asked over the network and answers from memory: later means that it is gone
_SOON = 0.05  # long enough for several calls to share a message, and no call waits for it
T = TypeVar("T")


# --- the sweep's side ------------------------------------------------------------------------------------------------


class Counter:
    """The limits of a sweep, served from a thread of its own until `close`."""

    def __init__(self, path: Path, address: Path, host: str) -> None:
        """Raises BackendError where no port can be opened at the host."""
        self._path, self._address, self._host = path, address, host
        self._word = secrets.token_urlsafe(24)
        self._open: dict[str, Commons] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._runner = self._do(self._serve())
        except OSError as error:
            self._stop()
            raise BackendError(
                f"runs cannot reach this machine: no port can be opened at {host} ({error})",
                kind="config",
                hint="begin the sweep on a machine that the cluster's nodes can connect to",
            ) from error

    def over(self, folder: Path) -> None:
        """No process writes this run any more: what it held is spent."""
        self._do(self._over(str(folder.resolve())))

    def close(self) -> None:
        """Nobody is served any more."""
        self._do(self._shut())
        self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[None, None, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, self._host, 0).start()
        said = {"url": f"http://{self._host}:{runner.addresses[0][1]}/", "word": self._word}
        new = self._address.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(said, file)
        new.replace(self._address)
        return runner

    async def _shut(self) -> None:
        await self._runner.cleanup()
        for commons in self._open.values():
            commons.close()

    async def _over(self, folder: str) -> None:
        self._commons(folder, begins=False).over()
        self._open.pop(folder).close()

    def _commons(self, folder: str, *, begins: bool) -> Commons:
        """One run's hold on the file; a live one that this process does not know yet goes on with what it holds."""
        if begins and folder in self._open:
            self._open[folder].over()
        if folder not in self._open:
            self._open[folder] = Commons(self._path, Path(folder), begins=begins)
        return self._open[folder]

    async def _answer(self, http: web.Request) -> web.Response:
        given = http.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._word.encode()):
            return web.json_response({"error": "this word is not that of the sweep's runs"}, status=401)
        asked = await http.json()
        commons = self._commons(asked["folder"], begins=asked["begins"])
        for owed in asked["owed"]:
            commons.settle(owed["endpoint"], owed["number"], _amount(owed["came_to"]), owed["tokens"])
        if "more" not in asked:
            return web.json_response({})
        grant = commons.take(asked["endpoint"], _amount(asked["more"]), asked["tokens"], asked["number"])
        return web.json_response(_grant_json(grant))


def _grant_json(grant: Grant) -> Mapping[str, object]:
    match grant:
        case Granted(number, wait):
            return {"number": number, "wait": wait}
        case Reached(key, message):
            return {"key": key, "message": message}
        case Full():
            return {}


def _amount_json(amount: Amount) -> list[object]:
    return [amount.calls, amount.tokens, str(amount.cost)]


def _amount(said: list[Any]) -> Amount:
    calls, tokens, cost = said
    return Amount(calls=calls, tokens=tokens, cost=Decimal(cost))


# --- a run's side ----------------------------------------------------------------------------------------------------


class _AwayError(Exception):
    """Nobody is at the counter."""


@define
class Elsewhere:
    """The counter as a run on another machine sees it."""

    address: Path
    folder: Path
    clock: Callable[[], float] = time.monotonic
    patience: float = _PATIENCE
    _client: httpx.AsyncClient = field(init=False)
    _owed: list[dict[str, object]] = field(factory=list)
    _telling: asyncio.Task[None] | None = None
    _begins: bool = True
    _away_since: float | None = None

    @_client.default
    def _(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(timeout=_TIMEOUT, trust_env=False)

    async def take(self, endpoint: str, more: Amount, tokens: int, number: int | None = None) -> Grant:
        """As `Commons.take`; while nobody is there, nothing is free, and after a while the run pauses."""
        asked = {"endpoint": endpoint, "more": _amount_json(more), "tokens": tokens, "number": number}
        try:
            said = await self._ask(asked)
        except _AwayError:
            now = self.clock()
            self._away_since = now if self._away_since is None else self._away_since
            if now - self._away_since < self.patience:
                return Full()
            return Reached("limits", f"the sweep that shares out limits has not answered for {self.patience:g} seconds")
        self._away_since = None
        if "number" in said:
            return Granted(said["number"], said["wait"])
        return Reached(said["key"], said["message"]) if said else Full()

    def settle(self, endpoint: str, number: int, came_to: Amount, tokens: int) -> None:
        """As `Commons.settle`, a moment later; while nobody is there it is kept, and told with the next question."""
        self._owed.append({"endpoint": endpoint, "number": number, "came_to": _amount_json(came_to), "tokens": tokens})
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_soon())

    async def _tell_soon(self) -> None:
        """What several calls have come to in one message; others may wait for it."""
        await asyncio.sleep(_SOON)
        await self._tell()

    async def _tell(self) -> None:
        if self._owed:
            with suppress(_AwayError):
                await self._ask({})

    async def aclose(self) -> None:
        """Tells what is owed; where nobody is there, what is set aside for it stays so, and is spent at its worst."""
        if self._telling is not None:
            await asyncio.wait((self._telling,))
        await self._tell()
        await self._client.aclose()

    async def _ask(self, asked: Mapping[str, object]) -> dict[str, Any]:
        owed, self._owed = self._owed, []
        body = {**asked, "folder": str(self.folder.resolve()), "begins": self._begins, "owed": owed}
        try:
            where = json.loads(read_plain(self.address))
            done = await self._client.post(
                where["url"], json=body, headers={"Authorization": f"Bearer {where['word']}"}
            )
            done.raise_for_status()
        except (OSError, ValueError, httpx.HTTPError) as error:
            self._owed = [*owed, *self._owed]
            raise _AwayError from error
        self._begins = False
        said: dict[str, Any] = done.json()
        return said
