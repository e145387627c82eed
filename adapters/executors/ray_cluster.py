"""A Ray cluster as a run sees it: where it is, what a worker takes of it, getting in and out, whether there is room."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from skillopt_es.errors import BackendError, ConfigError, SettingRefused
from skillopt_es.events.values import Json

try:
    import ray
    from ray import exceptions as ray_errors
except ImportError:
    ray = None

LOOK_EVERY = 2.0  # seconds, also the longest that the cluster's head may take to let us in before it counts as gone
_THIS_MACHINES = Path("/tmp/ray/ray_current_cluster")  # noqa: S108 -- where Ray writes it
_NOT_LET_IN = "AuthenticationError"
_TRACEBACK = "Traceback (most recent call last)"


@frozen(kw_only=True)
class Cluster:
    """Where the workers are, and what each of them takes of it."""

    address: str
    cpus: float
    resources: Mapping[str, float]

    @property
    def worker(self) -> Mapping[str, float]:
        """What a worker takes, by Ray's names."""
        return {**({"CPU": self.cpus} if self.cpus > 0 else {}), **self.resources}


def cluster_of(options: Mapping[str, Json]) -> Cluster:
    """The cluster that a config means; raises SettingRefused for what is none."""
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


@frozen
class Head:
    """The part of a cluster that knows all others."""

    host: str
    port: int

    async def answers(self) -> bool:
        """Whether somebody is there."""
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(self.host, self.port), LOOK_EVERY)
        except (OSError, TimeoutError):
            return False
        writer.close()
        return True


async def connect(cluster: Cluster) -> Head:
    """Connects this process, which may be connected already; raises BackendError."""
    if not ray.is_initialized():
        address = _found(cluster.address)
        # Asked by ourselves: where nobody answers, Ray would end our process after a while.
        if address and not await _head_at(address).answers():
            raise _no_cluster(address, "nobody answers there")
        try:
            # On a thread of its own, where it leaves the signals alone that end a run in order.
            await asyncio.to_thread(_init, cluster.address)  # by `auto` Ray finds its token, too
        except (ConnectionError, ray_errors.RayError, ValueError, RuntimeError) as error:
            raise not_connected(address or "this machine", error) from error
    return _head_at(str(ray.get_runtime_context().gcs_address))


async def leave(head: Head, *, lost: bool = False) -> None:
    """Leaves the cluster, which ends all workers of ours; one that is lost is not waited for."""
    if not lost and await head.answers():
        await asyncio.to_thread(ray.shutdown)
    else:  # Ray would look for its head for a minute when our process ends, and then end it by force
        atexit.unregister(ray.shutdown)


async def check_fits(cluster: Cluster) -> None:
    """Raises ConfigError where no node is large enough for a worker, were it free."""
    nodes = [each["Resources"] for each in await asyncio.to_thread(ray.nodes) if each["Alive"]]
    worker = cluster.worker
    if any(all(node.get(name, 0.0) >= amount for name, amount in worker.items()) for node in nodes):
        return
    most = {name: max((node.get(name, 0.0) for node in nodes), default=0.0) for name in worker}
    raise ConfigError(
        f"no node of the Ray cluster is large enough for a worker, which takes {_amounts(worker)}; "
        f"the most that a node has of each is {_amounts(most)}",
        hint="lower ray.cpus or ray.resources, or add such a node first (also where the cluster grows by itself)",
    )


async def no_room(cluster: Cluster) -> str:
    """That attempts wait for workers: what one takes, and what the cluster has and has left of that."""
    has, free = await asyncio.to_thread(lambda: (ray.cluster_resources(), ray.available_resources()))
    total = {name: has.get(name, 0.0) for name in cluster.worker}
    left = {name: free.get(name, 0.0) for name in cluster.worker}
    takes = _amounts(cluster.worker)
    waiting = f"no worker has begun on the Ray cluster yet, so attempts wait: each takes {takes}, and "
    if all(left[name] >= amount for name, amount in cluster.worker.items()):
        return (
            f"{waiting}{_amounts(left)} is free on all nodes together; a node may be slow to start one, or none has "
            "enough by itself (Ctrl-C ends the run in order)"
        )
    return (
        f"{waiting}of {_amounts(total)} on all nodes together {_amounts(left)} is free; others have the rest, or our "
        "own workers, which are still starting (Ctrl-C ends the run in order)"
    )


def _amounts(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in amounts.items()) or "nothing"


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


def _head_at(address: str) -> Head:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise _no_cluster(address, "that is not HOST:PORT")
    return Head(host, int(port))


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
    # Whatever `log_to_driver` says, Ray tells of each worker that dies on standard output, which is for programs.
    ray._private.worker.print_to_stdstream = _unheard


def _unheard(*_: object, **__: object) -> None:
    """What Ray would print; we say ourselves that a worker has died."""
