"""What looks like chance in the simulation: a hash of texts."""

from __future__ import annotations

import hashlib


def chance(*parts: str) -> float:
    """A number from 0 to 1 that depends on these texts only: the same texts have the same luck anywhere."""
    digest = hashlib.sha256("\n".join(parts).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
