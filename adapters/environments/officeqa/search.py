"""A search engine over HTTP: one POST a query, over https or to this machine, the token never in clear."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping

import httpx
from attrs import field, frozen

from skillopt_es.adapters.environments.officeqa.options import OfficeOptions
from skillopt_es.adapters.environments.text import last_tagged, shorten
from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.errors import ConfigError, SettingRefused
from skillopt_es.events.values import Json

WAITS = (1.0, 2.0, 4.0, 8.0)  # the original's four waits, doubled each time
_MOST_BYTES = 2 << 20  # of an answer of some results: more is no list of them, and would fill the memory
_LONGEST_QUERY = 400  # a model that writes a page in place of a query would be refused by most engines
_REFUSED_QUERY = frozenset({400, 413, 414, 422})  # RFC 9110: too long or not understood; another query may do better
_LISTS = ("results", "items", "data", "organic", "organic_results", "search_results", "webPages", "value")
_TITLES, _LINKS = ("title", "name"), ("url", "link", "href")
_SNIPPETS = ("snippet", "description", "content", "text", "body", "summary")


class SearchFailed(Exception):
    """The engine gave no answer, after all tries that make sense."""


@frozen
class _Again(Exception):
    """A try that may be made once more."""

    why: str


@frozen(kw_only=True)
class SearchEngine:
    """The engine that the config names."""

    url: str
    token: str = field(repr=False)
    provider: str
    results: int
    seconds: float
    client: httpx.AsyncClient = field(repr=False)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def found(self, query: str) -> str:
        """What the engine finds, as text for the target; raises SearchFailed."""
        why = ""
        for wait in (*WAITS, None):
            try:
                return await self._once(query)
            except _Again as failed:
                why = failed.why
            if wait is not None:
                await self.sleep(wait)
        raise SearchFailed(f"the search engine gave no answer in {len(WAITS) + 1} tries: {why}")

    async def aclose(self) -> None:
        """Close connections."""
        await self.client.aclose()

    async def _once(self, query: str) -> str:
        body = {"query": query, "max_num_results": self.results, "provider": self.provider}
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            async with (
                asyncio.timeout(self.seconds),
                self.client.stream("POST", self.url, json=body, headers=headers) as response,
            ):
                status, data = response.status_code, await _bounded(response)
        except (httpx.RequestError, TimeoutError) as error:
            raise _Again(type(error).__name__) from None
        # These may pass; any other answer would be the same again.
        if status in (408, 429) or status >= 500:
            raise _Again(f"HTTP {status}")
        if status in _REFUSED_QUERY:
            return f"(the search engine refuses this query: HTTP {status})"
        if status != 200:
            raise SearchFailed(f"the search engine answered HTTP {status}")
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            raise SearchFailed("what the search engine answered is not JSON") from None
        shown = "\n\n".join(list(_shown(answer))[: self.results]) or "(nothing found)"
        return Redactor([self.token]).reply(shown)


def open_search(options: OfficeOptions, environ: Mapping[str, str]) -> SearchEngine:
    """The engine as configured; raises ConfigError for an address or a token that it cannot work with."""
    url = _checked_url(options.search_api_url)
    encrypted = url.scheme == "https"
    token = environ.get(options.search_auth_env, "").strip() if encrypted else ""
    if encrypted and not token:
        raise ConfigError(
            f"the environment variable {options.search_auth_env} is not set, but env.search_auth_env names it",
            hint="export it with the search engine's token",
        )
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(f"the environment variable {options.search_auth_env} holds something that cannot be a token")
    client = httpx.AsyncClient(timeout=options.search_timeout_seconds, trust_env=encrypted, follow_redirects=False)
    return SearchEngine(
        url=str(url),
        token=token,
        provider=options.search_provider,
        results=options.search_max_num_results,
        seconds=options.search_timeout_seconds,
        client=client,
    )


def queries_in(reply: str, most: int) -> list[str]:
    """The queries that a reply asks for, each once, in order: JSON, or a line each."""
    text = last_tagged(reply, "search_queries")
    if not text:
        return []
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = [line.strip().lstrip("-*•").strip().strip("\"'").strip() for line in text.splitlines()]
    if isinstance(given, dict):
        given = next((given[key] for key in ("queries", "search_queries", "query") if key in given), None)
    listed = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    queries = (shorten(query.strip(), _LONGEST_QUERY) for query in listed if isinstance(query, str))
    return list(dict.fromkeys(query for query in queries if query))[:most]


def _checked_url(text: str) -> httpx.URL:
    hint = "name the search engine's https address, or one of this machine such as http://localhost:8080/search"
    if not text.strip():
        raise SettingRefused("env.search_api_url", " is not set, but env.search_mode is custom_search", hint=hint)
    try:
        url = httpx.URL(text.strip())
    except httpx.InvalidURL as error:
        raise SettingRefused("env.search_api_url", f" is not a URL: {error}", hint=hint) from None
    if url.userinfo:
        raise SettingRefused(
            "env.search_api_url", " holds credentials", hint="put the token into env.search_auth_env's variable"
        )
    if not url.host or not (url.scheme == "https" or (url.scheme == "http" and _is_this_machine(url.host))):
        raise SettingRefused("env.search_api_url", f" is {text!r}, which is neither https nor this machine", hint=hint)
    return url


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


async def _bounded(response: httpx.Response) -> bytes:
    data = b""
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > _MOST_BYTES:
            raise SearchFailed(f"the search engine answered more than {_MOST_BYTES >> 20} MiB")
    return data


def _shown(answer: Json, depth: int = 0) -> Iterator[str]:
    """The results in an answer, wherever it keeps them."""
    if isinstance(answer, dict) and depth < 3:
        yield from _shown(next((answer[key] for key in _LISTS if answer.get(key)), None), depth + 1)
    elif isinstance(answer, list):
        for entry in answer:
            lines = _lines(entry) if isinstance(entry, dict) else []
            if lines:
                yield "\n".join(lines)


def _lines(entry: Mapping[str, Json]) -> list[str]:
    limits = ((_TITLES, 200), (_LINKS, 300), (_SNIPPETS, 1500))
    texts = ((next((entry[key] for key in keys if isinstance(entry.get(key), str)), ""), most) for keys, most in limits)
    return [shorten(" ".join(str(text).split()), most) for text, most in texts if text]
