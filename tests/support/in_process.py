"""A command run in the test's own process: what it printed and the code it ended with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen

from skillopt_es.cli.main import main


@frozen
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """The lines on stdout."""
        return self.out.splitlines()


Cli = Callable[..., Done]


def called(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs commands and takes what they print."""

    def run(*words: object) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        assert "bug in skillopt-es" not in err, err
        return Done(stopped.value.code, out, err)

    return run
