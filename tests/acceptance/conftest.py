"""A desk, an endpoint and a project on it, for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.desk import Desk
from support.project import KEY, KEY_NAME, Endpoint, Project, plain_config


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty folder and the key in the environment."""
    return Desk(tmp_path, {KEY_NAME: KEY})


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Both models behind one address on loopback."""
    endpoint = Endpoint()
    with endpoint.server:
        yield endpoint


def _train(folder: Path) -> None:
    folder.mkdir()
    Project(folder, plain_config("http://unused")).set(model={"backend": "simulated"})
    assert Desk(folder).run("run", "config.yaml", "--run", "one").code == 0


@pytest.fixture(scope="session")
def undisturbed(once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """The run folder of the small project, trained by the models themselves without a break."""
    return Project(once("undisturbed", _train), plain_config("http://unused")).run_folder()


@pytest.fixture
def project(tmp_path: Path, endpoint: Endpoint) -> Project:
    """A small project whose models are at the endpoint."""
    return Project(tmp_path, plain_config(endpoint.base_url)).write()
