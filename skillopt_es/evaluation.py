"""
Scoring any skill on any split, outside a training run.

An evaluation has a folder with a log of its own. Its calls are journaled under `eval/<split>/<item>`, so one that was
interrupted goes on where it stopped, and one that is repeated costs nothing. Answers are graded anew each time (a
grader may have been mended since); only results that the log does not have yet are recorded, as another pass.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

from attrs import asdict, evolve, field, frozen

from skillopt_es.adapters.environments.data import canonical_json
from skillopt_es.config import RunConfig
from skillopt_es.errors import BackendError, DataError, Interrupted
from skillopt_es.events.catalog import RolloutCompleted, RunPaused, RunResumed, RunStarted, SkillScored
from skillopt_es.events.journal import CallRow
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import SkillTree, Split, digest_of
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import Splits
from skillopt_es.projections.trainer import TrainerState, fold
