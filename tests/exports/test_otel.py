"""`export --format otel`: to a collector and to a file, with the library of the extra."""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from support.audited import Audited
from support.in_process import Cli

HERE = "skillopt_es.exports.otel"


@define
class Collector:
    """What was sent to it."""

    url: str = ""
    status: int = 200
    bodies: list[bytes] = field(factory=list)
    headers: list[Mapping[str, str]] = field(factory=list)
    paths: list[str] = field(factory=list)


@pytest.fixture
def run(audited: Audited) -> Path:
    """A small run."""
    return audited("plain")


@pytest.fixture
def collector() -> Iterator[Collector]:
    """An OTLP endpoint on this machine."""
    seen = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.bodies.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            seen.headers.append({name.lower(): value for name, value in self.headers.items()})
            seen.paths.append(self.path)
            self.send_response(seen.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield seen
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's telemetry."""
    for name in ("ENDPOINT", "TRACES_ENDPOINT", "HEADERS"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)


def received(collector: Collector) -> list[Any]:
    """The spans that arrived."""
    pytest.importorskip("opentelemetry.proto")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found = []
    for body in collector.bodies:
        message = ExportTraceServiceRequest.FromString(body)
        found += [span for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans]
    return found


def test_a_collector_gets_one_trace(cli: Cli, run: Path, collector: Collector) -> None:
    """Whole, with the recorded times; sent twice it is the same trace."""
    pytest.importorskip("opentelemetry.sdk")
    done = cli("export", run, "--format", "otel", "--endpoint", collector.url)
    assert (done.code, done.err) == (0, "")
    assert set(collector.paths) == {"/v1/traces"}
    spans = received(collector)
    assert done.out == f"run: {len(spans):,} spans sent\n"
    assert len({span.trace_id for span in spans}) == 1
    by_id = {span.span_id: span for span in spans}
    [root] = [span for span in spans if not span.parent_span_id]
    assert root.name == "run run"
    for span in spans:
        assert span is root or span.parent_span_id in by_id
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
    from skillopt_es.events.log import EventLog

    with EventLog.open(run) as log:
        first = next(log.read(until=1)).recorded_at
    assert root.start_time_unix_nano % 10**9 == int(first.removesuffix("Z").split(".")[1].ljust(9, "0"))
    collector.bodies.clear()
    assert cli("export", run, "--format", "otel", "--endpoint", collector.url + "/v1/traces").code == 0
    assert [(span.trace_id, span.span_id) for span in received(collector)] == [
        (span.trace_id, span.span_id) for span in spans
    ]


def test_opentelemetrys_own_variables_count(
    cli: Cli, run: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint and the headers, which are sent and never shown."""
    pytest.importorskip("opentelemetry.sdk")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url + "/team/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=geheim-0123456789")
    done = cli("export", run, "--format", "otel")
    assert done.code == 0
    assert set(collector.paths) == {"/team/v1/traces"}
    assert collector.headers[0]["x-key"] == "geheim-0123456789"
    assert "geheim" not in done.out + done.err
    assert not [body for body in collector.bodies if b"geheim" in body]


def test_a_file_has_the_same_spans_as_otlp_json(cli: Cli, run: Path, collector: Collector, tmp_path: Path) -> None:
    """One line, ids in hex, the same bytes each time."""
    pytest.importorskip("opentelemetry.sdk")
    assert cli("export", run, "--format", "otel", "--out", tmp_path / "one.json").code == 0
    text = (tmp_path / "one.json").read_text(encoding="utf-8")
    assert text == cli("export", run, "--format", "otel", "--out", "-").out
    assert text == cli("export", run, "-", "--format", "otel").out
    assert text == cli("export", "-", "--format", "otel", "--dir", run.parent).out
    assert cli("export", run, "-", "--format", "otel", "--out", "-").code == 2
    [resource] = json.loads(text)["resourceSpans"]
    [scope] = resource["scopeSpans"]
    assert cli("export", run, "--format", "otel", "--endpoint", collector.url).code == 0
    assert [(span["traceId"], span["spanId"], span["name"]) for span in scope["spans"]] == [
        (span.trace_id.hex(), span.span_id.hex(), span.name) for span in received(collector)
    ]
    assert "exists already" in cli("export", run, "--format", "otel", "--out", tmp_path / "one.json").err


def test_a_collector_that_refuses_is_told_in_a_sentence(cli: Cli, run: Path, collector: Collector) -> None:
    """Without what its address holds."""
    pytest.importorskip("opentelemetry.sdk")
    collector.status = 401
    address = collector.url.replace("http://", "http://me:geheim@")
    done = cli("export", run, "--format", "otel", "--endpoint", address)
    assert (done.code, done.out) == (2, "")
    assert "the collector at 127.0.0.1 did not take the spans" in done.err
    assert "geheim" not in done.err
    assert "is not the address of a collector" in cli("export", run, "--format", "otel", "--endpoint", "nowhere").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "needs a place"),
        (("--endpoint", "http://x", "--out", "y"), "one of them"),
        (("OUT", "MORE"), "takes a run and one OUT"),
        (("--tracking-uri", "x"), "goes with --format mlflow"),
    ],
)
def test_wrong_usage(cli: Cli, run: Path, words: tuple[str, ...], said: str) -> None:
    """Says what is right."""
    pytest.importorskip("opentelemetry.sdk")
    done = cli("export", run, *words, "--format", "otel")
    assert (done.code, said in done.err) == (2, True), done.err


@pytest.mark.parametrize(("form", "library"), [("otel", "opentelemetry"), ("mlflow", "mlflow")])
def test_a_missing_extra_says_how_to_get_it(
    cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch, form: str, library: str
) -> None:
    """One sentence and the command."""
    for name in [name for name in sys.modules if name == library or name.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    for name in (HERE, "skillopt_es.exports.mlflow_store", "google.protobuf.json_format"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    words = ("--tracking-uri", "x.db") if form == "mlflow" else ("--out", "-")
    done = cli("export", run, "--format", form, *words)
    assert (done.code, done.out) == (2, "")
    assert "which is not installed" in done.err
    assert f"pip install '.[{form}]'" in done.err
