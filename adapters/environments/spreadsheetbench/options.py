"""SpreadsheetBench's own keys under `env:`."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

from skillopt_es.adapters.environments.options import one_of, parsed_by, positive_int, text, yes_or_no
from skillopt_es.adapters.environments.spreadsheetbench.cells import Scoring
from skillopt_es.adapters.sandboxes.opening import Mode as SandboxMode

Mode = Literal["single", "multi", "react"]


@frozen(kw_only=True)
class SpreadsheetOptions:
    """
    How tasks are put, where code is run and how cells are compared.

    `use_eval_feedback` tells the target in `multi` mode which cells of a training item are wrong (not what they should
    be); an item that is only scored never gets it.
    """

    mode: Mode = field(default="single", metadata=parsed_by(one_of("single", "multi", "react")))
    max_turns: int = field(default=30, metadata=parsed_by(positive_int))
    data_root: str = field(default="", metadata=parsed_by(text))
    sandbox: SandboxMode = field(default="confined", metadata=parsed_by(one_of("confined", "unconfined")))
    scoring: Scoring = field(default="upstream", metadata=parsed_by(one_of("upstream", "extended")))
    use_eval_feedback: bool = field(default=False, metadata=parsed_by(yes_or_no))
