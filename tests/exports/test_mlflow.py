"""`export --format mlflow`: a run in a local store, once, with the library of the extra."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.audited import Audited
from support.in_process import Cli
from support.logs import events_of
from support.tamper import seqs_of

from skillopt_es.events.catalog import CandidateGated
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.exports.extras import quiet
from skillopt_es.exports.metrics import numbers_of
from skillopt_es.runs.run_settings import Settings, settings_in
from skillopt_es.sessions.session import read_state

EXPERIMENT = "desk"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new SQLite store, which takes MLflow seconds to make."""
    with quiet():
        mlflow = pytest.importorskip("mlflow")
        pytest.importorskip("sqlalchemy")
        file = tmp_path_factory.mktemp("ml") / "empty.db"
        mlflow.MlflowClient(tracking_uri=f"sqlite:///{file}").search_experiments()
        return file


@pytest.fixture
def store(empty: Path, tmp_path: Path) -> Iterator[str]:
    """An SQLite store of one's own."""
    (tmp_path / "ml").mkdir()
    shutil.copy(empty, tmp_path / "ml" / "flow.db")
    with quiet():
        yield f"sqlite:///{tmp_path / 'ml' / 'flow.db'}"


@pytest.fixture
def run(audited: Audited) -> Path:
    """A small run."""
    return audited("plain")


def exported(cli: Cli, run: Path, store: str) -> str:
    """What the command says."""
    done = cli("export", run, "--format", "mlflow", "--tracking-uri", store, "--experiment", EXPERIMENT)
    assert (done.code, done.err) == (0, "")
    return done.out


def settings_of(run: Path) -> Settings:
    """What a run was set to."""
    with EventLog.open(run) as log:
        return settings_in(log.read(until=1))


def runs_in(store: str) -> tuple[Any, list[Any]]:
    """A client and all runs of the experiment."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=store)
    return client, list(client.search_runs([client.get_experiment_by_name(EXPERIMENT).experiment_id]))


def test_a_run_is_tracked_once(run: Path, store: str) -> None:
    """As it grows: an earlier part, then all of it, then nothing new."""
    from skillopt_es.exports.mlflow_store import track

    [seq] = seqs_of(run, CandidateGated, lambda event: event.step == 2)
    with EventLog.open(run) as log:
        calls = list(Journal(log.reader).read())
        early, late = (numbers_of(list(log.read(until=until)), calls) for until in (seq, None))
    added = [track(store, EXPERIMENT, ("id", "name"), numbers, {}, {}).new_points for numbers in (early, late, late)]
    assert added[0] > 0
    assert added[1] > 0
    assert added[2] == 0
    client, [tracked] = runs_in(store)
    assert (tracked.info.run_name, tracked.info.status) == ("name", "FINISHED")
    history = client.get_metric_history(tracked.info.run_id, "gate/best")
    assert sorted(point.step for point in history) == sorted(
        point.step for point in late.points if point.key == "gate/best"
    )


def test_settings_scores_and_the_skill_are_there(cli: Cli, run: Path, store: str, tmp_path: Path) -> None:
    """Params of the config, tags that lead back to the log, the skill byte for byte beside the store."""
    exported(cli, run, store)
    client, [tracked] = runs_in(store)
    assert tracked.data.params["train.batch_size"] == str(settings_of(run)["train.batch_size"])
    assert "model.api_key_env" not in tracked.data.params
    state = read_state(run)
    assert state.best is not None
    assert tracked.data.tags["skillopt.best_skill"] == state.best.skill.hash
    assert tracked.data.tags["skillopt.log_seq"] == str(len(events_of(run)))
    artifacts = [file.path for file in client.list_artifacts(tracked.info.run_id)]
    assert sorted(artifacts) == ["best_skill", "facts.json"]
    [skill] = (tmp_path / "ml").rglob("SKILL.md")
    assert skill.read_bytes() == state.best.skill.text.encode()
    assert tracked.info.end_time >= tracked.info.start_time


def test_a_store_that_cannot_be_used_is_a_sentence(
    cli: Cli, run: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the password in its address."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert "needs a store" in cli("export", run, "--format", "mlflow").err
    done = cli("export", run, "--format", "mlflow", "--tracking-uri", "ftp://me:geheim@host/x")
    assert (done.code, done.out) == (2, "")
    assert "MLflow refuses" in done.err
    assert "geheim" not in done.err
    assert cli("export", run, "--format", "mlflow", "--out", "x", "--tracking-uri", store).code == 2
