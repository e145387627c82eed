"""Sends a run's spans to an OpenTelemetry collector, or writes them as OTLP's JSON: extra `otel`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, cast
from urllib.parse import urlsplit

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from skillopt_es.errors import OutputRefused
from skillopt_es.events.values import Json
from skillopt_es.exports.spans import Span
from skillopt_es.version import software_version

_TRACES = "/v1/traces"
_CHUNK = 500  # as OpenTelemetry's own batches (512 spans): collectors refuse a request that is too large
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def endpoint_in(environ: Mapping[str, str]) -> str:
    """The endpoint that OpenTelemetry's own variables name; empty for none."""
    own, base = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""), environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    return own or (base.rstrip("/") + _TRACES if base else "")


def traces_url(endpoint: str) -> str:
    """Where spans go: an address that has a path of its own as it is, any other with OTLP's path for traces."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OutputRefused(
            f"{parts.hostname or 'the endpoint'} is not the address of a collector", hint="http://host:4318"
        )
    return endpoint if parts.path.strip("/") else endpoint.rstrip("/") + _TRACES


def send(run_id: str, spans: Sequence[Span], endpoint: str) -> None:
    """Sends all spans; the library adds the headers that OTEL_EXPORTER_OTLP_HEADERS names."""
    url = traces_url(endpoint)
    readable = _readable(run_id, spans)
    exporter = OTLPSpanExporter(endpoint=url)
    try:
        for at in range(0, len(readable), _CHUNK):
            if exporter.export(readable[at : at + _CHUNK]) is not SpanExportResult.SUCCESS:
                raise OutputRefused(
                    f"the collector at {urlsplit(url).hostname} did not take the spans",
                    hint="check --endpoint and OTEL_EXPORTER_OTLP_HEADERS; what arrived may be sent again",
                )
    finally:
        exporter.shutdown()


def otlp_json(run_id: str, spans: Sequence[Span]) -> str:
    """One line of OTLP's JSON with all spans, as collectors write and read it."""
    message = MessageToDict(encode_spans(_readable(run_id, spans)), use_integers_for_enums=True)
    return json.dumps(_with_hex_ids(message), sort_keys=True, ensure_ascii=False) + "\n"


def _with_hex_ids(value: Any) -> Json:  # noqa: ANN401 - JSON that the library made
    """OTLP's JSON has ids in hex, where protobuf's has them in base64."""
    if isinstance(value, dict):
        return {
            key: base64.b64decode(item).hex() if key in ("traceId", "spanId", "parentSpanId") else _with_hex_ids(item)
            for key, item in value.items()
        }
    return [_with_hex_ids(item) for item in value] if isinstance(value, list) else cast("Json", value)


def _readable(run_id: str, spans: Sequence[Span]) -> list[ReadableSpan]:
    """The library's own spans; ids follow from the run and the span's path, so sending twice makes no second trace."""
    name, version = software_version().split(" ", 1)
    resource = Resource({"service.name": name, "service.version": version, "skillopt.run.id": run_id})
    scope = InstrumentationScope(name, version)
    trace = _number(run_id, "", 16)

    def context(path: str) -> SpanContext:
        return SpanContext(trace, _number(run_id, f"span {path}", 8), is_remote=False, trace_flags=TraceFlags(1))

    return [
        ReadableSpan(
            name=span.name,
            context=context(span.path),
            parent=context(span.parent) if span.path else None,
            resource=resource,
            attributes=dict(span.attributes),
            kind=SpanKind.CLIENT if span.level == "call" else SpanKind.INTERNAL,
            instrumentation_scope=scope,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
            start_time=_nanoseconds(span.start),
            end_time=_nanoseconds(span.end),
        )
        for span in spans
    ]


def _number(run_id: str, path: str, size: int) -> int:
    """An id that is the same each time; never 0, which is none."""
    return int.from_bytes(sha256(f"{run_id}\n{path}".encode()).digest()[:size]) or 1


def _nanoseconds(at: datetime) -> int:
    """Since 1970, exact: a float of seconds would lose microseconds."""
    since = at - _EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000
