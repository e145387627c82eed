"""What the run was: models, data, software, sessions, its config, and how to check that the log is what was written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from skillopt_es.counting import counted
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Json, Setting
from skillopt_es.presenting.numbers import shown_settings
from skillopt_es.report.facts import Facts, Session
from skillopt_es.report.html import Html, Row, el, fold, moment, note, row, section, table


def environment_section(facts: Facts) -> Html:
    """Software, models, data and the log itself."""
    rows = [*_models(facts), *_data(facts.started), *_log(facts)]
    pairs = [part for name, said in rows for part in (el("dt", name), el("dd", said))]
    sessions = [_session(session) for session in facts.sessions]
    headers = "when | #event | what | software | settings changed"
    parts = [table("Who wrote the log", headers, sessions)] if sessions else []
    gaps = [row(gap.place, gap.what, gap.why) for gap in facts.summary.gaps]
    if gaps:
        parts.append(table("What the imported results leave unknown", "place | what | why", gaps))
    notes = [note(said) for said in (facts.started.notes if facts.started is not None else ())]
    return section("Environment", el("dl", *pairs, class_="pairs"), *parts, *notes, name="environment")


def _models(facts: Facts) -> Iterator[tuple[str, str]]:
    for role in ("optimizer", "target", "judge"):
        name = setting(facts, f"model.{role}")
        if not name:
            continue
        backend = setting(facts, f"model.{role}_backend") or setting(facts, "model.backend")
        yield role, f"{shown(name)}{f' ({shown(backend)})' if backend else ''}"


def _data(started: RunStarted | None) -> Iterator[tuple[str, str]]:
    if started is None:
        return
    environment = started.config.get("env")
    if isinstance(environment, dict):
        yield "tasks", shown(environment.get("name"))
    splits = started.splits
    if not splits.digests:
        yield "items", "not in the log"
        return
    for name, items in (("train", splits.train), ("validation", splits.val), ("test", splits.test)):
        digest = splits.digests.get("val" if name == "validation" else name, "")
        yield f"{name} items", f"{len(items):,}{f', digest {digest[:16]}' if digest else ''}"


def _log(facts: Facts) -> Iterator[tuple[str, str]]:
    yield "run", f"{facts.name} ({facts.run_id})"
    yield "log", f"{counted(facts.head.seq, 'event')}, the last at {moment(facts.written)}"
    yield "head of the chain", facts.head.hash or "cannot be read"
    if facts.summary.imported is not None:
        yield "imported", f"from results of {facts.summary.imported.source}"


def _session(session: Session) -> Row:
    changed = shown_settings([Setting(key=key, value=value) for key, value in session.settings.items()])
    return row(moment(session.at), f"{session.seq:,}", session.how, session.software, changed)


def config_section(facts: Facts) -> Html | None:
    """The config that is in force at the end, section by section; None where it cannot be read."""
    if facts.started is None:
        return None
    parts = []
    changed = len(facts.settings)
    for name, values in facts.started.config.items():
        rows = values if isinstance(values, dict) else {"": values}
        lines = [_line(facts, f"{name}.{key}" if key else name, value) for key, value in _leaves(rows)]
        if lines:
            parts.append(fold(f"{name} ({counted(len(lines), 'key')})", _settings(f"The settings of {name}", lines)))
    known = {key for key, _ in _leaves(facts.started.config)}
    added = [_line(facts, key, None) for key in facts.settings if key not in known]
    if added:
        parts.append(fold("added later", _settings("Settings that were added later", added)))
    said = f"{counted(changed, 'key')} changed after the start (marked)." if changed else "As the run recorded it."
    return section("Config", note(f"{said} Keys and passwords are never part of it."), *parts, name="config")


def _settings(caption: str, lines: Sequence[Row]) -> Html:
    return table(caption, "key | value", lines, kind="config")


def _leaves(values: Mapping[str, Json], lead: str = "") -> Iterator[tuple[str, Json]]:
    """Nested keys joined by dots."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{lead}{key}.")
        else:
            yield f"{lead}{key}", value


def _line(facts: Facts, key: str, value: Json) -> Row:
    if key not in facts.settings:
        return row(key, el("code", shown(value)))
    now = el("code", shown(facts.settings[key]))
    was = "" if value is None else f" (first {shown(value)})"
    return row(key, el("span", now, el("small", f"{was} changed later")), class_="changed")


def setting(facts: Facts, key: str) -> Json:
    """The value of a key as it stands at the end; None for one that is not there."""
    if key in facts.settings:
        return facts.settings[key]
    value: Json = dict(facts.started.config) if facts.started is not None else None
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def shown(value: Json) -> str:
    """A value as somebody would write it; a text without its quotes."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
