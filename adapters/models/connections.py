"""How many connections this process can hold, whatever the config wishes for."""

from __future__ import annotations

from contextlib import suppress

# The log and its readers, pipes, the event loop, the files that an environment opens.
_KEPT_FREE = 32
_ROLES = 2


def most_connections() -> int | None:
    """As many as one role may have open, so that files are left for all else; None for no limit."""
    with suppress(ImportError):  # Windows has neither the module nor the limit
        import resource  # noqa: PLC0415

        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if allowed != resource.RLIM_INFINITY:
            return max(1, (allowed - _KEPT_FREE) // _ROLES)
    return None
