"""
A pytest plugin: tests that train or evaluate offline, against the recorded answers of a cassette.

    pytest --skillopt-cassette tests/demo.cassette

A test asks for the fixture `skillopt_cassette`, or is marked with `@pytest.mark.skillopt_cassette("demo.cassette")`,
whose path begins at the test's own folder. Whatever opens a model in this process is then answered from the cassette.
With `--skillopt-record`, the config's models are asked for what is not in it, and their answers are added.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # the plugin is loaded for every session, so it costs no import until it is used
    from skillopt_es.cassettes.playing import Playing

_MARKER = "skillopt_cassette"
_OPTION = "--skillopt-cassette"
_RECORD = "--skillopt-record"
_ADDED = pytest.StashKey[dict[str, list[str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option for a whole session."""
    group = parser.getgroup("skillopt-es")
    group.addoption(_OPTION, metavar="FILE", help="Answer model calls from this cassette (`skillopt-es freeze`).")
    group.addoption(
        _RECORD, action="store_true", help="Ask the models for what a cassette has no answer to, and add the answers."
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker for one test."""
    config.addinivalue_line("markers", f"{_MARKER}(path): model calls are answered from this cassette")
    config.stash[_ADDED] = {}
    if config.getoption(_RECORD) and hasattr(config, "workerinput"):
        raise pytest.UsageError(f"{_RECORD} writes into a file, so it works in one process only: leave out -n")


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """A marked test needs no argument for its fixture."""
    for item in items:
        names: list[str] = getattr(item, "fixturenames", [])
        if item.get_closest_marker(_MARKER) is not None and _MARKER not in names:
            names.insert(0, _MARKER)


@pytest.fixture
def skillopt_cassette(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Playing]:
    """The cassette of this test, playing: see `skillopt_es.cassettes.playing.Playing`."""
    from skillopt_es.cassettes.playing import Playing  # noqa: PLC0415 - see above

    path, records = _path(request), bool(request.config.getoption(_RECORD))
    playing = Playing.of(path, tmp_path_factory.mktemp("skillopt"), records=records)
    monkeypatch.setattr("skillopt_es.sessions.wiring.open_model", playing.open_model)
    yield playing
    request.config.stash[_ADDED].setdefault(path.name, []).extend(playing.save())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """What a cassette had no answer to is why a test fails, also where an environment caught the error."""
    playing = _playing(item)
    try:
        yield
    except Exception:
        if playing is None or not playing.misses:
            raise
    if playing is not None and playing.misses:
        from skillopt_es.cassettes.playing import WHAT_TO_DO  # noqa: PLC0415 - see above

        first, *others = dict.fromkeys(playing.misses)
        more = f" ({len(others)} more like this)" if others else ""
        pytest.fail(f"{first}{more}; {WHAT_TO_DO}", pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Which calls are new in which cassette."""
    for name, places in config.stash[_ADDED].items():
        if places:
            count = f"{len(places)} call{'s' if len(places) > 1 else ''}"
            terminalreporter.write_line(f"{name}: {count} recorded: {', '.join(places[:_SHOWN])}{_rest(places)}")


_SHOWN = 10  # a suite whose cassettes are recorded again has hundreds


def _rest(places: Sequence[str]) -> str:
    return f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""


def _playing(item: pytest.Item) -> Playing | None:
    """The cassette of a test, where it has one."""
    found: Playing | None = getattr(item, "funcargs", {}).get(_MARKER)
    return found


def _path(request: pytest.FixtureRequest) -> Path:
    marker = request.node.get_closest_marker(_MARKER)
    if marker is not None and marker.args:
        return Path(request.path.parent / marker.args[0])
    given = request.config.getoption(_OPTION)
    if given is None:
        raise pytest.UsageError(
            f"{request.node.nodeid} needs a cassette: pass {_OPTION} FILE, or mark it with "
            f'@pytest.mark.{_MARKER}("FILE")'
        )
    return Path(request.config.invocation_params.dir / given)
