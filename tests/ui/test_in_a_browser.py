"""The page in a real Chromium: runs started, watched, compared, steered, forked; widths, keyboard, axe."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.asking import serving
from support.ready import PATIENCE

from skillopt_es.ui import app
from skillopt_es.ui.stream import message

sync = pytest.importorskip("playwright.sync_api", reason="needs playwright (the extra `dev`)")
pytest.importorskip("uvicorn", reason="the page needs the extra `ui`")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]

WIDTHS = (360, 800, 1280)
LONG = 1000 * PATIENCE  # Playwright's own 30 seconds, and 5 for what is expected, are short on a busy machine
sync.expect.set_options(timeout=LONG)
CONFIG = """
model: {backend: simulated, optimizer: o, target_backend: "python:agent.py:answer"}
train: {num_epochs: 2, batch_size: 4}
gradient: {minibatch_size: 2, merge_batch_size: 2}
optimizer: {learning_rate: 2, min_learning_rate: 1}
env: {name: tasks, grader: exact, data_path: tasks.jsonl, split_mode: field, skill_init: SKILL.md, workers: 2}
"""
AGENT = """
import asyncio

async def answer(task):
    await asyncio.sleep(0.1)
    return "none"
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, demo_run: Path) -> Path:
    """A folder with a config whose agent takes its time, and a run that is complete."""
    folder = tmp_path_factory.mktemp("project")
    demo = Path(__file__).parent.parent.parent / "configs" / "demo"
    for name in ("tasks.jsonl", "SKILL.md"):
        shutil.copy(demo / name, folder)
    (folder / "slow.yaml").write_text(CONFIG)
    (folder / "agent.py").write_text(AGENT)
    shutil.copytree(demo_run, folder / "runs" / "demo")
    return folder


@pytest.fixture(scope="module")
def address(project: Path) -> Iterator[str]:
    """The address that the installed command prints, with its token."""
    words = [sys.executable, "-m", "skillopt_es", "ui", "--port", "0"]
    with subprocess.Popen(words, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as page:
        assert page.stdout is not None
        try:
            yield page.stdout.readline().decode().strip()
            page.send_signal(signal.SIGINT)
            assert page.wait(PATIENCE) in (0, 130)
        finally:
            page.kill()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser."""
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


def context_of(chromium: Any, **options: Any) -> Any:
    """A profile of its own in the browser, which waits for long."""
    context = chromium.new_context(**options)
    context.set_default_timeout(LONG)
    return context


@pytest.fixture
def tab(chromium: Any, address: str) -> Iterator[Any]:
    """A signed-in tab in which nothing may go wrong."""
    with_tab = context_of(chromium, viewport={"width": 1280, "height": 900})
    page = with_tab.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.goto(address)
    yield page
    with_tab.close()
    assert not wrong


def home(address: str) -> str:
    """The address without its token."""
    return address.partition("/?")[0]


def started(tab: Any, address: str, config: str, name: str, **settings: str) -> None:
    """Starts a run from the form."""
    tab.goto(f"{home(address)}/start")
    tab.select_option("select[name=config]", config)
    with tab.expect_navigation():  # what is filled in before it is lost
        tab.click("text=Choose")
    tab.fill("input[name=name]", name)
    for key, value in settings.items():
        tab.fill(f'input[name="{key}"]', value)
    tab.click("button.main")
    tab.wait_for_url(f"**/run/{name}")


def test_a_run_is_started_from_the_form_watched_to_its_end_and_compared(tab: Any, address: str) -> None:
    """The estimate comes first; the page is told of every event, and shows the end by itself."""
    tab.goto(f"{home(address)}/start")
    tab.fill('input[name="train.num_epochs"]', "zero")
    tab.wait_for_selector("#checked .problem")
    sync.expect(tab.locator("#checked .problem")).to_be_in_viewport()
    assert tab.get_attribute('input[name="train.num_epochs"]', "aria-invalid") == "true"
    tab.fill('input[name="train.num_epochs"]', "1")
    tab.wait_for_selector("#checked table")
    started(tab, address, "demo: demo", "by-form", **{"train.num_epochs": "1"})
    tab.wait_for_selector("#head .badge:text('completed')")
    last = tab.locator("#happened li b").first
    sync.expect(last).to_have_text("RunCompleted")
    tab.goto(home(address))
    tab.check("input[value=by-form]")
    tab.check("input[value=demo]")
    tab.click("text=Compare the marked runs")
    sync.expect(tab.locator("#settings")).to_contain_text("train.num_epochs")
    tab.select_option("select[name=over]", "tokens")
    sync.expect(tab.locator("#curves svg title").first).to_contain_text("over tokens")


def test_a_choice_that_is_made_before_the_script_is_there_counts(tab: Any, address: str) -> None:
    """On a slow line somebody may be quicker than the page."""
    held: list[Any] = []
    tab.route("**/static/ui.js*", lambda route: held.append(route))  # noqa: PLW0108 -- Playwright marks it
    with tab.expect_request("**/static/ui.js*"):
        tab.goto(f"{home(address)}/compare?run=demo", wait_until="commit")
    tab.select_option("select[name=over]", "tokens")
    held.pop().continue_()
    sync.expect(tab.locator("#curves svg title").first).to_contain_text("over tokens")


def pressed(tab: Any, selector: str) -> None:
    """Clicks in one step: between press and release of a mouse, a page that is kept fresh may exchange the element."""
    tab.locator(selector).dispatch_event("click")


def ordered(tab: Any, words: str, why: str, text: str = "") -> None:
    """Gives an order by its form."""
    pressed(tab, f"#steering summary:text-is('{words}')")
    form = tab.locator(f"#steering details:has(> summary:text-is('{words}'))")
    if text:
        form.locator("input[name=text]").fill(text)
    form.locator("input[name=why]").fill(why)
    form.locator("button").dispatch_event("click")
    tab.wait_for_selector("#steering .done")


def test_a_run_is_steered_forked_and_watched_by_two_browsers(
    tab: Any, chromium: Any, address: str, project: Path
) -> None:
    """Both see the same; a reload in the middle goes on exactly there; each order is in the log."""
    # So many epochs that it is still at work when it is ordered to end.
    started(tab, address, "file: slow.yaml", "steered", **{"train.num_epochs": "200"})
    other = context_of(chromium).new_page()
    other.goto(address)
    other.goto(f"{home(address)}/run/steered")
    sync.expect(tab.locator("[data-now=stage]")).to_be_visible()
    pressed(other, "#steering summary:text-is('Pin a line')")
    written = other.locator("#steering details[open] input[name=text]")
    written.fill("half a thought")
    written.blur()
    ordered(tab, "Tell those who propose edits", "seen it", "write dates as ISO")
    sync.expect(other.locator("#happened")).to_contain_text("RunSteered")
    sync.expect(other.locator("#steered")).to_contain_text("write dates as ISO")
    sync.expect(written).to_have_value("half a thought")
    tab.reload()
    seen = tab.evaluate("() => [...document.querySelectorAll('#happened li')].map((row) => Number(row.dataset.seq))")
    newest = "Number(document.querySelector('#happened li')?.dataset.seq)"
    tab.wait_for_function(f"seen => {newest} > seen", arg=seen[0])
    later = tab.evaluate("() => [...document.querySelectorAll('#happened li')].map((row) => Number(row.dataset.seq))")
    assert later == sorted(later, reverse=True)
    assert len(set(later)) == len(later)
    assert later[0] - len(later) + 1 == later[-1]
    assert later[0] >= seen[0]
    ordered(tab, "Pause", "lunch")
    for page in (tab, other):
        sync.expect(page.locator("#head")).to_contain_text("asked for it: lunch")
    pressed(tab, "#steering summary:text-is('Fork')")
    tab.fill("#steering input[name=name]", "other-way")
    pressed(tab, "#steering button:text-is('Fork')")
    tab.wait_for_url("**/run/other-way")
    sync.expect(tab.locator("#head")).to_contain_text("A fork of steered")
    tab.goto(f"{home(address)}/run/steered")
    pressed(tab, "#steering button:text-is('Resume')")
    sync.expect(tab.locator("#head .badge")).to_have_text("running")
    ordered(tab, "End the training", "enough")
    sync.expect(tab.locator("#head .badge")).to_have_text("completed")
    replay = [sys.executable, "-m", "skillopt_es", "replay", "steered", "--check"]
    assert b"check      ok" in subprocess.run(replay, cwd=project, capture_output=True, check=True).stdout
    other.context.close()


PAGES = (
    "/", "/compare?run=demo", "/start", "/run/demo", "/run/demo/step/2", "/run/demo/epoch/1", "/run/demo/scores",
    "/run/demo/items", "/run/demo/item?item=name-06", "/run/demo/skill?from=x&to=y",
    "/run/demo/refused?gate_metric=soft", "/run/demo/cost", "/run/demo/config", "/run/demo/events", "/run/demo/event/1",
)  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_every_page_fits_each_width_and_loads_nothing_from_elsewhere(tab: Any, address: str, path: str) -> None:
    """What is wide scrolls by itself."""
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(f"{home(address)}{path}")
        assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), width
    assert all(url.startswith(home(address)) for url in asked)


def axe() -> Path | None:
    """The script of axe-core, where somebody has put it."""
    given = os.environ.get("AXE_CORE")
    return Path(given) if given and Path(given).is_file() else None


@pytest.mark.skipif(axe() is None, reason="AXE_CORE names no axe.min.js (npm pack axe-core)")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_axe_finds_nothing(chromium: Any, address: str, scheme: str, width: int) -> None:
    """On every page, with everything unfolded."""
    script = axe()
    assert script is not None
    context = context_of(chromium, color_scheme=scheme, bypass_csp=True, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(address)
    found = []
    for path in PAGES:
        page.goto(f"{home(address)}{path}")
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        page.add_script_tag(path=str(script))
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        found += [f"{path}: {each['id']}, {each['nodes'][0]['html'][:150]}" for each in result["violations"]]
    context.close()
    assert not found, "\n".join(found)


def test_everything_is_reached_by_keyboard(tab: Any, address: str) -> None:
    """The first stop skips to the content, and what has the focus is seen."""
    tab.goto(f"{home(address)}/run/demo")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
    stops = set()
    for _ in range(40):
        tab.keyboard.press("Tab")
        stop, outline = tab.evaluate(
            "[document.activeElement.outerHTML.slice(0, 60), getComputedStyle(document.activeElement).outlineStyle]"
        )
        if stop.startswith("<body"):  # past the last one
            break
        stops.add(stop)
        assert outline != "none", stop
    assert len(stops) > 15


def test_a_mistake_stays_in_the_form_when_it_is_started(chromium: Any, address: str, project: Path) -> None:
    """Before its check has come, too; the error leads to its field, and what was filled in stays."""
    tab = context_of(chromium).new_page()
    tab.goto(address)
    tab.goto(f"{home(address)}/start")
    tab.fill('input[name="train.seed"]', "4711")
    tab.fill('input[name="train.num_epochs"]', "zero")
    tab.fill("input[name=name]", "never")
    with tab.expect_navigation():
        tab.click("button.main")
    sync.expect(tab.locator("main > .problem")).to_contain_text("must be a whole number")
    sync.expect(tab.locator('input[name="train.seed"]')).to_have_value("4711")
    tab.click("main > .problem a")
    sync.expect(tab.locator('input[name="train.num_epochs"]')).to_be_in_viewport()
    tab.context.close()
    assert not (project / "runs" / "never").exists()


def test_a_link_of_another_site_opens_with_one_click(chromium: Any, address: str, tmp_path: Path) -> None:
    """A browser keeps a strict cookie back at first: the page asks once more. One without it is not asked for again."""
    (tmp_path / "index.html").write_text(
        f'<a id="in" href="{address}">in</a> <a id="run" href="{home(address)}/run/demo">run</a>'
    )
    served = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), served) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        site = f"http://localhost:{other.server_port}/"
        context = context_of(chromium)

        def followed(link: str) -> Any:
            """A tab that has come from the other site."""
            page = context.new_page()
            page.goto(site)
            page.click(link)
            return page.locator("h1")

        sync.expect(followed("#run")).to_have_text("You are not signed in")
        sync.expect(followed("#in")).to_have_text("Runs")
        assert "token" not in context.pages[-1].url
        sync.expect(followed("#run")).to_contain_text("demo")
        context.close()
        other.shutdown()


def test_a_page_that_cannot_be_kept_fresh_says_why(
    chromium: Any, demo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is removed, an error of the stream, and a session that is over."""

    async def failing(*_: object) -> AsyncIterator[str]:
        yield message("state", {"written": False})
        raise RuntimeError("no such disk")

    shutil.copytree(demo_run, tmp_path / "demo")
    shutil.copytree(demo_run, tmp_path / "removed")
    with serving(tmp_path) as rules:
        context = context_of(chromium)
        page = context.new_page()
        page.goto(rules.address)
        page.goto(f"{home(rules.address)}/run/removed")
        sync.expect(page.locator("#live")).to_have_text("at rest")
        shutil.rmtree(tmp_path / "removed")
        sync.expect(page.locator("#live")).to_have_text("this page is gone")
        monkeypatch.setattr(app, "run_stream", failing)
        page.goto(f"{home(rules.address)}/run/demo")
        sync.expect(page.locator("#live")).to_contain_text("RuntimeError: no such disk")
        context.clear_cookies()
        sync.expect(page.locator("#live")).to_contain_text("signed out")
        context.close()


def test_without_a_script_every_page_reads(chromium: Any, address: str) -> None:
    """As it was when it was loaded."""
    context = context_of(chromium, java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    for path in PAGES:
        page.goto(f"{home(address)}{path}")
        assert page.locator("main h1").inner_text()
    context.close()
