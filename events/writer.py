"""
The one writer of a run.

An event loop asks, a thread of its own writes: it takes what is waiting, commits it in one transaction, and wakes all
who asked with one call into the loop. So a durable commit is shared by all who wait for one, and an answer comes back
only once it is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future as Promise
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import cast

from attrs import define

from skillopt_es.events.blobs import blob_row
from skillopt_es.events.catalog import Event
from skillopt_es.events.codec import encode
from skillopt_es.events.create import Contents, ForkPoint, create_log
from skillopt_es.events.errors import WrongExpectedSeq
from skillopt_es.events.faults import system_fault
from skillopt_es.events.journal import CallRow, FinishedCall, Journal
from skillopt_es.events.lock import RunLock
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE, check_file
from skillopt_es.events.store import Append, Record, Result, Store, Write, timestamp
from skillopt_es.events.values import Row, digest_of, text_digest

GROUP = 64  # on a disk that takes 4 ms a commit, this many are 16,000 records a second

Outcome = Result | BaseException


@define(eq=False)
class _Asked:
    """An operation and who waits for it."""

    write: Write
    future: asyncio.Future[int | CallRow]
    loop: asyncio.AbstractEventLoop
    outcome: Outcome | None = None


@define(eq=False)
class _Barrier:
    """Something the writer thread does between two groups; the last one ends it."""

    action: Callable[[], None]
    done: Promise[None]
    last: bool = False


_Item = _Asked | _Barrier


class RunWriter:
    """The right and the means to write to one run, until `close`."""

    def __init__(self, folder: Path, lock: RunLock, *, now: Callable[[], datetime], accept_loss: bool = False) -> None:
        """Use `create` or `open`."""
        self._lock = lock
        self.log = EventLog.open(folder)
        try:
            self._store = Store(folder, self.log.run, lock, now=now, accept_loss=accept_loss)
        except BaseException:
            self.log.close()
            raise
        self.journal = Journal(self.log.reader)
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._closed = False
        # One thread, so that commits come in the order in which they were asked for.
        self._thread = Thread(target=self._work, name=f"log of {self.log.run.name}", daemon=True)
        self._thread.start()

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        run_id: str,
        name: str,
        now: Callable[[], datetime],
        fork: ForkPoint | None = None,
        contents: Contents | None = None,
    ) -> RunWriter:
        """
        A new run in a folder that has none; a fork starts with a copy of its parent's events and journal.

        With `contents` the run is there with all of these, or not at all.
        """
        start = timestamp(now())
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise system_fault(error, folder) from error
        lock = RunLock(folder, start=start)
        try:
            if not (folder / LOG_FILE).exists():
                lock.unmark()  # what another log left there is not about this one
            create_log(folder, run_id=run_id, name=name, created_at=start, fork=fork, contents=contents)
            return cls(folder, lock, now=now)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(cls, folder: Path, *, now: Callable[[], datetime], accept_loss: bool = False) -> RunWriter:
        """The next writer of a run that exists; with `accept_loss` also of one whose end is missing, see `lost`."""
        check_file(folder / LOG_FILE)
        lock = RunLock(folder, start=timestamp(now()))
        try:
            return cls(folder, lock, now=now, accept_loss=accept_loss)
        except BaseException:
            lock.release()
            raise

    @property
    def lost(self) -> str:
        """What was missing at the log's end when it was opened, and was accepted; usually nothing."""
        return self._store.lost

    async def append(self, events: Sequence[Event], *, expected: int, texts: Sequence[str] = ()) -> int:
        """
        The number of the log's last event, once these are durable after event `expected`.

        Raises WrongExpectedSeq, and writes nothing, when the log is elsewhere. `texts` become blobs with the events.
        """
        # On the caller's thread: the writer's thread should be back at the disk soon.
        encoded = [encode(event) for event in events]
        known = self._store.known
        lifted = (blob for event in encoded for blob in event.blobs)
        blobs = self._text_rows(texts) | {
            digest: blob_row(digest, raw) for digest, raw in lifted if digest not in known
        }
        return cast("int", await self._ask(Append(encoded, expected, None, blobs)))

    async def record(self, call: FinishedCall, texts: Sequence[str] = (), files: Sequence[bytes] = ()) -> CallRow:
        """The journal's entry, once it and the texts and files it refers to are durable."""
        blobs = self._text_rows(texts) | self._file_rows(files)
        return cast("CallRow", await self._ask(Record(call, blobs)))

    async def anchor(self) -> None:
        """Says in `head.json` where the log ends now, and empties the write-ahead log."""
        await asyncio.wrap_future(self._at_barrier(self._store.anchor))

    def close(self) -> None:
        """Finishes what is waiting, writes the anchor, leaves one clean file and lets the next writer in."""
        if self._closed:
            return
        self._closed = True
        done: Promise[None] = Promise()
        self._queue.put(_Barrier(self._finish, done, last=True))
        self._thread.join()
        done.result()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _text_rows(self, texts: Iterable[str]) -> dict[str, Row]:
        """The rows that store those of the texts that may not be stored yet."""
        addressed = {text_digest(text): text for text in texts}
        known = self._store.known
        return {digest: blob_row(digest, text.encode()) for digest, text in addressed.items() if digest not in known}

    def _file_rows(self, files: Iterable[bytes]) -> dict[str, Row]:
        """The rows that store those of the files that may not be stored yet."""
        addressed = {digest_of(file): file for file in files}
        known = self._store.known
        return {digest: blob_row(digest, file) for digest, file in addressed.items() if digest not in known}

    async def _ask(self, write: Write) -> int | CallRow:
        if self._closed:
            raise RuntimeError("this writer is closed")
        loop = asyncio.get_running_loop()
        asked = _Asked(write, loop.create_future(), loop)
        self._queue.put(asked)
        return await asked.future

    def _at_barrier(self, action: Callable[[], None]) -> Promise[None]:
        if self._closed:
            raise RuntimeError("this writer is closed")
        done: Promise[None] = Promise()
        self._queue.put(_Barrier(action, done))
        return done

    def _work(self) -> None:
        """The writer thread."""
        while True:
            group, barrier = self._take()
            if group:
                self._commit(group)
                _wake(group)
            if barrier is not None:
                _run(barrier)
                if barrier.last:
                    return

    def _take(self) -> tuple[list[_Asked], _Barrier | None]:
        """What is waiting, up to a full group or a barrier; waits for the first."""
        group: list[_Asked] = []
        item = self._queue.get()
        while isinstance(item, _Asked):
            group.append(item)
            if len(group) == GROUP:
                return group, None
            try:
                # Without waiting for more: who came first does not wait for company.
                item = self._queue.get_nowait()
            except Empty:
                return group, None
        return group, item

    def _commit(self, group: Sequence[_Asked]) -> None:
        try:
            for asked, result in zip(group, self._store.commit([asked.write for asked in group]), strict=True):
                asked.outcome = result
        except BaseException as error:  # noqa: BLE001 -- whoever waits must hear of it, whatever it is
            if len(group) == 1:
                group[0].outcome = error
            else:
                self._commit_one_by_one(group)

    def _commit_one_by_one(self, group: Sequence[_Asked]) -> None:
        """So that an operation that cannot be written does not take its neighbours with it."""
        failed: BaseException | None = None
        for asked in group:
            self._commit([asked])
            if not isinstance(asked.write, Append):
                continue
            # It was built on the one that failed, so it failed for the same reason.
            if failed is not None and isinstance(asked.outcome, WrongExpectedSeq):
                asked.outcome = failed
            elif isinstance(asked.outcome, BaseException):
                failed = failed or asked.outcome

    def _finish(self) -> None:
        try:
            self._store.anchor()
        finally:
            # The reader first: the last connection to leave is the one that removes the write-ahead log.
            self.log.close()
            try:
                self._store.close()
            finally:
                self._lock.release()


def _run(barrier: _Barrier) -> None:
    if not barrier.done.set_running_or_notify_cancel():
        return  # whoever asked was cancelled; from here on they no longer can be
    try:
        barrier.action()
    except BaseException as error:  # noqa: BLE001 -- whoever waits must hear of it, whatever it is
        barrier.done.set_exception(error)
    else:
        barrier.done.set_result(None)


def _wake(group: Sequence[_Asked]) -> None:
    """Tells everyone of the group, with one call into each of their event loops (nearly always one)."""
    for loop in {asked.loop for asked in group}:
        try:
            loop.call_soon_threadsafe(_settle, [asked for asked in group if asked.loop is loop])
        except RuntimeError:
            continue  # the loop was closed while its operations were written: nobody waits any more


def _settle(group: Sequence[_Asked]) -> None:
    for asked in group:
        if asked.future.done():
            continue  # whoever asked was cancelled; what was asked is written all the same
        if isinstance(asked.outcome, BaseException):
            asked.future.set_exception(asked.outcome)
        else:
            asked.future.set_result(cast("int | CallRow", asked.outcome))
