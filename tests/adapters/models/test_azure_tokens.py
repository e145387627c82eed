"""Signing in to Azure: where tokens come from, when they are renewed, and where they never go."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from attrs import define, evolve, field
from support.chat import question, settings
from support.fake_time import FakeTime
from support.model_server import Answer, ModelServer
from support.ready import PATIENCE
from support.wires import FORMATS, Said

from skillopt_es.adapters.models import azure, azure_tokens
from skillopt_es.adapters.models.credentials import Token, TokenCache
from skillopt_es.adapters.models.errors import Failure, failure
from skillopt_es.adapters.models.http_model import Outside
from skillopt_es.errors import ConfigError
from skillopt_es.ports import CallFailed, ChatModel, ChatReply, ModelSettings

TOKEN = "eyJ0.canary-token-0123456789abcdef.sig"
SECRET = "client-secret-canary-0123456789"
RESOURCE = "https://cognitiveservices.azure.com"


def trusted(server: ModelServer, mode: str, **changes: Any) -> ModelSettings:
    """Settings for a loopback server that is allowed to be sent a token."""
    base_url = server.base_url.removesuffix("/v1")
    return evolve(
        settings(base_url), backend="azure_openai", auth_mode=mode, allow_hosts="127.0.0.1", attempts=2, **changes
    )


def ask(given: ModelSettings, environ: Mapping[str, str], calls: int = 1) -> list[ChatReply | CallFailed]:
    """What became of calls that were all started at once."""

    async def one(model: ChatModel) -> ChatReply | CallFailed:
        try:
            return await model.complete(question())
        except CallFailed as failed:
            return failed

    async def scenario() -> list[ChatReply | CallFailed]:
        clock = FakeTime()
        model = azure.open_model(given, environ, Outside(clock=clock.clock, sleep=clock.sleep))
        try:
            return list(await asyncio.gather(*(one(model) for _ in range(calls))))
        finally:
            await model.aclose()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(scenario())


def answering(_body: Any, headers: Mapping[str, str]) -> Answer:
    """An endpoint that wants our token."""
    if headers.get("authorization") == f"Bearer {TOKEN}":
        return FORMATS["azure-v1"].answer(Said())
    return FORMATS["azure-v1"].refusal(401, "401", "Access denied due to invalid subscription key or wrong endpoint.")


@define
class Signer:
    """A loopback endpoint that gives tokens; what it was asked is kept."""

    answer: Callable[[str], tuple[int, Any]]
    asked: list[tuple[str, str, dict[str, str], str]] = field(factory=list)
    url: str = ""


@pytest.fixture
def signer() -> Iterator[Callable[..., Signer]]:
    """Starts such endpoints, and stops them."""
    started: list[ThreadingHTTPServer] = []

    def start(status: int = 200, body: Any = None) -> Signer:
        given = {"access_token": TOKEN, "expires_on": str(int(time.time()) + 3600)} if body is None else body
        state = Signer(lambda _: (status, given))

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.respond("")

            def do_POST(self) -> None:
                self.respond(self.rfile.read(int(self.headers["content-length"])).decode())

            def respond(self, sent: str) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                state.asked.append((self.command, self.path, headers, sent))
                status, content = state.answer(self.path)
                data = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Silent."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        started.append(server)
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        return state

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def fake_az(folder: Path, script: str) -> dict[str, str]:
    """A PATH whose `az` is this shell script."""
    program = folder / "az"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)}


# The command line


def test_the_azure_cli_is_asked_once_for_many_calls(tmp_path: Path) -> None:
    """With the resource of the scope, a closed stdin, and warnings on stderr that do not matter."""
    said = json.dumps({"accessToken": TOKEN, "expires_on": int(time.time()) + 3600, "tokenType": "Bearer"})
    environ = fake_az(
        tmp_path, f"echo \"$@\" >> {tmp_path}/asked; echo 'WARNING: old' >&2; cat >/dev/null; echo '{said}'"
    )
    with ModelServer(answering) as server:
        replies = ask(trusted(server, "azure_cli"), environ, calls=8)
        assert {type(reply) for reply in replies} == {ChatReply}
        assert all("api-key" not in received.headers for received in server.requests)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [f"account get-access-token --output json --resource {RESOURCE}"]


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("echo \"ERROR: Please run 'az login' to setup account.\" >&2; exit 1", "auth", "run `az login`"),
        ("echo 'the tenant is gone' >&2; exit 1", "auth", "the tenant is gone"),
        ("echo 'not json'", "auth", "without a token"),
        ("echo '{}'", "auth", "without a token"),
    ],
)
def test_a_cli_without_a_token_is_one_sentence(tmp_path: Path, script: str, kind: str, words: str) -> None:
    """The endpoint is not called, and the hint says what to do."""
    with ModelServer(answering) as server:
        [failed] = ask(trusted(server, "azure_cli"), fake_az(tmp_path, script))
        assert server.requests == []
    assert isinstance(failed, CallFailed)
    assert (failed.kind, failed.systemic) == (kind, True)
    assert words in failed.message
    assert "az login" in failed.hint


def test_a_cli_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is left, and the call may be tried again."""
    monkeypatch.setattr(azure_tokens, "CLI_SECONDS", 0.2)
    environ = fake_az(tmp_path, f"sleep 900 & echo $! > {tmp_path}/child; wait")
    with ModelServer(answering) as server:
        [failed] = ask(trusted(server, "azure_cli"), environ)
    assert isinstance(failed, CallFailed)
    assert failed.kind == "transport"
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{child}").exists() and "\nState:\tZ" not in Path(f"/proc/{child}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Identities


def test_app_service_identity(signer: Callable[..., Signer]) -> None:
    """The endpoint and the header that the platform sets."""
    place = signer()
    environ = {"IDENTITY_ENDPOINT": f"{place.url}/msi/token", "IDENTITY_HEADER": "shh"}
    with ModelServer(answering) as server:
        [reply] = ask(trusted(server, "managed_identity", managed_identity_client_id="me"), environ)
    assert isinstance(reply, ChatReply)
    [(method, path, headers, _)] = place.asked
    assert (method, urlsplit(path).path, headers["x-identity-header"]) == ("GET", "/msi/token", "shh")
    assert parse_qs(urlsplit(path).query) == {
        "resource": [RESOURCE],
        "client_id": ["me"],
        "api-version": ["2019-08-01"],
    }


def test_machine_learning_identity(signer: Callable[..., Signer]) -> None:
    """Its older names."""
    place = signer()
    with ModelServer(answering) as server:
        [reply] = ask(trusted(server, "managed_identity"), {"MSI_ENDPOINT": f"{place.url}/msi", "MSI_SECRET": "shh"})
    assert isinstance(reply, ChatReply)
    assert place.asked[0][2]["secret"] == "shh"


def test_a_virtual_machine_s_identity(signer: Callable[..., Signer]) -> None:
    """The metadata service, never through a proxy."""
    place = signer()
    environ = {"AZURE_POD_IDENTITY_AUTHORITY_HOST": place.url, "HTTP_PROXY": "http://127.0.0.1:9"}
    with ModelServer(answering) as server:
        [reply] = ask(trusted(server, "managed_identity"), environ)
    assert isinstance(reply, ChatReply)
    [(_, path, headers, _)] = place.asked
    assert (urlsplit(path).path, headers["metadata"]) == ("/metadata/identity/oauth2/token", "true")


def test_a_workload_s_identity(signer: Callable[..., Signer], tmp_path: Path) -> None:
    """The federated token is exchanged, read anew each time."""
    place = signer(body={"access_token": TOKEN, "expires_in": 3600})
    (tmp_path / "federated").write_text("assertion-1\n")
    environ = {
        "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "federated"),
        "AZURE_CLIENT_ID": "client",
        "AZURE_TENANT_ID": "tenant",
        "AZURE_AUTHORITY_HOST": place.url,
    }
    with ModelServer(answering) as server:
        for mode in ("workload_identity", "managed_identity"):
            [reply] = ask(trusted(server, mode), environ)
            assert isinstance(reply, ChatReply)
    method, path, _, form = place.asked[0]
    assert (method, path) == ("POST", "/tenant/oauth2/v2.0/token")
    assert parse_qs(form) == {
        "grant_type": ["client_credentials"],
        "scope": [f"{RESOURCE}/.default"],
        "client_id": ["client"],
        "client_assertion_type": ["urn:ietf:params:oauth:client-assertion-type:jwt-bearer"],
        "client_assertion": ["assertion-1"],
    }


def test_a_service_principal(signer: Callable[..., Signer]) -> None:
    """Its secret is sent to the login endpoint and shown nowhere."""
    environ = {"AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_SECRET": SECRET}
    place = signer()
    with ModelServer(answering) as server:
        [reply] = ask(trusted(server, "service_principal"), {**environ, "AZURE_AUTHORITY_HOST": place.url})
        assert isinstance(reply, ChatReply)
        bad = signer(401, {"error": "invalid_client", "error_description": f"AADSTS7000215: bad secret {SECRET}"})
        [failed] = ask(trusted(server, "service_principal"), {**environ, "AZURE_AUTHORITY_HOST": bad.url})
    assert isinstance(failed, CallFailed)
    assert failed.kind == "auth"
    assert "AADSTS7000215" in failed.message
    assert SECRET not in f"{vars(failed)}"
    assert "AZURE_CLIENT_SECRET" in failed.hint


def test_a_token_service_that_is_down_is_tried_again(signer: Callable[..., Signer]) -> None:
    """Like any other outage."""
    place = signer()
    good, seen = place.answer(""), []

    def flaky(path: str) -> tuple[int, Any]:
        seen.append(path)
        return (503, {}) if len(seen) == 1 else good

    place.answer = flaky
    with ModelServer(answering) as server:
        [reply] = ask(trusted(server, "managed_identity"), {"AZURE_POD_IDENTITY_AUTHORITY_HOST": place.url})
    assert isinstance(reply, ChatReply)
    assert [one.kind for one in reply.tries] == ["server"]


# Life of a token


class Tokens:
    """A source that numbers its tokens, each good for an hour."""

    def __init__(self) -> None:
        self.made = 0

    async def __call__(self, now: float) -> Token | Failure:
        self.made += 1
        await asyncio.sleep(0)
        return Token(f"token-{self.made}", now + 3600)


def test_a_token_is_renewed_before_it_ends_by_one_caller() -> None:
    """Five minutes ahead; a hundred callers are one request."""

    async def scenario() -> None:
        clock, source = FakeTime(), Tokens()
        cache = TokenCache(source, wall_clock=clock.clock)
        assert set(await asyncio.gather(*(cache.token() for _ in range(100)))) == {"token-1"}
        clock.now += 3299
        assert await cache.token() == "token-1"
        clock.now += 2
        assert set(await asyncio.gather(*(cache.token() for _ in range(100)))) == {"token-2"}
        cache.forget("token-1")
        assert await cache.token() == "token-2"
        cache.forget("token-2")
        assert set(await asyncio.gather(*(cache.token() for _ in range(100)))) == {"token-3"}

    asyncio.run(scenario())


def test_an_old_token_is_used_to_its_end_when_there_is_no_new_one() -> None:
    """A token service that is down for a minute is not noticed."""
    clock = FakeTime(now=0.0)
    answers: list[Token | Failure] = [Token("old", 1000.0), failure("server", "down"), failure("server", "down")]

    async def source(_: float) -> Token | Failure:
        return answers.pop(0)

    async def scenario() -> None:
        cache = TokenCache(source, wall_clock=clock.clock)
        assert await cache.token() == "old"
        clock.now = 900.0
        assert await cache.token() == "old"
        clock.now = 1001.0
        assert isinstance(await cache.token(), Failure)

    asyncio.run(scenario())


def test_a_failure_to_get_a_token_is_not_kept() -> None:
    """The next call asks again."""
    answers: list[Token | Failure] = [failure("server", "down"), Token("good", 1e12)]

    async def source(_: float) -> Token | Failure:
        return answers.pop(0)

    async def scenario() -> None:
        cache = TokenCache(source, wall_clock=lambda: 0.0)
        assert isinstance(await cache.token(), Failure)
        assert await cache.token() == "good"

    asyncio.run(scenario())


def test_a_refused_token_is_renewed_once(signer: Callable[..., Signer]) -> None:
    """A 401 is one more chance with a new token, then an error."""
    place = signer()
    numbers = iter(range(100))
    place.answer = lambda _: (200, {"access_token": f"{TOKEN}{next(numbers)}", "expires_in": 3600})
    environ = {"AZURE_POD_IDENTITY_AUTHORITY_HOST": place.url}

    def second_is_good(_body: Any, headers: Mapping[str, str]) -> Answer:
        good = headers["authorization"] == f"Bearer {TOKEN}1"
        return FORMATS["azure-v1"].answer(Said()) if good else FORMATS["azure-v1"].refusal(401, "401", "expired")

    with ModelServer(second_is_good) as server:
        [reply] = ask(trusted(server, "managed_identity"), environ)
        assert isinstance(reply, ChatReply)
        assert [(one.kind, one.status) for one in reply.tries] == [("token_renewed", 401)]
        [failed] = ask(trusted(server, "managed_identity"), environ)
    assert isinstance(failed, CallFailed)
    assert failed.kind == "auth"
    assert [one.kind for one in failed.tries] == ["token_renewed", "auth"]


def test_a_token_that_is_echoed_is_shown_nowhere(signer: Callable[..., Signer]) -> None:
    """It is a secret like a key."""
    place = signer()

    def echo(_body: Any, headers: Mapping[str, str]) -> Answer:
        return FORMATS["azure-v1"].refusal(400, "bad", f"you sent {headers['authorization']}")

    with ModelServer(echo) as server:
        [failed] = ask(trusted(server, "managed_identity"), {"AZURE_POD_IDENTITY_AUTHORITY_HOST": place.url})
    assert isinstance(failed, CallFailed)
    assert TOKEN not in f"{vars(failed)}"


# Where tokens go


@pytest.mark.parametrize(
    ("base_url", "allow", "words"),
    [
        ("https://models.example.com", "", "allow_hosts"),
        ("https://x.openai.azure.com.evil.test", "", "allow_hosts"),
        ("https://evilopenai.azure.com", "", "allow_hosts"),
        ("http://x.openai.azure.com", "", "https"),
        ("http://127.0.0.1:8000", "", "allow_hosts"),
        ("http://models.example.com", "models.example.com", "https"),
        ("", "", "is not set"),
    ],
)
def test_a_token_goes_to_azure_only_and_only_over_tls(base_url: str, allow: str, words: str) -> None:
    """Anything else has to be named; loopback may then be plain."""
    given = evolve(settings(base_url), backend="azure_openai", auth_mode="service_principal", allow_hosts=allow)
    environ = {"AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_SECRET": SECRET}
    with pytest.raises(ConfigError) as caught:
        azure.open_model(given, environ)
    assert words in f"{caught.value} {caught.value.hint}"
    assert "model.target_base_url" in caught.value.message


@pytest.mark.parametrize(
    "base_url",
    [
        "https://x.openai.azure.com",
        "https://x.cognitiveservices.azure.com/",
        "https://x.services.ai.azure.com/openai/v1",
        "https://X.OpenAI.Azure.US",
    ],
)
def test_azure_s_own_hosts_are_trusted(base_url: str) -> None:
    """The public and the sovereign clouds."""
    given = evolve(settings(base_url), backend="azure_openai", auth_mode="service_principal")
    environ = {"AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_SECRET": SECRET}
    assert azure.open_model(given, environ).identity.startswith("azure-openai https://")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"auth_mode": "azure_cli"}, "az login"),
        ({"auth_mode": "auto"}, "az login"),
        ({"auth_mode": "workload_identity"}, "AZURE_TENANT_ID"),
        ({"auth_mode": "service_principal"}, "AZURE_TENANT_ID"),
        ({"auth_mode": "api_key"}, "model.target_api_key_env"),
        ({"auth_mode": "api_key", "api_key_env": "NO_SUCH"}, "NO_SUCH"),
        ({"auth_mode": "api_key", "api_version": "2024"}, "model.target_api_version"),
        ({"base_url": "https://x.openai.azure.com/openai/deployments/small"}, "model.target"),
        ({"region": "global_en"}, "model.target_region"),
        ({"thinking": "enabled"}, "model.target_thinking"),
    ],
)
def test_what_is_missing_to_sign_in_is_one_sentence(changes: Mapping[str, Any], words: str) -> None:
    """With the setting or the variable, before any call."""
    given = evolve(settings("https://x.openai.azure.com"), backend="azure_openai", **changes)
    with pytest.raises(ConfigError) as caught:
        azure.open_model(given, {"PATH": "/nowhere"})
    assert words in f"{caught.value.message} {caught.value.hint}"
