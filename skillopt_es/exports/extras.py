"""Libraries that come with an extra: what to do when one is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from skillopt_es.errors import OutputRefused


@contextmanager
def of_extra(extra: str, what: str) -> Iterator[None]:
    """Around imports of an extra's libraries: a missing one is a sentence with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise OutputRefused(
            f"{what} needs the extra {extra}, which is not installed ({error.name} is missing)",
            hint=f"pip install 'skillopt-es[{extra}]'",
        ) from None
