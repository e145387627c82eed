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
    """What has a form: all that the pattern matches is taken out, or only its group `x`."""

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


_NO_PASSWORDS = frozenset(
    """
    wrong right correct incorrect invalid valid not too expired required empty missing the this that set unset
    reset still never  being stored hashed encrypted weak strong secure insecure safe unsafe unknown known changed
    old new your our my his her its  same different case longer shorter shown hidden sent asked needed stolen
    leaked lost forgotten in on at of for to a an no  always only also now already compromised accepted rejected
    checked validated optional blank falsch richtig nicht
    """.split()  # noqa: SIM905 -- a list of words
)


def _is_password(text: str) -> bool:
    """Whether what somebody says that a password is may be one."""
    return text.strip(".,;:!?\"'").lower() not in _NO_PASSWORDS


# In this order: what stands first may hold what comes later.
_LABEL = (
    r"(?:[\w-]*(?:passw(?:or)?d|passwor[dt]|passphrase|secret|api[_-]?key|access[_-]?key|account[_-]?key|subscription[_-]?key|token)"
    r"|kennwort|mot de passe|contrase[ñn]a|senha|wachtwoord|пароль|密码|パスワード"
    r"|(?:api|access|subscription|account|storage|license|licence|signing|encryption|private|auth)"
    r" (?:key|token|secret))"
)
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_HOST = r"[\w-]+(?:[.．][\w-]+)+"
_NAME = r"[^\s/\\:\"'<>]+"
_SPACED_NAME = r"[^\s/\\:\"'<>|]{1,40}(?: [^\s/\\:\"'<>|]{1,40}){1,2}(?=/)"
# A short one has a digit and a letter; a comma with something right behind it is a part of it.
_WORD = r"(?:[^\s\"',;]{6,}|(?=[^\s\"']{4})(?=[^\s\"']*\d)(?=[^\s\"']*[^\W\d])[^\s\"',;]{1,5})(?:[,;][^\s\"',;]+)*"
_KINDS = (
    _Kind(
        "key",
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
    ),
    # Addresses that are keys.
    _Kind("key", re.compile(r"(?<=://)[^\s/:@]*:[^\s/@]+(?=@)")),
    # People leave a slash in a password as it is. A number before a slash is a port.
    _Kind("key", re.compile(r"(?<=://)[^\s/:@]{0,100}:(?!\d{1,5}/)[^\s@\"'<>]{1,200}(?=@[\w-])")),
    _Kind(
        "key",
        re.compile(
            r"https://(?:hooks\.slack\.com/\w+/|(?:\w+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/"
            r"|[\w.-]+\.webhook\.office\.com/)[\w@/+%.-]{8,}"
        ),
    ),
    _Kind("key", re.compile(r"(?i)(?<=[?&])(?:sig|x-amz-signature|x-goog-signature)=[\w%+/=-]{20,}")),
    # Keys that say by their first letters whose they are.
    _Kind("key", re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")),
    _Kind(
        "key",
        re.compile(
            r"\b(?:sk-[\w-]{16,}|gh[oprsu]_\w{20,}|github_pat_\w{20,}|gl(?:pat|rt|dt|ptt|cbt|ft)-[\w-]{16,}"
            r"|xox[abeprs](?:\.xox[bp])?-[\w-]{10,}|xapp-[\w-]{10,}"
            r"|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"
            r"|hf_\w{20,}|npm_\w{30,}|pypi-[\w-]{30,}|[prs]k_(?:live|test)_\w{16,}|whsec_[\w+/=]{20,}"
            r"|SG\.[\w-]{16,}\.[\w-]{16,}|do[opr]_v1_[0-9a-f]{32,}|hv[sbr]\.[\w-]{20,}|dapi[0-9a-f]{32}(?:-\d)?"
            r"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,}|key-[0-9a-f]{32}|dckr_[po]at_[\w-]{20,}"
            r"|\w{10,}\.atlasv1\.[\w-]{20,}|AGE-SECRET-KEY-1[0-9A-Z]{20,}|AT[AC]TT3[\w-]{20,}(?:=[0-9A-Fa-f]{8})?"
            r"|[MNO][\w-]{22,27}\.[\w-]{6,7}\.[\w-]{27,45}|\d{8,10}:[A-Za-z0-9_-]{35}(?![\w-])"
            r"|gsk_\w{20,}|xai-\w{20,}|r8_\w{20,}|nvapi-[\w-]{20,}|pplx-\w{20,}|sbp_[0-9a-f]{32,}|lin_api_\w{20,}"
            r"|ntn_\w{20,}|figd_[\w-]{20,}|glsa_\w{20,}|NRAK-\w{20,}|PMAK-[\w-]{20,}|sntry[su]_[\w+/=-]{20,}"
            r"|tskey-[\w-]{16,}|rubygems_[0-9a-f]{32,}|sq0(?:csp|atp)-[\w-]{20,})"
        ),
    ),
    # Keys and passwords behind a word that says so.
    _Kind("key", re.compile(r"(?i)\bbearer {1,3}(?P<x>[\w.~+/-]{12,}=*)")),
    _Kind(
        "key", re.compile(r"(?i)\bauthorization: {0,3}(?:bearer|basic) {1,3}(?P<x>[\w.~+/-]{3,}=*)"), _is_written_out
    ),
    _Kind(
        "key",
        re.compile(
            r"(?i)\bcookie:\s*(?P<x>[\w.-]+=(?:\"[^\"\n]{1,4000}\"|[^\s\"';]{3,})"
            r"(?:;\s*[\w.-]+=(?:\"[^\"\n]{1,4000}\"|[^\s\"';]+))*)"
        ),
    ),
    _Kind("key", re.compile(r"\s(?:-u|--user)[ =](?P<x>[^\s:\"']+:(?=\S*[A-Za-z])[^\s\"']{3,})")),
    _Kind("key", re.compile(r"\s(?:-u|--user)[ =]?([\"'])(?P<x>[^\s:\"']{1,100}:(?!\d+\1)[^\n\"']{1,100})\1")),
    _Kind("key", re.compile(r"\b(?:mysql\w*|mariadb\w*|sshpass)\b[^\n|;]{0,200}?\s-p(?P<x>[^\s\"'-][^\s\"']{2,})")),
    _Kind(
        "key",
        re.compile(r"\b(?:mysql\w*|mariadb\w*|sshpass)\b[^\n|;]{0,200}?\s-p ?([\"'])(?P<x>[^\n\"']{1,100})\1"),
    ),
    _Kind("key", re.compile(r"\bsshpass -p (?P<x>\S{3,})")),
    _Kind("key", re.compile(r"(?i)\slogin\s+\S+\s+password\s+(?P<x>\S{3,})")),
    _Kind("key", re.compile(rf"(?i)(?<![\w-]){_LABEL}\b[^\n]{{0,12}}?\b(?P<x>{_UUID})")),
    _Kind("key", re.compile(rf"(?i)(?<![\w-])(?:{_LABEL}|pin) (?:is|was|ist|lautet) (?=\S*\d)\S{{4,}}")),
    _Kind(
        "key",
        re.compile(
            r"(?i)\b(?:my|our|mein|unser|the (?:root|admin|db|database|wifi|login)) "
            r"(?:password|passphrase|passwort|kennwort) (?:is|was|ist|lautet) (?P<x>\S{4,})(?=\s*(?:$|\n))"
        ),
        _is_password,
    ),
    _Kind(
        "key",
        re.compile(
            rf"(?i)(?<![\w-]){_LABEL}(?:[\"']?\s*[:=：]|\*\*:|:\*\*)\s*(?:\"[^\"\n]{{4,}}\"|'[^'\n]{{4,}}'|{_WORD})"
        ),
    ),
    _Kind("email", re.compile(rf"(?<![\w.+-])[\w.+-]+(?:[@＠]|%40){_HOST}|(?<!\w)\"[^\"\n@]{{1,64}}\"@{_HOST}")),
    _Kind(
        "email",
        re.compile(
            r"(?i)(?<![\w.+-])[\w.+-]+\s?[\[({<]\s?(?:at|@)\s?[\])}>]\s?[\w-]+"
            r"(?:\s?(?:\.|[\[({<]\s?(?:dot|\.)\s?[\])}>])\s?[\w-]+)+"
        ),
    ),
    _Kind("account", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b"), _is_iban),
    _Kind("account", re.compile(r"\b[a-z]{2}\d{2} ?[a-z0-9]{4}(?: ?\d{4}){2,6}(?: ?\d{1,4})?\b"), _is_iban),
    _Kind("card", re.compile(r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d.-]?\d)"), _is_card),
    _Kind("phone", re.compile(r"(?<![\w.])(?:\+|00)\d[\d ()/-]{7,}\d"), _is_phone),
    _Kind("phone", re.compile(r"(?<![\w.])\+[1-9]\d{0,2}(?:[ .-]\d{1,4}){3,6}(?![\w.,-]*\w)"), _is_phone),
    _Kind("phone", re.compile(r"(?<![\w.,-])(?<!\d )1([ .-])[2-9]\d\d\1[2-9]\d\d\1\d{4}(?! ?\d)(?![\w.,-]*\w)")),
    _Kind("phone", re.compile(r"(?<![\w.-])(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}(?![\w.-]*\w)")),
    _Kind("phone", re.compile(r"(?<![\w.-])\([2-9]\d\d\) ?[2-9]\d\d \d{4}(?![\w.-]*\w)")),
    _Kind("phone", re.compile(r"(?<![\w.,-])\(0\d{2,4}\)[ /-]?\d{3,8}(?:[ -]\d{3,5})?(?![\w.,-]*\w)"), _is_phone),
    _Kind("phone", re.compile(r"(?<![\w.,/:+=-])0(?:7\d{9}|1[5-7]\d{8,9}|[67]\d{8})(?![\w.,-]*\w)")),
    _Kind("phone", re.compile(r"(?<![\w.,-])(?<!\d )[2-9]\d\d [2-9]\d\d \d{4}(?! ?\d)(?![\w.,-]*\w)")),
    _Kind("phone", re.compile(r"(?<![\w.,-])0\d{2,4}(?:[ /]{1,3}|-)\d{5,8}(?![\w.,-]*\w)"), _is_phone),
    _Kind("phone", re.compile(r"(?<![\w.,-])(?<!\d )0\d{2,4} \d{3,4} \d{3,4}(?! ?\d)(?![\w.,-]*\w)"), _is_phone),
    _Kind("phone", re.compile(r"(?<![\w.,:-])(?<!\d )0[1-9]([ .-])\d\d(?:\1\d\d){3}(?! ?\d)(?![\w.,:-]*\w)")),
    _Kind("account", re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])")),
    _Kind("address", re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\.?\w)"), _is_address),
    _Kind("address", re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{6,39}(?![\w:])"), _is_long_address),
    _Kind("address", re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![\w:-])")),
    # The name in the path of a home folder, also with a space in it, escaped, or as an agent names its own folders.
    _Kind("home", re.compile(rf"(?i)\b[A-Z]:\\{{1,4}}Users\\{{1,4}}(?:[^\\/:\"'\n<>|]{{1,40}}(?=\\)|{_NAME})")),
    _Kind("home", re.compile(rf"(?:/home/|/Users/|\b[A-Z]:/Users/)(?:{_SPACED_NAME}|{_NAME})")),
    _Kind("home", re.compile(rf"(?i)(?<![\\\w])\\{{2,4}}[\w.-]+\\{{1,2}}(?:users|homes?|profiles)\$?\\{{1,2}}{_NAME}")),
    _Kind("home", re.compile(r"(?<![\w-])-(?:home|Users)-[A-Za-z0-9_.]+(?=-)")),
    _Kind("home", re.compile(r"(?<![\w~/.])~[a-z_][\w-]{1,31}(?=/)")),
    _Kind("home", re.compile(r"(?<![\w@/.+-])(?!git@)[a-z_][\w.-]{1,31}@[A-Za-z][\w-]+(?=:)")),
    # What looks as if it were drawn by chance.
    _Kind("key", re.compile(r"(?<![\w/+.-])[A-Za-z0-9+/_-]{32,}={0,2}(?![\w/+])"), _is_random),
    _Kind("key", re.compile(r"(?<=/)[A-Za-z0-9_-]{32,}={0,2}(?![\w+])"), _is_random),
    _Kind("key", re.compile(r"(?<!\w)0x[0-9a-fA-F]{64}(?!\w)")),
    _Kind("key", re.compile(r"(?<!\w)[A-Za-z]{0,4}[-_]?(?:[0-9a-f]{32,}|[0-9A-F]{32,})(?!\w)"), _is_mixed),
    _Kind("key", re.compile(r"(?<![\w-])[A-Z2-7]{16,}={0,6}(?![\w-])"), _is_seed),
)


# Some people write numbers with these. The patterns see a space in their place, and the text keeps its own.
_SPACES = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " "))


def without_private(text: str) -> Clean:
    """The text with `[email]`, `[key]` and the like in the place of what was found."""
    found: Counter[str] = Counter()
    seen = text.translate(_SPACES)
    for kind in _KINDS:
        group = "x" if "x" in kind.pattern.groupindex else 0
        places = [match.span(group) for match in kind.pattern.finditer(seen) if kind.sure(match[group])]
        if places:
            found[kind.name] += len(places)
            ends = [0, *(end for _, end in places)]
            kept = [text[end:begin] for end, (begin, _) in zip(ends, [*places, (len(text), 0)], strict=True)]
            text = f"[{kind.name}]".join(kept)
            seen = text.translate(_SPACES)
    return Clean(text, dict(found))
