"""Whatever a config may not say is refused with its file, its key, its value and what is allowed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from support.params import each_of

from skillopt_es.config import RunConfig, load_config
from skillopt_es.config.sections import SECTIONS, RoleConfig
from skillopt_es.config.values import described, literals
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.sessions.opening import open_environment, open_model
from skillopt_es.sessions.session import run_started

SECTION_CLASSES: Mapping[str, Any] = {**SECTIONS, "model": RoleConfig}


def fields_of() -> Iterator[tuple[str, attrs.Attribute[object]]]:
    """Every key, with its type and bounds."""
    for section, kind in SECTION_CLASSES.items():
        for field in attrs.fields(kind):
            if field.name not in ("options", "model"):
                yield f"{section}.{field.name}", field


ENUMS = [(key, field) for key, field in fields_of() if literals(field.type)]
BOUNDED = [(key, field) for key, field in fields_of() if field.metadata.get("low") is not None]
TYPED = [(key, field) for key, field in fields_of() if field.type in (int, float, bool, str)]


def refusal(folder: Path, content: Mapping[str, object]) -> ConfigError:
    """The error that such a config file gives."""
    model = {"optimizer": "o", "target": "t", **dict(content.get("model", {}))}  # type: ignore[call-overload]
    (folder / "config.yaml").write_text(yaml.safe_dump({**content, "model": model}))
    with pytest.raises(ConfigError) as caught:
        load_config(folder / "config.yaml")
    return caught.value


def set_to(key: str, value: object) -> dict[str, object]:
    """A config that says one thing."""
    section, _, name = key.partition(".")
    return {section: {name: value}}


@each_of(("key", "field"), ENUMS)
@each_of("value", ["sideways", 17, 0.5, ["x"]])
def test_a_word_that_is_none_of_the_list(key: str, field: Any, value: object, tmp_path: Path) -> None:
    """The list is part of the answer."""
    words = ", ".join(str(word) for word in literals(field.type))
    error = refusal(tmp_path, set_to(key, value))
    assert error.message == f"{tmp_path}/config.yaml: {key} is {value!r}, but must be one of {words}"


@each_of(("key", "field"), BOUNDED)
def test_a_number_below_its_bound(key: str, field: Any, tmp_path: Path) -> None:
    """The bound is part of the answer."""
    low = field.metadata["low"]
    value = low - 1 if field.type is int else float(low) - 0.5
    error = refusal(tmp_path, set_to(key, value))
    assert error.message == f"{tmp_path}/config.yaml: {key} is {value!r}, but must be {described(field)}"
    assert re.search(rf"(at least|from) {low:g}", error.message)


@each_of(("key", "field"), TYPED)
def test_a_value_of_another_type(key: str, field: Any, tmp_path: Path) -> None:
    """A number is no text, a text no number, and yes in quotes is neither yes nor no."""
    value = 5 if field.type is str else "yes"
    error = refusal(tmp_path, set_to(key, value))
    shown = "a value that is not shown" if key.endswith("api_key_env") else repr(value)
    assert error.message.startswith(f"{tmp_path}/config.yaml: {key} is {shown}, but must be ")


@pytest.mark.parametrize("value", [1.5, -0.1])
def test_a_share_is_from_0_to_1(value: float, tmp_path: Path) -> None:
    """Also where it is not used."""
    error = refusal(tmp_path, set_to("evaluation.gate_mixed_weight", value))
    assert "must be a number from 0 to 1" in error.message


@pytest.mark.parametrize("role", ["optimizer", "target"])
def test_a_role_without_a_model(role: str, tmp_path: Path) -> None:
    """The two keys that have no default."""
    assert f"config.yaml: model.{role} is ''" in refusal(tmp_path, {"model": {role: ""}}).message


def test_a_config_without_models_is_told_what_to_write(tmp_path: Path) -> None:
    """Of both at once, and the file with our defaults is not blamed."""
    (tmp_path / "config.yaml").write_text("model: {backend: simulated}\n")
    with pytest.raises(ConfigError, match=r"^model\.optimizer is '', but must be the name of a model$") as refused:
        load_config(tmp_path / "config.yaml")
    assert "optimizer: NAME and target: NAME under model" in refused.value.hint
    assert "`--set model.optimizer=NAME --set model.target=NAME`" in refused.value.hint


def test_a_misspelt_agent_is_not_asked_for_a_model_s_name_alone(tmp_path: Path) -> None:
    """The name of a model is not what is wrong."""
    (tmp_path / "config.yaml").write_text("model: {optimizer: o, target_backend: 'pyhton:agent.py:answer'}\n")
    with pytest.raises(ConfigError) as refused:
        load_config(tmp_path / "config.yaml")
    assert "'pyhton:agent.py:answer'" in refused.value.hint
    assert "python:FILE:FUNCTION" in refused.value.hint


def test_the_last_budget_above_the_first(tmp_path: Path) -> None:
    """It would lift what it is to lower."""
    error = refusal(tmp_path, {"optimizer": {"learning_rate": 1}})
    assert "optimizer.min_learning_rate is 2, but must be at most learning_rate (1)" in error.message


@pytest.mark.parametrize(
    ("base", "message", "hint"),
    [
        ("config.yaml", "_base_ leads back to this file", "remove one"),
        ("missing.yaml", "missing.yaml: no such config file", "init"),
        (
            "sage",
            "_base_ is 'sage', but there is no such preset",
            (
                "presets: alfworld, docvqa, livemathematicianbench, officeqa, paper, safe, search, searchqa, skillopt, "
                "skills, spreadsheetbench"
            ),
        ),
        ("/dev/null", "/dev/null is not a plain file", "YAML file"),
        ("/dev/zero", "/dev/zero is not a plain file", "YAML file"),
        (["a", "b"], "_base_ is ['a', 'b'], but must be a preset or the path of one YAML file", ""),
    ],
)
def test_a_base_that_is_none(base: object, message: str, hint: str, tmp_path: Path) -> None:
    """The file that names it is named."""
    error = refusal(tmp_path, {"_base_": base})
    assert f"{tmp_path}" in error.message or str(base).startswith("/")
    assert message in error.message
    assert hint in error.hint


def test_a_config_that_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    """It says how much a config may have."""
    (tmp_path / "config.yaml").write_text("model: {}\n")
    os.truncate(tmp_path / "config.yaml", 2**30)
    with pytest.raises(ConfigError, match="has more than 10,000,000 bytes"):
        load_config(tmp_path / "config.yaml")


def test_a_config_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody may ever write to it."""
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ConfigError, match=r"pipe\.yaml is not a plain file"):
        load_config(tmp_path / "pipe.yaml")


@pytest.mark.parametrize("text", ["train.seed", "seed", "=5", "nonsense=5", ""])
def test_an_override_that_is_none(text: str) -> None:
    """It says how one is written."""
    with pytest.raises(ConfigError, match=r"write it as section.key=value"):
        load_config(None, [text])


def test_an_override_with_a_secret_is_not_shown() -> None:
    """Whatever it is for."""
    with pytest.raises(ConfigError) as caught:
        load_config(None, ["my_api_key=sk-0123456789"])
    assert caught.value.message.startswith("--set my_api_key=…: write it as")


# --- texts that are more than they look -----------------------------------------------------------------------------

LINES = [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)]
MERGES = "\n".join(["a0: &a0 {x: 1}", *LINES])
LISTS = "\n".join(["a0: &a0 [1]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))])


@pytest.mark.parametrize("text", [MERGES, LISTS], ids=["merges", "lists"])
def test_references_to_references_are_refused_before_they_are_followed(text: str, tmp_path: Path) -> None:
    """A few lines that stand for billions of keys."""
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"its references expand to more than 100000 keys and values"):
        load_config(tmp_path / "config.yaml")
    flow = LISTS.replace("\n", ", ")
    with pytest.raises(ConfigError, match=r"--set env.bomb: a value with more than 100000 parts"):
        load_config(None, [f"env.bomb={{{flow}}}"])


def test_a_reference_is_read_as_ever(tmp_path: Path) -> None:
    """Anchors and merges are a part of YAML that people use."""
    text = (
        "model: &m {optimizer: o, target: t}\nprices: {models: &p {}}\nenv: {a: *p, b: &b {x: 1}, c: {<<: *b, y: 2}}\n"
    )
    (tmp_path / "config.yaml").write_text(text)
    assert load_config(tmp_path / "config.yaml").env.options == {"a": {}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}


@pytest.mark.parametrize("text", ["9" * 6000, "0x" + "f" * 6000, "-" + "9" * 30, "2026-99-99", "!!int x"])
def test_a_number_that_nobody_can_mean_is_a_mistake(text: str, tmp_path: Path) -> None:
    """In a file and on the command line; in one sentence that does not repeat it."""
    (tmp_path / "config.yaml").write_text(f"model: {{optimizer: o, target: t}}\ntrain: {{seed: {text}}}\n")
    for where in (tmp_path / "config.yaml", None):
        with pytest.raises(ConfigError) as caught:
            load_config(where, [] if where else [f"train.seed={text}"])
        assert len(caught.value.message) < 300
        assert caught.value.hint


# --- what only shows when something is opened ----------------------------------------------------------------------

ROWS = "".join(f'{{"id": "{name}", "input": "?", "expected": "x", "split": "{name}"}}\n' for name in ("train", "val"))
FIELD = {"split_mode": "field", "data_path": "tasks.jsonl"}
OPENING: Mapping[str, tuple[dict[str, object], str]] = {
    "split-ratio": ({"env": {"split_ratio": "7:3", "data_path": "tasks.jsonl"}}, "env.split_ratio: '7:3' is not three"),
    "no-data-path": ({"env": {"split_mode": "ratio"}}, "env.data_path is not set, but split_mode ratio needs it"),
    "no-split-dir": ({"env": {"split_mode": "split_dir"}}, "env.split_dir is not set"),
    "split-dir-missing": ({"env": {"split_mode": "split_dir", "split_dir": "none"}}, "none does not exist"),
    "split-part-missing": ({"env": {"split_mode": "split_dir", "split_dir": "."}}, "train: no such folder"),
    "no-array": ({"env": {"split_mode": "file", "split_dir": "bad"}}, "train.json"),
    "no-data": ({"env": {"data_path": "empty.jsonl"}}, "empty.jsonl is empty"),
    "train-size": (
        {"train": {"train_size": 9}, "env": FIELD},
        "train.train_size is 9, but the train split has 1 item",
    ),
    "train-size-file": ({"train": {"train_size": 9}, "env": FIELD}, "config.yaml: train.train_size"),
    "optimizer-backend": ({"model": {"optimizer_backend": "vlm"}, "env": FIELD}, "model.optimizer_backend is 'vlm'"),
    "target-backend": (
        {"model": {"target_backend": "vlm"}, "env": FIELD},
        "config.yaml: model.target_backend is 'vlm'",
    ),
}


def opened(config: RunConfig, folder: Path) -> None:
    """Everything that a run opens before its first call."""
    run_started(config, open_environment(config).load(), folder)
    open_model(config, "optimizer", {})
    open_model(config, "target", {})


@pytest.mark.parametrize("name", OPENING)
def test_a_mistake_that_shows_when_the_run_is_opened(name: str, tmp_path: Path) -> None:
    """Before any call is made."""
    content, message = OPENING[name]
    (tmp_path / "tasks.jsonl").write_text(ROWS)
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "train.json").write_text('"text"')
    model = {"backend": "simulated", "optimizer": "o", "target": "t", **content.get("model", {})}  # type: ignore[dict-item]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({**content, "model": model}))
    config = load_config(tmp_path / "config.yaml")
    with pytest.raises((ConfigError, DataError)) as caught:
        opened(config, tmp_path)
    assert message in caught.value.message
    assert caught.value.exit_code == 2


def test_all_mistakes_are_found_at_once(tmp_path: Path) -> None:
    """The first is the error, and it knows the others; what three roles share is one mistake."""
    error = refusal(
        tmp_path,
        {
            "modle": {"a": 1},
            "model": {"optimiser": "x", "temperature": "warm"},
            "train": {"bach_size": 4, "num_epochs": -1},
            "evaluation": {"gate_metric": "sideways"},
        },
    )
    found = [each.message.removeprefix(f"{tmp_path}/config.yaml: ") for each in (error, *error.others)]
    assert found == [
        "unknown section modle",
        "train.num_epochs is -1, but must be a whole number of at least 1",
        "unknown key train.bach_size",
        "evaluation.gate_metric is 'sideways', but must be one of hard, soft, mixed",
        "unknown key model.optimiser",
        "model.temperature is 'warm', but must be a number from 0 to 5, or null",
    ]


def test_mistakes_of_keys_that_are_right_alone_are_found_at_once(tmp_path: Path) -> None:
    """Each of them would be refused by itself."""
    error = refusal(
        tmp_path,
        {
            "optimizer": {"learning_rate": 2, "min_learning_rate": 4},
            "evaluation": {"gate_rule": "paired"},
            "skillopt": {"follow": ["stale_scores"]},
            "model": {"optimizer": ""},
        },
    )
    assert [each.message.split(" is ")[0].rpartition(" ")[2] for each in (error, *error.others)] == [
        "optimizer.min_learning_rate", "evaluation.gate_rule", "model.optimizer"
    ]  # fmt: skip


def test_all_options_that_an_environment_does_not_have_are_named(tmp_path: Path) -> None:
    """With the file, as if each were the only one."""
    (tmp_path / "config.yaml").write_text(
        "model: {optimizer: o, target: t}\nenv: {name: tasks, gradr: exact, answer_tga: x, tolerance: much}\n"
    )
    with pytest.raises(ConfigError) as caught:
        open_environment(load_config(tmp_path / "config.yaml"))
    error = caught.value
    assert [each.message.partition(": env.")[2].partition(":")[0] for each in (error, *error.others)] == [
        "gradr", "answer_tga", "tolerance"
    ]  # fmt: skip
    assert all(each.message.startswith(f"{tmp_path}/config.yaml: ") for each in error.others)
