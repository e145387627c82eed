"""
What has to be in place before a run, one check each: ok, a warning, or a problem with its fix.

A check that fails does not keep the others from being made, as long as they make sense without it.
"""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from skillopt_es.config import RunConfig, load_config
from skillopt_es.config.backends import ROLES
from skillopt_es.config.origins import origins
from skillopt_es.events.errors import SkillOptError
from skillopt_es.sessions.checks import Check, check_data, check_folder, check_skill, check_space, check_sqlite, problem
from skillopt_es.sessions.probes import check_models
from skillopt_es.version import software_version


@frozen(kw_only=True)
class Examination:
    """What is to be examined; without `calls` nothing is sent anywhere."""

    config: Path | None
    overrides: Sequence[str]
    directory: Path
    environ: Mapping[str, str]
    calls: bool


async def examine(what: Examination) -> AsyncIterator[Check]:
    """All checks, each as soon as it is made."""
    yield Check("python", "ok", f"Python {platform.python_version()}, {software_version()}")
    yield check_sqlite(sqlite3.sqlite_version_info)
    yield check_folder(what.directory)
    yield check_space(what.directory)
    try:
        config = load_config(what.config, what.overrides, what.environ)
    except SkillOptError as error:
        yield problem("config", error)
        return
    yield Check("config", "ok", "the bundled demo" if what.config is None else str(what.config))
    for notice in config.notices:
        yield Check("config", "warning", notice)
    for note in config.notes:
        yield Check("config", "ok", note)
    for role in ROLES:
        for each in origins(config, role):
            yield Check("setting", "ok", f"{role} {each.setting}: {each.value} ({each.where})")
    async for check in _check_config(config, what):
        yield check


async def _check_config(config: RunConfig, what: Examination) -> AsyncIterator[Check]:
    yield check_skill(config)
    async for check in check_data(config, runs=what.directory, try_grader=what.calls):  # a grader may ask somebody, too
        yield check
    async for check in check_models(config, what.environ, runs=what.directory, calls=what.calls):
        yield check
