"""OfficeQA with a search engine: rounds, queries, retries, and where the token goes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from attrs import evolve
from support.environments import SKILL, Target, data_settings, open_on
from support.made_officeqa import questions, write_officeqa

from skillopt_es.adapters.environments.officeqa.environment import OfficeQA
from skillopt_es.adapters.environments.officeqa.options import OfficeOptions
from skillopt_es.adapters.environments.officeqa.search import SearchEngine, SearchFailed, open_search, queries_in
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import Episode

TOKEN = "made-token-0123456789"
URL = "https://search.example/find"
ASK = '<search_queries>["receipts, 1939", "bulletin"]</search_queries>'
Handler = Callable[[httpx.Request], httpx.Response]


def options(**changes: Any) -> OfficeOptions:
    return OfficeOptions(**{"search_mode": "custom_search", "search_api_url": URL, **changes})


def engine(handler: Handler, waits: list[float] | None = None, **changes: Any) -> SearchEngine:
    """An engine whose answers come from a function, and whose waits are noted instead of waited."""

    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    found = open_search(options(**changes), {"OFFICEQA_CUSTOM_SEARCH_AUTH": TOKEN})
    return evolve(found, client=httpx.AsyncClient(transport=httpx.MockTransport(handler)), sleep=sleep)


def searched(handler: Handler, waits: list[float] | None = None, **changes: Any) -> str:
    return asyncio.run(engine(handler, waits, **changes).found("q"))


def replying(status: int, body: Any) -> Handler:
    return lambda _: httpx.Response(status, json=body)


def tried(folder: Path, monkeypatch: pytest.MonkeyPatch, handler: Handler, target: Target, **more: Any) -> Episode:
    """One episode in rounds; no documents are needed."""
    monkeypatch.setenv("OFFICEQA_CUSTOM_SEARCH_AUTH", TOKEN)
    write_officeqa(folder)
    data = data_settings(split_mode="split_dir", split_dir=str(folder / "split"))
    environment = open_on(folder, "officeqa", data, search_mode="custom", search_api_url=URL, **more)
    assert isinstance(environment, OfficeQA)
    environment._engine = engine(handler)

    async def attempt() -> Episode:
        episode = await environment.attempt(environment.load().train[0], SKILL, target, seed=1)
        await environment.aclose()
        return episode

    return asyncio.run(attempt())


def test_rounds_of_searching_end_with_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results come back in the order of the queries, with what may be done next."""

    def find(request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        assert asked == {"query": asked["query"], "max_num_results": 4, "provider": "duckduckgo"}
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        return httpx.Response(200, json={"results": [{"title": f"About {asked['query']}", "url": "u", "snippet": "s"}]})

    answer = questions("train")[0]["answer"]
    target = Target([ASK, f"<answer>{answer}</answer>"])
    episode = tried(tmp_path, monkeypatch, find, target, max_tool_turns=2)
    assert (episode.outcome, episode.turns) == (Measured(1, 1), 2)
    assert "## Round 1 of 2\nSearch (at most 4 queries) or answer." in target.asked[0][1].content
    results = target.asked[1][3].content
    assert results.startswith(
        "## Results for 'receipts, 1939'\nAbout receipts, 1939\nu\ns\n\n## Results for 'bulletin'"
    )
    assert results.endswith("This is the last round: answer now, inside <answer> and </answer> tags.")
    assert TOKEN not in repr((episode, target.asked))
    assert [record.kind for record in episode.records] == ["system", "user", "reply", "user", "reply", "feedback"]


@pytest.mark.parametrize(
    ("replies", "code", "turns"),
    [
        ([ASK], "budget_exhausted", 3),
        (["I do not know"], "format", 1),
        ([""], "no_answer", 1),
        ([ASK, "<search_queries>[]</search_queries>"], "format", 2),
        (["<answer>x</answer>"], "wrong_answer", 1),
    ],
)
def test_rounds_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replies: Sequence[str], code: str, turns: int
) -> None:
    """Have codes, and measure 0."""
    target = Target(replies)
    episode = tried(tmp_path, monkeypatch, replying(200, []), target, max_tool_turns=3)
    assert (episode.failure, episode.turns, episode.outcome) == (code, turns, Measured(0, 0))
    assert len([record for record in episode.records if record.kind == "reply"]) == turns


def test_an_outage_of_the_engine_is_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The item is not measured."""
    episode = tried(tmp_path, monkeypatch, replying(401, {}), Target([ASK]))
    assert episode.outcome == Failed("search", "the search engine answered HTTP 401")


@pytest.mark.parametrize(
    ("reply", "queries"),
    [
        ('["a, b", "c"]', ["a, b", "c"]),
        ('["a, b"]', ["a, b"]),
        ('{"queries": ["a", "a", 3, " "]}', ["a"]),
        ('{"query": "a"}', ["a"]),
        ('"a"', ["a"]),
        ('- a\n* "b"\n', ["a", "b"]),
        ("", []),
        ("null", []),
        ("{}", []),
    ],
)
def test_queries_are_read_as_they_are_meant(reply: str, queries: list[str]) -> None:
    """A comma does not end a query."""
    assert queries_in(f"<search_queries>{reply}</search_queries>", 4) == queries
    assert queries_in(reply, 4) == []


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ([{"title": "t", "link": "l"}], "t\nl"),
        ({"webPages": {"value": [{"name": "n", "snippet": "s  s"}]}}, "n\ns s"),
        ({"data": {"items": [{"title": "t"}, "x", {"other": 1}]}}, "t"),
        ({"organic": [{"title": str(number)} for number in range(9)]}, "0\n\n1\n\n2\n\n3"),
        ({"results": []}, "(nothing found)"),
        (3, "(nothing found)"),
        ([{"title": f"your key is {TOKEN}"}], "your key is [redacted]"),
    ],
)
def test_results_are_found_wherever_they_are(answer: Any, shown: str) -> None:
    """At most as many as the config says, and never with the token."""
    assert searched(replying(200, answer)) == shown


def test_what_may_pass_is_tried_again_with_longer_waits() -> None:
    """Four times; then the search has failed."""
    waits: list[float] = []
    answers = iter([httpx.Response(429), httpx.Response(503), httpx.Response(200, json=[{"title": "t"}])])
    assert searched(lambda _: next(answers), waits) == "t"
    assert waits == [1, 2]

    def down(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"with {TOKEN}")

    with pytest.raises(SearchFailed, match=r"no answer in 5 tries: ConnectError$"):
        searched(down, waits)
    assert waits == [1, 2, 1, 2, 4, 8]


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (httpx.Response(302, headers={"Location": "http://elsewhere.example"}), "HTTP 302"),
        (httpx.Response(403), "HTTP 403"),
        (httpx.Response(200, text="<html>"), "not JSON"),
        (httpx.Response(200, content=b"x" * (3 << 20)), "more than 2 MiB"),
    ],
)
def test_what_cannot_be_used_fails_at_once(response: httpx.Response, error: str) -> None:
    """A redirect is not followed."""
    with pytest.raises(SearchFailed, match=error):
        searched(lambda _: response)


def test_a_query_that_is_refused_is_told_to_the_target() -> None:
    """It may ask for another."""
    assert searched(replying(422, {})) == "(the search engine refuses this query: HTTP 422)"


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("", "env.search_api_url is not set"),
        ("http://search.example/", "neither https nor this machine"),
        ("http://127.0.0.1.example/", "neither https nor this machine"),
        ("ftp://localhost/", "neither https nor this machine"),
        ("https://", "neither https nor this machine"),
        ("https://user:pass@search.example/", "holds credentials"),
        ("https://x:port/", "is not a URL"),
    ],
)
def test_addresses_that_are_refused(url: str, error: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError, match=error):
        open_search(options(search_api_url=url), {"OFFICEQA_CUSTOM_SEARCH_AUTH": TOKEN})


def test_the_token_goes_over_https_only() -> None:
    """This machine is asked without it; over https it is needed, and in no text of ours."""
    environ = {"OFFICEQA_CUSTOM_SEARCH_AUTH": TOKEN}
    for url in ("http://localhost:8080/s", "http://127.0.0.1:1/", "http://[::1]:1/"):
        assert open_search(options(search_api_url=url), environ).token == ""
    with pytest.raises(ConfigError, match="MINE is not set"):
        open_search(options(search_auth_env="MINE"), environ)
    with pytest.raises(ConfigError, match="cannot be a token"):
        open_search(options(), {"OFFICEQA_CUSTOM_SEARCH_AUTH": "a\nb"})
    assert TOKEN not in repr(open_search(options(), environ))

    def plain(request: httpx.Request) -> httpx.Response:
        assert "Authorization" not in request.headers
        return httpx.Response(200, json=[])

    assert searched(plain, search_api_url="http://localhost/") == "(nothing found)"


def test_a_slow_answer_is_ended() -> None:
    """By the whole time it takes, however often a byte comes."""

    async def slow() -> str:
        async def never(_: httpx.Request) -> httpx.Response:
            await asyncio.sleep(60)
            raise AssertionError

        async def at_once(_: float) -> None: ...

        client = httpx.AsyncClient(transport=httpx.MockTransport(never))
        found = open_search(options(search_timeout_seconds=0.01), {"OFFICEQA_CUSTOM_SEARCH_AUTH": TOKEN})
        return await evolve(found, client=client, sleep=at_once).found("q")

    with pytest.raises(SearchFailed, match="TimeoutError"):
        asyncio.run(slow())
