"""
Executor `ray`: attempts are made by workers of a Ray cluster, each a process with one environment open.

Ray restarts nothing and tries nothing again by itself: what is done once more is decided in `crew.py`. Skill and data
go through its object store once, not with each item.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from attrs import define, field

from skillopt_es.adapters.executors.bench import Bench
from skillopt_es.adapters.executors.crew import Crew, WorkerLost, WorkerRefused
from skillopt_es.adapters.executors.local import LocalExecutor
from skillopt_es.adapters.executors.ray_cluster import (
    LOOK_EVERY,
    Cluster,
    Head,
    check_fits,
    cluster_of,
    connect,
    leave,
    no_room,
)
from skillopt_es.adapters.executors.travels import Line, LineClosed, Pack, Place, Told, pack_of, place_of
from skillopt_es.adapters.executors.wire import Door, reach
from skillopt_es.errors import BackendError, ConfigError, extra_hint
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import AsyncCall, ExecutorSettings, Hands, Workplace

try:
    import ray
    from ray import exceptions as ray_errors
except ImportError:
    ray = None

T = TypeVar("T")
_Actor = Any  # Ray makes its class at run time
_NO_ROOM_AFTER = 5  # looks in a row without a worker that has begun
_HEAD_IS_LOST_AFTER = 3  # looks in a row; Ray itself ends our process after a minute without its head
_NODE_DIED = "its node has died"
_LAST_WORDS = 30.0  # seconds in which Ray says why a worker's line was closed


def open_executor(settings: ExecutorSettings) -> RayExecutor:
    """The executor over a cluster; raises ConfigError where Ray is not installed, SettingRefused for a bad resource."""
    if ray is None:
        raise ConfigError("env.executor is ray, but Ray is not installed", hint=extra_hint("ray"))
    return RayExecutor(settings, cluster_of(settings.options))


class RayExecutor:
    """Jobs are run here, as by `local`; the attempts in them are made by workers elsewhere."""

    def __init__(self, settings: ExecutorSettings, cluster: Cluster, *, most_deaths: int = 2) -> None:
        self._settings, self._cluster, self._most_deaths = settings, cluster, most_deaths
        self._local = LocalExecutor(settings.stopping)
        self._office: Office | None = None
        self._checked: Head | None = None
        self.crew: Crew | None = None

    async def check(self) -> None:
        """Raises BackendError or ConfigError where no worker could ever be had; stays connected for the run."""
        self._checked = await connect(self._cluster)
        await check_fits(self._cluster)

    def stream(self, jobs: Sequence[AsyncCall[T]], *, workers: int) -> AsyncGenerator[list[T], None]:
        """Results in the jobs' order."""
        return self._local.stream(jobs, workers=workers)

    def hands(self, workplace: Workplace) -> Hands:
        """The workers of the cluster; they are started for the first attempt."""
        place = place_of(workplace)
        self._office = Office(
            self._cluster, place, pack_of(workplace.settings.data), self._settings.secrets, self._settings.warn
        )
        self.crew = Crew(
            place,
            self._office.hire,
            size=self._settings.workers,
            stopping=self._settings.stopping,
            most_deaths=self._most_deaths,
        )
        return self.crew

    async def aclose(self) -> None:
        """Ends the workers, and leaves the cluster, whose processes end with us where we have started it."""
        if self._checked is not None and ray.is_initialized():
            await leave(self._checked)
        if self._office is None or self.crew is None:
            return
        self._office.closing = True  # who leaves the cluster takes all workers along: none of them is ended by itself
        await self.crew.close()
        await self._office.close()


class _Worker:
    """The process on the other side, as Ray runs it."""

    def __init__(self, place: Place, pack: Pack | None, secrets: frozenset[str]) -> None:
        for name in secrets:
            os.environ.pop(name, None)
        self._bench = Bench(place, pack)

    async def open(self) -> tuple[str, str]:
        """Why it must not be used, and the node that it is on."""
        why = await asyncio.to_thread(self._bench.open)
        return why, f"{socket.gethostname()} ({ray.get_runtime_context().get_node_id()[:8]})"

    async def begun(self) -> None:
        """Answers once the process is there."""

    async def learn(self, skill: SkillTree) -> None:
        """A skill, out of the object store."""
        self._bench.learn(skill)

    async def serve(self, host: str, port: int, word: bytes) -> str:
        """Makes attempts until the writer hangs up; why the writer cannot be reached, where that is so."""
        try:
            line = await reach(host, port, word)
        except OSError as error:
            return f"it cannot reach the writer at {host}:{port}: {error}"
        await self._bench.serve(line)
        return ""


@define
class Office:
    """Our place in a cluster: hires workers, keeps what they share in its object store, watches its head."""

    cluster: Cluster
    place: Place
    pack: Pack | None
    secrets: frozenset[str]
    warn: Callable[[str], None]
    lost: BackendError | None = None
    closing: bool = False
    _kind: Any = None
    _head: Head | None = None
    _begun: set[int] = field(factory=set)
    _hiring: int = 0
    _told: bool = False
    _told_of_loss: bool = False
    _packed: object = None
    _skills: dict[str, object] = field(factory=dict)
    _connecting: asyncio.Lock = field(factory=asyncio.Lock)
    _door: Door | None = None
    _watch: asyncio.Task[None] | None = None
    _gone: asyncio.Event = field(factory=asyncio.Event)

    async def hire(self) -> RemoteWorker:
        """A worker whose environment is open; raises WorkerLost, WorkerRefused or BackendError."""
        async with self._connecting:
            if self._kind is None:
                await self._connect()
        actor = self._kind.remote(self.place, self._packed, self.secrets)
        self._hiring += 1
        try:
            await self.wait(actor.begun.remote())
            self._begun.add(id(actor))
            why, where = await self.wait(actor.open.remote())
            if why:
                raise WorkerRefused(f"the one on {where}: {why}")
            return await self._reached_by(actor, where)
        except BaseException:
            self.end(actor)
            raise
        finally:
            self._hiring -= 1

    async def _reached_by(self, actor: _Actor, where: str) -> RemoteWorker:
        """The worker once it has connected to us."""
        assert self._door is not None
        word, line = self._door.expect()
        life = asyncio.ensure_future(self.wait(actor.serve.remote(self._door.host, self._door.port, word)))
        await asyncio.wait((line, life), return_when=asyncio.FIRST_COMPLETED)
        if line.done():
            life.add_done_callback(partial(_hang_up, line.result()))
            return RemoteWorker(self, actor, line.result(), life, where)
        line.cancel()
        raise WorkerRefused(f"the one on {where}: {await life}")

    def end(self, actor: _Actor) -> None:
        """Ends a worker's process, on a thread of its own: where the head is gone, Ray waits for it for a minute."""
        self._begun.discard(id(actor))
        if self.lost is None and not self.closing:
            threading.Thread(target=_kill, args=(actor,), daemon=True).start()

    def skill(self, skill: SkillTree) -> object:
        """A skill in the object store, where it is put once."""
        if skill.hash not in self._skills:
            self._skills[skill.hash] = self.put(skill)
        return self._skills[skill.hash]

    def put(self, value: object) -> object:
        """A value in the object store."""
        try:
            return ray.put(value)
        except ray_errors.RayError as error:
            raise _cluster_fault(error) from error

    async def wait(self, answer: Awaitable[T]) -> T:
        """What a worker answers; raises WorkerLost when it is gone, and BackendError when the cluster is."""
        asked, gone = asyncio.ensure_future(answer), asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait((asked, gone), return_when=asyncio.FIRST_COMPLETED)
            if self.lost is not None:
                raise self.lost
            return await asked
        except (ray_errors.ActorDiedError, ray_errors.ActorUnavailableError, ray_errors.OutOfMemoryError) as error:
            raise WorkerLost(_first_line(error), by_itself=_by_itself(error)) from error
        except ray_errors.RayTaskError as error:
            raise WorkerLost(_first_line(error.cause or error), by_itself=True) from error
        except ray_errors.RayError as error:
            raise _cluster_fault(error) from error
        finally:
            gone.cancel()
            asked.cancel()

    async def close(self) -> None:
        """Leaves the cluster; one that is lost is not waited for."""
        if self._watch is not None:
            self._watch.cancel()
        if self._door is not None:
            self._door.close()
        self._skills.clear()
        if self._kind is None:
            return
        self._kind = self._packed = None
        assert self._head is not None
        await leave(self._head, lost=self.lost is not None)

    async def _connect(self) -> None:
        self._head = await connect(self.cluster)
        self._watch = asyncio.create_task(self._look_around(self._head))
        self._packed = self.put(self.pack)
        self._door = await _opened(ray.util.get_node_ip_address())
        self._kind = ray.remote(
            num_cpus=self.cluster.cpus,
            resources=dict(self.cluster.resources),
            max_restarts=0,
            max_task_retries=0,
            # Whoever starts Ray from a shell with keys hands them on to every worker.
            runtime_env={"env_vars": dict.fromkeys(self.secrets, "")} if self.secrets else None,
        )(_Worker)

    async def _look_around(self, head: Head) -> None:
        """Until the head is gone; says once that nobody has room for us."""
        missed = without = 0
        while missed < _HEAD_IS_LOST_AFTER:
            await asyncio.sleep(LOOK_EVERY)
            missed = 0 if await head.answers() else missed + 1
            without = without + 1 if self._hiring and not self._begun and not missed else 0
            if without >= _NO_ROOM_AFTER and not self._told:
                await self._tell_of_room()
        self.lost = BackendError(
            f"the head of the Ray cluster ({head.host}:{head.port}) is gone",
            kind="transport",
            hint="start it again; what was answered is recorded",
        )
        self._gone.set()

    def tell_of_loss(self, where: str, lost: WorkerLost) -> None:
        """Says of the first worker that is lost that it is; what follows is the same for all of them."""
        if not self._told_of_loss:
            self._told_of_loss = True
            self.warn(
                f"a worker on {where} is lost: {lost} Its attempt is made anew, as with each one that follows (Ray's "
                "logs say why)"
            )

    async def _tell_of_room(self) -> None:
        with suppress(TimeoutError, ray_errors.RayError):  # a head that says nothing is asked at the next look, or gone
            self.warn(await asyncio.wait_for(no_room(self.cluster), LOOK_EVERY))
            self._told = True


@define(eq=False)
class RemoteWorker:
    """A worker as the writer sees it: its line, and Ray's word on whether it lives."""

    office: Office
    actor: _Actor
    line: Line
    life: asyncio.Task[str]
    where: str
    _knows: set[str] = field(factory=set)

    async def knows(self, skill: SkillTree) -> None:
        """Gives it a skill that it has not worked under yet."""
        if skill.hash not in self._knows:
            await self.office.wait(self.actor.learn.remote(self.office.skill(skill)))
            self._knows.add(skill.hash)

    def tell(self, told: Told) -> None:
        """Tells it something."""
        self.line.send(told)

    async def hear(self) -> object:
        """What it says next; of one that is gone, Ray says how it ended."""
        try:
            return await self.line.hear()
        except LineClosed:
            done, _ = await asyncio.wait((self.life,), timeout=_LAST_WORDS)
            if done:
                try:
                    await self.life
                except WorkerLost as lost:
                    self.office.tell_of_loss(self.where, lost)
                    raise
            raise WorkerLost("its connection was lost", by_itself=False) from None

    def dismiss(self) -> None:
        """Ends its process."""
        self.life.cancel()
        self.line.close()
        self.office.end(self.actor)


def _hang_up(line: Line, life: asyncio.Task[str]) -> None:
    """Where Ray says that a worker is gone, nobody waits for what it might still say."""
    if not life.cancelled():
        life.exception()  # looked at: whoever hears is told
    line.close()


async def _opened(host: str) -> Door:
    door = Door(host)
    try:
        await door.open()
    except OSError as error:
        raise BackendError(
            f"workers cannot connect to this machine: no port can be opened at {host} ({error})",
            kind="config",
            hint="Ray takes that for its address (`ray start --node-ip-address`)",
        ) from error
    return door


def _kill(actor: object) -> None:
    with suppress(Exception):  # it may be gone already, in any of the ways in which Ray says so
        ray.kill(actor, no_restart=True)


def _by_itself(error: Exception) -> bool:
    """Whether a worker's process alone ended; a lost node or connection is nobody's fault."""
    return not isinstance(error, ray_errors.ActorUnavailableError) and _NODE_DIED not in str(error).lower()


def _cluster_fault(error: Exception) -> BackendError:
    full = isinstance(error, ray_errors.ObjectStoreFullError | ray_errors.OutOfDiskError)
    return BackendError(
        f"the Ray cluster {'has no room left in its object store' if full else 'failed'}: {_first_line(error)}",
        kind="quota" if full else "transport",
        hint="give its nodes more memory (`ray start --object-store-memory`)" if full else "see `ray status`",
    )


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:300]
