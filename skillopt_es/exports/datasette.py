"""What Datasette shows beside a run's tables and its log: the meanings of tables and columns, and queries."""

from __future__ import annotations

from importlib.resources import files
from typing import cast

import yaml

from skillopt_es.events.values import Json

Tree = dict[str, Json]


def metadata_text() -> str:
    """`metadata.yaml` for databases called `run` (the tables) and `log`; all that Datasette 0.6x needs."""
    return (files("skillopt_es.exports") / "datasette.yaml").read_text(encoding="utf-8")


def config_text() -> str:
    """`datasette.yaml`: the same queries where Datasette 1.0 looks for them."""
    databases = cast("dict[str, Tree]", metadata()["databases"])
    queries = {"databases": {name: {"queries": each["queries"]} for name, each in databases.items()}}
    return yaml.safe_dump(queries, sort_keys=False, allow_unicode=True, width=110)


def metadata() -> Tree:
    """The meanings and queries as values."""
    return cast("Tree", yaml.safe_load(metadata_text()))
