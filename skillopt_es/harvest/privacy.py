"""
Takes keys and personal data out of what people said, before anything else looks at it. Pure.

Only what has a recognizable form is found. A name in plain words is not: that is what the review is for.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Mapping

from attrs import frozen

Check = Callable[[str], bool]


@frozen
class Clean:
    """A text without what was found in it, and how often each kind was."""

    text: str
    found: Mapping[str, int]


@frozen
class _Kind:
    name: str
    pattern: re.Pattern[str]
    sure: Check = bool


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
    return len(parts) >= 3 and any(each.isdigit() for each in text) and not known.is_loopback


def _is_random(text: str) -> bool:
    """Letters of both cases and digits in one long word: no word of a language, and no path."""
    return bool(re.search(r"[a-z]", text) and re.search(r"[A-Z]", text) and len(re.findall(r"\d", text)) >= 4)


# In this order: what stands first may hold what comes later.
_KINDS = (
    _Kind(
        "key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
    ),
    _Kind("key", re.compile(r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)")),
    _Kind("key", re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")),
    _Kind(
        "key",
        re.compile(
            r"\b(?:sk-[\w-]{16,}|gh[opsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abps]-[\w-]{10,}"
            r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|hf_\w{20,}|npm_\w{30,}|pypi-[\w-]{30,}|[prs]k_(?:live|test)_\w{16,}"
            r"|SG\.[\w-]{16,}\.[\w-]{16,})"
        ),
    ),
    _Kind("key", re.compile(r"(?i)(?<=bearer )[\w.~+/-]{12,}=*")),
    _Kind("key", re.compile(r"(?i)(?<=authorization: basic )[\w+/-]{6,}=*")),
    _Kind("key", re.compile(r"(?<=\s-u )[^\s:\"']+:(?=\S*[A-Za-z])[^\s\"']{3,}")),
    _Kind("key", re.compile(r"(?i)\b(?:password|passphrase|pin) (?:is|was) (?=\S*\d)\S{4,}")),
    _Kind(
        "key",
        re.compile(
            r"(?i)(?<![\w])(?:[\w-]*(?:passw(?:or)?d|secret|api[_-]?key|access[_-]?key|token))[\"']?\s*[:=]\s*"
            r"(?:\"[^\"\n]{4,}\"|'[^'\n]{4,}'|[^\s\"',;]{6,})"
        ),
    ),
    _Kind("email", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    _Kind("account", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b"), _is_iban),
    _Kind("card", re.compile(r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d.-]?\d)"), _is_card),
    _Kind("phone", re.compile(r"(?<![\w.])(?:\+|00)\d[\d ()/-]{7,}\d"), _is_phone),
    _Kind("phone", re.compile(r"(?<![\w.-])(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}(?![\w.-]*\w)")),
    _Kind("phone", re.compile(r"(?<![\w.,-])0\d{2,4}[ /]{1,3}\d{5,8}(?![\w.,-]*\w)"), _is_phone),
    _Kind("account", re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])")),
    _Kind("address", re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"), _is_address),
    _Kind("address", re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{6,39}(?![\w:])"), _is_long_address),
    _Kind("address", re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![\w:-])")),
    _Kind("home", re.compile(r"(?:/home/|/Users/|[A-Z]:\\Users\\)[^\s/\\:\"']+")),
    _Kind("key", re.compile(r"(?<![\w/+.-])[A-Za-z0-9+/_-]{32,}={0,2}(?![\w/+])"), _is_random),
    _Kind("key", re.compile(r"(?<!\w)[0-9a-f]{40,}(?!\w)")),
)


def without_private(text: str) -> Clean:
    """The text with `[email]`, `[key]` and the like in the place of what was found."""
    found: Counter[str] = Counter()
    for kind in _KINDS:

        def replaced(match: re.Match[str], kind: _Kind = kind) -> str:
            if not kind.sure(match[0]):
                return match[0]
            found[kind.name] += 1
            return f"[{kind.name}]"

        text = kind.pattern.sub(replaced, text)
    return Clean(text, dict(found))
