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
from typing import Any, TypeVar

from attrs import define, field

from skillopt_es.adapters.executors.bench import Answer, Bench, Lease, Pack, Place, Report, Unit, pack_of, place_of
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
from skillopt_es.errors import BackendError, ConfigError
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import AsyncCall, ExecutorSettings, Hands, Workplace

try:
    import ray
    from ray import exceptions as ray_errors
except ImportError:
    ray = None

T = TypeVar("T")
_NO_ROOM_AFTER = 5  # looks in a row without a worker that has begun
_HEAD_IS_LOST_AFTER = 3  # looks in a row; Ray itself ends our process after a minute without its head
_NODE_DIED = "its node has died"


def open_executor(settings: ExecutorSettings) -> RayExecutor:
    """The executor over a cluster; raises ConfigError where Ray is not installed, SettingRefused for a bad resource."""
    if ray is None:
        raise ConfigError(
            "env.executor is ray, but Ray is not installed", hint="`pip install 'skillopt-es[ray]'` installs it"
        )
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
        place = place_of(workplace.software, workplace.settings, workplace.digests)
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

    async def begin(self, unit: Unit, skill: SkillTree) -> Report:
        return await self._bench.begin(unit, skill)

    async def answer(self, lease: Lease, number: int, answer: Answer) -> Report:
        return await self._bench.answer(lease, number, answer)

    async def abandon(self) -> None:
        await self._bench.abandon()


@define
class Office:
    """Our connection to a cluster: hires workers, keeps what they share in its object store, watches its head."""

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
    _packed: object = None
    _skills: dict[str, object] = field(factory=dict)
    _connecting: asyncio.Lock = field(factory=asyncio.Lock)
    _watch: asyncio.Task[None] | None = None
    _gone: asyncio.Event = field(factory=asyncio.Event)

    async def hire(self) -> RemoteWorker:
        """A worker whose environment is open; raises WorkerLost, WorkerRefused or BackendError."""
        async with self._connecting:
            if self._kind is None:
                await self._connect()
        worker = RemoteWorker(self, self._kind.remote(self.place, self._packed, self.secrets))
        self._hiring += 1
        try:
            await self.wait(worker.actor.begun.remote())
            self._begun.add(id(worker))
            why, where = await self.wait(worker.actor.open.remote())
        except BaseException:
            worker.dismiss()
            raise
        finally:
            self._hiring -= 1
        if why:
            worker.dismiss()
            raise WorkerRefused(f"the one on {where}: {why}")
        return worker

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
        self._skills.clear()
        if self._kind is None:
            return
        self._kind = self._packed = None
        assert self._head is not None
        await leave(self._head, lost=self.lost is not None)

    def gone(self, worker: RemoteWorker) -> None:
        """One that no longer works here."""
        self._begun.discard(id(worker))

    async def _connect(self) -> None:
        self._head = await connect(self.cluster)
        self._watch = asyncio.create_task(self._look_around(self._head))
        self._packed = self.put(self.pack)
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

    async def _tell_of_room(self) -> None:
        with suppress(TimeoutError, ray_errors.RayError):  # a head that says nothing is asked at the next look, or gone
            self.warn(await asyncio.wait_for(no_room(self.cluster), LOOK_EVERY))
            self._told = True


@define
class RemoteWorker:
    """A worker as the writer sees it."""

    office: Office
    actor: Any

    async def begin(self, unit: Unit, skill: SkillTree) -> Report:
        """Begins an attempt."""
        return await self.office.wait(self.actor.begin.remote(unit, self.office.skill(skill)))

    async def answer(self, lease: Lease, number: int, answer: Answer) -> Report:
        """Hands on an answer."""
        return await self.office.wait(self.actor.answer.remote(lease, number, answer))

    async def abandon(self) -> None:
        """Ends the attempt that it makes."""
        await self.office.wait(self.actor.abandon.remote())

    def dismiss(self) -> None:
        """Ends its process, on a thread of its own: where the head is gone, Ray waits for it for a minute."""
        self.office.gone(self)
        if self.office.lost is None and not self.office.closing:
            threading.Thread(target=_kill, args=(self.actor,), daemon=True).start()


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
