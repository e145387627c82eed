"""Who asks the page over the demo's directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.asking import Asking


@pytest.fixture
def asking(demo_run: Path) -> Asking:
    """Somebody who asks the page over the demo's directory."""
    from support.asking import Asking

    return Asking(directory=demo_run.parent)
