"""The pytest plugin: a project's own tests train and evaluate against a cassette, and say what is not in it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command import KEY as OPENAI_KEY
from support.command import Clerk, command, edit, project
from support.desk import Desk
from support.model_server import ModelServer
from support.project import KEY, KEY_NAME, Endpoint, Project, plain_config

from skillopt_es.cassettes.file import packed, read_cassette
from skillopt_es.cassettes.freezing import freeze
from skillopt_es.cassettes.playing import Playing
from skillopt_es.events.verify import verify
from skillopt_es.ports import ALONE, ChatReply, ChatRequest, Course, Message

pytest_plugins = ["pytester"]

DOCS = Path(__file__).parents[2] / "docs" / "testing.md"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, trained at an endpoint that is gone by now, with its cassette beside the config."""
    folder = tmp_path_factory.mktemp("recorded")
    endpoint = Endpoint()
    with endpoint.server:
        project = Project(folder, plain_config(endpoint.base_url)).set(train={"num_epochs": 1})
        done = Desk(folder, {KEY_NAME: KEY}).run("run", "config.yaml", "--run", "my-run")
        assert done.code == 0, done.err
    assert project.rows
    (folder / "my-run.cassette").write_bytes(packed(freeze(folder / "runs" / "my-run")))
    return folder


@pytest.fixture
def theirs(pytester: pytest.Pytester, recorded: Path) -> pytest.Pytester:
    """A folder with the project and the cassette, and nothing of the run."""
    for name in ("config.yaml", "tasks.jsonl", "SKILL.md", "my-run.cassette"):
        (pytester.path / name).write_bytes((recorded / name).read_bytes())
    return pytester


def test_a_cassette_is_laid_out_once_as_a_run(recorded: Path, tmp_path: Path) -> None:
    """Every reading command knows the folder; nothing has been asked in vain."""
    playing = Playing.of(recorded / "my-run.cassette", tmp_path)
    run = playing.run_folder()
    assert playing.run_folder() == run
    assert verify(run).ok
    assert playing.misses == []


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ModelServer]]:
    """A project as `init` writes it, trained with `search`; its endpoint is still there."""
    config = project(tmp_path_factory.mktemp("searched") / "p", algorithm="search")
    with ModelServer(Clerk(config.parent / "tasks.jsonl")) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        edit(config, "search:\n", "search:\n  first_gates: 3\n")  # fewer than there are
        edit(config, "evaluation:\n", "evaluation:\n  min_items: 3\n")
        done = command("run", config, "--name", "my-run", cwd=config.parent)
        assert done.code == 0, done.err
        done = command("freeze", "my-run", cwd=config.parent)
        assert done.code == 0, done.err
        yield config.parent, server


def test_the_examples_of_the_documentation_pass_once_what_is_missing_is_recorded(
    pytester: pytest.Pytester, searched: tuple[Path, ModelServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they stand there: before that, the second one says in a sentence what is missing, and how to record it."""
    home, server = searched
    for file in (each for each in home.iterdir() if each.is_file()):
        (pytester.path / file.name).write_bytes(file.read_bytes())
    [example] = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    pytester.makepyfile(test_example=example)
    quiet = ("-p", "no:cacheprovider", "-p", "no:randomly")
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
    before = len(server.requests)
    lacking = pytester.runpytest_inprocess(*quiet)
    lacking.assert_outcomes(passed=1, failed=1)
    said = [line for line in lacking.outlines if line.startswith("my-run.cassette has no call at eval/val/item/")]
    assert len(said) == 1
    assert "`pytest --skillopt-record` ask the models and add the answers" in said[0]
    assert not [line for line in lacking.outlines if "Traceback" in line or (".py:" in line and "skillopt_es/" in line)]
    assert len(server.requests) == before
    recording = pytester.runpytest_inprocess("--skillopt-record", *quiet)
    recording.assert_outcomes(passed=2)
    new = len(server.requests) - before
    assert new > 0
    recording.stdout.fnmatch_lines([f"my-run.cassette: {new} call* recorded: eval/val/item/*"])
    monkeypatch.delenv("OPENAI_API_KEY")
    offline = pytester.runpytest_inprocess("--skillopt-record", *quiet)
    offline.assert_outcomes(passed=2)
    assert len(server.requests) - before == new  # nothing is asked twice
    offline.stdout.no_fnmatch_line("*recorded:*")
    added = read_cassette(pytester.path / "my-run.cassette")
    assert len(added.added) == new
    assert server.base_url not in str(added.added)


HI = f"Hi from /home/anna, sk-{'a' * 16}"


def test_a_recorded_call_is_no_part_of_the_run(recorded: Path, tmp_path: Path) -> None:
    """The run that the cassette holds stays whole, and the file vouches for both."""
    file = tmp_path / "my-run.cassette"
    file.write_bytes((recorded / "my-run.cassette").read_bytes())
    playing = Playing.of(file, tmp_path, records=True)
    request = ChatRequest(slot="eval/val/item/new", stage="rollout", messages=(Message("user", HI),), max_tokens=5)
    asked: list[ChatRequest] = []

    class Real:
        identity = "real"

        async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
            asked.append(request)
            return ChatReply(text="Hello", finish="stop")

        async def aclose(self) -> None: ...

    model = playing.recordings.model("target", Real)
    assert [asyncio.run(model.complete(request)).text for _ in range(2)] == ["Hello", "Hello"]
    assert asked == [request]
    assert playing.save() == ("eval/val/item/new",)
    again = Playing.of(file, tmp_path)
    assert asyncio.run(again.recordings.model("target").complete(request)).text == "Hello"
    assert again.cassette.log == playing.cassette.log
    assert verify(again.run_folder()).ok
    assert again.save() == ()
    before, now = playing.cassette.left, again.cassette.left
    assert (now["home"], now["keys"]) == (before.get("home", 0) + 1, before.get("keys", 0) + 1)


def test_a_changed_prompt_fails_and_the_sentence_names_place_and_difference(theirs: pytest.Pytester) -> None:
    """The same cassette, another skill."""
    (theirs.path / "SKILL.md").write_text("# Office\n\nAnswer at once.\n")
    theirs.makepyfile(
        """
        from pathlib import Path

        def test_training(skillopt_cassette):
            skillopt_cassette.train(Path(__file__).parent / "config.yaml")

        def test_swallowed(skillopt_cassette):
            try:
                skillopt_cassette.train(Path(__file__).parent / "config.yaml")
            except Exception:
                pass
        """
    )
    result = theirs.runpytest_inprocess("--skillopt-cassette", "my-run.cassette", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=2)
    said = (
        r".*my-run\.cassette was asked something else at baseline/\S+: message 1 \(system\), line \d+, is '.*' and was"
    )
    result.stdout.re_match_lines([said])


def test_an_unknown_place_and_another_parameter_are_told(theirs: pytest.Pytester) -> None:
    """Whatever is asked through the model itself."""
    theirs.makepyfile(
        """
        import asyncio
        import json

        import pytest
        from attrs import evolve

        from skillopt_es.errors import CassetteMiss
        from skillopt_es.ports import ChatRequest, Message

        @pytest.mark.skillopt_cassette("my-run.cassette")
        def test_misses(skillopt_cassette):
            model = skillopt_cassette.recordings.model("target")
            call = next(each.call for each in skillopt_cassette.cassette.log.calls if each.call.role == "target")
            recorded = call.request.said
            messages = tuple(
                Message(role, skillopt_cassette.cassette.texts[digest].decode())
                for role, digest in recorded["messages"]
            )
            request = ChatRequest(
                slot=call.slot, stage="rollout", messages=messages, max_tokens=recorded["params"]["max_tokens"]
            )
            reply = asyncio.run(model.complete(request))
            assert reply == asyncio.run(model.complete(evolve(request, slot="eval/val/somewhere")))
            assert reply.usage.input == call.input_tokens
            for changed, sentence in (
                (evolve(request, max_tokens=7), f"at {call.slot}: max_tokens is 7 and was"),
                (evolve(request, messages=messages[:1]), f"at {call.slot}: there are 1 messages and there were 2"),
                (evolve(request, slot="e9/s9/x", max_tokens=7), "my-run.cassette has no call at e9/s9/x, and none of"),
            ):
                with pytest.raises(CassetteMiss) as miss:
                    asyncio.run(model.complete(changed))
                assert sentence in str(miss.value)
            assert len(skillopt_cassette.misses) == 3
            skillopt_cassette.misses.clear()
        """
    )
    theirs.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_the_command_in_the_same_process_is_answered_too(theirs: pytest.Pytester) -> None:
    """By the marker alone."""
    theirs.makepyfile(
        """
        import pytest

        from skillopt_es.cli.main import main

        @pytest.mark.skillopt_cassette("my-run.cassette")
        def test_command(capsys):
            with pytest.raises(SystemExit) as done:
                main(["run", "config.yaml", "--run", "again", "--quiet"])
            assert done.value.code == 0
        """
    )
    theirs.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_missing_or_unnamed_cassette_is_told(theirs: pytest.Pytester) -> None:
    """With what to type."""
    theirs.makepyfile("def test_it(skillopt_cassette): pass")
    result = theirs.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs a cassette: pass --skillopt-cassette FILE*"])
    result = theirs.runpytest_inprocess("--skillopt-cassette", "none.cassette", "-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*there is no cassette *none.cassette*"])
