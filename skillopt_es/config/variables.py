"""
The original's environment variables, as the keys of a config that each of them stands for.

A variable counts where the config says nothing, and before a default. Of a key only its variable's name is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from skillopt_es.config.table import ROLES, TABLE, VARIABLES
from skillopt_es.events.values import Json


def _all() -> Iterator[str]:
    for names in VARIABLES.values():
        yield from names
    for benchmark in TABLE.benchmarks.values():
        yield from benchmark.variables.values()
    for role in ROLES:
        yield from (f"{role.upper()}_BACKEND", f"{role.upper()}_DEPLOYMENT")
    yield from TABLE.unused_variables


ALL: tuple[str, ...] = tuple(dict.fromkeys(_all()))
"""Every variable of the original's that is read here."""

FROM_VARIABLE = "the environment variable"


@frozen
class Variable:
    """An environment variable that is set, and what it says; of one that holds a key, its name."""

    name: str
    value: Json

    @property
    def source(self) -> str:
        """What is said of a value that came from it."""
        return f"{FROM_VARIABLE} {self.name}"


def variables(environ: Mapping[str, str]) -> Mapping[str, Variable]:
    """By key of `model`: the variable that counts for it, of those that are set to something."""
    found: dict[str, Variable] = {}
    for key, names in VARIABLES.items():
        name = next((name for name in names if environ.get(name, "").strip()), None)
        if name is not None:
            found[key] = Variable(name, name if key.endswith("api_key_env") else environ[name].strip())
    return found
