"""What a run cost: from the prices in its own log, unknown where it is unknown, and the same after a stop."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from pathlib import Path

import pytest
from support.command import Clerk, command, edit, project
from support.model_server import Answer, ModelServer

PRICES = """
prices:
  unit: USD per 1M tokens
  models:
    gpt-4.1-mini: {input: 0.40, output: 1.60}
    gpt-4.1: {input: 2.00, output: 8.00, cached_input: 0.50}
"""
USED = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}


def priced(folder: Path, text: str = PRICES) -> Path:
    """A project with prices and one epoch; its config."""
    config = project(folder)
    edit(config, "num_epochs: 2", "num_epochs: 1")
    config.write_text(config.read_text() + text)
    return config


def reporting(config: Path) -> Callable[..., Answer]:
    """Both models, with what of the input was cached."""
    clerk = Clerk(config.parent / "tasks.jsonl")

    def answer(body: dict[str, object], headers: dict[str, str]) -> Answer:
        said = clerk(body, headers)
        return Answer(text=said.text, usage=USED)

    return answer


def test_a_run_says_what_it_cost(tmp_path: Path) -> None:
    """In the summary, in `status` and by every group, from the log alone."""
    config = priced(tmp_path / "p")
    with ModelServer(reporting(config)) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        done = command("run", config, "--run", "one", "--quiet", cwd=tmp_path)
        assert done.code == 0, done.err
    config.unlink()
    used = command("usage", "one", "--json", cwd=tmp_path).json
    target, optimizer = used["by_role"]["target"], used["by_role"]["optimizer"]
    assert target["calls"] > 0
    assert optimizer["calls"] > 0
    each = {"target": Decimal(7 * 40 + 3 * 160), "optimizer": Decimal(3 * 200 + 4 * 50 + 3 * 800)}
    wanted = {role: each[role] * used["by_role"][role]["calls"] / 100 / 10**6 for role in each}
    assert {role: Decimal(str(used["by_role"][role]["cost"])) for role in wanted} == wanted
    assert (used["currency"], used["total"]["cost_unknown_calls"]) == ("USD", 0)
    shown = f"USD {sum(wanted.values()):.8f}"  # so little is told in more digits
    assert shown in done.out
    assert shown in command("status", "one", cwd=tmp_path).out
    assert f"  {shown}  " in command("runs", cwd=tmp_path).out
    page = command("report", "one", "--out", "-", cwd=tmp_path).out
    assert "cost USD</th>" in page
    assert f"<b>{shown}" in page
    for by in ("stage", "step", "epoch", "evaluation", "role"):
        table = command("usage", "one", "--by", by, cwd=tmp_path).out
        assert "cost USD" in table
        assert "at least" not in table
        costs = [group["cost"] for group in used[f"by_{by}"].values()]
        assert sum(map(Decimal, map(str, costs))) == sum(wanted.values())
    assert "final/test/initial" in used["by_evaluation"]


def test_a_model_without_a_price_makes_the_sum_a_lower_bound(tmp_path: Path) -> None:
    """And it says of how many calls."""
    config = priced(tmp_path / "p", PRICES.replace("gpt-4.1: ", "another: "))
    with ModelServer(reporting(config)) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        done = command("run", config, "--run", "one", "--quiet", "--json", cwd=tmp_path)
    used = done.json["usage"]
    table = command("usage", "one", "--by", "role", cwd=tmp_path).out
    assert used["cost_unknown_calls"] > 0
    assert f"+ at least: the cost of {used['cost_unknown_calls']} of {used['calls']} calls is unknown" in table
    [optimizer] = [line for line in table.splitlines() if line.startswith("optimizer")]
    assert optimizer.split()[-1] == "-"


def test_an_empty_reply_that_was_asked_again_is_paid_for(tmp_path: Path) -> None:
    """One of the target's answers is empty at first: its tokens are in the sum."""
    config = priced(tmp_path / "p", PRICES + "    unused: {input: 0, output: 0}\n")
    edit(config, "model:\n", "model:\n  backoff_seconds: 0.01\n")
    answer, number = reporting(config), count()

    def once_empty(body: dict[str, object], headers: dict[str, str]) -> Answer:
        return Answer(text=None, usage=USED) if next(number) == 3 else answer(body, headers)

    with ModelServer(once_empty) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        done = command("eval", config, "--split", "test", "--open-test", "--json", cwd=tmp_path)
        assert done.code == 0, done.err
        requests = len(server.requests)
    [split] = done.json["splits"]
    assert split["usage"]["calls"] == requests - 1
    assert split["usage"]["input_tokens"] == 7 * requests
    assert split["usage"]["cost"] == pytest.approx(requests * (7 * 0.4 + 3 * 1.6) / 10**6)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("unit: USD per 1M tokens", 'unit: ""', "prices.unit"),
        ("unit: USD per 1M tokens", "unit: USD per 1K tokens", "per 1M tokens"),
        ("unit: USD per 1M tokens", "unit: dollars per 1M tokens", "three capital letters"),
        ("input: 0.40", "input: 0.0000004", "cannot be a price per 1M tokens"),
        ("input: 0.40", "input: free", "must be a number"),
        ("input: 0.40", "imput: 0.40", "did you mean input?"),
        ("input: 0.40, ", "", "gpt-4.1-mini.input is missing"),
        ("input: 0.40", "input: -1", "cannot be a price"),
    ],
)
def test_prices_in_another_unit_are_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    """In one sentence that names the key."""
    config = priced(tmp_path / "p", PRICES.replace(old, new))
    done = command("run", config, "--quiet", cwd=tmp_path)
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "runs").exists()


def test_prices_can_be_told_when_a_run_is_resumed(tmp_path: Path) -> None:
    """They decide nothing; the whole run has a price then."""
    config = priced(tmp_path / "p", "")
    with ModelServer(lambda body, headers: Answer(status=401, error="no")) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        assert command("run", config, "--run", "one", "--quiet", cwd=tmp_path).code == 1
    models = json.dumps({"gpt-4.1-mini": {"input": 1, "output": 1}, "gpt-4.1": {"input": 1, "output": 1}})
    with ModelServer(reporting(config)) as server:
        words = ["--set", "prices.unit=EUR per 1M tokens", "--set", f"prices.models={models}"]
        address = f"model.base_url={server.base_url}"
        done = command("resume", "one", "--quiet", "--json", "--set", address, *words, cwd=tmp_path)
    assert done.code == 0, done.err
    used = done.json["usage"]
    assert (used["currency"], used["cost_unknown_calls"]) == ("EUR", 0)
    assert used["cost"] == (used["input_tokens"] + used["output_tokens"]) / 10**6
