"""What base.yaml and backends.yaml say behind each key: the one place where a setting is explained to people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from skillopt_es.config.own_keys import FILE
from skillopt_es.config.places import packaged

_SECTION = re.compile(r"(\w+):")
_KEY = re.compile(r"  (\w+): .*?\s# (.+)")


@cache
def remarks() -> Mapping[str, str]:
    """The remark on each key, by its dotted name."""
    own = {f"model.{key}": remark for _, key, remark in _remarks_of(FILE)}
    return {**{f"{section}.{key}": remark for section, key, remark in _remarks_of("base.yaml")}, **own}


def _remarks_of(file: str) -> Iterator[tuple[str, str, str]]:
    section = ""
    for line in packaged(file).read_text(encoding="utf-8").splitlines():
        if head := _SECTION.fullmatch(line):
            section = head[1]
        elif key := _KEY.fullmatch(line):
            yield section, key[1], key[2]
