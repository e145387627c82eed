"""Writes a run into an MLflow store, once however often it is exported: extra `mlflow`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from attrs import frozen
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from skillopt_es.errors import OutputRefused
from skillopt_es.exports.metrics import RunNumbers

_TAG = "skillopt.run_id"
_STATUS = {"completed": "FINISHED", "scored": "FINISHED", "paused": "KILLED"}
# MLflow's own limit: it refuses a longer value, or cuts it off.
_LONGEST_PARAM = 6000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class Tracked:
    """Where a run stands in the store, and how many points it did not have there before."""

    experiment: str
    run: str
    new_points: int


def track(
    uri: str,
    experiment: str,
    run: tuple[str, str],
    numbers: RunNumbers,
    tags: Mapping[str, str],
    files: Mapping[str, str],
) -> Tracked:
    """Writes a run, given by id and name: its params and points, and its files as artifacts."""
    try:
        return _tracked(MlflowClient(tracking_uri=_absolute(uri)), experiment, run, numbers, tags, files)
    except ModuleNotFoundError as error:
        raise OutputRefused(
            f"this store needs {error.name}, which is not installed", hint=f"pip install {error.name}"
        ) from None
    except (MlflowException, SQLAlchemyError, OSError) as error:
        said = _without_password(" ".join(str(error).split()), uri)
        raise OutputRefused(f"MLflow refuses: {said:.400}", hint="--tracking-uri names the store") from None


def _tracked(
    client: MlflowClient,
    experiment: str,
    run: tuple[str, str],
    numbers: RunNumbers,
    tags: Mapping[str, str],
    files: Mapping[str, str],
) -> Tracked:
    run_id, name = run
    found = client.get_experiment_by_name(experiment)
    where = (
        found.experiment_id
        if found is not None
        else client.create_experiment(experiment, _artifacts(client.tracking_uri))
    )
    there = client.search_runs([where], f"tags.`{_TAG}` = '{run_id}'", max_results=1)
    start = _milliseconds(numbers.started)
    key = there[0].info.run_id if there else client.create_run(where, start, {_TAG: run_id}, name).info.run_id
    known = set(there[0].data.params) if there else set()
    # Params cannot change in a store, and a run's that decide cannot either: those it has stay.
    params = [Param(each, value[:_LONGEST_PARAM]) for each, value in numbers.params.items() if each not in known]
    points = list(_new_points(client, key, numbers, set(there[0].data.metrics) if there else set()))
    # MLflow takes at most 100 params a batch.
    for at in range(0, max(len(params), len(points), 1), 100):
        client.log_batch(
            key,
            metrics=points[at : at + 100],
            params=params[at : at + 100],
            tags=[RunTag(each, value) for each, value in tags.items()] if at == 0 else [],
        )
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            target = Path(folder) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())
        client.log_artifacts(key, folder)
    status = _STATUS.get(numbers.status, "RUNNING")
    if status == "RUNNING":
        client.update_run(key, status=status)
    else:
        client.set_terminated(key, status, _milliseconds(numbers.last))
    return Tracked(experiment=experiment, run=key, new_points=len(points))


def _new_points(client: MlflowClient, run: str, numbers: RunNumbers, known: set[str]) -> Iterator[Metric]:
    """The points that the store does not have; a total that grew is a new one at its new step or time."""
    there = {
        (key, point.step, point.timestamp, point.value)
        for key in known
        for point in client.get_metric_history(run, key)
    }
    for point in numbers.points:
        at = _milliseconds(point.at)
        if (point.key, point.step, at, point.value) not in there:
            yield Metric(point.key, point.value, at, point.step)


def _artifacts(uri: str) -> str | None:
    """Where an SQLite store's files go: beside it, and not into whatever folder one happens to stand in."""
    if not uri.startswith("sqlite:///"):
        return None
    return str(Path(uri.removeprefix("sqlite:///")).absolute().parent / "mlruns")


def _without_password(said: str, uri: str) -> str:
    """A store's address may hold a password, and errors quote it."""
    password = urlsplit(uri).password
    return said.replace(uri, uri.split("://", 1)[0] + "://…").replace(password, "…") if password else said


def _milliseconds(at: datetime) -> int:
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _absolute(uri: str) -> str:
    """A path without a scheme is an SQLite file: that is the store that needs nothing else."""
    return uri if ":" in uri else f"sqlite:///{Path(uri).absolute()}"
