"""A sweep's runs as jobs of a cluster: what is handed over, found again, asked to stop, and said of what went wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from attrs import define, evolve, field

from skillopt_es.errors import BackendError
from skillopt_es.runs.inbox import Inbox
from skillopt_es.sessions.commons import ADDRESS, VARIABLE, Commons, Limits
from skillopt_es.sweeps.children import run_folder
from skillopt_es.sweeps.jobs import Dashboard, Jobs, open_jobs, token_in
from skillopt_es.sweeps.plan import PlannedRun, RayJobs

RUN = PlannedRun(name="one-seed-1", setting="one", seed=1, config="", overrides=(), digest="", endpoints=())


@define
class Pretend:
    """A dashboard that remembers jobs and runs none; `broken` is what it answers to everything."""

    jobs: dict[str, dict[str, Any]] = field(factory=dict)
    stopped: list[str] = field(factory=list)
    logs: str = ""
    broken: int = 0
    token: str = ""
    server: ThreadingHTTPServer = field(init=False)

    def __attrs_post_init__(self) -> None:
        pretend = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                pretend.answer(self, None)

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                pretend.answer(self, json.loads(self.rfile.read(length) or b"null"))

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, http: BaseHTTPRequestHandler, body: Any) -> None:
        """As Ray's does."""
        wanted = f"Bearer {self.token}" if self.token else None
        known = http.headers.get("Authorization") == wanted
        status, said = (self.broken, {"no": "way"}) if self.broken else self._found(http.path, body)
        http.send_response(status if known else 401)
        http.end_headers()
        http.wfile.write(json.dumps(said).encode())

    def _found(self, path: str, body: Any) -> tuple[int, Any]:
        if path == "/api/version":
            return 200, {"version": "4"}
        if path == "/api/jobs/":
            self.jobs[body["submission_id"]] = {"status": "PENDING", "body": body}
            return 200, {"submission_id": body["submission_id"]}
        name, _, more = path.removeprefix("/api/jobs/").partition("/")
        if name not in self.jobs:
            return 404, {}
        if more == "stop":
            self.stopped.append(name)
        return 200, {"logs": self.logs} if more == "logs" else self.jobs[name]


@pytest.fixture
def pretend() -> Iterator[Pretend]:
    """A dashboard."""
    made = Pretend()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def opened(pretend: Pretend, tmp_path: Path) -> Iterator[Callable[..., Jobs]]:
    """A cluster for the sweep in a folder; each question about a job is put."""
    found: list[Jobs] = []

    def jobs(limits: Path | None = None, **more: Any) -> Jobs:
        settings = RayJobs(address=pretend.address, cpus=2.0, resources={"big": 1.0}, python="/opt/python")
        made = open_jobs(evolve(settings, **more), tmp_path, "abc", limits)
        made.dashboard.close()
        ticks = iter(range(0, 10_000, 10))
        dashboard = Dashboard(pretend.address, "", clock=lambda: next(ticks), sleep=lambda _: None)
        found.append(evolve(made, dashboard=dashboard))
        return found[-1]

    yield jobs
    for each in found:
        each.close()


def test_a_run_is_handed_over_as_a_job(pretend: Pretend, opened: Callable[..., Jobs], tmp_path: Path) -> None:
    """Named after sweep, run and launch, with what it takes, where it works and what it prints to."""
    job = opened().start(RUN, ["run", "my config.yaml", "--run", RUN.name], 3)
    assert job.name == "abc-one-seed-1-3"
    body = pretend.jobs[job.name]["body"]
    assert (body["entrypoint_num_cpus"], body["entrypoint_resources"]) == (2.0, {"big": 1.0})
    output = tmp_path / "output" / RUN.name
    assert body["entrypoint"] == (
        f"cd {Path.cwd()} && exec /opt/python -m skillopt_es run 'my config.yaml' --run one-seed-1 "
        f"</dev/null >{output}.json 2>>{output}.err"
    )
    assert body["runtime_env"] == {"env_vars": {}}


def test_a_job_learns_where_the_shared_limits_are_and_no_key(
    pretend: Pretend, opened: Callable[..., Jobs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may look at the dashboard may read what a job is given."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    limits = Commons(tmp_path / "limits.db", tmp_path)
    limits.set_limits({"any": Limits(max_calls=1)})
    limits.close()
    job = opened(tmp_path / "limits.db").start(RUN, ["run"], 1)
    body = pretend.jobs[job.name]["body"]
    assert body["runtime_env"] == {"env_vars": {VARIABLE: str(tmp_path / ADDRESS)}}
    assert "sk-secret" not in json.dumps(body)


@pytest.mark.parametrize(
    ("status", "ended"), [("PENDING", False), ("RUNNING", False), ("STOPPED", True), ("SUCCEEDED", True), ("", True)]
)
def test_a_job_is_found_again(pretend: Pretend, opened: Callable[..., Jobs], status: str, ended: bool) -> None:
    """By its name; one that the cluster has forgotten has ended."""
    jobs = opened()
    job = jobs.start(RUN, ["run"], 2)
    pretend.jobs[job.name]["status"] = status
    assert job.has_ended() is ended
    for launches in (2, 3):  # also where the launch after it came to nothing
        again = jobs.at_work(RUN, launches)
        assert (again is None) is ended
        assert again is None or again.name == job.name
    assert jobs.at_work(RUN, 4) is None
    del pretend.jobs[job.name]
    assert job.has_ended()


def test_a_job_that_is_to_stop_is_asked_to_pause_first(
    pretend: Pretend, opened: Callable[..., Jobs], tmp_path: Path
) -> None:
    """In its own inbox; where it has not begun, and the second time, the cluster ends it."""
    jobs = opened()
    first = jobs.start(RUN, ["run"], 1)
    first.interrupt()
    assert pretend.stopped == [first.name]
    there = run_folder(tmp_path, RUN)
    there.mkdir(parents=True)
    (there / "log.db").touch()
    second = jobs.start(RUN, ["run"], 2)
    second.interrupt()
    assert pretend.stopped == [first.name]
    assert Inbox(there).pausing()
    second.interrupt()
    assert pretend.stopped == [first.name, second.name]


@pytest.mark.parametrize(
    ("info", "logs", "code", "said"),
    [
        ({"driver_exit_code": 2, "message": "failed"}, "first\nsh: cannot cd\n\n", 2, "sh: cannot cd"),
        ({"driver_exit_code": None, "message": "its node\ndied"}, "half a line", None, "its node died"),
    ],
)
def test_what_went_wrong_is_said(
    pretend: Pretend, opened: Callable[..., Jobs], info: dict[str, Any], logs: str, code: int | None, said: str
) -> None:
    """The last line of its output, or why the cluster lost it."""
    job = opened().start(RUN, ["run"], 1)
    pretend.jobs[job.name] = {"status": "FAILED", **info}
    pretend.logs = logs
    assert job.has_ended()
    assert (job.code, job.last_words()) == (code, said)
    pretend.broken = 500
    assert job.last_words() == " ".join(info["message"].split())  # its output cannot be had


def test_a_dashboard_that_is_away_is_waited_for_and_then_told(pretend: Pretend) -> None:
    """A question is put again for a while."""
    pretend.server.shutdown()
    pretend.server.server_close()
    waited: list[float] = []
    ticks = iter(range(0, 1000, 20))
    dashboard = Dashboard(pretend.address, "", clock=lambda: next(ticks), sleep=waited.append)
    with closing(dashboard), pytest.raises(BackendError, match="takes no jobs") as raised:
        dashboard.ask("GET", "/api/version")
    assert len(waited) == 2
    assert "runs that are at work there go on" in raised.value.hint


def test_a_job_is_handed_over_once(pretend: Pretend) -> None:
    """It may have arrived."""
    pretend.broken = 500
    with closing(Dashboard(pretend.address, "")) as dashboard, pytest.raises(BackendError, match="HTTP 500"):
        dashboard.ask("POST", "/api/jobs/", {})


def test_a_cluster_that_wants_a_token_is_told_one(pretend: Pretend, tmp_path: Path) -> None:
    """From where Ray itself would have it; without one the sweep says what is missing."""
    pretend.token = "so-secret"
    with closing(Dashboard(pretend.address, "")) as nobody, pytest.raises(BackendError, match="a token") as raised:
        nobody.ask("GET", "/api/version")
    assert "RAY_AUTH_TOKEN" in raised.value.hint
    (tmp_path / "token").write_text("so-secret\n")
    for environ in ({"RAY_AUTH_TOKEN": "so-secret"}, {"RAY_AUTH_TOKEN_PATH": os.fspath(tmp_path / "token")}):
        with closing(Dashboard(pretend.address, token_in(environ))) as known:
            assert known.ask("GET", "/api/version") == {"version": "4"}
