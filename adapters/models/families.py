"""What model families and backends do not take, so that a run is refused before its first call instead of after it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import entry_points
from urllib.parse import urlsplit

from skillopt_es.adapters.models.endpoint import refused
from skillopt_es.ports import MODELS, ModelSettings, Provider

_WITHOUT_EFFORT = re.compile(r"(gpt-4|gpt-3\.5|chatgpt-)", re.IGNORECASE)
_WITHOUT_TEMPERATURE = re.compile(r"(o\d|gpt-5(?!\.\d)|codex-)", re.IGNORECASE)
_OPENAI_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
_ANTHROPIC_EFFORTS = ("low", "medium", "high", "xhigh", "max")


def check_openai(settings: ModelSettings) -> None:
    """Raises ConfigError for a field that this OpenAI model refuses; other hosts may serve other models by its name."""
    if (urlsplit(settings.base_url).hostname or "").endswith(".openai.com"):
        _raise_first(settings, _openai_rules(settings))


def check_anthropic(settings: ModelSettings) -> None:
    """Raises ConfigError for a field that no Claude model takes like this."""
    _raise_first(settings, _anthropic_rules(settings))


def check_no_effort(settings: ModelSettings) -> None:
    """Raises ConfigError when an effort is asked of a backend that has no word for it."""
    if settings.reasoning_effort:
        raise refused(
            settings,
            "reasoning_effort",
            f" is {settings.reasoning_effort!r}, but {settings.backend} knows no efforts",
            hint=f"use model.{settings.role}_thinking, and write model.{settings.role}_reasoning_effort: ''",
        )


Broken = tuple[str, str, str]


def _openai_rules(settings: ModelSettings) -> Iterator[Broken]:
    effort, model = settings.reasoning_effort, settings.model
    if effort and _WITHOUT_EFFORT.match(model):
        yield "reasoning_effort", f"{effort!r}, but {model} does not reason", "leave it out"
    if effort and effort not in _OPENAI_EFFORTS:
        yield "reasoning_effort", f"{effort!r}, which OpenAI does not know", f"one of {', '.join(_OPENAI_EFFORTS)}"
    if settings.temperature not in {None, 1.0} and _WITHOUT_TEMPERATURE.match(model):
        yield "temperature", f"{settings.temperature:g}, but {model} has a fixed one", "leave it out"


def _anthropic_rules(settings: ModelSettings) -> Iterator[Broken]:
    effort, temperature = settings.reasoning_effort, settings.temperature
    if effort and effort not in _ANTHROPIC_EFFORTS:
        names = ", ".join(_ANTHROPIC_EFFORTS)
        yield "reasoning_effort", f"{effort!r}, which Anthropic does not know", f"one of {names}"
    if temperature is not None and temperature > 1:
        yield "temperature", f"{temperature:g}, but Anthropic's end at 1", "choose one from 0 to 1"
    if temperature not in {None, 1.0} and settings.thinking in {"enabled", "adaptive"}:
        yield "temperature", f"{temperature:g}, but a model that thinks has a fixed one", "leave it out"


def _raise_first(settings: ModelSettings, rules: Iterator[Broken]) -> None:
    if settings.unsupported_fields == "drop":
        return
    for name, what, fix in rules:
        raise refused(settings, name, f" is {what}", hint=fix)


# The settings that only some backends have (each says which it takes), and what they are when nobody set them.
_SPECIAL: Mapping[str, str] = {
    "thinking": "server_default",
    "protocol": "auto",
    "region": "",
    "api_version": "",
    "auth_mode": "auto",
    "ad_scope": "",
    "managed_identity_client_id": "",
    "allow_hosts": "",
}


def refuse_others(settings: ModelSettings, taken: frozenset[str]) -> None:
    """Raises ConfigError for a special setting that this backend has no use for."""
    for name, unset in _SPECIAL.items():
        value = getattr(settings, name)
        if name not in taken and value != unset:
            raise refused(
                settings,
                name,
                f" is {value!r}, but {settings.backend} has no such setting: it is for {_takers(name)}",
                hint=f"leave it out, or write it as model.{_other(settings)}_{name} if it is meant for the other role",
            )


def _takers(name: str) -> str:
    """The installed backends that have a setting; one that does not load can have none."""
    found = []
    for point in sorted(entry_points(group=MODELS), key=lambda point: point.name):
        with suppress(ImportError):
            opener: object = point.load()
            found += [point.name] if isinstance(opener, Provider) and name in opener.takes else []
    return " and ".join(part for part in (", ".join(found[:-1]), *found[-1:]) if part) or "none that is installed"


def _other(settings: ModelSettings) -> str:
    return "target" if settings.role == "optimizer" else "optimizer"
