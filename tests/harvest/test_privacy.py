"""What has the form of a key or of personal data is taken out; what only looks a bit like it stays."""

from __future__ import annotations

import pytest

from skillopt_es.harvest.privacy import without_private


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("my key is sk-proj-abcdef0123456789abcdef", "my key is [key]"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ and AKIAIOSFODNN7EXAMPLE", "[key] and [key]"),
        ("Authorization: Bearer abcdef0123456789.xyz", "Authorization: Bearer [key]"),
        ("db at postgres://ann:secret@host/db", "db at postgres://[key]@host/db"),
        ('password = "hunter22" is old', "[key] is old"),
        ("API_KEY=abc123def next", "[key] next"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nend", "[key]\nend"),
        ("token eyJhbGciOiJI.eyJzdWIiOiIx.abc-def", "token [key]"),
        ("write to jane.doe+x@mail.example.org.", "write to [email]."),
        ("call +49 170 1234567 or 0044 20 7946 0958", "call [phone] or [phone]"),
        ("card 4111 1111 1111 1111", "card [card]"),
        ("to DE89 3704 0044 0532 0130 00 please", "to [account] please"),
        ("host 10.20.30.40 is down", "host [address] is down"),
        ("see /home/jane/work/a.py and C:\\Users\\Jane\\b", "see [home]/work/a.py and [home]\\b"),
        ("a3f5" * 10, "[key]"),
        ("mail with SG.abcdefghijklmnop1234.ABCDEFGHIJKLMNOP5678", "mail with [key]"),
        ("pay with rk_live_abcdefghijklmnop1234", "pay with [key]"),
        ("Authorization: Basic YW5uOnNlY3JldA==", "Authorization: Basic [key]"),
        ("curl -u ann:secret https://host", "curl -u [key] https://host"),
        ("the password is hunter22, thanks", "the [key] thanks"),
        ("call (555) 123-4567, 555-123-4567 or 0170 1234567.", "call [phone], [phone] or [phone]."),
        ("number 078-05-1120", "number [account]"),
        ("at fe80::1ff:fe23:4567:890a or 2001:db8:0:0:0:0:2:1", "at [address] or [address]"),
        ("card 00:1a:2b:3c:4d:5e", "card [address]"),
    ],
)
def test_private_things_are_taken_out(text: str, clean: str) -> None:
    """With a word that says of what kind they were."""
    assert without_private(text).text == clean


@pytest.mark.parametrize(
    "text",
    [
        "version 1.2.3.4567 of 2026-11-19, order 4111111111111112",
        "127.0.0.1 and localhost",
        "a skill for tokens: how many tokens does a word have?",
        "the quick brown fox jumps over the lazy dog in SomeVeryLongClassNameWithoutAnyDigitsInIt",
        "docs/decisions/0010-which-rule-safe-uses.md and tests/acceptance/test_interruption.py",
        "commit 1a2b3c4",
        "at 12:30:45, std::vector::at, a::b::c, ::1 and 10:20",
        "docker run -u 1000:1000 image",
        "the password is wrong, and has to be longer than 8 characters",
        "2026-11-19, 2026-11-1934, pages 100-200, 0.1234567, 007 and 0800",
    ],
)
def test_ordinary_texts_stay_as_they_are(text: str) -> None:
    """Dates, versions, paths, and words about such things."""
    found = without_private(text)
    assert (found.text, found.found) == (text, {})


def test_what_was_taken_out_is_counted() -> None:
    """By kind."""
    assert without_private("a@b.cc, c@d.ee, 10.1.1.1").found == {"email": 2, "address": 1}
