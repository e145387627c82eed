"""Libraries that come with an extra: what to do when one is missing, and keeping them from talking on the terminal."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from skillopt_es.errors import OutputRefused, extra_hint


@contextmanager
def of_extra(extra: str, what: str) -> Iterator[None]:
    """Around imports of an extra's libraries: a missing one is a sentence with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise OutputRefused(
            f"{what} needs the extra {extra}, which is not installed ({error.name} is missing)",
            hint=extra_hint(extra),
        ) from None


_LOGGERS = ("mlflow", "mlflow.store.db.utils", "alembic", "opentelemetry")
# MLflow is not to tell its makers of each use, nor to try a server that is not there for minutes.
_ENVIRON = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}


@contextmanager
def quiet() -> Iterator[None]:
    """What goes wrong is told by us, in a sentence: the libraries' own lines quote addresses, passwords and all."""
    before = {name: os.environ.get(name) for name in _ENVIRON}
    os.environ.update({name: value for name, value in _ENVIRON.items() if before[name] is None})
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for logger in loggers:
                # Above the highest level: nothing passes.
                logger.setLevel(logging.CRITICAL + 1)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
