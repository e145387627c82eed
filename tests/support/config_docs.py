"""`docs/config.md`, made from base.yaml, the sections and what is known of the original: this script writes it anew."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

from skillopt_es.config.backends import ADAPTERS, BACKEND_NAMES
from skillopt_es.config.original import ALIASES, FATES, KNOWN, MOVED
from skillopt_es.config.own_keys import own_keys
from skillopt_es.config.remarks import remarks
from skillopt_es.config.sections import SECTIONS, RoleConfig
from skillopt_es.config.values import described
from skillopt_es.sessions.opening import ENVIRONMENTS
from skillopt_es.version import installed_for

ROOT = Path(__file__).parent.parent.parent
FILE = ROOT / "docs" / "config.md"
PAGE = Path(__file__).parent / "config_page.md"
PRESETS = ("safe", "paper", "skillopt")  # those of benchmarks have pages of their own
ORIGINAL_KEYS = ROOT / "tests" / "config" / "original" / "keys.txt"


MODEL = """
Every key of `model` but `optimizer`, `target` and `judge` may be given for one role:
`optimizer_base_url`, `target_temperature`, `judge_backend`. The names that `backend` knows
are listed [below](#backends-and-benchmarks).
"""


OWN = """
#### Keys of single backends

Few backends read these keys of `model`. They may be given for one role, too. A key is refused where no role has such an
agent, or where a model's provider does not take it. [configs/backends.yaml](../configs/backends.yaml) has the defaults.

| key | backends | default | allowed | what it does |
| --- | --- | --- | --- | --- |
"""


def config_docs() -> str:
    """The whole page: config_page.md with its tables filled in."""
    base = yaml.safe_load((ROOT / "configs" / "base.yaml").read_text())
    tables = {
        "keys": _keys(base),
        "presets": _presets(base),
        "original": _original(),
        "words": _words(),
        "names": _names(),
    }
    page = PAGE.read_text()
    for name, rows in tables.items():
        page = page.replace(f"{{{name}}}\n", "".join(rows))
    return page


def _keys(base: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    said = remarks()
    for section, kind in {"model": RoleConfig, **SECTIONS}.items():
        yield f"### {section}\n\n| key | default | allowed | what it does |\n| --- | --- | --- | --- |\n"
        fields: Mapping[str, Any] = {field.name: field for field in attrs.fields(kind)}
        for name, default in base[section].items():
            allowed = "text" if name in ("optimizer", "target", "judge") else described(fields[name])
            yield _row(f"`{name}`", f"`{_yaml(default)}`", allowed, said[f"{section}.{name}"])
        yield MODEL if section == "model" else ""
        yield from _own(fields, said) if section == "model" else ()
        yield "\n"
    yield "All other keys under `env:` are the environment's own; [tasks.md](tasks.md) tells those of `tasks`:\n\n"
    for name, point in installed_for(ENVIRONMENTS).items():
        options = attrs.fields(_options(point.load().__module__))
        keys = ", ".join(f"`{field.name}`{_default(field.default)}" for field in options)
        yield f"- `{name}`: {keys}\n"


def _own(fields: Mapping[str, Any], said: Mapping[str, str]) -> Iterator[str]:
    yield OWN
    for name, own in own_keys().items():
        backends = ", ".join(own.backends)
        yield _row(f"`{name}`", backends, f"`{_yaml(own.default)}`", described(fields[name]), said[f"model.{name}"])


def _default(value: object) -> str:
    """A default that a config could say."""
    plain = isinstance(value, bool | int | float | str | type(None))
    return f" ({_yaml(value)})" if plain else ""


def _options(package: str) -> Any:
    """The class of an environment's own keys."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        if module.name.endswith((".options", ".environment")):  # some are only imported once they are needed
            importlib.import_module(module.name)
    modules = [module for name, module in sys.modules.items() if name.startswith(package)]
    return next(value for module in modules for name, value in vars(module).items() if name.endswith("Options"))


def _presets(base: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    files = {name: ROOT / "configs" / "presets" / f"{name}.yaml" for name in PRESETS}
    said = {name: yaml.safe_load(file.read_text()) for name, file in files.items()}
    yield _row("key", "default", *(f"`{name}`" for name in said)) + "| --- " * (2 + len(said)) + "|\n"
    for section, values in base.items():
        for key, default in values.items():
            own = [said[name].get(section, {}).get(key) for name in said]
            if any(value is not None for value in own):
                shown = ("" if value is None else f"`{_yaml(value)}`" for value in own)
                yield _row(f"`{section}.{key}`", f"`{_yaml(default)}`", *shown)


def _original() -> Iterator[str]:
    yield "| its flag | flat name | here |\n| --- | --- | --- |\n"
    for line in ORIGINAL_KEYS.read_text().splitlines():
        if not line.startswith("#"):
            nested, flat, flag = line.split()
            yield _row(f"`{flag}`" if flag != "-" else "", f"`{flat}`", _answer(nested))
    others = ", ".join(f"`{key}`" for key in sorted((*FATES, *ALIASES)) if key not in ORIGINAL_KEYS.read_text().split())
    yield f"\nKnown as well, from its files and its other names: {others}.\n"


def _answer(key: str) -> str:
    section, _, name = key.partition(".")
    fate = FATES.get(key)
    if fate is None:
        known = MOVED.get(key, key)
        return f"`{known}`" if known != key or name in KNOWN[section] else f"`{key}`, where the environment has it"
    if fate.ignored:
        return f"`{key}`: ignored, {fate.ignored}"
    if fate.secret:
        return f"`{key}`: never config; `api_key_env: {fate.secret}`"
    passing = "".join(f", `{_yaml(value)}`" for value in fate.passes)
    return f"`{key}`: not to be chosen; instead: {fate.instead} (empty{passing} passes)"


def _words() -> Iterator[str]:
    for section, kind in SECTIONS.items():
        for field in attrs.fields(kind):
            words: dict[str, list[str]] = {}
            for word, meaning in field.metadata.get("aliases", {}).items():
                words.setdefault(meaning, []).append(f"`{word}`" if word else "nothing")
            if words:
                said = "; ".join(f"`{meaning}`: {', '.join(others)}" for meaning, others in words.items())
                yield f"- `{section}.{field.name}`: {said}\n"


def _names() -> Iterator[str]:
    yield "| name | here |\n| --- | --- |\n"
    for name in sorted({*BACKEND_NAMES, *ADAPTERS}):
        real = BACKEND_NAMES.get(name, name)
        yield _row(f"`{name}`", ADAPTERS[real][0] if real in ADAPTERS else f"`{real}`")


def _yaml(value: object) -> str:
    return (
        yaml.safe_dump(value, default_flow_style=True, width=10_000)
        .removesuffix("\n")
        .removesuffix("\n...")
        .replace("''", '""')
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    FILE.write_text(config_docs())
    sys.exit(0)
