"""What base.yaml says behind each key: the one place where a setting is explained to people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from skillopt_es.config.places import packaged

_SECTION = re.compile(r"(\w+):")
_KEY = re.compile(r"  (\w+): .*?\s# (.+)")


@cache
def remarks() -> Mapping[str, str]:
    """The remark on each key, by its dotted name."""
    found, section = {}, ""
    for line in packaged("base.yaml").read_text(encoding="utf-8").splitlines():
        if head := _SECTION.fullmatch(line):
            section = head[1]
        elif key := _KEY.fullmatch(line):
            found[f"{section}.{key[1]}"] = key[2]
    return found
