"""What pyproject.toml promises is what is tried."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
KINDS = {".py", ".md", ".yaml", ".sh", ".txt", ".ipynb", ".toml"}
NOT_TRIED = {"build", "setuptools"}  # they make the distributions; the suite itself does not import them


def bounds(requirements: list[str]) -> dict[str, tuple[str, str]]:
    """The lowest and the first refused version of each, by name."""
    parsed = [re.fullmatch(r"([\w-]+)>=([\d.]+)(?:,<([\d.]+))?", text) for text in requirements if "[" not in text]
    return {found[1]: (found[2], found[3] or "") for found in parsed if found}


def test_the_lowest_declared_versions_are_those_that_are_tried() -> None:
    """`.ci/run` installs tests/lowest.txt; a bound that nobody tries is a guess."""
    tried = dict(line.split("==") for line in (ROOT / "tests" / "lowest.txt").read_text().split("\n") if "==" in line)
    extra = PROJECT["optional-dependencies"]["test"]
    declared = {name: low for name, (low, _) in bounds([*PROJECT["dependencies"], *extra]).items()}
    assert tried == {name: low for name, low in declared.items() if name not in NOT_TRIED}


def test_each_dependency_ends_before_the_next_release_that_may_break() -> None:
    """Without an upper bound, a major release of somebody else breaks an installation that worked."""
    assert len(bounds(PROJECT["dependencies"])) == len(PROJECT["dependencies"])
    assert not [name for name, (_, high) in bounds(PROJECT["dependencies"]).items() if not high]


BY_NAME = re.compile(
    r"\b(?:pip|pipx|uv)\b[^`\n&|;]*\binstall\b[^`\n&|;]*\bskillopt[-_]es\b(?![-_.\w])|\bskillopt[-_]es\["
)


def test_nothing_says_to_install_us_by_our_name() -> None:
    """The name is not registered on the index: whoever registers it first would own those who follow."""
    folders = ("adapters", "configs", "docs", "events", "projections", "skillopt_es", "tests")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in KINDS]
    files = [*files, *ROOT.glob("*.md")]
    assert len(files) > 500
    said = [
        f"{file.relative_to(ROOT)}: {found[0]}"
        for file in files
        if file != Path(__file__)
        for found in BY_NAME.finditer(file.read_text(encoding="utf-8"))
    ]
    assert not said


def test_a_package_that_we_write_does_not_ask_an_index_for_us() -> None:
    """Nor does the template of an environment."""
    template = (ROOT / "configs/environment/pyproject.toml.txt").read_text()
    assert tomllib.loads(template.replace("{name}", "x").replace("{module}", "x"))["project"]["dependencies"] == []
