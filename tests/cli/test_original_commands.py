"""The original's two commands: every flag becomes a word of ours, or is refused with the reason."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

import click
import pytest
import yaml
from support.in_process import called
from support.logs import events_of
from support.made_searchqa import made_searchqa, write_split_dir
from support.model_server import ModelServer, fixed_answer
from support.original_checkout import checkout
from support.params import each_of

from skillopt_es.cli import original_commands
from skillopt_es.cli.original_commands import eval_words, train_words
from skillopt_es.config.original import FATES, FLAT
from skillopt_es.events.catalog import RunStarted
from skillopt_es.sessions.session import read_state

KEYS = Path(__file__).parents[1] / "config" / "original" / "keys.txt"
OTHERS = {"val": made_searchqa(14, size=200)[12:], "test": made_searchqa(16, size=200)[14:]}
FLAGS = [line.split()[2] for line in KEYS.read_text().splitlines() if not line.startswith("#")]
CONFIG = ["--config", "c.yaml"]


@each_of("flag", sorted({flag for flag in FLAGS if flag != "-"}))
def test_every_flag_is_translated_or_refused_with_a_reason(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In the order of the words, with its nested name."""
    name = flag.removeprefix("--")
    key = FLAT.get(name, "model.backend")
    fate = FATES.get(key)
    if fate is not None and fate.secret:
        with pytest.raises(click.UsageError) as caught:
            train_words([*CONFIG, flag, "sk-0123456789"])
        assert f"export {fate.secret}=…" in caught.value.message
        assert "sk-0123" not in caught.value.message
        return
    words = train_words([*CONFIG, flag, "true"])
    if name == "out_root":
        assert words == ["run", "c.yaml", "--run", "true", "--dir", "."]
    elif fate is not None and fate.ignored:
        assert words == ["run", "c.yaml"]
        assert f"note: {flag} is left out: {fate.ignored}" in capsys.readouterr().err
    else:
        *begin, last = words
        assert begin == ["run", "c.yaml", "--set"]
        assert last in (f"{key}=true", f"{key}='true'")


NOT_SCORED = frozenset({"--out_root", *(flag for flag in FLAGS if flag.endswith("_api_key"))})


@each_of("flag", sorted({*FLAGS} - NOT_SCORED - {"-"}))
def test_every_flag_is_known_to_the_evaluation_too(flag: str) -> None:
    """It scores with the configs of the training, whose flags all mean the same."""
    words = eval_words([*CONFIG, "--skill", "s.md", flag, "1"])
    assert words[0] == "eval"
    assert not [word for word in words if word.startswith(flag)]


@pytest.mark.parametrize(
    ("said", "ours"),
    [
        ("--split_dir data/x --out_root outputs/NAME", "--set env.split_dir=data/x --run NAME --dir outputs"),
        ("--cfg-options train.seed=7 env.limit=3 --seed 9", "--set train.seed=7 --set env.limit=3 --set train.seed=9"),
        ("--cfg-options env.out_root=outputs/one", "--run one --dir outputs"),
        ("--use_gate 1 --eval_test no", "--set evaluation.use_gate=true --set evaluation.eval_test=false"),
        ("--edit_budget=3 --backend qwen", "--set optimizer.learning_rate=3 --set model.backend=qwen"),
        ("--reasoning_effort=", "--set model.reasoning_effort="),
        ("--env searchqa --max_turns 2", "--set env.name=searchqa --set env.max_turns=2"),
        ("--target_model 007", "--set model.target='007'"),
        ("--split_ratio 2:1:7", "--set env.split_ratio='2:1:7'"),
    ],
)
def test_a_training_is_said_in_our_words(said: str, ours: str) -> None:
    """Flags after `--cfg-options`, as the original lays them over each other."""
    words = train_words([*CONFIG, *said.split()])
    assert words == ["run", "c.yaml", *ours.split()]
    assert all(yaml.safe_load(word.partition("=")[2] or "''") is not None for word in words if "=" in word)


@pytest.mark.parametrize(
    ("said", "ours"),
    [
        ("", ""),
        ("--test_env_num 5", ""),
        ("--split valid_unseen --out_root evals/x", "--split valid_unseen --dir evals/x"),
        ("--split valid_seen --test_env_num 5", "--split valid_seen --limit 5"),
        ("--split all --test_env_num 5 --workers 8", "--split all --set env.workers=8"),
    ],
)
def test_an_evaluation_is_said_in_our_words(said: str, ours: str) -> None:
    """What `eval` takes by default is all that its configs have; a number of items counts for one split only."""
    assert eval_words([*CONFIG, "--skill", "s.md", *said.split()]) == [
        "eval",
        "c.yaml",
        "--skill",
        "s.md",
        *ours.split(),
    ]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--seed", "3"], "--config is missing"),
        ([*CONFIG, "--sede", "3"], "there is no flag --sede; did you mean --seed?"),
        ([*CONFIG, "--seed"], "--seed takes a value"),
        ([*CONFIG, "stray"], "stray: flags begin with --"),
        ([*CONFIG, "--cfg-options", "train.seed"], "write it as section.key=value"),
        ([*CONFIG, "--cfg-options", "model.azure_openai_api_key=sk-0123456789"], "export AZURE_OPENAI_API_KEY=…"),
        ([*CONFIG, "--cfg-options", "env.token=sk-0123456789"], "model.api_key_env: MY_KEY"),
        ([*CONFIG, "--skill", "s.md"], "use --skill_init"),
        ([*CONFIG, "--split", "test"], "--split is a flag of skillopt-eval"),
    ],
)
def test_what_cannot_be_translated_is_refused(words: list[str], reason: str) -> None:
    """In one sentence, without a secret."""
    with pytest.raises(click.UsageError) as caught:
        train_words(words)
    assert reason in caught.value.message
    assert "sk-0123" not in caught.value.message


def test_a_folder_that_was_begun_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As in the original, where the same command again resumes."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "log.db").touch()
    words = train_words([*CONFIG, "--out_root", str(tmp_path / "one"), "--seed", "3"])
    assert words == ["resume", "one", "--dir", str(tmp_path)]
    assert "continues with the settings it began with" in capsys.readouterr().err


def test_both_commands_are_installed() -> None:
    """Under the original's names."""
    scripts = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["skillopt-train"] == "skillopt_es.cli.original_commands:train"
    assert scripts["skillopt-eval"] == "skillopt_es.cli.original_commands:evaluate"


def test_its_readme_s_commands_train_and_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a checkout's root, with its config unchanged; the command of ours is shown first."""
    monkeypatch.chdir(checkout(tmp_path / "checkout", "0.2.0", "searchqa"))
    monkeypatch.setenv("AZURE_OPENAI_AUTH_MODE", "openai_compatible")
    config = "--config configs/searchqa/default.yaml"
    with ModelServer(fixed_answer) as server:
        where = f"--split_dir data/searchqa_split --azure_openai_endpoint {server.base_url}"
        models = "--optimizer_model big --target_model small --out_root outputs/first --num_epochs 1"
        few = "--cfg-options train.train_size=0 env.limit=2"
        done = run("train", f"{config} {where} {models} {few}", monkeypatch, capsys)
        assert done.startswith(
            "skillopt-es run configs/searchqa/default.yaml --set train.train_size=0 --set env.limit=2"
        )
        assert "A candidate has to win on validation tasks by hard score (gate_metric)" in done
        assert "guidance at an epoch's end is taken without a test (slow_update_gate_with_selection: false)" in done
        skill = "--skill outputs/first/best_skill.md"
        scored = run("evaluate", f"{config} {skill} --split valid_unseen {where}", monkeypatch, capsys)
    assert "note: outputs/first is a run of skillopt-es, whose best skill is outputs/first/best/initial.md" in scored
    assert "skillopt-es eval configs/searchqa/default.yaml --skill outputs/first/best/initial.md" in scored
    assert (tmp_path / "checkout" / "outputs" / "first" / "log.db").exists()


def test_the_best_skill_of_a_run_is_found_by_the_name_it_has_there(demo_run: Path, tmp_path: Path) -> None:
    """As the log has it, though its file is gone; a file of that name is what it says, and what is no run is left."""
    run_folder = shutil.copytree(demo_run, tmp_path / "one")
    shutil.rmtree(run_folder / "best", ignore_errors=True)
    words = [*CONFIG, "--skill", str(run_folder / "best_skill.md")]
    [found] = [Path(word) for word in eval_words(words) if "best" in word]
    assert found.parent == run_folder / "best"
    best = read_state(run_folder).best
    assert best is not None
    assert found.read_text() == best.skill.text
    (run_folder / "best_skill.md").write_text("# Mine\n")
    assert str(run_folder / "best_skill.md") in eval_words(words)
    assert "elsewhere/best_skill.md" in eval_words([*CONFIG, "--skill", "elsewhere/best_skill.md"])


def test_a_split_of_ones_own_has_its_own_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What its file says of the released split is nobody's wish; it is told, and what somebody asks for is kept."""
    monkeypatch.chdir(checkout(tmp_path / "checkout", "0.2.0", "searchqa"))
    monkeypatch.setenv("AZURE_OPENAI_AUTH_MODE", "openai_compatible")
    cli = called(capsys)
    write_split_dir(Path("mine"), {"train": made_searchqa(12, size=200)} | OTHERS)
    mine = ("configs/searchqa/default.yaml", "--set", "env.split_dir=mine")
    told = "train.train_size is 400, the size of the released split; this one has 12 items, and that is what counts"
    estimated = cli("estimate", *mine)
    assert (estimated.code, told in estimated.out) == (0, True)
    assert "4 epochs, 4 steps" in estimated.out
    asked = cli("estimate", *mine, "--set", "train.train_size=400")
    assert (asked.code, "but the train split has 12 items" in asked.err) == (2, True)
    edited = Path("configs/searchqa/default.yaml")
    edited.write_text(edited.read_text().replace("train_size: 400", "train_size: 300"))
    written = cli("estimate", *mine)
    assert (written.code, "train.train_size is 300, but the train split has 12 items" in written.err) == (2, True)


def test_training_on_a_split_of_ones_own_says_so_and_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of its README, with other data and nothing else changed."""
    monkeypatch.chdir(checkout(tmp_path / "checkout", "0.2.0", "searchqa"))
    monkeypatch.setenv("AZURE_OPENAI_AUTH_MODE", "openai_compatible")
    write_split_dir(Path("mine"), {"train": made_searchqa(12, size=200)} | OTHERS)
    with ModelServer(fixed_answer) as server:
        where = f"--split_dir mine --azure_openai_endpoint {server.base_url}"
        few = "--target_model small --out_root outputs/first --num_epochs 1"
        done = run("train", f"--config configs/searchqa/default.yaml {where} {few}", monkeypatch, capsys)
    assert "this one has 12 items, and that is what counts here (the original refuses it)" in done
    started = events_of(Path("outputs/first"))[0]
    assert isinstance(started, RunStarted)
    assert [note for note in started.notes if "this one has 12 items" in note]
    assert started.steps_per_epoch == 1


def run(name: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command printed on stderr; it has to succeed."""
    monkeypatch.setattr(sys, "argv", [name, *words.split()])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        getattr(original_commands, name)()
    said = capsys.readouterr()
    assert stopped.value.code == 0, said.err
    return said.err


def test_doctor_says_where_each_setting_is_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file, the command line or the variable; of a key, which variable holds it."""
    monkeypatch.chdir(checkout(tmp_path / "checkout", "2026-08", "searchqa"))
    monkeypatch.setenv("QWEN_CHAT_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("QWEN_CHAT_API_KEY", "sk-0123456789")
    words = ("doctor", "configs/searchqa/default.yaml", "--no-calls", "--set", "model.backend=qwen")
    said = called(capsys)(*words).out
    assert "target base_url: http://127.0.0.1:9/v1 (the environment variable QWEN_CHAT_BASE_URL)" in said
    assert "target api_key_env: the variable QWEN_CHAT_API_KEY (the environment variable QWEN_CHAT_API_KEY)" in said
    assert "target model: Qwen/Qwen3.5-4B (model.target, the original's default)" in said
    assert "optimizer reasoning_effort: medium (model.reasoning_effort, " in said
    assert "sk-0123456789" not in said
