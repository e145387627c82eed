"""A project of one's own, trained over HTTP."""

from __future__ import annotations

import pytest
from support.desk import Desk
from support.logs import events_of
from support.project import KEY, KEY_NAME, Endpoint, Project, told

from skillopt_es.events.catalog import RunCompleted
from skillopt_es.events.verify import verify


def test_a_project_trains_end_to_end(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """With the key of the environment at every request, to a whole log and a better skill."""
    done = desk.run("run", "config.yaml", "--run", "one", "--json")
    assert done.code == 0
    run = project.run_folder()
    assert isinstance(events_of(run)[-1], RunCompleted)
    assert verify(run).ok
    assert done.json["best"]["value"] > done.json["baseline"]["hard"]
    assert {r.headers["authorization"] for r in endpoint.server.requests} == {f"Bearer {KEY}"}
    assert set(endpoint.asked.values()) == {1}
    assert endpoint.server.most_in_flight <= 8


def test_http_leads_to_the_decisions_of_the_models_behind_it(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """The same models asked directly give the same events in the same order."""
    assert desk.run("run", "config.yaml", "--run", "one").code == 0
    served = len(endpoint.server.requests)
    direct = desk.run("run", "config.yaml", "--run", "direct", "--set", "model.backend=simulated")
    assert direct.code == 0
    assert len(endpoint.server.requests) == served
    assert told(project.run_folder("direct")) == told(project.run_folder())


@pytest.mark.slow
def test_how_many_work_at_once_decides_nothing(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """One worker and sixteen, quick and slow answers: the same log."""
    assert desk.run("run", "config.yaml", "--run", "one", "--set", "env.workers=1").code == 0
    endpoint.delay = 0.005
    assert desk.run("run", "config.yaml", "--run", "many", "--set", "env.workers=16").code == 0
    assert told(project.run_folder("many")) == told(project.run_folder())


def test_a_config_may_lie_elsewhere(desk: Desk, project: Project) -> None:
    """Its paths start at its own folder, the runs at the user's; an unnamed run is named after the project."""
    other = project.folder / "my-project"
    Project(other, project.config).write()
    (project.folder / "tasks.jsonl").unlink()
    assert desk.run("run", "my-project/config.yaml", "--quiet", "--set", "train.num_epochs=1").code == 0
    [run] = (project.folder / "runs").iterdir()
    assert run.name.startswith("my-project-")


def test_a_key_in_one_role_only(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """A role's own variable is used for that role alone."""
    project.set(model={"optimizer_api_key_env": "OTHER_KEY"})
    assert desk.with_environ(OTHER_KEY="another-key-12345").run("run", "config.yaml", "--run", "one").code == 0
    keys = {(r.body["model"], r.headers["authorization"]) for r in endpoint.server.requests}
    assert keys == {("small", f"Bearer {KEY}"), ("big", "Bearer another-key-12345")}
    assert KEY_NAME in desk.environ
