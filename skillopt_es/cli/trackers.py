"""A run for other people's tools: an MLflow store, an OpenTelemetry collector, a folder for Datasette."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import click

from skillopt_es.counting import counted
from skillopt_es.events.log import EventLog
from skillopt_es.exports.extras import of_extra


def send_to_mlflow(log: EventLog, uri: str | None, experiment: str) -> str:
    """Writes the run into a store; what to tell."""
    from skillopt_es.deploy.evidence import facts_of
    from skillopt_es.deploy.provenance import plain_facts
    from skillopt_es.events.journal import Journal
    from skillopt_es.exports.extras import quiet
    from skillopt_es.exports.metrics import numbers_of

    uri = uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        raise click.UsageError(
            "--format mlflow needs a store: --tracking-uri sqlite:///mlflow.db, or MLFLOW_TRACKING_URI"
        )
    head = log.head().seq
    numbers = numbers_of(list(log.read(until=head)), Journal(log.reader).read())
    skill, facts = facts_of(log, "best", head)
    tags = {
        "skillopt.software": facts.run.software,
        "skillopt.best_skill": facts.skill.hash,
        "skillopt.log_seq": str(facts.log.seq),
        "skillopt.log_head": facts.log.hash,
    }
    files = {f"best_skill/{path}": text for path, text in skill.files.items()}
    files["facts.json"] = json.dumps(plain_facts(facts), indent=2, ensure_ascii=False) + "\n"
    with quiet():
        with of_extra("mlflow", "--format mlflow"):
            from skillopt_es.exports.mlflow_store import track
        done = track(uri, experiment, (log.run.run_id, log.run.name), numbers, tags, files)
    return f"{log.run.name} is run {done.run} of experiment {done.experiment} ({counted(done.new_points, 'new point')})"


def send_to_otel(log: EventLog, endpoint: str | None, out: str | None, *, force: bool) -> str:
    """Sends the run's trace to a collector, or writes it to a file; what to tell."""
    from skillopt_es.deploy.files import write_file
    from skillopt_es.events.journal import Journal
    from skillopt_es.exports.extras import quiet
    from skillopt_es.exports.spans import spans_of
    from skillopt_es.sessions.opening import provider_of

    with of_extra("otel", "--format otel"):
        from skillopt_es.exports.otel import endpoint_in, otlp_json, send

    if out is not None and endpoint is not None:
        raise click.UsageError("--out writes a file and --endpoint sends: one of them")
    to = endpoint or endpoint_in(os.environ)
    if out is None and not to:
        raise click.UsageError(
            "--format otel needs a place: --endpoint http://localhost:4318, OTEL_EXPORTER_OTLP_ENDPOINT, or --out FILE"
        )
    spans = spans_of(log.run, log.read(until=log.head().seq), Journal(log.reader).read(), provider_of)
    if out is None:
        with quiet():
            send(log.run.run_id, spans, to)
        return f"{log.run.name}: {counted(len(spans), 'span')} sent"
    text = otlp_json(log.run.run_id, spans)
    if out == "-":
        return text
    write_file(Path(out), text, force=force)
    return out


def write_datasette(write_tables: Callable[[Path], None], out: Path, *, force: bool) -> list[Path]:
    """Writes a folder that `datasette FOLDER` opens: tables of runs, and what they mean; its files."""
    from skillopt_es.deploy.files import refuse_existing, write_file, writing
    from skillopt_es.exports.datasette import config_text, metadata_text

    texts = {out / "metadata.yaml": metadata_text(), out / "datasette.yaml": config_text()}
    tables = out / "run.db"
    for path in (tables, *texts):
        refuse_existing(path, force=force)
    with writing(tables, force=force) as draft:
        write_tables(draft)
    for path, text in texts.items():
        write_file(path, text)
    return [tables, *texts]
