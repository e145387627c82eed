"""Endpoints that fail, disks that refuse: a run stops with one clear sentence, and goes on when the cause is gone."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.desk import Desk, Done
from support.logs import call_slots, events_of
from support.model_server import Answer
from support.params import parametrized
from support.project import (
    KEY,
    KEY_NAME,
    Change,
    Endpoint,
    Project,
    failing,
    plain_config,
    request_ids,
    told,
    unchanged,
)

from skillopt_es.events.catalog import RunPaused
from skillopt_es.events.verify import verify
from skillopt_es.ports import ChatRequest

WORKERS = 4


def always(**changes: Any) -> Change:
    """Every answer like this."""
    return lambda _, answer: evolve(answer, **changes)


def only_optimizer(change: Change) -> Change:
    """The target is well."""
    return lambda request, answer: answer if request.stage == "rollout" else change(request, answer)


def assert_one_sentence(done: Done, sentence: str, hint: str) -> None:
    """Exit code 1, one sentence and one line of advice on stderr, no traceback."""
    assert done.code == 1, done.err
    first, *rest = done.err.splitlines()
    assert first.startswith("error: ")
    assert sentence in first
    assert len(rest) == bool(rest)
    assert hint in "".join(rest)
    assert "Traceback" not in done.err
    assert "bug" not in done.err


def assert_well_again(desk: Desk, run: Path, undisturbed: Path) -> None:
    """`resume` ends the run like one that was never disturbed."""
    assert verify(run).ok
    done = desk.run("resume", "one", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert verify(run).ok
    assert without_failures(run) == without_failures(undisturbed)


def without_failures(folder: Path) -> list[tuple[str, Any]]:
    """What a log tells but rollouts that nobody answered."""
    return [
        (name, data)
        for name, data in told(folder)
        if not (name == "RolloutCompleted" and data["outcome"]["kind"] != "measured")
    ]


# --- endpoints -----------------------------------------------------------------------------------------------------

# what the endpoint does, the sentence, the hint
REFUSALS: dict[str, tuple[Change, str, str]] = {
    "401": (failing(401, "wrong key"), "HTTP 401: wrong key", "check the key in the environment variable"),
    "403": (failing(403, "not for you"), "HTTP 403: not for you", "check the key in the environment variable"),
    "404": (failing(404, "no model small", code="model_not_found"), "HTTP 404: no model small", "check model.target"),
    "no-credit": (failing(429, "pay", code="insufficient_quota"), "HTTP 429: pay", "top it up"),
    "closed": (
        always(status=429, error={"message": "come back later"}, headers={"Retry-After": "3600"}),
        "HTTP 429: come back later; it asks to come back in 1 h",
        "give it time, or raise",
    ),
    "400": (failing(400, "no such field"), "HTTP 400: no such field", "check model.target"),
    "optimizer-404": (only_optimizer(failing(404, "no model big")), "HTTP 404: no model big", "check model.optimizer"),
}
OUTAGES: dict[str, tuple[Change, str]] = {
    "500": (failing(500, "oops"), "8 server); first, date-08: HTTP 500: oops"),
    "cut": (always(cut=True), "8 transport); first, date-08: 127.0.0.1:"),
    "dropped": (always(drop=True), "closed the connection before its reply was complete"),
    "html": (always(raw="<html>hello</html>"), "HTTP 200, but the body is not JSON: <html>hello</html>"),
    "other-json": (always(raw="[1, 2]"), "8 invalid_reply); first, date-08: the reply is not a JSON object"),
}


@parametrized("name", REFUSALS, by_default=3)
def test_an_endpoint_that_refuses_stops_the_run(
    desk: Desk, endpoint: Endpoint, project: Project, undisturbed: Path, name: str
) -> None:
    """At once, without asking everybody; once it is mended the run ends as if nothing had been."""
    endpoint.change, sentence, hint = REFUSALS[name]
    done = desk.run("run", "config.yaml", "--run", "one", "--quiet")
    assert_one_sentence(done, sentence, hint)
    assert done.err.endswith("`skillopt-es resume one` continues it\n")
    last = events_of(project.run_folder())[-1]
    assert isinstance(last, RunPaused)
    assert last.reason == "error"
    if name != "optimizer-404":
        assert len(endpoint.server.requests) <= 2 * WORKERS
    endpoint.change = unchanged
    if name in {"401", "closed", "optimizer-404"}:
        assert_well_again(desk, project.run_folder(), undisturbed)


@parametrized("name", OUTAGES, by_default=3)
def test_an_endpoint_that_does_not_answer_pauses_the_run(
    desk: Desk, endpoint: Endpoint, project: Project, undisturbed: Path, name: str
) -> None:
    """After the tries that make sense, without a score; once it is well the run ends as if nothing had been."""
    endpoint.change, sentence = OUTAGES[name]
    done = desk.run("run", "config.yaml", "--run", "one", "--quiet")
    assert_one_sentence(done, sentence, "when the cause is gone, `skillopt-es resume one` continues it")
    assert "8 of 8 items at baseline could not be measured" in done.err
    assert max(endpoint.asked.values()) <= 2
    endpoint.change = unchanged
    if name == "cut":
        assert_well_again(desk, project.run_folder(), undisturbed)


def test_an_endpoint_that_puts_off_everybody_for_too_long_stops_the_run(
    desk: Desk, endpoint: Endpoint, project: Project, undisturbed: Path
) -> None:
    """As long as there is patience it is asked again, more often than `attempts`; then nobody else is."""
    endpoint.change = failing(429, "slow down")
    done = desk.run("run", "config.yaml", "--run", "one", "--quiet")
    assert_one_sentence(done, "HTTP 429: slow down; it has answered nobody for", "give it time, or raise")
    assert max(endpoint.asked.values()) > 2
    endpoint.change = unchanged
    assert_well_again(desk, project.run_folder(), undisturbed)


SILENCES = {"late": always(delay=1.0), "silent": always(text="")}


@pytest.mark.parametrize("name", SILENCES)
def test_a_target_that_says_nothing_to_one_item_measures_zero(
    desk: Desk, endpoint: Endpoint, project: Project, name: str
) -> None:
    """That is how good the target is, not an outage: the run goes on, and the optimizer gets to see it."""
    few_items(project)
    first = next(row["input"] for row in project.rows if row["split"] == "val")

    def to_one(request: ChatRequest, answer: Answer) -> Answer:
        mute = request.stage == "rollout" and first in request.messages[-1].content
        return SILENCES[name](request, answer) if mute else answer

    endpoint.change = to_one
    done = desk.run("run", "config.yaml", "--run", "one", "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert (done.json["baseline"]["measured"], done.json["baseline"]["unmeasured"]) == (3, 0)


@pytest.mark.parametrize("name", SILENCES)
def test_a_target_that_says_nothing_to_anybody_pauses_the_run(
    desk: Desk, endpoint: Endpoint, project: Project, name: str
) -> None:
    """No skill does that; once it speaks again the run goes on."""
    few_items(project)
    endpoint.change = lambda request, answer: SILENCES[name](request, answer) if request.stage == "rollout" else answer
    done = desk.run("run", "config.yaml", "--run", "one", "--quiet")
    assert_one_sentence(done, "3 of 3 items at baseline had no answer in them", "when the cause is gone")
    endpoint.change = unchanged
    assert desk.run("resume", "one", "--quiet").code == 0
    assert desk.run("replay", "one", "--check").code == 0


def few_items(project: Project) -> None:
    """Three items of each split, and little patience."""
    rows = [row for row in project.rows if row["split"] != "test"]
    project.rows[:] = [row for split in ("train", "val") for row in [r for r in rows if r["split"] == split][:3]]
    project.set(model={"timeout_seconds": 0.3, "attempts": 1}, train={"num_epochs": 1, "batch_size": 3})
    project.set(evaluation={"eval_test": False})


def test_an_endpoint_that_is_down_pauses_the_run(desk: Desk, project: Project) -> None:
    """And the user is told which one."""
    project.set(model={"base_url": "http://127.0.0.1:9/v1"})
    done = desk.run("run", "config.yaml", "--run", "one", "--quiet")
    assert_one_sentence(done, "cannot connect to 127.0.0.1:9", "resume one")
    assert verify(project.run_folder()).ok


def test_an_endpoint_that_goes_down_for_a_while_costs_only_time(
    desk: Desk, endpoint: Endpoint, project: Project, undisturbed: Path
) -> None:
    """Every first try fails in one of several ways, and no decision is another."""
    faults = [{"status": 429}, {"status": 503}, {"drop": True}, {"cut": True}, {"raw": "<html>"}]
    seen: set[str] = set()

    def flaky(request: ChatRequest, answer: Answer) -> Answer:
        text = repr(request.messages)
        if text in seen:
            return answer
        seen.add(text)
        return evolve(answer, **faults[len(seen) % len(faults)])

    endpoint.change = flaky
    patient = ("--set", "model.attempts=3", "--set", "model.patience_seconds=60")  # a busy machine is no outage
    done = desk.run("run", "config.yaml", "--run", "one", "--quiet", *patient)
    assert done.code == 0, done.err
    assert done.err == ""
    assert told(project.run_folder()) == told(undisturbed)
    assert request_ids(call_slots(project.run_folder())).keys() == endpoint.asked.keys()


# --- disks ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Endpoint, Path]]:
    """An endpoint that stays, and a project on it whose run was interrupted half way."""
    folder = tmp_path_factory.mktemp("stopped")
    endpoint = Endpoint(delay=0.02)
    with endpoint.server:
        Project(folder, plain_config(endpoint.base_url)).write()
        with Desk(folder, {KEY_NAME: KEY}).start("run", "config.yaml", "--run", "one") as running:
            running.until(lambda: len(endpoint.server.requests) >= 40)
            running.send(signal.SIGINT)
            assert running.wait().code == 130
        endpoint.delay = 0.0
        yield endpoint, folder


@pytest.fixture
def paused(stopped: tuple[Endpoint, Path], tmp_path: Path) -> Path:
    """The run folder of a copy of that project, where the desk is."""
    shutil.copytree(stopped[1], tmp_path, dirs_exist_ok=True)
    return tmp_path / "runs" / "one"


def overwrite(place: int, count: int) -> Callable[[Path], None]:
    """Other bytes at a place of the file."""

    def damage(file: Path) -> None:
        raw = bytearray(file.read_bytes())
        raw[place : place + count] = bytes(255 - byte for byte in raw[place : place + count])
        file.write_bytes(raw)

    return damage


def overwrite_events(file: Path) -> None:
    """Other bytes in the page that holds a minibatch plan; which page that is depends on how commits were grouped."""
    found = file.read_bytes().rfind(b"MinibatchesPlanned")
    assert found > 0
    overwrite(found // 4096 * 4096, 4096)(file)


def change_a_score(file: Path) -> None:
    """One digit of one event."""
    raw = file.read_bytes()
    assert raw.count(b'"hard":1.0') > 0
    file.write_bytes(raw.replace(b'"hard":1.0', b'"hard":0.0', 1))


def foreign(file: Path) -> None:
    """Another program's database."""
    file.unlink()
    connection = sqlite3.connect(file)
    connection.execute("create table notes (text)")
    connection.close()


def cut_to(share: float) -> Callable[[Path], None]:
    """Only the first part of the file."""
    return lambda file: os.truncate(file, int(file.stat().st_size * share))


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "overwritten": (overwrite_events, "log.db is damaged"),
    "overwritten-header": (overwrite(0, 100), "is not an SQLite database"),
    "changed-score": (change_a_score, "was changed after it was recorded"),
    "half": (cut_to(0.5), "log.db is damaged"),
    "empty": (cut_to(0.0), "log.db is empty, not a log"),
    "text": (lambda file: file.write_text("hello " * 100) and None, "is not an SQLite database"),
    "foreign": (foreign, "is a database of another program"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_log_is_never_built_on(
    desk: Desk, stopped: tuple[Endpoint, Path], paused: Path, undisturbed: Path, name: str
) -> None:
    """It is refused, named, not asked about at the endpoint and not changed; put back, the run goes on."""
    damage, sentence = DAMAGES[name]
    file, server = paused / "log.db", stopped[0].server
    whole, asked = file.read_bytes(), len(server.requests)
    damage(file)
    damaged = file.read_bytes()
    assert_one_sentence(desk.run("resume", "one", "--quiet"), sentence, "")
    assert len(server.requests) == asked
    assert file.read_bytes() == damaged
    assert not verify(paused).ok
    put_back(file, whole)
    assert verify(paused).ok
    if name == "overwritten":
        assert_well_again(desk, paused, undisturbed)


def put_back(file: Path, content: bytes) -> None:
    """Restores a log, without what was beside the damaged one."""
    for leftover in ("log.db-wal", "log.db-shm"):
        file.with_name(leftover).unlink(missing_ok=True)
    file.write_bytes(content)


def test_a_tail_that_was_lost_is_noticed(
    desk: Desk, stopped: tuple[Endpoint, Path], paused: Path, undisturbed: Path
) -> None:
    """An older copy of the log is whole in itself, but not what `head.json` says."""
    file, endpoint = paused / "log.db", stopped[0]
    old, seen = file.read_bytes(), len(endpoint.server.requests)
    endpoint.delay = 0.02
    with desk.start("resume", "one") as running:
        running.until(lambda: len(endpoint.server.requests) >= seen + 30)
        running.send(signal.SIGINT)
        assert running.wait().code == 130
    endpoint.delay = 0.0
    newer = file.read_bytes()
    put_back(file, old)
    done = desk.run("resume", "one", "--quiet")
    assert done.code == 1
    assert len(done.complaints) == 1
    assert not verify(paused).ok
    put_back(file, newer)
    assert_well_again(desk, paused, undisturbed)


def few_files(files: int) -> Mapping[str, Any]:
    """A child that may have so many files open."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))}


def test_a_shell_that_allows_few_files_has_fewer_calls_at_once(
    desk: Desk, endpoint: Endpoint, project: Project
) -> None:
    """With 64 open files and 512 workers it goes on, and says why it is slow."""
    project.rows[:] = [
        {**row, "id": f"{row['id']}-{n}"} for row in project.rows for n in range(8 if row["split"] == "val" else 1)
    ]
    project.set(env={"workers": 512, "same_input": "warn"}, gradient={"analyst_workers": 512}, train={"num_epochs": 1})
    endpoint.change = always(delay=0.05)
    done = evolve(desk, how=few_files(64)).run("run", "config.yaml", "--run", "one")
    assert done.code == 0, done.err
    assert "this shell allows 64 open files, and 512 workers need more" in done.err
    assert "ulimit -n 1056" in done.err
    assert 8 < endpoint.server.most_in_flight <= 16


@pytest.mark.slow
def test_a_shell_that_allows_too_few_files_is_told_so(desk: Desk, project: Project) -> None:
    """In one sentence with the remedy, whoever ran out of them."""
    done = evolve(desk, how=few_files(11)).run("run", "config.yaml", "--run", "one", "--quiet")
    assert done.code == 1
    assert done.err.splitlines()[0].startswith("error: ")
    assert "this shell allows 11 at once" in done.err
    assert "`ulimit -n 1024` allows more" in done.err
    assert "bug" not in done.err


def limited(size: int) -> Mapping[str, Any]:
    """A child that may write no file larger than this."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return {"preexec_fn": limit}


@pytest.mark.slow
@pytest.mark.parametrize("size", [pytest.param(60_000, marks=pytest.mark.slow), 200_000])
def test_a_file_that_cannot_grow_stops_the_run(desk: Desk, project: Project, undisturbed: Path, size: int) -> None:
    """Like a full disk: what was committed stays, and the run goes on where there is room."""
    done = evolve(desk, how=limited(size)).run("run", "config.yaml", "--run", "one", "--quiet")
    assert_one_sentence(done, "runs/one/log.db cannot be used: ", "resume")
    assert_well_again(desk, project.run_folder(), undisturbed)


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """Something mounted on a folder; skips the test where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    if subprocess.run(["mount", *options, folder], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def remount(folder: Path, options: str) -> None:
    """Changes a mount."""
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


@pytest.mark.parametrize("kilobytes", [80, pytest.param(104, marks=pytest.mark.slow), 400])
def test_a_full_disk_stops_the_run(desk: Desk, project: Project, undisturbed: Path, kilobytes: int) -> None:
    """At its creation or later: nothing committed is lost, and with room the same command or `resume` goes on."""
    runs = project.folder / "runs"
    with mounted(runs, "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs"):
        done = desk.run("run", "config.yaml", "--run", "one", "--quiet")
        assert_one_sentence(done, "runs/one/log.db cannot be used: the disk is full", "free some space and resume")
        remount(runs, "size=20m")
        if (runs / "one" / "log.db").exists():
            assert_well_again(desk, project.run_folder(), undisturbed)
        else:
            assert desk.run("run", "config.yaml", "--run", "one", "--quiet").code == 0


def test_a_read_only_folder_is_named(desk: Desk, paused: Path, undisturbed: Path) -> None:
    """Reading still works there; writing works again when it may."""
    with mounted(paused, "--bind", str(paused)):
        remount(paused, "ro,bind")
        done = desk.run("resume", "one", "--quiet")
        assert_one_sentence(done, "it is read-only (Read-only file system)", "writable")
        assert verify(paused).ok
    assert_well_again(desk, paused, undisturbed)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_somebody_else_is_named(desk: Desk, project: Project) -> None:
    """Where the user may not write, no run begins."""
    (project.folder / "runs").mkdir(mode=0o555)
    assert_one_sentence(desk.run("run", "config.yaml", "--quiet"), "access is denied", "who owns")


def test_a_folder_in_the_place_of_a_result_is_named(desk: Desk, project: Project) -> None:
    """The run is complete all the same, and the result is written once there is room for it."""
    run = project.run_folder()
    run.mkdir(parents=True)
    (run / "best").write_text("in the way")
    done = desk.run("run", "config.yaml", "--run", "one", "--quiet")
    assert_one_sentence(done, "runs/one/best", "")
    (run / "best").unlink()
    assert desk.run("resume", "one").code == 0
    assert (run / "best" / "SKILL.md").exists()


UNREAD = ["2>&1 | head -1"]
UNREAD_TOO = ["2>/dev/full", "--json 2>/dev/null | true", "2>&- >&-"]


@pytest.mark.parametrize("way", [*UNREAD, *(pytest.param(way, marks=pytest.mark.slow) for way in UNREAD_TOO)])
def test_output_that_nobody_reads_does_not_stop_a_run(desk: Desk, project: Project, way: str) -> None:
    """A closed pipe, closed streams or a full disk behind stderr: it trains to the end and exits with 0."""
    script = f"{desk.command} run config.yaml --run one --set train.num_epochs=1 {way}; exit ${{PIPESTATUS[0]}}"
    environ = {"PATH": os.environ["PATH"], **desk.environ}
    done = subprocess.run(["bash", "-c", script], cwd=desk.folder, env=environ, capture_output=True, check=False)
    assert done.returncode == 0
    assert (project.run_folder() / "best" / "SKILL.md").exists()
