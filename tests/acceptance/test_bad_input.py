"""Whatever a user gets wrong before a run begins: one clear sentence, exit code 2, and no run folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk, Done
from support.logs import events_of
from support.params import parametrized
from support.project import KEY, KEY_NAME, Endpoint, Project, files_of

from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.verify import verify
from skillopt_es.sessions.session import read_state

Mistake = Callable[[Project], object]
HEX_KEY = "0f9e8d7c6b5a493827160f9e8d7c6b5a"


def config(**sections: dict[str, Any]) -> Mistake:
    """Other values in config.yaml."""
    return lambda project: project.set(**sections)


def first_line(line: str) -> Mistake:
    """A line before all others of config.yaml."""

    def change(project: Project) -> None:
        path = project.folder / "config.yaml"
        path.write_text(f"{line}\n{path.read_text()}")

    return change


def file(name: str, content: str | bytes) -> Mistake:
    """Another content of a file."""
    raw = content if isinstance(content, bytes) else content.encode()
    return lambda project: (project.folder / name).write_bytes(raw)


def missing(name: str) -> Mistake:
    """A file less."""
    return lambda project: (project.folder / name).unlink()


def row(number: int, **changes: Any) -> Mistake:
    """Other values of one task; None takes the key away."""

    def change(project: Project) -> None:
        changed = {**project.rows[number], **changes}
        project.rows[number] = {key: value for key, value in changed.items() if value is not None}
        project.write()

    return change


def without(split: str) -> Mistake:
    """No task of this split."""

    def change(project: Project) -> None:
        project.rows[:] = [task for task in project.rows if task["split"] != split]
        project.write()

    return change


def mapping(text: str) -> Mistake:
    """A line of YAML laid over the config."""
    return file("over.yaml", f"_base_: config.yaml\n{text}\n")


CONFIGS: dict[str, tuple[Mistake, str, str]] = {
    "unknown-key": (config(train={"num_epoch": 3}), "unknown key train.num_epoch", "did you mean train.num_epochs?"),
    "unknown-section": (config(trian={"seed": 1}), "unknown section trian", "did you mean train?"),
    "mistyped": (config(train={"num_epochs": "three"}), "train.num_epochs is 'three', but must be a whole number", ""),
    "boolean-text": (config(evaluation={"use_gate": "yes"}), "evaluation.use_gate is 'yes'", ""),
    "number-for-text": (config(env={"split_ratio": 7267}), "env.split_ratio is 7267, but must be text", "in quotes"),
    "out-of-range": (config(train={"batch_size": 0}), "must be a whole number of at least 1", ""),
    "no-model": (
        config(model={"target": ""}),
        "config.yaml: model.target is '', but must be the name of a model",
        "--set model.target=NAME",
    ),
    "no-endpoint": (config(model={"base_url": ""}), "must be like http://host:8000/v1, not ''", ""),
    "url-with-password": (config(model={"base_url": f"http://u:{KEY}@h/v1"}), "holds credentials", "model.api_key_env"),
    "headers-no-text": (config(model={"extra_headers": {"X-Team": 5}}), "must be a mapping of texts", ""),
    "invalid-yaml": (file("config.yaml", "model: {a: [\n"), "config.yaml, line 2: not valid YAML", ""),
    "key-twice": (
        file("config.yaml", "train:\n  seed: 1\n  batch_size: 2\n  seed: 3\n"),
        "config.yaml, line 4: seed was given already, in line 2",
        "keep one of them",
    ),
    "section-twice": (
        file("config.yaml", "train: {seed: 1}\nenv: {}\ntrain: {seed: 2}\n"),
        "config.yaml, line 3: train was given already, in line 1",
        "keep one of them",
    ),
    "within-itself": (file("config.yaml", "a: &a [*a]\n"), "config.yaml: nested too deeply, or within itself", ""),
    "too-deep": (file("config.yaml", "a: " + "[" * 3000), "config.yaml: nested too deeply", ""),
    "yaml-list": (file("config.yaml", "- 1\n"), "a config is a mapping of sections", ""),
    "not-utf-8": (file("config.yaml", b"model: {target: \xe9}\n"), "config.yaml: not UTF-8 text (byte 16)", ""),
    "base-cycle": (file("config.yaml", "_base_: config.yaml\n"), "_base_ leads back to this file", "remove one"),
    "base-missing": (file("config.yaml", "_base_: none.yaml\n"), "none.yaml: no such config file", ""),
    "unknown-backend": (config(model={"backend": "opneai"}), "model.backend is 'opneai'", "did you mean openai?"),
    "unknown-environment": (config(env={"name": "task"}), "env.name is 'task'", "did you mean tasks?"),
    "unknown-option": (
        config(env={"gradr": "exact"}),
        "config.yaml: env.gradr: environment 'tasks' has no such",
        "env.grader?",
    ),
    "unknown-grader": (config(env={"grader": "exakt"}), "env.grader: must be one of exact", ""),
    "wrong-word": (config(evaluation={"gate_metric": "best"}), "is 'best', but must be one of hard, soft, mixed", ""),
    "not-built": (
        config(model={"codex_exec_profile": "mine"}),
        "config.yaml: model.codex_exec_profile is 'mine', but a profile of Codex cannot be chosen here",
        "say what it has to know in the skill",
    ),
    "benchmark-never-shipped": (
        config(env={"name": "sealqa"}),
        "the original names the benchmark sealqa, but was never shipped with it",
        "env.name: tasks",
    ),
    "no-preset": (first_line("_base_: paper-ish"), "_base_ is 'paper-ish', but there is no such preset", "paper, safe"),
    "empty-learning-rate": (config(optimizer={"min_learning_rate": 9}), "optimizer.min_learning_rate is 9", ""),
}
LAID_OVER: dict[str, tuple[Mistake, str, str]] = {
    "a-date": (mapping("model: {extra_body: {d: 2024-01-01}}"), "model.extra_body.d is datetime.date", "in quotes"),
    "not-a-number": (mapping("model: {extra_body: {d: .nan}}"), "model.extra_body.d is nan", ""),
    "a-number-as-key": (mapping("env: {1: 2}"), "env has the key 1, but keys must be text", "put it in quotes"),
    "a-lone-surrogate": (mapping('model: {target: "\\ud800"}'), "model.target is '\\ud800'", ""),
    "a-python-object": (mapping("model: !!python/object/apply:os.system [ls]"), "not valid YAML", ""),
}
DATA: dict[str, tuple[Mistake, str, str]] = {
    "missing": (missing("tasks.jsonl"), "there is no file", "check the path"),
    "empty": (file("tasks.jsonl", ""), "tasks.jsonl is empty", "one item on each line"),
    "not-json": (file("tasks.jsonl", '{"id": 1}\n{nope\n'), "tasks.jsonl:2: not JSON", "one JSON object on each line"),
    "not-utf-8": (file("tasks.jsonl", '{"id": "é"}'.encode("latin-1")), "tasks.jsonl:1: not UTF-8", "save the file"),
    "duplicate-id": (row(3, id="date-01"), "tasks.jsonl:4: id 'date-01' is already used on line 1", "of its own"),
    "no-id": (row(1, id=None), "tasks.jsonl:2: this item has no `id`", "add a unique one"),
    "empty-id": (row(1, id=""), "tasks.jsonl:2: the id of this item is empty", "unique"),
    "no-input": (row(1, input=None), "item 'date-05': `input` is missing", 'add "input"'),
    "nothing-expected": (row(1, expected=None), "item 'date-05': `expected` is missing", "the exact grader needs it"),
    "unknown-split": (row(1, split="trian"), "unknown split 'trian'", "did you mean 'train'?"),
    "no-training": (without("train"), "the train split is empty (train 0, val 8, test 4)", '"split": "train"'),
    "no-validation": (without("val"), "the val split is empty (train 12, val 0, test 4)", '"split": "val"'),
}
SKILLS: dict[str, tuple[Mistake, str, str]] = {
    "missing": (missing("SKILL.md"), "SKILL.md: no such skill file", "fix env.skill_init"),
    "folder": (config(env={"skill_init": "."}), "which is no part of a skill", "or its SKILL.md"),
    "not-utf-8": (file("SKILL.md", "é".encode("latin-1")), "SKILL.md: not UTF-8 text (byte 0)", "save the skill"),
}


def assert_refused(desk: Desk, done: Done, sentence: str, hint: str) -> None:
    """Exit code 2, one sentence and at most one line of advice; nothing on stdout, no run, no request."""
    assert (done.code, done.out) == (2, ""), done.err
    first, *rest = done.err.splitlines()
    assert first.startswith("error: ")
    assert sentence in first
    assert len(rest) == bool(rest)
    assert all(line.startswith("  ") and line.strip() for line in rest)
    assert hint in "".join(rest)
    assert "Traceback" not in done.err
    assert "bug" not in done.err
    assert KEY not in done.err
    assert not (desk.folder / "runs").exists()


@parametrized("name", CONFIGS, by_default=10)
def test_a_mistake_in_the_config_is_named(desk: Desk, endpoint: Endpoint, project: Project, name: str) -> None:
    """With its file and key, what is allowed and the nearest right name."""
    mistake, sentence, hint = CONFIGS[name]
    mistake(project)
    assert_refused(desk, desk.run("run", "config.yaml"), sentence, hint)
    assert not endpoint.server.requests


@pytest.mark.parametrize("name", LAID_OVER)
def test_yaml_that_is_no_json_is_named(desk: Desk, project: Project, name: str) -> None:
    """A config is recorded as JSON, so what JSON cannot say is refused before the run begins."""
    mistake, sentence, hint = LAID_OVER[name]
    mistake(project)
    assert_refused(desk, desk.run("run", "over.yaml"), sentence, hint)


@pytest.mark.parametrize("name", DATA)
def test_a_mistake_in_the_data_is_named(desk: Desk, endpoint: Endpoint, project: Project, name: str) -> None:
    """With its file, line and item."""
    mistake, sentence, hint = DATA[name]
    mistake(project)
    assert_refused(desk, desk.run("run", "config.yaml"), sentence, hint)
    assert not endpoint.server.requests


@pytest.mark.parametrize("name", SKILLS)
def test_a_mistake_in_the_skill_is_named(desk: Desk, project: Project, name: str) -> None:
    """With its file."""
    mistake, sentence, hint = SKILLS[name]
    mistake(project)
    assert_refused(desk, desk.run("run", "config.yaml"), sentence, hint)


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        (["nowhere.yaml"], "nowhere.yaml: no such config file", "skillopt-es init"),
        (["."], "is a folder", "config.yaml"),
        (["config.yaml", "--set", "train"], "--set train: write it as section.key=value", ""),
        (["config.yaml", "--set", "train.sede=1"], "--set: unknown key train.sede", "did you mean train.seed?"),
        (["config.yaml", "--set", "train.seed=x"], "--set: train.seed is 'x'", ""),
        (["config.yaml", "--set", f"model.api_key={KEY}"], "--set: model.api_key: a secret", "model.api_key_env"),
    ],
)
def test_a_mistake_on_the_command_line_is_named(
    desk: Desk, project: Project, words: list[str], sentence: str, hint: str
) -> None:
    """As in a config file."""
    assert project.rows
    assert_refused(desk, desk.run("run", *words), sentence, hint)


@pytest.mark.parametrize(
    "model",
    [
        {"api_key": KEY},
        {"target_api_key": KEY},
        {"api_key_env": KEY},
        {"api_key_env": [KEY]},
        {"optimizer_api_key_env": KEY},
        {"api_key_env": "AIzaSyD0123456789abcdefXYZ"},
        {"api_key_env": f"a{HEX_KEY}"},
        {"extra_headers": {"Authorization": f"Bearer {KEY}"}},
        {"extra_headers": {"x-api-key": KEY}},
        {"extra_headers": f"Authorization: {KEY}"},
        {"extra_body": {"api_key": KEY}},
    ],
)
def test_a_key_in_the_config_is_refused_and_not_shown(desk: Desk, project: Project, model: dict[str, Any]) -> None:
    """A config is recorded, so it names the variable that holds the key."""
    project.set(model=model)
    done = desk.run("run", "config.yaml")
    assert_refused(desk, done, "", "")
    assert not any(secret in done.err for secret in (KEY, HEX_KEY, "AIza"))


def test_a_key_variable_that_is_not_set_is_named(desk: Desk, project: Project) -> None:
    """Before anything is made, with what to type."""
    assert project.rows
    done = Desk(desk.folder).run("run", "config.yaml")
    assert_refused(desk, done, f"the environment variable {KEY_NAME} is not set", f"export {KEY_NAME}=")


def test_an_id_never_leads_out_of_the_run_folder(desk: Desk, project: Project, tmp_path: Path) -> None:
    """Such items train like any other, and no file is written elsewhere."""
    odd = ["../../evil", "/etc/evil", "a/../../b", "x\x00y", "..", "a\nb", "é" * 300, "CON", "."]
    for number, item in enumerate(odd):
        row(number, id=item)(project)
    project.set(train={"num_epochs": 1})
    before = set(tmp_path.iterdir()) | {tmp_path / "runs"}
    done = desk.run("run", "config.yaml", "--run", "one")
    assert done.code == 0, done.err
    assert set(tmp_path.iterdir()) == before
    assert files_of(project.run_folder()) == {"best", "head.json", "lock", "log.db", "logs.jsonl", "overview.json"}
    assert [path.name for path in (project.run_folder() / "best").iterdir()] == ["SKILL.md"]
    started = events_of(project.run_folder())[0]
    assert isinstance(started, RunStarted)
    assert set(odd) <= set(started.splits.train)
    assert verify(project.run_folder()).ok


def test_a_skill_with_windows_line_ends_works_and_that_is_noted(desk: Desk, project: Project) -> None:
    """Its lines end with \\n from then on."""
    project.skill = b"# Office\r\n\r\nAnswer with the value alone.\r\n"
    project.write().set(train={"num_epochs": 1})
    assert desk.run("run", "config.yaml", "--run", "one").code == 0
    state = read_state(project.run_folder())
    assert state.started is not None
    assert "SKILL.md: line ends were made \\n" in state.started.notes
    assert b"\r" not in (project.run_folder() / "best" / "SKILL.md").read_bytes()


def test_a_skill_keeps_its_bytes(desk: Desk, project: Project) -> None:
    """Frontmatter, BOM, odd spaces and a missing last line end are the user's own."""
    project.skill = "\ufeff---\nname: office\n---\n\n# Büro \u2028 \t\n\n\nlast line".encode()
    project.write().set(train={"num_epochs": 1}, optimizer={"learning_rate": 1, "use_slow_update": False})
    assert desk.run("run", "config.yaml", "--run", "one").code == 0
    started = events_of(project.run_folder())[0]
    assert isinstance(started, RunStarted)
    assert started.skill.text.encode() == project.skill
    assert (project.run_folder() / "best" / "SKILL.md").read_bytes().startswith(project.skill)


def test_a_key_without_effect_is_told_once_and_the_run_goes_on(desk: Desk, project: Project) -> None:
    """On stderr, with its file; the log knows nothing of it."""
    project.set(gradient={"max_analyst_rounds": 3}, train={"num_epochs": 1})
    done = desk.run("run", "config.yaml", "--run", "one", "--quiet", "--json", "--set", "edit_budget=1",
                    "--set", "min_edit_budget=1")  # fmt: skip
    assert done.code == 0, done.err
    warnings = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert "config.yaml: gradient.max_analyst_rounds is ignored" in warnings[0]
    [started] = [event for event in events_of(desk.folder / "runs" / "one") if isinstance(event, RunStarted)]
    assert "max_analyst_rounds" not in str(started.config)
    checked = desk.run("doctor", "config.yaml", "--no-calls")
    assert "warning  config" in checked.out


@pytest.mark.parametrize("words", [["resume"], ["resume", "nope"], ["resume", "../x"], ["verify", "nope"]])
def test_a_run_that_is_not_there_is_named(desk: Desk, words: list[str]) -> None:
    """With where was looked and what lists runs."""
    done = desk.run(*words)
    assert (done.code, done.out) == (2, "")
    assert len(done.complaints) == 1
    assert "there is no run" in done.err
