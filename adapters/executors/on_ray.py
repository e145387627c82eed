"""
Executor `ray`: attempts are made by workers of a Ray cluster, each a process with one environment open.

Ray restarts nothing and tries nothing again by itself: what is done once more is decided in `crew.py`. Skill and data
go through its object store once, not with each item.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, field, frozen

from skillopt_es.adapters.executors.bench import Answer, Bench, Lease, Pack, Place, Report, Unit, pack_of, place_of
from skillopt_es.adapters.executors.crew import Crew, WorkerLost, WorkerRefused
from skillopt_es.adapters.executors.local import LocalExecutor
from skillopt_es.errors import BackendError, ConfigError, SettingRefused
from skillopt_es.events.values import Json, SkillTree
from skillopt_es.ports import AsyncCall, ExecutorSettings, Hands, Workplace

try:
    import ray
    from ray import exceptions as ray_errors
except ImportError:
    ray = None

T = TypeVar("T")
_LOOK_EVERY = 2.0
_HEAD_IS_LOST_AFTER = 3  # looks in a row; Ray itself ends our process after a minute without its head
_THIS_MACHINES = Path("/tmp/ray/ray_current_cluster")  # noqa: S108 -- where Ray writes it
_NODE_DIED = "its node has died"
_NOT_LET_IN = "AuthenticationError"
_TRACEBACK = "Traceback (most recent call last)"


def open_executor(settings: ExecutorSettings) -> RayExecutor:
    """The executor over a cluster; raises ConfigError where Ray is not installed, SettingRefused for a bad resource."""
    if ray is None:
        raise ConfigError(
            "env.executor is ray, but Ray is not installed", hint="`pip install 'skillopt-es[ray]'` installs it"
        )
    return RayExecutor(settings, _cluster(settings.options))


@frozen(kw_only=True)
class Cluster:
    """Where the workers are, and what each of them takes of it."""

    address: str
    cpus: float
    resources: Mapping[str, float]


def _cluster(options: Mapping[str, Json]) -> Cluster:
    resources = options["resources"]
    assert isinstance(resources, dict)
    for name, amount in resources.items():
        if type(amount) not in (int, float) or not amount > 0:  # type: ignore[operator]  # a number by then
            raise SettingRefused("resources", f" has {name}: {amount!r}, but an amount must be a number above 0")
    address = str(options["address"])
    if "://" in address:
        raise SettingRefused(
            "address",
            f" is {address!r}, but must be auto or HOST:PORT",
            hint="the writer's machine has to be one of the cluster's (`ray start --address=HOST:PORT --num-cpus=0`)",
        )
    return Cluster(
        address=address,
        cpus=float(str(options["cpus"])),
        resources={name: float(str(amount)) for name, amount in resources.items()},
    )


class RayExecutor:
    """Jobs are run here, as by `local`; the attempts in them are made by workers elsewhere."""

    def __init__(self, settings: ExecutorSettings, cluster: Cluster, *, most_deaths: int = 2) -> None:
        self._settings, self._cluster, self._most_deaths = settings, cluster, most_deaths
        self._local = LocalExecutor(settings.stopping)
        self._office: Office | None = None
        self.crew: Crew | None = None

    def stream(self, jobs: Sequence[AsyncCall[T]], *, workers: int) -> AsyncGenerator[list[T], None]:
        """Results in the jobs' order."""
        return self._local.stream(jobs, workers=workers)

    def hands(self, workplace: Workplace) -> Hands:
        """The workers of the cluster; they are started for the first attempt."""
        place = place_of(workplace.software, workplace.settings, workplace.digests)
        self._office = Office(self._cluster, place, pack_of(workplace.settings.data), self._settings.secrets)
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
    lost: BackendError | None = None
    closing: bool = False
    _kind: Any = None
    _head: tuple[str, int] = ("", 0)
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
        try:
            why, where = await self.wait(worker.actor.open.remote())
        except BaseException:
            worker.dismiss()
            raise
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
        if await self.is_there():
            await asyncio.to_thread(ray.shutdown)
        else:  # Ray would look for its head for a minute when our process ends, and then end it by force
            atexit.unregister(ray.shutdown)

    async def is_there(self) -> bool:
        """Whether the cluster's head answers."""
        return self.lost is None and await _answers(*self._head)

    async def _connect(self) -> None:
        if not ray.is_initialized():
            address = _found(self.cluster.address)
            # Asked by ourselves: where nobody answers, Ray would end our process after a while.
            if address and not await _answers(*_host_and_port(address)):
                raise _no_cluster(address, "nobody answers there")
            try:
                # On a thread of its own, where it leaves the signals alone that end a run in order.
                await asyncio.to_thread(_init, self.cluster.address)  # by `auto` Ray finds its token, too
            except (ConnectionError, ray_errors.RayError, ValueError, RuntimeError) as error:
                raise not_connected(address or "this machine", error) from error
        self._head = _host_and_port(str(ray.get_runtime_context().gcs_address))
        self._watch = asyncio.create_task(self._look_after_the_head())
        self._packed = self.put(self.pack)
        self._kind = ray.remote(
            num_cpus=self.cluster.cpus,
            resources=dict(self.cluster.resources),
            max_restarts=0,
            max_task_retries=0,
            # Whoever starts Ray from a shell with keys hands them on to every worker.
            runtime_env={"env_vars": dict.fromkeys(self.secrets, "")} if self.secrets else None,
        )(_Worker)

    async def _look_after_the_head(self) -> None:
        missed = 0
        while missed < _HEAD_IS_LOST_AFTER:
            await asyncio.sleep(_LOOK_EVERY)
            missed = 0 if await _answers(*self._head) else missed + 1
        self.lost = BackendError(
            f"the head of the Ray cluster ({self._head[0]}:{self._head[1]}) is gone",
            kind="transport",
            hint="start it again; what was answered is recorded",
        )
        self._gone.set()


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
        if self.office.lost is None and not self.office.closing:
            threading.Thread(target=_kill, args=(self.actor,), daemon=True).start()


def _kill(actor: object) -> None:
    with suppress(Exception):  # it may be gone already, in any of the ways in which Ray says so
        ray.kill(actor, no_restart=True)


def _found(address: str) -> str:
    """Where the cluster is that `auto` means: the one that RAY_ADDRESS names, or else this machine is part of."""
    if address != "auto":
        return address
    named = os.environ.get("RAY_ADDRESS", "")
    try:
        found = named or _THIS_MACHINES.read_text(encoding="utf-8").strip()
    except OSError:
        found = ""
    if not found:
        raise _no_cluster("auto", "this machine is part of none")
    return found


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise _no_cluster(address, "that is not HOST:PORT")
    return host, int(port)


def not_connected(where: str, error: BaseException) -> BackendError:
    """Why Ray did not connect: what it says below the error that it raises, which may be a traceback in its words."""
    below = error.__cause__ or error.__context__
    while below is not None:
        error, below = below, below.__cause__ or below.__context__
    said = str(error).strip()
    if _NOT_LET_IN in f"{type(error).__name__}: {said}":
        return BackendError(
            f"the Ray cluster at {where} wants a token, and ours is missing or is not the right one",
            kind="auth",
            hint="export RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN (the token) or RAY_AUTH_TOKEN_PATH (its file)",
        )
    if _TRACEBACK in said:
        said = said.splitlines()[-1]
    return _no_cluster(where, " ".join(said.split())[:300] or type(error).__name__)


def _no_cluster(where: str, why: str) -> BackendError:
    return BackendError(
        f"there is no Ray cluster at {where}: {why}",
        kind="transport",
        hint="`ray start --head` starts one, ray.address says where; for one with tokens, export RAY_AUTH_MODE=token",
    )


def _init(address: str) -> None:
    logging.getLogger("ray").setLevel(logging.ERROR)  # it tells how it starts, on the terminal of whoever trains
    # Ctrl-C and a closed terminal are for us: Ray's processes, which it starts from this thread, must not end by them.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        ray.init(address=address or "local", log_to_driver=False, configure_logging=False, include_dashboard=False)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def _answers(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), _LOOK_EVERY)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


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
