"""
The runs of a sweep as jobs of a Ray cluster, one job for each launch, by the REST interface of its dashboard.

A job goes on without us, as a process here does. It is named after the sweep, the run and the number of the launch, so
that whoever continues the sweep finds it again. The sweep's folder has to be at the same place on every node: the log
of a run is written there by one job at a time, which its lock sees to.
"""

from __future__ import annotations

import os
import shlex
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from attrs import define, field

from skillopt_es.errors import BackendError
from skillopt_es.runs.folders import is_run
from skillopt_es.runs.inbox import leave
from skillopt_es.sessions.commons import ADDRESS, VARIABLE
from skillopt_es.sessions.counter import Counter
from skillopt_es.sweeps.children import output_files, run_folder
from skillopt_es.sweeps.plan import PlannedRun, RayJobs

_LOOK_EVERY = 1.0  # seconds between two questions about one job
_PATIENCE = 60.0  # a dashboard that is restarted is back by then
_TIMEOUT = 60.0  # longer than a busy dashboard takes; one that hangs would hold up all runs of the sweep
_MOST_SAID = 300  # a few sentences; Ray answers an error with a whole traceback
_OPEN = ("PENDING", "RUNNING")
_TOKEN, _TOKEN_FILE = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"


def open_jobs(settings: RayJobs, folder: Path, name: str, limits: Path | None) -> Jobs:
    """The cluster that a plan names; raises BackendError where nobody answers there."""
    token = token_in(os.environ)
    with closing(Dashboard(settings.address, token, patience=0.0)) as there:
        there.ask("GET", "/api/version")
    dashboard = Dashboard(settings.address, token)
    if limits is None:
        return Jobs(settings, folder.resolve(), name, dashboard, None)
    host = _seen_from(settings.address)
    return Jobs(settings, folder.resolve(), name, dashboard, Counter(limits, folder / ADDRESS, host))


def token_in(environ: Mapping[str, str]) -> str:
    """The token of a cluster that wants one, as Ray itself finds it."""
    path = environ.get(_TOKEN_FILE, "")
    return environ.get(_TOKEN, "") or (Path(path).read_text(encoding="utf-8").strip() if path else "")


def _seen_from(address: str) -> str:
    """The address of this machine on the network that the cluster is on."""
    parts = urlsplit(address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        try:
            found.connect((parts.hostname or "", parts.port or 80))  # sends nothing
        except OSError as error:
            raise _no_cluster(address, str(error)) from error
        host: str = found.getsockname()[0]
    return host


@define
class Dashboard:
    """What takes jobs."""

    address: str
    token: str = field(repr=False)
    patience: float = _PATIENCE
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _client: httpx.Client = field(init=False, eq=False)

    @_client.default
    def _(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return httpx.Client(base_url=self.address, headers=headers, timeout=_TIMEOUT, trust_env=False)

    def close(self) -> None:
        """Lets go of its connections."""
        self._client.close()

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 -- JSON
        """What it answers, None for what it does not know; a dashboard that is away is waited for a while."""
        until = self.clock() + (self.patience if method == "GET" else 0.0)
        while True:
            try:
                done = self._client.request(method, path, json=body)
            except httpx.HTTPError as error:
                if self.clock() >= until:
                    raise _no_cluster(self.address, str(error) or type(error).__name__) from error
                self.sleep(_LOOK_EVERY)
                continue
            if done.status_code == 404:
                return None
            if done.status_code in (401, 403):
                raise BackendError(
                    f"the Ray cluster at {self.address} wants a token, and ours is missing or is not the right one",
                    kind="auth",
                    hint=f"export {_TOKEN} (the token) or {_TOKEN_FILE} (its file)",
                )
            if done.is_error:
                raise _no_cluster(self.address, f"HTTP {done.status_code}, {done.text.strip()[-_MOST_SAID:]}")
            return done.json()


def _no_cluster(address: str, why: str) -> BackendError:
    return BackendError(
        f"the Ray cluster's dashboard at {address} takes no jobs: {why}",
        kind="transport",
        hint="`ray start --head --dashboard-host=0.0.0.0` starts one; runs that are at work there go on",
    )


@define
class Job:
    """One launch of a run."""

    run: PlannedRun
    name: str
    jobs: Jobs
    _info: Mapping[str, Any] = field(factory=dict)
    _looked: float = -_LOOK_EVERY
    _asked: int = 0

    @property
    def code(self) -> int | None:
        """Unknown where its node was lost."""
        found = self._info.get("driver_exit_code")
        return found if isinstance(found, int) else None

    def has_ended(self) -> bool:
        """As the cluster has it; one that it has forgotten has ended, too."""
        now = self.jobs.dashboard.clock()
        if now - self._looked >= _LOOK_EVERY:
            self._looked = now
            self._info = self.jobs.info(self.name) or {}
        return self._info.get("status") not in _OPEN

    def interrupt(self) -> None:
        """An order to pause, which is followed in order; the second time the cluster ends it."""
        self._asked += 1
        there = run_folder(self.jobs.folder, self.run)
        if self._asked == 1 and is_run(there):
            leave(there, "pause", by="sweep", why="the sweep was stopped")
        else:
            self.jobs.dashboard.ask("POST", f"/api/jobs/{quote(self.name)}/stop")

    def last_words(self) -> str:
        """The last line of what the cluster has of its output, or why it did not begin."""
        found: Mapping[str, Any] = {}
        with suppress(BackendError):  # they lie on the job's node, which may be what was lost
            found = self.jobs.dashboard.ask("GET", f"/api/jobs/{quote(self.name)}/logs") or {}
        lines = [line for line in str(found.get("logs", "")).splitlines() if line.strip()]
        told = lines[-1] if lines and self.code is not None else str(self._info.get("message") or "")
        return " ".join(told.split())[:_MOST_SAID]


@define
class Jobs:
    """A Ray cluster."""

    settings: RayJobs
    folder: Path
    name: str
    dashboard: Dashboard
    counter: Counter | None

    @property
    def environ(self) -> Mapping[str, str]:
        """Where the counter is that has the shared limits."""
        return {} if self.counter is None else {VARIABLE: str(self.folder / ADDRESS)}

    def start(self, run: PlannedRun, words: Sequence[str], launch: int) -> Job:
        """A job; no node has it before it has room."""
        out, err = output_files(self.folder, run)
        named = [self.settings.python, "-m", "skillopt_es", *words]
        where = f"cd {shlex.quote(str(Path.cwd()))} && exec"
        into = f"</dev/null >{shlex.quote(str(out))} 2>>{shlex.quote(str(err))}"
        job = Job(run, self._called(run, launch), self)
        self.dashboard.ask(
            "POST",
            "/api/jobs/",
            {
                "entrypoint": f"{where} {shlex.join(named)} {into}",
                "submission_id": job.name,
                "runtime_env": {"env_vars": dict(self.environ)},
                "metadata": {"sweep": str(self.folder), "run": run.name},
                "entrypoint_num_cpus": self.settings.cpus,
                "entrypoint_resources": dict(self.settings.resources),
            },
        )
        return job

    def at_work(self, run: PlannedRun, launches: int) -> Job | None:
        """The last one, or the one before: a process that was killed while it handed one over may be late."""
        for launch in range(launches, max(0, launches - 2), -1):
            job = Job(run, self._called(run, launch), self)
            if not job.has_ended():
                return job
        return None

    def ended(self, run: PlannedRun) -> None:
        """What it has set aside of the shared limits is spent."""
        if self.counter is not None:
            self.counter.over(run_folder(self.folder, run))

    def close(self) -> None:
        """Jobs go on; they wait for the next one who has the limits."""
        self.dashboard.close()
        if self.counter is not None:
            self.counter.close()

    def info(self, name: str) -> Mapping[str, Any] | None:
        """What the cluster knows of a job."""
        found: Mapping[str, Any] | None = self.dashboard.ask("GET", f"/api/jobs/{quote(name)}")
        return found

    def _called(self, run: PlannedRun, launch: int) -> str:
        return f"{self.name}-{run.name}-{launch}"
