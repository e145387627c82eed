"""A sweep's file: what it plans, and what is wrong with it in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.project import Project, plain_config

from skillopt_es.errors import ConfigError
from skillopt_es.sweeps.plan import RayJobs, SweepPlan, read_plan


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A small project with simulated models."""
    return Project(tmp_path, plain_config("")).set(model={"backend": "simulated", "api_key_env": ""})


def planned(project: Project, text: str) -> SweepPlan:
    """The plan of a file beside the project's config."""
    file = project.folder / "sweep.yaml"
    file.write_text(text)
    return read_plan(file)


def test_axes_make_every_combination_seed_by_seed(project: Project) -> None:
    """So the first seeds of all settings are there before anybody's second, and can be paired."""
    plan = planned(
        project,
        "config: config.yaml\naxes: {optimizer.learning_rate: [1, 2], evaluation.gate_rule: [strict]}\nseeds: [5, 9]\n",
    )
    assert [run.name for run in plan.runs] == [
        "learning_rate-1.gate_rule-strict-seed-5",
        "learning_rate-2.gate_rule-strict-seed-5",
        "learning_rate-1.gate_rule-strict-seed-9",
        "learning_rate-2.gate_rule-strict-seed-9",
    ]
    assert plan.settings == ("learning_rate=1, gate_rule=strict", "learning_rate=2, gate_rule=strict")
    assert plan.runs[0].overrides == ("optimizer.learning_rate=1", 'evaluation.gate_rule="strict"', "train.seed=5")


def test_settings_may_be_a_list_with_configs_of_their_own(project: Project) -> None:
    """Without seeds each run has the one of its config."""
    (project.folder / "other.yaml").write_text((project.folder / "config.yaml").read_text().replace("47", "48"))
    plan = planned(
        project,
        "config: config.yaml\nsettings:\n- {name: usual}\n- {name: other, config: other.yaml}\n"
        "- {set: {optimizer.learning_rate: 1}}\n",
    )
    assert [(run.setting, run.seed) for run in plan.runs] == [("usual", 47), ("other", 48), ("learning_rate=1", 47)]


def test_a_number_of_seeds_counts_from_1(project: Project) -> None:
    """Nobody has to think of seeds."""
    assert planned(project, "config: config.yaml\nseeds: 3\n").seeds == (1, 2, 3)


def test_prices_and_budgets_are_no_part_of_what_is_planned(project: Project) -> None:
    """A budget may be raised while a sweep goes on."""
    [before] = planned(project, "config: config.yaml\n").runs
    [after] = planned(project, "config: config.yaml\nsettings: [{name: config, set: {budget.max_calls: 9}}]\n").runs
    [other] = planned(project, "config: config.yaml\nsettings: [{set: {train.batch_size: 5}}]\n").runs
    assert before.digest == after.digest != other.digest


def test_any_stands_for_every_endpoint_that_is_not_named(project: Project) -> None:
    """Each has its own of these limits."""
    plan = planned(project, "config: config.yaml\nlimits: {any: {requests_per_minute: 60}}\n")
    assert plan.limits["simulated"].requests_per_minute == 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "it names no config"),
        ("config: nowhere.yaml", "in the setting nowhere: {folder}/nowhere.yaml: no such config file"),
        ("config: config.yaml\nseed: 3", "unknown key seed"),
        ("config: config.yaml\naxes: {a.b: [1]}\nsettings: [{}]", "it has both axes and settings"),
        ("config: config.yaml\naxes: {train.seeed: [1]}", "unknown key train.seeed"),
        ("config: config.yaml\naxes: {optimizer.learning_rate: 1}", "axes.optimizer.learning_rate must be a list"),
        ("config: config.yaml\naxes: {optimizer.learning_rate: [none]}", "optimizer.learning_rate is 'none'"),
        ("config: config.yaml\naxes: {learning_rate: [1]}", "write it as section.key=value"),
        ("config: config.yaml\nseeds: [1, 1]", "seeds has one of them twice"),
        ("config: config.yaml\nseeds: -1", "seeds must be a list of seeds, or how many of them"),
        ("config: config.yaml\nseeds: [one]", "seeds must be a list of whole numbers"),
        ("config: config.yaml\nat_once: 0", "at_once must be a whole number, at least 1"),
        ("config: config.yaml\nfinish_early: maybe", "finish_early must be true or false"),
        ("config: config.yaml\nscore: train", "score must be test or validation"),
        ("config: config.yaml\nsettings: [{name: a}, {name: a}]", "two settings have the same name"),
        ("config: config.yaml\nsettings: [{sets: {}}]", "settings, entry 1, has the unknown key sets"),
        ("config: config.yaml\nsettings: [1]", "settings, entry 1, must be a mapping"),
        ("config: config.yaml\nsettings: [{set: {evaluation.eval_test: false}}]", "no skill is tested"),
        ("config: config.yaml\nlimits: {openai: {max_calls: 1}}", "limits names openai, which none of the runs uses"),
        ("config: config.yaml\nlimits: {simulated: {calls: 1}}", "unknown key limits.simulated.calls"),
        ("config: config.yaml\nlimits: {simulated: {max_calls: 0.5}}", "limits.simulated.max_calls must be a whole"),
        ("config: config.yaml\nlimits: {simulated: {max_cost: 1}}", "needs the price of every model"),
        (
            "config: config.yaml\nsettings: [{set: {model.target_backend: codex}}]\nlimits: {codex: {max_tokens: 9}}",
            "which cannot be kept: the target is a coding agent (codex)",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(project: Project, text: str, said: str) -> None:
    """With the file and the key, before anything begins."""
    with pytest.raises(ConfigError) as raised:
        planned(project, text)
    assert said.replace("{folder}", str(project.folder)) in str(raised.value)
    assert "sweep.yaml" in str(raised.value)


def test_runs_may_be_jobs_of_a_cluster(project: Project) -> None:
    """With what each of them takes; by default a processor, and the Python that reads the plan."""
    plan = planned(project, "config: config.yaml\nray: {address: 'http://10.0.0.1:8265/', resources: {big: 0.5}}\n")
    assert plan.ray == RayJobs(address="http://10.0.0.1:8265", cpus=1.0, resources={"big": 0.5}, python=sys.executable)
    assert planned(project, "config: config.yaml\n").ray is None


@pytest.mark.parametrize(
    ("ray", "said"),
    [
        ("{}", "ray.address must be the address of the cluster's dashboard"),
        ("{address: auto}", "ray.address must be"),
        ("{address: 'http://h', cpu: 1}", "unknown key ray.cpu"),
        ("{address: 'http://h', cpus: many}", "ray.cpus must be a number"),
        ("{address: 'http://h', resources: {big: -1}}", "ray.resources.big must be a number"),
        ("{address: 'http://h', python: 3}", "ray.python must be"),
        ("[]", "ray must be a mapping"),
    ],
)
def test_what_is_wrong_with_a_cluster_is_told(project: Project, ray: str, said: str) -> None:
    """With its key."""
    with pytest.raises(ConfigError, match=said):
        planned(project, f"config: config.yaml\nray: {ray}\n")
