"""Ray on this machine with several nodes, each with as many made-up seats as a test says."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import define, field

os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")
SEAT = "seat"


@define
class Nodes:
    """A cluster of small nodes; `seats` are a resource that only exists in its books."""

    seats: int = 2
    jobs: bool = False
    _cluster: Any = None
    _others: list[Any] = field(factory=list)

    @property
    def address(self) -> str:
        """Where it is."""
        return str(self._cluster.address)

    @property
    def dashboard(self) -> str:
        """Where it takes jobs."""
        return f"http://{self._cluster.head_node.webui_url}"

    @property
    def spare(self) -> int:
        """How many nodes there are besides the head."""
        return len(self._others)

    def add(self, count: int = 1) -> None:
        """More nodes."""
        for _ in range(count):
            self._others.append(
                self._cluster.add_node(num_cpus=0, resources={SEAT: self.seats}, **_small(jobs=self.jobs))
            )

    def lose(self, draw: random.Random) -> bool:
        """A node is gone with all that ran on it; never the one that our process hangs on, nor the last one."""
        import ray

        ours = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
        others = [each for each in self._others if each.node_id != ours]
        if len(others) < 2:
            return False
        node = draw.choice(others)
        self._others.remove(node)
        os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)
        return True

    def kill_a_worker(self, draw: random.Random) -> bool:
        """SIGKILL for one of its workers, more often for one at work than for one that starts."""
        titles = {pid: _title(pid) for pid in _below(self._raylets())}
        starting = sorted(pid for pid, title in titles.items() if title.startswith(_STARTING))
        working = sorted(pid for pid, title in titles.items() if title.startswith(_OURS) and pid not in starting)
        pids = starting if draw.random() < _STARTING_SHARE or not working else working
        if not pids or (pids is starting and draw.random() < 0.5):
            return False
        with suppress(ProcessLookupError):
            os.kill(draw.choice(pids), signal.SIGKILL)
        return True

    def _raylets(self) -> set[int]:
        return {node.all_processes["raylet"][0].process.pid for node in (self._cluster.head_node, *self._others)}

    def lose_head(self) -> None:
        """The head is gone."""
        self._cluster.head_node.kill_gcs_server(check_alive=False)


def _small(*, jobs: bool, head: bool = False) -> dict[str, Any]:
    """A node that needs little; agents of several nodes, which take jobs, need ports of their own."""
    ports = {"dashboard_agent_listen_port": 0, "metrics_export_port": 0, **({"dashboard_port": 0} if head else {})}
    return {"object_store_memory": 80 * 2**20, "include_dashboard": jobs and head, **(ports if jobs else {})}


@contextmanager
def cluster(nodes: int, *, seats: int = 2, jobs: bool = False) -> Iterator[Nodes]:
    """A head without seats, and so many nodes with them; with a dashboard where it is to take jobs."""
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **_small(jobs=jobs, head=True)})
    found = Nodes(seats, jobs, made)
    try:
        found.add(nodes)
        yield found
    finally:
        with suppress(Exception):
            ray.shutdown()
        made.shutdown()


_OURS = "ray::_Worker"
_STARTING = ("ray::_Worker.open", "ray::_Worker.__init__")
_STARTING_SHARE = 0.15


def _title(pid: int) -> str:
    """Ray names the process of an actor after its class, and after what it is doing."""
    return _read(pid, "cmdline").split(b"\0")[0].decode(errors="replace")


def _below(parents: set[int]) -> list[int]:
    """The processes that these have started: nobody else's, however alike they are."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _parent(pid) in parents]


def _parent(pid: int) -> int:
    stat = _read(pid, "stat").rpartition(b")")[2].split()  # a program's name may have spaces
    return int(stat[1]) if stat else 0


def _read(pid: int, what: str) -> bytes:
    """Nothing for a process that is gone."""
    try:
        return (Path("/proc") / str(pid) / what).read_bytes()
    except OSError:
        return b""
