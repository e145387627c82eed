"""The form that begins a run: every key with its remark, checked and estimated before anything is begun."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from skillopt_es.config.remarks import remarks
from skillopt_es.config.sections import MODEL_KEYS, SECTIONS, RoleConfig
from skillopt_es.config.values import described, literals
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.values import Json
from skillopt_es.report.html import Html, Row, el, fold, note, prose, row, section, table
from skillopt_es.report.settings import shown
from skillopt_es.ui.safety import Refused
from skillopt_es.ui.shell import choice, filters, hidden, part, problem

_OPEN = ("train", "budget")
"""The sections that most runs differ in."""
_OWN = ("config", "name", "more")
"""The fields of the form that are no keys."""


def settings_of(fields: Mapping[str, str]) -> tuple[str, ...]:
    """
    The settings that a filled form names, as `--set` takes them; what was left empty is as the config has it.

    Raises Refused for a field that the form does not have: the run would begin without it.
    """
    strangers = sorted(set(fields) - {*_OWN, *keys()})
    if strangers:
        raise Refused(
            f"{', '.join(map(repr, strangers[:3]))} is no key of the form",
            hint="open the page again; `more` takes an environment's own keys",
        )
    known = [f"{name}={fields[name].strip()}" for name in keys() if fields.get(name, "").strip()]
    more = [line.strip() for line in fields.get("more", "").splitlines() if line.strip()]
    return (*known, *more)


def keys() -> dict[str, attrs.Attribute[Any] | None]:
    """Every key of a config by its dotted name, with what is known of its values."""
    found: dict[str, attrs.Attribute[Any] | None] = {}
    for name, kind in {"model": RoleConfig, **SECTIONS}.items():
        fields: Mapping[str, attrs.Attribute[Any]] = {field.name: field for field in attrs.fields(cast("Any", kind))}
        names = MODEL_KEYS if name == "model" else tuple(fields)
        found |= {f"{name}.{key}": fields.get(key) for key in names if f"{name}.{key}" in remarks()}
    return found


def start_page(
    configs: Sequence[str],
    chosen: str,
    values: Mapping[str, Json],
    fields: Mapping[str, str],
    form_token: str,
    wrong: SkillOptError | None = None,
) -> list[Html | None]:
    """The form; `values` are those of the chosen config, `fields` what was filled in, `wrong` why it did not start."""
    by_section: dict[str, list[Html]] = {}
    marked = [] if wrong is None else [key for key in keys() if _is_named(key, wrong.message)]
    for key, known in keys().items():
        made = _field(key, known, values, fields.get(key, ""), wrong=key in marked)
        by_section.setdefault(key.partition(".")[0], []).append(made)
    open_ = {*_OPEN, *(key.partition(".")[0] for key in marked)}
    parts = [fold(name, el("div", *made, class_="keys"), open_=name in open_) for name, made in by_section.items()]
    name = el("input", name="name", value=fields.get("name", ""), pattern="[A-Za-z0-9][A-Za-z0-9._\\-]{0,99}",
              placeholder="after the config and the time")  # fmt: skip
    more = el("textarea", fields.get("more", ""), name="more", rows=3, placeholder="env.data_dir=data")
    pick = filters("Choose", choice("Config", "config", {each: each for each in configs}, chosen), action="/start")
    form = el(
        "form",
        *hidden({"form_token": form_token, "config": chosen}),
        el("label", el("span", "Name of the run"), name),
        note("What is left empty is as the config has it: that value stands in the field."),
        *parts,
        fold("an environment's own keys", el("label", el("span", "One KEY=VALUE a line"), more)),
        el(
            "p",
            el("button", "Check and estimate", type="submit", formaction="/start/check"),
            " ",
            el("button", "Start", type="submit", class_="main"),
        ),
        method="post",
        action="/start",
        class_="start",
        data_check="/start/check",
    )
    return [el("h1", "Start a run"), None if wrong is None else _not_started(wrong, marked), pick, form]


def _is_named(key: str, message: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(key)}(?!\w|\.\w)", message) is not None


def _not_started(wrong: SkillOptError, marked: Sequence[str]) -> Html:
    """Why the form did not start a run, with a way to each field that the error names."""
    fields = [el("a", f"Go to {key}", href=f"#field-{key}") for key in marked]
    hint = prose(wrong.hint) if wrong.hint else None
    return problem(prose(wrong.message), *([hint] if hint else []), *fields)


def words_of(error: Mapping[str, Json]) -> str:
    """The message of an error that the command has printed as JSON."""
    return str(error.get("message")).removeprefix("--set: ")  # the form has fields in place of this option


def _field(
    key: str, known: attrs.Attribute[Any] | None, values: Mapping[str, Json], given: str, *, wrong: bool
) -> Html:
    """One key: its name, a field for it, its remark and what it allows."""
    usual = shown(values[key]) if key in values else ""
    allowed = "text" if known is None else described(known)
    kinds = () if known is None else literals(known.type)
    options = [str(each) for each in kinds]
    invalid = "true" if wrong else None
    if known is not None and known.type is bool:
        options = ["true", "false"]
    if options:
        rows = [el("option", f"{usual} (as the config has it)", value="", selected=not given)]
        rows += [el("option", each, value=each, selected=each == given) for each in options]
        box = el("select", *rows, name=key, id=f"field-{key}", aria_describedby=f"about-{key}", aria_invalid=invalid)
    else:
        box = el("input", name=key, value=given, placeholder=usual, autocomplete="off", spellcheck="false",
                 id=f"field-{key}", aria_describedby=f"about-{key}", aria_invalid=invalid)  # fmt: skip
    about = f"{remarks().get(key, '')} ({allowed})"
    return el("div", el("label", el("code", key), box), el("small", about, id=f"about-{key}"), class_="setting")


def checked_part(found: Mapping[str, Json] | None) -> Html:
    """What the command says of a run that is not begun yet: its estimate, or what is wrong."""
    if found is None:
        return part("checked")  # empty, or it would cover a part of the form
    error = found.get("error")
    if isinstance(error, dict):
        hint = str(error.get("hint") or "")
        return part("checked", problem(words_of(error), *([hint] if hint else [])))
    rows: list[Row] = []
    for name, label in _RANGES.items():
        value = found.get(name)
        if isinstance(value, dict):
            rows.append(row(label, *(_number(value.get(each)) for each in ("low", "expected", "high"))))
    headers = "what | #at least | #expected | #at most"
    notes = found.get("notes")
    said = [note(str(each)) for each in notes] if isinstance(notes, list) else []
    basis = found.get("earlier_runs")
    rests = ", ".join(map(str, basis)) if isinstance(basis, list) and basis else "the config alone"
    plan = note(f"{found.get('epochs')} epochs, {found.get('steps')} steps; rests on {rests}.")
    return part("checked", section("Estimate", plan, table("What it may take", headers, rows), *said, name="estimate"))


_RANGES = {
    "calls": "calls",
    "input_tokens": "tokens in",
    "output_tokens": "tokens out",
    "cost": "cost",
    "seconds": "seconds",
}


def _number(value: Json) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def file_of(words: Sequence[str]) -> Path | None:
    """The file that a command trains, if it names one."""
    return None if words[0].startswith("--") else Path(words[0])
