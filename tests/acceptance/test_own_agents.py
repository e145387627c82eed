"""Agents of one's own, each from the page in an empty folder: tried by the doctor, trained, killed and gone on with."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.agent_page import RULE, fragments, teacher, write_page
from support.desk import Desk
from support.environments import CONFINED
from support.logs import events_of
from support.model_server import Answer, ModelServer
from support.params import parametrized
from support.project import told
from support.ready import PATIENCE

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.verify import verify

FEW = ("--set=env.limit=2",)  # each attempt starts a program
WAYS = {"python": "", "node": "node", "shell": "jq", "http": ""}


@pytest.fixture
def optimizer() -> Iterator[ModelServer]:
    """The model that improves the skill."""
    with ModelServer(teacher) as server:
        yield server


@pytest.fixture
def page(tmp_path: Path, optimizer: ModelServer) -> Desk:
    """The files of the page, typed into an empty folder."""
    write_page(tmp_path, optimizer.base_url)
    return Desk(tmp_path, {"OPENAI_API_KEY": "sk-of-the-optimizer-0123456789"})


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Callable[[], int]]:
    """Starts the page's server, at a port that is free here."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> int:
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            number: int = free.getsockname()[1]
        code = (tmp_path / "server.py").read_text().replace("8000", str(number))
        (tmp_path / "server.py").write_text(code)
        started.append(subprocess.Popen([sys.executable, "server.py"], cwd=tmp_path, stderr=subprocess.DEVNULL))
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", number)).close()
            except OSError:
                time.sleep(0.01)
            else:
                break
        return number

    yield start
    for process in started:
        process.kill()
        process.wait(PATIENCE)


def settings(way: str, port: Callable[[], int]) -> list[str]:
    """What the page says to change for each way."""
    if way == "python":
        return []
    kind = "http" if way == "http" else "command"
    said = dict(fragments()[kind])
    if way == "shell":
        said["target_command"] = ["./agent.sh"]
    if way == "http":
        said["target_url"] = said["target_url"].replace("8000", str(port()))
    return [f"--set=model.{key}={value}" for key, value in said.items()]


@parametrized("way", WAYS, by_default=2)
def test_an_agent_of_the_page_gets_to_a_trained_skill(way: str, page: Desk, port: Callable[[], int]) -> None:
    """Two commands and no name of a model; what it did is what the optimizer is shown."""
    if WAYS[way] and shutil.which(WAYS[way]) is None:
        pytest.skip(f"{WAYS[way]} is not installed here")
    chosen = settings(way, port)
    tried = page.run("doctor", "config.yaml", *chosen)
    assert tried.code == 0, tried.out + tried.err
    assert "'I do not know'" in tried.out
    done = page.run("run", "config.yaml", "--run", "one", "--json", *FEW, *chosen)
    assert done.code == 0, done.err
    assert done.json["best"]["value"] == 1.0
    assert RULE in (page.folder / "runs" / "one" / "best" / "SKILL.md").read_text()
    assert page.run("replay", "one", "--check").code == 0


def test_an_agent_on_the_web_is_not_trusted(page: Desk) -> None:
    """Whatever it tells of what it did."""
    (page.folder / "my_agent.py").write_text("def answer(task): return 'x'\n")
    words = ("--max-calls", "3", "--quiet", "--set=model.target_agent_network=true")
    assert page.run("run", "config.yaml", "--run", "one", *words).code == 3
    rows = [each for each in events_of(page.folder / "runs" / "one") if isinstance(each, RolloutCompleted)]
    assert {row.trust for row in rows} == {"untrusted"}


def test_an_agent_gets_the_named_fields_of_an_item(page: Desk) -> None:
    """In the doctor's attempt and in those of a run, and no other field."""
    rows = [{"id": f"t{n}", "input": "Translate it.", "language": "de", "gold": "x", "expected": "x"} for n in range(3)]
    (page.folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (page.folder / "my_agent.py").write_text("def answer(task): return repr(dict(task.fields))\n")
    named = "--set=env.agent_fields=[language]"
    assert "\"{'language': 'de'}\"" in page.run("doctor", "config.yaml", named).out
    assert page.run("run", "config.yaml", "--run", "one", "--max-calls", "2", "--quiet", named).code == 3
    rows = [each for each in events_of(page.folder / "runs" / "one") if isinstance(each, RolloutCompleted)]
    assert {row.prediction for row in rows} == {"{'language': 'de'}"}


def test_doctor_tries_an_agent_whose_answers_a_judge_grades(page: Desk) -> None:
    """The judge is asked by `--grade` alone; what was tried is shown as the config says it."""
    (page.folder / "fixed.sh").write_text("echo '\"Paris\"'")
    graded = ("--set=env.grader=judge", "--set=model.judge=j", "--set=model.judge_backend=simulated")
    agent = ("--set=model.target_backend=command", '--set=model.target_command=["sh", "fixed.sh"]')
    tried = page.run("doctor", "config.yaml", *graded, *agent)
    assert tried.code == 0, tried.out
    assert "'Paris', 0 steps reported, a judge grades it" in tried.out
    assert 'target command: ["sh", "fixed.sh"]' in tried.out
    (page.folder / "fixed.sh").write_text("echo Paris")
    assert 'an object with `answer`, or JSON text ("Paris") alone' in page.run("doctor", "config.yaml", *agent).out


def test_data_that_cannot_be_read_is_one_problem(page: Desk) -> None:
    """An agent that was not tried for want of a task is none besides."""
    (page.folder / "tasks.jsonl").write_text("question,answer\n")
    tried = page.run("doctor", "config.yaml")
    assert "problem  data" in tried.out
    assert "the agent was not tried" in tried.out
    assert "1 problem, 1 warning" in tried.out


SLOW = """
import time
from pathlib import Path
from typing import Any

def answer(task):
    with Path("begun.txt").open("a") as begun:
        begun.write(f"{task.item} {task.seed}\\n")
    time.sleep(0.05)
    words = task.task.split()
    return {"answer": words[-1] if "last word" in task.skill.text else "?", "steps": [f"seed {task.seed}"]}
"""


def test_a_run_killed_in_the_middle_of_attempts_ends_as_an_undisturbed_one(page: Desk, optimizer: ModelServer) -> None:
    """What was answered is not asked again: only attempts in flight are made once more, with the same seed."""
    (page.folder / "my_agent.py").write_text(SLOW)
    begun = page.folder / "begun.txt"
    assert page.run("run", "config.yaml", "--run", "whole", "--quiet", "--set=env.workers=2").code == 0
    attempts = Counter(begun.read_text().splitlines())
    begun.unlink()
    with page.start("run", "config.yaml", "--run", "killed", "--quiet", "--set=env.workers=2") as running:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not (begun.exists() and len(begun.read_text().splitlines()) > 7):
            time.sleep(0.01)
        running.send(signal.SIGKILL)
    assert page.run("resume", "killed", "--quiet").code == 0
    again = Counter(begun.read_text().splitlines()) - attempts
    assert set(Counter(begun.read_text().splitlines())) == set(attempts)
    assert again.total() <= 4  # two workers: what was in flight, and what was answered but not yet on disk
    assert told(page.folder / "runs" / "killed") == told(page.folder / "runs" / "whole")


# --- agents that ask a model themselves ------------------------------------------------------------------------------

MODEL = "gpt-4.1-mini"
TALKS = """
import json
from urllib.request import ProxyHandler, Request, build_opener

def ask(task, text):
    skill = {"role": "system", "content": task.skill.text}
    body = {"model": task.gateway.model, "messages": [skill, {"role": "user", "content": text}], "max_tokens": 50}
    headers = {"Authorization": f"Bearer {task.gateway.api_key}", "Content-Type": "application/json"}
    request = Request(f"{task.gateway.base_url}/chat/completions", json.dumps(body).encode(), headers)
    with build_opener(ProxyHandler({})).open(request) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]

def answer(task):
    with open("begun.txt", "a") as begun:
        begun.write(task.item + chr(10))
    plan = ask(task, f"Plan: {task.task}")
    ask(task, f"Check: {plan}")
    return ask(task, task.task)
"""


class Models:
    """Both models at one address: the optimizer's knows the rule, the agent's follows it, and takes its time."""

    def __init__(self) -> None:
        self.server = ModelServer(self.answer)
        self.delay = 0.0
        self.first: Callable[[], object] = lambda: None

    def answer(self, body: Any, headers: Mapping[str, str]) -> Answer:
        """The answer of whichever model is asked; something else may happen before the first one."""
        if len(self.server.requests) == 1:
            self.first()
        if body["model"] != MODEL:
            return teacher(body, headers)
        skill, asked = body["messages"][0]["content"], body["messages"][-1]["content"]
        said = asked.split()[-1] if RULE in skill or asked.startswith(("Plan", "Check")) else "I do not know"
        return Answer(text=said, delay=self.delay)

    @property
    def asked(self) -> Counter[str]:
        """What the agent's model was asked, and how often."""
        bodies = [request.body for request in self.server.requests if request.body["model"] == MODEL]
        return Counter(str(body["messages"]) for body in bodies)


@pytest.fixture
def models() -> Iterator[Models]:
    """The endpoint."""
    found = Models()
    with found.server:
        yield found


@pytest.fixture
def behind(tmp_path: Path, models: Models) -> Desk:
    """A project whose agent asks its model three things, one after another, through the gateway."""
    said = dict(fragments()["gateway"]) | {"target_backend": "python:my_agent.py:answer", "target_command": None}
    said |= {"target_base_url": models.server.base_url, "optimizer_base_url": models.server.base_url}
    write_page(tmp_path, models.server.base_url, **said)
    (tmp_path / "my_agent.py").write_text(TALKS)
    return Desk(tmp_path, {"OPENAI_API_KEY": KEY})


KEY = "sk-of-the-provider-0123456789abcdef"


@pytest.mark.slow
@pytest.mark.parametrize("caller", ["caller.js", "caller.py"])
def test_a_caller_of_the_page_gets_to_a_trained_skill(caller: str, behind: Desk, models: Models) -> None:
    """Its model sees the provider's key, it does not; each of its calls is in the journal, with its tokens."""
    if caller.endswith(".js") and shutil.which("node") is None:
        pytest.skip("node is not installed here")
    chosen = ["--set=model.target_backend=python:caller.py:answer"]
    if caller.endswith(".js"):
        chosen = ["--set=model.target_backend=command", '--set=model.target_command=["node","caller.js"]']
        code = (behind.folder / caller).read_text()
        (behind.folder / caller).write_text(f"if (process.env.OPENAI_API_KEY === '{KEY}') process.exit(9);\n{code}")
    tried = behind.run("doctor", "config.yaml", *chosen)
    assert tried.code == 0, tried.out + tried.err
    done = behind.run("run", "config.yaml", "--run", "one", "--json", *FEW, *chosen)
    assert done.code == 0, done.err
    assert done.json["best"]["value"] == 1.0
    keys = {r.headers["authorization"] for r in models.server.requests if r.body["model"] == MODEL}
    assert keys == {f"Bearer {KEY}"}
    target = behind.run("usage", "one", "--json").json["by_role"]["target"]
    assert target["output_tokens"] == 3 * (models.asked.total() - 1)  # the doctor's own call is in no journal
    assert target["output_unreported_calls"] == 0
    assert behind.run("replay", "one", "--check").code == 0


def test_an_evaluation_counts_what_its_agent_asked(behind: Desk, models: Models) -> None:
    """Once: shown again, nothing is asked."""
    done = behind.run("eval", "config.yaml", "--split", "test", "--json")
    assert done.code == 0, done.err
    [result] = done.json["splits"]
    assert result["usage"]["output_tokens"] == 3 * models.asked.total() > 0
    asked = models.asked.total()
    assert behind.run("eval", "config.yaml", "--split", "test").code == 0
    assert models.asked.total() == asked


def test_calls_of_a_killed_attempt_are_found_again(behind: Desk, models: Models) -> None:
    """Killed between an agent's calls: what it had asked is not paid again, and all ends as if nothing had been."""
    assert behind.run("run", "config.yaml", "--run", "whole", "--quiet", "--set=env.workers=2").code == 0
    undisturbed = models.asked
    models.server.requests.clear()
    models.delay = 0.03
    with behind.start("run", "config.yaml", "--run", "killed", "--quiet", "--set=env.workers=2") as running:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and models.asked.total() < 20:
            time.sleep(0.005)
        running.send(signal.SIGKILL)
    models.delay = 0.0
    assert behind.run("resume", "killed", "--quiet").code == 0
    assert set(models.asked) == set(undisturbed)
    assert (models.asked - undisturbed).total() <= 4  # two workers: in flight, or answered and not yet on disk
    assert told(behind.folder / "runs" / "killed") == told(behind.folder / "runs" / "whole")
    assert verify(behind.folder / "runs" / "killed").ok


@pytest.mark.slow
def test_a_budget_ends_in_the_middle_of_an_attempt(behind: Desk, models: Models) -> None:
    """The call that does not fit is not made, its attempt has no result, and a higher limit goes on from there."""
    assert behind.run("run", "config.yaml", "--run", "whole", "--quiet").code == 0
    undisturbed = models.asked
    models.server.requests.clear()
    most = ("--run", "one", "--max-tokens", "2400", "--set=env.workers=1")
    paused = behind.run("run", "config.yaml", *most)
    assert paused.code == 3, paused.err
    assert "budget.max_tokens" in paused.out + paused.err
    assert 0 < models.asked.total() < undisturbed.total()
    assert behind.run("usage", "one", "--json").json["total"]["failed"] == 0
    done = behind.run("resume", "one", "--max-tokens", "10000000", "--quiet")
    assert done.code == 0, done.err
    assert models.asked == undisturbed


def test_each_model_call_counts_once(behind: Desk, models: Models) -> None:
    """In `usage`, `status` and a budget: an attempt that asks through the gateway is itself no call."""
    assert behind.run("run", "config.yaml", "--run", "one", "--quiet", "--set=env.workers=2").code == 0
    used = behind.run("usage", "one", "--json").json
    sent = len(models.server.requests)
    assert (used["total"]["calls"], used["total"]["tries"]) == (sent, sent)
    assert used["by_role"]["target"]["calls"] == models.asked.total()
    assert "did not report" not in behind.run("usage", "one").out
    models.server.requests.clear()
    paused = behind.run("run", "config.yaml", "--run", "two", "--quiet", "--max-calls", "20", "--set=env.workers=4")
    assert paused.code == 3, paused.err
    assert len(models.server.requests) == 20
    assert behind.run("resume", "two", "--quiet", "--max-calls", str(sent)).code == 0
    assert len(models.server.requests) == sent


def test_an_attempt_without_calls_of_its_own_is_one_call(behind: Desk, models: Models) -> None:
    """Its budget of calls holds, too."""
    code = "def answer(task): return task.task.split()[-1] if 'last word' in task.skill.text else 'none'"
    (behind.folder / "my_agent.py").write_text(code)
    paused = behind.run("run", "config.yaml", "--run", "one", "--quiet", "--max-calls", "7", "--set=env.workers=4")
    assert paused.code == 3, paused.err
    assert behind.run("usage", "one", "--json").json["total"]["calls"] == 7
    assert not models.asked


CRASHES = """
import sys, pathlib
pathlib.Path("tried.txt").open("a").write("x")
sys.exit(3)
"""


@pytest.mark.slow
def test_each_try_of_an_agent_that_crashes_is_a_call(behind: Desk) -> None:
    """Live, and in the sessions after it: a budget of eight calls is eight starts of the algorithm."""
    (behind.folder / "crashes.py").write_text(CRASHES)
    command = json.dumps([sys.executable, "crashes.py"])
    words = ("eval", "config.yaml", "--split", "train", "--limit", "6", "--set=model.target_backend=command")
    words = (*words, f"--set=model.target_command={command}", "--set=model.target_backoff_seconds=0.001")
    tried = behind.folder / "tried.txt"
    paused = behind.run(*words, "--max-calls", "8", "--set=env.workers=2")
    assert paused.code == 3, paused.err
    assert "budget.max_calls is 8" in paused.err
    assert len(tried.read_text()) == 8
    again = behind.run(*words, "--max-calls", "8", "--set=env.workers=2")
    assert again.code == 3, again.err
    assert len(tried.read_text()) == 8


ASKS_LATER = TALKS.replace(
    "def answer(task):",
    """TRIED = set()

def answer(task):
    if task.item not in TRIED:
        TRIED.add(task.item)
        raise RuntimeError("not yet")""",
)


def test_a_try_without_calls_counts_beside_one_with_some(behind: Desk, models: Models) -> None:
    """The first try of each task crashes before it asks; the second one asks three times, and is itself no call."""
    (behind.folder / "my_agent.py").write_text(ASKS_LATER)
    words = ("eval", "config.yaml", "--split", "train", "--limit", "2", "--set=model.target_backoff_seconds=0.001")
    done = behind.run(*words, "--max-calls", "8", "--json")
    assert done.code == 0, done.err
    assert models.asked.total() == 6
    [log] = behind.folder.rglob("log.db")
    used = behind.run("usage", str(log.parent), "--json").json["total"]
    assert used["tries"] == 8
    over = behind.run(*words[:5], "3", *words[6:], "--max-calls", "8", "--json")
    assert over.code == 3
    assert "with 8 requests sent so far" in over.err


ASKS_ONCE = """
import json, os, sys
from urllib import request as web
task = json.load(sys.stdin)
body = json.dumps({"messages": [{"role": "user", "content": task["task"]}]}).encode()
asked = web.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body,
                    {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
web.build_opener(web.ProxyHandler({})).open(asked).read()
print(json.dumps({"answer": "none"}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")
def test_a_file_of_keys_that_is_replaced_under_an_agent_is_told_once(behind: Desk, models: Models) -> None:
    """What covers it goes with the file that it covers; one that is changed in its place stays covered."""
    (behind.folder / "asks.py").write_text(ASKS_ONCE)
    keys = behind.folder / ".env"
    keys.write_text("OTHER_KEY=one-0123456789")
    words = ("eval", "config.yaml", "--split", "train", "--limit", "3", "--again", "--set=model.target_backend=command")
    words = (*words, f"--set=model.target_command={json.dumps([sys.executable, 'asks.py'])}")

    def changing(how: Callable[[], object]) -> str:
        models.server.requests.clear()
        models.first = how
        done = behind.run(*words)
        assert done.code == 0, done.err
        return done.err

    def replaced() -> None:
        (behind.folder / "new").write_text("OTHER_KEY=two-0123456789")
        (behind.folder / "new").replace(keys)

    assert "was replaced" not in changing(lambda: keys.write_text("OTHER_KEY=six-0123456789"))
    assert changing(replaced).count(".env was replaced: an isolated agent that ran at that moment could read it") == 1
