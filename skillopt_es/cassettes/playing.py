"""A cassette in use: a world in which models say what they said then, and all else is as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from attrs import define, field

from skillopt_es.cassettes.answers import RecordedModel, Recordings
from skillopt_es.cassettes.file import Cassette, read_cassette
from skillopt_es.cassettes.freezing import thaw
from skillopt_es.config import RunConfig, load_config
from skillopt_es.events.values import Role, Split
from skillopt_es.sessions.evaluation import Evaluated, EvaluationRequest, evaluate
from skillopt_es.sessions.opening import Session
from skillopt_es.sessions.session import start
from skillopt_es.sessions.start import load_skill

_BEGAN = datetime(2000, 1, 1, tzinfo=UTC)


@define(eq=False)
class Playing:
    """
    One cassette for one test; `folder` is where the runs of the test are written.

    `misses` are the sentences of what was asked and is not in the cassette. The fixture fails a test that has some,
    also where an environment caught the error; `misses.clear()` says that a test expects them.
    """

    cassette: Cassette
    folder: Path
    recordings: Recordings = field(repr=False)

    @classmethod
    def of(cls, path: Path, folder: Path) -> Playing:
        """The cassette in a file; raises CassetteDamaged for a file that is none."""
        cassette = read_cassette(path)
        return cls(cassette, folder, Recordings(cassette, path.name))

    @property
    def misses(self) -> list[str]:
        """What was asked in vain."""
        return self.recordings.misses

    def open_model(self, config: RunConfig, role: Role, environ: Mapping[str, str]) -> RecordedModel:
        """The model of a role, whatever the config says: no key and no network are needed."""
        return self.recordings.model(role)

    def run_folder(self) -> Path:
        """The frozen run itself, laid out as a folder for every reading command."""
        folder = self.folder / "runs" / self.cassette.log.run.name
        if not folder.exists():
            thaw(self.cassette, folder)
        return folder

    def train(self, config: Path | None = None, overrides: Sequence[str] = (), name: str = "replayed") -> Path:
        """Trains as `skillopt-es run` does, under a clock that stands still; the new run's folder."""
        folder = self.folder / "runs" / name
        asyncio.run(start(load_config(config, overrides), folder, _session()))
        return folder

    def evaluate(self, config: Path | None = None, split: Split = "val", overrides: Sequence[str] = ()) -> Evaluated:
        """Scores the config's skill on a split as `skillopt-es eval` does."""
        loaded = load_config(config, overrides)
        request = EvaluationRequest(
            config=loaded,
            skill=load_skill(loaded)[0],
            splits=(split,),
            limit=0,
            directory=self.folder / "evals",
            stem=self.cassette.log.run.name,
        )
        return asyncio.run(evaluate(request, _session(), lambda *_: None))


def _session() -> Session:
    return Session(now=lambda: _BEGAN, clock=lambda: 0.0)
