"""Every place that opens a port is known, and `docs/security.md` says what each gives without its secret."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
OPENING = frozenset(
    {"listen", "create_server", "start_server", "TCPSite", "UnixSite", "SockSite", "run_app", "HTTPServer",
     "ThreadingHTTPServer", "TCPServer", "ThreadingTCPServer"}
)  # fmt: skip
PORTS = {
    "skillopt_es/ui/serving.py": "the page",
    "adapters/agents/gateway.py": "the gateway",
    "skillopt_es/sessions/counter.py": "the counter",
    "adapters/executors/wire.py": "the writer of a run",
}
FOR_TESTS = {"skillopt_es/testing/endpoint.py"}
"""What only checks open: it gives what the check has put in."""


def opened(file: Path) -> Iterator[str]:
    """Names of what a file calls to open a port."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            name = (
                called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            )
            if name in OPENING:
                yield name


def test_every_port_that_is_opened_is_on_the_page_about_security() -> None:
    """With what it gives to somebody who has no secret of it."""
    files = [
        file for room in ("skillopt_es", "adapters", "events", "projections") for file in (ROOT / room).rglob("*.py")
    ]
    assert {file.relative_to(ROOT).as_posix() for file in files if any(opened(file))} == {*PORTS, *FOR_TESTS}
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").partition("## Ports that we open")[2]
    for name in PORTS.values():
        assert f"| {name}" in page, name
