"""The page in a real browser, where one is installed: it fits a phone, and its links open what they lead to."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

_FRAMES = (("phone", 360, "report.html"), ("wide", 1280, "report.html"), ("link", 800, "report.html#step-4"))
_WATCHER = """<!doctype html><body>
%s
<script>
const found = {};
onload = () => {
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, style = frame.contentWindow.getComputedStyle(page.body);
    found[frame.id] = {
      fits: page.documentElement.scrollWidth <= page.documentElement.clientWidth,
      styled: style.maxWidth,
      scripts: page.scripts.length,
      open: [...page.querySelectorAll("#steps details")].filter(each => each.open).length,
      narrow: frame.contentWindow.getComputedStyle(page.querySelector("svg.narrow")).display,
      loaded: frame.contentWindow.performance.getEntriesByType("resource").length,
    };
  }
  document.body.textContent = "found:" + JSON.stringify(found) + ":end";
};
</script>"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def address(tmp_path: Path, demo_run: Path, page_of: Callable[[Path], str]) -> Iterator[str]:
    """Where the demo's page is served, to this machine alone."""
    (tmp_path / "report.html").write_text(page_of(demo_run), encoding="utf-8")
    frames = [f'<iframe id="{name}" width="{width}" height="800" src="{to}"></iframe>' for name, width, to in _FRAMES]
    (tmp_path / "watch.html").write_text(_WATCHER % "\n".join(frames), encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/watch.html"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_page_fits_runs_nothing_and_opens_what_a_link_leads_to(address: str, tmp_path: Path) -> None:
    """No width of 360 pixels scrolls sideways; its style applies under its own policy; nothing else is loaded."""
    assert BROWSER is not None
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
         address],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    said = re.search(r"found:(.*):end", done.stdout)
    assert said is not None
    found = json.loads(said[1])
    assert all(row["fits"] for row in found.values())
    assert {row["styled"] for row in found.values()} == {"1056px"}
    assert {(row["scripts"], row["loaded"]) for row in found.values()} == {(0, 0)}
    assert (found["phone"]["narrow"], found["wide"]["narrow"]) == ("block", "none")
    assert (found["wide"]["open"], found["link"]["open"]) == (0, 1)
