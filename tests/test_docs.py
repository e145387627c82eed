"""The documents say what the software does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from support.command_docs import FILE, command_docs
from support.config_docs import FILE as CONFIG_FILE
from support.config_docs import config_docs

from skillopt_es.adapters.environments.tasks.options import TaskOptions
from skillopt_es.cli.main import COMMANDS
from skillopt_es.config import load_config
from skillopt_es.config.sections import SECTIONS, SHARED_ROLE_KEYS
from skillopt_es.ports import MODELS
from skillopt_es.sessions.opening import open_model
from skillopt_es.version import installed_for

ROOT = Path(__file__).parent.parent


def test_the_command_page_is_what_the_commands_say() -> None:
    """After a change of a command, run `python tests/support/command_docs.py`."""
    assert FILE.read_text() == command_docs()


def test_the_config_page_is_what_the_config_says() -> None:
    """After a change of a key, its remark in base.yaml or a preset, run `python tests/support/config_docs.py`."""
    assert CONFIG_FILE.read_text() == config_docs()


def test_every_key_of_base_has_a_remark() -> None:
    """It is the meaning that the config page gives."""
    base = (ROOT / "configs" / "base.yaml").read_text().splitlines()
    assert not [line for line in base if line.startswith("  ") and " # " not in line]


@pytest.mark.parametrize(
    "page", ["README.md", *(str(page.relative_to(ROOT)) for page in sorted(ROOT.glob("docs/**/*.md")))]
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    """Every relative link names a file or folder of this repository, and a heading that is there."""
    file = ROOT / page
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", file.read_text()):
        there = file.parent / target if target else file
        assert there.exists(), target
        assert not anchor or there.suffix != ".md" or anchor in anchors_of(there), f"{target}#{anchor}"


def anchors_of(page: Path) -> set[str]:
    """The names under which a page's headings can be linked to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    said = (re.sub(r"\]\([^)]*\)", "", heading).lower() for heading in headings)
    named = re.findall(r'<a id="([^"]+)"', page.read_text())
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in said} | set(named)


@pytest.mark.parametrize(
    "page", ["README.md", *(str(page.relative_to(ROOT)) for page in sorted(ROOT.glob("docs/**/*.md")))]
)
def test_pages_name_commands_that_exist(page: str) -> None:
    """`skillopt-es WORD` in a page is a command."""
    for word in re.findall(r"skillopt-es ([a-z][a-z-]*)\b", (ROOT / page).read_text()):
        assert word in COMMANDS, word


def test_the_security_page_names_tests_that_exist() -> None:
    """What it says is shown by something."""
    named = set(re.findall(r"`(tests/[^`]*)`", (ROOT / "docs" / "security.md").read_text()))
    assert len(named) > 15
    assert not [name for name in named if not (ROOT / name).exists()]


MOST_KEYS = 133
"""A newcomer meets all of them; a benchmark's and a backend's own keys are listed apart."""


def test_every_config_key_has_a_default_and_stands_in_the_base() -> None:
    """base.yaml is the list of keys; nothing else has defaults."""
    base = yaml.safe_load((ROOT / "configs" / "base.yaml").read_text())
    assert list(base) == ["model", *SECTIONS]
    assert sum(map(len, base.values())) <= MOST_KEYS
    demo = load_config(None)
    for section in set(SECTIONS) - {"env"}:  # which has the environment's own keys, too
        names = {attribute.name for attribute in getattr(demo, section).__attrs_attrs__}
        assert names == set(base[section])


def test_the_task_page_names_every_option_and_grader() -> None:
    """What `env:` takes for own tasks is documented."""
    text = (ROOT / "docs" / "tasks.md").read_text()
    for attribute in TaskOptions.__attrs_attrs__:
        assert f"`{attribute.name}`" in text


def test_every_config_on_the_model_page_opens(tmp_path: Path) -> None:
    """What it tells people to write works as it stands, for both roles."""
    text = (ROOT / "docs" / "models.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        (tmp_path / "config.yaml").write_text(f"{block}env: {{name: tasks}}\n")
        config = load_config(tmp_path / "config.yaml")
        for role in ("target", "optimizer"):
            model = open_model(config, role, {config.role(role).api_key_env: "sk-0123456789abcdef"})
            assert config.role(role).model in model.identity


def test_the_model_page_names_every_backend_and_key() -> None:
    """What `model:` takes is documented."""
    text = (ROOT / "docs" / "models.md").read_text()
    elsewhere = {"backend", "base_url", "api_key_env", "extra_headers", "temperature", "reasoning_effort"}
    for key in set(SHARED_ROLE_KEYS) - elsewhere:
        assert f"`{key}`" in text or f"{key}: " in text, key
    for name in installed_for(MODELS):
        assert f"`{name}`" in text, name
