"""`target_backend: http`: an agent behind an address, one POST an attempt; one JSON object in, one out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp
from attrs import evolve, field, frozen

from skillopt_es.adapters.agents.agent import AttemptFailedError, OwnAgent, check_settings
from skillopt_es.adapters.agents.contract import AgentAnswer, read_printed, task_json
from skillopt_es.adapters.agents.trajectories import UnreadableError
from skillopt_es.adapters.models.endpoint import refused, setting
from skillopt_es.adapters.models.errors import Failure, failure
from skillopt_es.errors import ConfigError
from skillopt_es.ports import AgentTask, ChatModel, FailureKind, ModelSettings, provider

# Each attempt would meet the same (RFC 9110: not let in, no such path or method), so the run pauses at once.
_SYSTEMIC: Mapping[int, FailureKind] = {401: "auth", 403: "auth", 404: "config", 405: "config"}
_QUOTED = 300  # a sentence or two of what the agent said; some frameworks answer an error with a whole page


@frozen
class HttpWay:
    """Posts the task to the address; a connection is never shared, so that no attempt meets another's end."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    most_bytes: int
    as_json: bool = False

    @property
    def identity(self) -> str:
        """Where it is."""
        return f"agent http {self.url}"

    async def answer(self, task: AgentTask) -> AgentAnswer:
        """What the address answers."""
        deadline = aiohttp.ClientTimeout(total=task.deadline_seconds)
        async with aiohttp.ClientSession(timeout=deadline) as session:
            try:
                async with session.post(
                    self.url, json=task_json(task), headers=self.headers, allow_redirects=False
                ) as reply:
                    body = await _body(reply, self.most_bytes)
            except TimeoutError:
                raise TimeoutError from None
            except aiohttp.ClientConnectorError as error:
                # It never had the task, so another try costs nothing.
                raise AttemptFailedError(
                    failure("transport", f"{self.url} is not reached: {error.os_error}")
                ) from error
            except aiohttp.ClientError as error:
                said = f"the agent broke off before its answer: {type(error).__name__}: {error}"
                raise AttemptFailedError(failure("crash", said)) from error
        if reply.status != 200:
            raise AttemptFailedError(_refusal(reply.status, _quoted(body)))
        return read_printed(body.decode(errors="replace"), as_json=self.as_json)

    async def within_reach(self) -> str:
        """Nothing that we could know: somebody else started it."""
        return ""


async def _body(reply: aiohttp.ClientResponse, most: int) -> bytes:
    body = bytearray()
    async for chunk in reply.content.iter_chunked(65_536):
        body += chunk
        if len(body) > most:
            raise UnreadableError(f"it sent more than {most} bytes")
    return bytes(body)


def _quoted(body: bytes) -> str:
    text = " ".join(body.decode(errors="replace").split())
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and isinstance(value.get("error"), str):
        text = value["error"]
    return f": {text[:_QUOTED]}" if text else ""


def _refusal(status: int, said: str) -> Failure:
    """What a status means that is no answer: only one that says `not now` is worth another try."""
    message = f"the agent answered with HTTP {status}{said}"
    if status in _SYSTEMIC:
        return failure(_SYSTEMIC[status], message, status=status)
    if status in (429, 503):
        return evolve(failure("rate_limit", message, status=status), retry=True)
    if status in (408, 504):
        return evolve(failure("timeout", message, status=status), retry=False)
    return failure("crash", message, status=status)


@provider(agent=True)
def open_model(settings: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """The agent as configured; raises ConfigError for an address or a key that cannot be used."""
    check_settings(settings)
    assert settings.agent is not None
    url = settings.agent.url.strip()
    parts = urlsplit(url)
    if not url:
        raise refused(settings, "url", " is not set", hint="such as http://127.0.0.1:8000/answer")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise refused(settings, "url", f" must be like http://127.0.0.1:8000/answer, not {url!r}")
    key = ""
    if settings.api_key_env:
        key = environ.get(settings.api_key_env, "").strip()
        if not key:
            where = setting(settings.role, "api_key_env")
            raise ConfigError(
                f"the environment variable {settings.api_key_env} is not set, but {where} names it",
                hint=f"export {settings.api_key_env}=…, or set {where} to an empty text if the agent needs no key",
            )
    headers = {**settings.extra_headers, **({"Authorization": f"Bearer {key}"} if key else {})}
    way = HttpWay(url, headers, settings.max_reply_bytes, settings.agent.json_answers)
    return OwnAgent(way, settings, (key,) if key else ())
