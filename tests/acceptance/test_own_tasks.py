"""A user's own tasks over HTTP."""

from support.command import Desk
from support.project import Endpoint, Project


def test_x(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    import time
    t = time.monotonic()
    done = desk.run("run", "config.yaml", "--run", "one")
    print(time.monotonic() - t)
    print(done.code, done.out, done.err, len(endpoint.server.requests))
    assert 0
