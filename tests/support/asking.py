"""The page over run folders: asked in process, and served on loopback where one lasts. Needs the extra."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from attrs import Factory, field, frozen

from support.ready import PATIENCE

uvicorn = pytest.importorskip("uvicorn", reason="the page needs the extra `ui`")
pytest.importorskip("starlette", reason="the page needs the extra `ui`")

from skillopt_es.ui.app import application  # noqa: E402
from skillopt_es.ui.safety import Rules  # noqa: E402
from skillopt_es.ui.serving import listening  # noqa: E402

HOST = "127.0.0.1:8765"


@frozen(kw_only=True)
class Asking:
    """Somebody who asks the page over a directory, signed in or not."""

    directory: Path
    rules: Rules = field(factory=lambda: Rules(host="127.0.0.1", port=8765))
    app: Any = field(
        init=False, repr=False, default=Factory(lambda self: application(self.directory, self.rules), takes_self=True)
    )

    def get(self, path: str, *, signed_in: bool = True, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """The answer to a request for a page."""
        return self._ask("GET", path, {**self._who(signed_in), **(headers or {})}, None)

    def post(
        self, path: str, fields: Mapping[str, str], *, signed_in: bool = True, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """The answer to a form of ours, unless `headers` say otherwise."""
        own = {"origin": f"http://{HOST}", **self._who(signed_in), **(headers or {})}
        return self._ask("POST", path, own, {"form_token": self.rules.form_token, **fields})

    def _who(self, signed_in: bool) -> dict[str, str]:
        return {"cookie": f"{self.rules.cookie}={self.rules.token}"} if signed_in else {}

    def _ask(
        self, method: str, path: str, headers: Mapping[str, str], data: Mapping[str, str] | None
    ) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
                return await client.request(method, f"http://{HOST}{path}", headers=headers, data=data)

        return asyncio.run(ask())


@contextmanager
def serving(directory: Path, *, read_only: bool = False) -> Iterator[Rules]:
    """The page over a directory, served on loopback until the block ends."""
    with listening("127.0.0.1", 0) as socket:
        rules = Rules(host="127.0.0.1", port=socket.getsockname()[1], read_only=read_only)
        config = uvicorn.Config(
            application(directory, rules),
            log_level="critical",
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[socket])), daemon=True)
        thread.start()
        try:
            yield rules
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
