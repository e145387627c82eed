"""OfficeQA's own keys under `env:`."""

from __future__ import annotations

import os
from typing import Literal

from attrs import field, frozen

from skillopt_es.adapters.environments.officeqa.evaluator import Scoring
from skillopt_es.adapters.environments.options import (
    one_of,
    parsed_by,
    positive_int,
    positive_number,
    text,
    yes_or_no,
)
from skillopt_es.events.values import Json

SearchMode = Literal["offline", "custom_search"]


def folders(value: Json) -> tuple[str, ...]:
    """The value as names of folders: a list, or text with commas or the system's path separator between them."""
    parts = value.replace(os.pathsep, ",").split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError("must be a folder or a list of folders")
    return tuple(part.strip() for part in map(str, parts) if part.strip())


def search_mode(value: Json) -> str:
    """The value, when it is a mode that there is; `custom` is the original's other name for one."""
    names = {"offline": "offline", "custom_search": "custom_search", "custom": "custom_search"}
    if not isinstance(value, str) or value not in names:
        raise ValueError("must be one of offline, custom_search (a provider's own web search is not offered)")
    return names[value]


@frozen(kw_only=True)
class OfficeOptions:
    """
    Which documents there are, how the target gets at them, and how answers are compared.

    `oracle_pages` puts the text of the pages that hold the answer before the target; scores with it are scores of
    reading and computing, not of finding.
    """

    data_dirs: tuple[str, ...] = field(default=(), metadata=parsed_by(folders))
    docs_dirs: tuple[str, ...] = field(default=(), metadata=parsed_by(folders))
    search_mode: SearchMode = field(default="offline", metadata=parsed_by(search_mode))
    use_local_tools: bool = field(default=True, metadata=parsed_by(yes_or_no))
    oracle_pages: bool = field(default=False, metadata=parsed_by(yes_or_no))
    max_tool_turns: int = field(default=24, metadata=parsed_by(positive_int))
    max_queries_per_turn: int = field(default=4, metadata=parsed_by(positive_int))
    scoring: Scoring = field(default="skillopt", metadata=parsed_by(one_of("skillopt", "extended")))
    search_api_url: str = field(default="", metadata=parsed_by(text))
    search_auth_env: str = field(default="OFFICEQA_CUSTOM_SEARCH_AUTH", metadata=parsed_by(text))
    search_provider: str = field(default="duckduckgo", metadata=parsed_by(text))
    search_max_num_results: int = field(default=4, metadata=parsed_by(positive_int))
    search_timeout_seconds: float = field(default=20.0, metadata=parsed_by(positive_number))

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders with documents; `docs_dirs` is another name for `data_dirs`."""
        return (*self.data_dirs, *self.docs_dirs)

    @property
    def with_tools(self) -> bool:
        """Whether the target reads documents with tools."""
        return self.search_mode == "offline" and self.use_local_tools
