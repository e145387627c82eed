"""
A pytest plugin: tests that train or evaluate offline, against the recorded answers of a cassette.

    pytest --skillopt-cassette tests/demo.cassette

A test asks for the fixture `skillopt_cassette`, or is marked with `@pytest.mark.skillopt_cassette("demo.cassette")`,
whose path begins at the test's own folder. Whatever opens a model in this process is then answered from the cassette.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # the plugin is loaded for every session, so it costs no import until it is used
    from skillopt_es.cassettes.playing import Playing

_MARKER = "skillopt_cassette"
_OPTION = "--skillopt-cassette"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option for a whole session."""
    group = parser.getgroup("skillopt-es")
    group.addoption(_OPTION, metavar="FILE", help="Answer model calls from this cassette (`skillopt-es freeze`).")


def pytest_configure(config: pytest.Config) -> None:
    """The marker for one test."""
    config.addinivalue_line("markers", f"{_MARKER}(path): model calls are answered from this cassette")


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

    playing = Playing.of(_path(request), tmp_path_factory.mktemp("skillopt"))
    monkeypatch.setattr("skillopt_es.sessions.wiring.open_model", playing.open_model)
    yield playing
    if playing.misses:
        pytest.fail("\n".join(playing.misses), pytrace=False)


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
