"""
Takes keys and personal data out of what people said, before anything else looks at it. Pure.

Only what has a recognizable form is found. A name in plain words is not: that is what the review is for.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml
from attrs import frozen

Check = Callable[[str], bool]


@frozen
class Clean:
    """A text without what was found in it, and how often each kind was."""

    text: str
    found: Mapping[str, int]


@frozen
class _Kind:
    """What has a form: all that the pattern matches is taken out, or only its group `x`."""

    name: str
    pattern: re.Pattern[str]
    sure: Check


def _digits(text: str) -> str:
    return "".join(each for each in text if each.isdigit())


def _is_card(text: str) -> bool:
    """Whether a number has the check digit of payment cards (Luhn); others are order numbers and the like."""
    digits = [int(each) for each in reversed(_digits(text))]
    doubled = [each if place % 2 == 0 else sum(divmod(2 * each, 10)) for place, each in enumerate(digits)]
    return 13 <= len(digits) <= 19 and sum(doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    """Whether an account number has its check digits right (ISO 7064)."""
    plain = "".join(text.split())
    return int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1


def _is_phone(text: str) -> bool:
    """A date or a version has fewer digits."""
    return 9 <= len(_digits(text)) <= 15


def _is_address(text: str) -> bool:
    """Four numbers below 256 that are no version of this or that: the loopback address says nothing about anybody."""
    parts = [int(part) for part in text.split(".")]
    return all(part < 256 for part in parts) and parts[0] not in (0, 127)


def _is_long_address(text: str) -> bool:
    """One of a machine in the newer form: no time of day, and none of a language's names with two colons."""
    parts = [part for part in text.split(":") if part]
    try:
        known = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    # Of two parts only, it is one where the first has four digits, as in `fe80::1`; one that ends so is a network's.
    short = len(parts) == 2 and len(parts[0]) == 4 and parts[0][0] in "23fF" and not text.endswith("::")
    enough = len(parts) >= 3 or short
    return enough and any(each.isdigit() for each in text) and not known.is_loopback


def _is_random(text: str) -> bool:
    """Letters of both cases and digits in one long word: no word of a language, and no path."""
    if not (re.search(r"[a-z]", text) and re.search(r"[A-Z]", text)):
        return False
    return len(re.findall(r"\d", text)) >= 4 or _is_drawn(text)


_WORDS = 0.4  # of its characters: a text drawn by chance has that much in such runs one time in twenty


def _is_drawn(text: str) -> bool:
    """Whether few of its characters are in runs of small letters; most of a name that is made of words are."""
    runs = sum(map(len, re.findall(r"[a-z]{3,}", text)))
    return any(each.isdigit() for each in text) and runs < _WORDS * len(text)


def _is_written_out(text: str) -> bool:
    """No word such as TOKEN, which stands for what is meant."""
    return not (text.isalpha() and text.isupper())


def _is_seed(text: str) -> bool:
    """Digits in more than one place: a constant's name has them in one, if at all."""
    return len(re.findall(r"\d+", text.rstrip("=0123456789"))) >= 2


def _is_mixed(text: str) -> bool:
    """Letters and digits: a long number and a long word are none of it."""
    return any(each.isdigit() for each in text) and any(each.isalpha() for each in text)


def _is_password(text: str) -> bool:
    """Whether what somebody says that a password is may be one."""
    return text.strip(".,;:!?\"'").lower() not in _data()["no_passwords"].split()


_CHECKS: Mapping[str, Check] = {
    each.__name__.removeprefix("_"): each
    for each in (
        *(_is_card, _is_iban, _is_phone, _is_address, _is_long_address),
        *(_is_random, _is_written_out, _is_seed, _is_mixed, _is_password),
    )
}


@cache
def _data() -> Any:  # noqa: ANN401 - what YAML gives
    return yaml.safe_load(resources.files(__package__).joinpath("privacy.yaml").read_text(encoding="utf-8"))


@cache
def _kinds() -> tuple[_Kind, ...]:
    """What is looked for, in order; read when a first text is cleaned."""
    kinds: list[_Kind] = []
    for each in _data()["kinds"]:
        pattern = "".join(each["pattern"])
        for name, piece in _data()["pieces"].items():
            pattern = pattern.replace(f"{{{{{name}}}}}", "".join(piece))
        check = _CHECKS[each["sure"]] if "sure" in each else bool
        kinds.append(_Kind(each["name"], re.compile(pattern), check))
    return tuple(kinds)


# Some people write numbers with these. The patterns see a space in their place, and the text keeps its own.
_SPACES = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " "))


def without_private(text: str) -> Clean:
    """The text with `[email]`, `[key]` and the like in the place of what was found."""
    found: Counter[str] = Counter()
    seen = text.translate(_SPACES)
    for kind in _kinds():
        group = "x" if "x" in kind.pattern.groupindex else 0
        places = [match.span(group) for match in kind.pattern.finditer(seen) if kind.sure(match[group])]
        if places:
            found[kind.name] += len(places)
            ends = [0, *(end for _, end in places)]
            kept = [text[end:begin] for end, (begin, _) in zip(ends, [*places, (len(text), 0)], strict=True)]
            text = f"[{kind.name}]".join(kept)
            seen = text.translate(_SPACES)
    return Clean(text, dict(found))
