"""What only some tests need, and which extra brings it: a test that asks is skipped where it is not installed."""

from __future__ import annotations

from types import ModuleType

import pytest


def needs(module: str, *, extra: str) -> ModuleType:
    """The module; the test (or the whole file, if asked at its top) is skipped where it is not installed."""
    return pytest.importorskip(module, reason=f"needs {module}: pip install '.[{extra}]'")
