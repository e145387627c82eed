"""What endpoints call their errors, their fields and some of their models: data that grows with their releases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import cattrs
from attrs import frozen


@frozen
class Known:
    """
    Codes of errors by what they mean, and what a user can do about a field that is refused.

    `responses_only` are models that exist behind the responses endpoint only, by name or with a dated ending. An error
    inside a 200, mid-stream for example, has no status: `status_of` tells by its type which one it would have had.
    """

    responses_only: tuple[str, ...]
    quota_codes: frozenset[str]
    context_codes: frozenset[str]
    filter_codes: frozenset[str]
    model_codes: frozenset[str]
    slow_codes: frozenset[str]
    status_of: Mapping[str, int]
    field_hints: Mapping[str, str]


KNOWN = cattrs.structure(json.loads(Path(__file__).with_name("known.json").read_text(encoding="utf-8")), Known)
