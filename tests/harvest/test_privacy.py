"""What has the form of a key or of personal data is taken out; what only looks a bit like it stays."""

from __future__ import annotations

import argparse
import inspect
import random
import typing
import zipfile
from pathlib import Path
from pydoc_data import topics
from random import Random
from string import ascii_letters, digits

from support.params import each_of, parametrized

from skillopt_es.harvest.privacy import without_private

ROOT = Path(__file__).parents[2]

HEX = "0123456789abcdef" * 4
MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ"
SECRET = "wJalrXUtnFEMI/KaMDENG/bPxRfiCYEXAMPLEKEY"  # of Amazon's documentation, with few digits
UUID = "0d5b1f7e-3c2a-4e7b-9f10-8a6c5d4e3b2a"
KEYS = {
    "AWS, temporary": "ASIAIOSFODNN7EXAMPLE",
    "AWS, secret": "wJalr7UtnFEMI/K7MDENG/bPxRfiCYzEXaMpLeKy",
    "Google, token": f"ya29.a0{MIXED}-{MIXED}",
    "Google, secret": f"GOCSPX-{MIXED}",
    "DigitalOcean": f"dop_v1_{HEX}",
    "Vault": f"hvs.CAES{MIXED}",
    "Databricks": f"dapi{HEX[:32]}",
    "Shopify": f"shpat_{HEX[:32]}",
    "Mailgun": f"key-{HEX[:32]}",
    "Docker": f"dckr_pat_{MIXED}",
    "Terraform": f"{MIXED[:14]}.atlasv1.{MIXED}{MIXED}",
    "age": f"AGE-SECRET-KEY-1{MIXED.upper()}",
    "Discord, bot": f"M{MIXED[:23]}.G{MIXED[:5]}.{MIXED}{MIXED[:12]}",
    "Slack, app": f"xapp-1-{MIXED}",
    "GitHub, refresh": f"ghr_{MIXED}",
    "Atlassian": f"ATATT3xFfGF0{MIXED}-{MIXED[:8]}_x=1A2B3C4D",
    "Telegram": f"1234567890:AA{MIXED}{MIXED[:7]}",
    "Slack, address": f"https://hooks.slack.com/services/T0AAAA000/B0BBBB000/{MIXED}",
    "Discord, address": f"https://discord.com/api/webhooks/123456789012345678/{MIXED}{MIXED}",
    "Twilio": f"SK{HEX[:32]}",
    "hex": HEX[:32],
    "hex in capitals": HEX[:32].upper(),
    "base32": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
    "hex with 0x": f"0x{HEX}",
    "PGP": "-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK-----",
}


@each_of("kind", KEYS)
def test_a_key_is_taken_out_whole(kind: str) -> None:
    """Wherever it stands: in a sentence, in quotes, in JSON, at an end of a line."""
    key = KEYS[kind]
    for text in (f"use {key} for it", f'"{key}"', f'{{"it": "{key}", "n": 1}}', f"a\n{key}\nb", f"({key}),"):
        assert without_private(text).text == text.replace(key, "[key]")


SAID = {
    f"https://a.blob.core.windows.net/c/b?sv=2024&sig={MIXED}%2B{MIXED}%3D": MIXED,
    f"Cookie: session={MIXED[:12]}; theme=dark": MIXED[:12],
    f"the subscription key is {UUID}": UUID,
    f"api key: {UUID}": UUID,
    "Passwort: hundehütte": "hundehütte",
    "mot de passe : baguette": "baguette",
    "my password is swordfish": "swordfish",
    "Our password is Swordfish.": "Swordfish",
    "mysql -u root -phunter db": "hunter",
    "mysqldump -h x -pHunter2 db": "Hunter2",
    "sshpass -p hunter ssh x": "hunter",
    "machine example.org login ann password hunter": "hunter",
    'mail "jane doe"@example.org please': "jane",
    "https://x.org/?to=jane.doe%40example.org": "jane.doe",
    "jane.doe [at] example [dot] org": "jane.doe",
    "jane.doe(at)example.org": "jane.doe",
    "ｊａｎｅ＠ｅｘａｍｐｌｅ．ｏｒｇ": "ｊａｎｅ",
    "call 020 7946 0958 today": "7946",
    "appelez 06 12 34 56 78.": "12 34",
    "call 415 555 2671 now": "555",
    "call +33.6.12.34.56.78": "6.12",
    'curl -u "admin:pw" https://h': "pw",
    "curl --user admin:hunter2 https://h": "hunter2",
    "mysql -u root -p'pw' db": "'pw'",
    'mysqldump -p"my pw" db': "my pw",
    "redis://:pw@host/0": ":pw",
    "postgres://bob:S3/cretPw@host/db": "cretPw",
    f"Ocp-Apim-Subscription-Key: {UUID}": UUID,
    "- **Password:** hunter": "hunter",
    "**Password**: hunter2": "hunter2",
    "password: ab1c": "ab1c",
    "password: hunter2,and,more3 x": "more3",
    "password: ab,cd1 x": "cd1",
    "Authorization: Bearer  abc": "abc",
    f"Bearer  {MIXED}": MIXED,
    'Cookie: sid="abc"; b="c d"': "c d",
    "the host is 10.20.30.40.": "10.20",
    "call (202) 555 0143": "0143",
    "call 1-800-555-0199.": "0199",
    "call (030) 12345678": "1234",
    "call 030-12345678": "1234",
    "call 07700900123, please": "9001",
    "call (020) 7946 0958": "7946",
    "call 0171-1234567": "1234",
    "call 020\u00a07946\u00a00958": "7946",
    "in /Users/John Smithson/x": "Smithson",
    "in C:/Users/John Smith/x": "Smith",
    f"see https://example.org/{MIXED}{MIXED}": MIXED,
    "card 4111\u00a01111\u00a01111\u00a01111": "1111",
    "to DE89\u202f3704\u202f0044\u202f0532\u202f0130\u202f00 please": "3704",
    "at fe80::1, port 80": "fe80",
    "to de89 3704 0044 0532 0130 00 please": "3704",
    "to gb29 nwbk 6016 1331 9268 19.": "6016",
    r"C:\\Users\\Jane\\proj": "Jane",
    r"C:\Users\Jane Doe\proj": "Doe",
    "cd ~jane/proj": "jane",
    "in .claude/projects/-home-jane-proj/x": "jane",
    r"\\server\users\jane\proj": "jane",
    "scp a jane@laptop:b": "jane",
}


@each_of("text", SAID)
def test_what_was_said_is_not_left(text: str) -> None:
    """The words around it may stay."""
    assert SAID[text] not in without_private(text).text


def test_a_secret_of_amazons_is_found_also_with_few_digits() -> None:
    """Forty characters drawn by chance; one in eight has fewer than four digits."""
    drawn = Random(0)
    secrets = ["".join(drawn.choices(f"{ascii_letters}{digits}+/", k=40)) for _ in range(1000)]
    left = [secret for secret in secrets if secret in without_private(f"it is {secret} then").text]
    assert len(left) <= 10


CORPORA = {
    "our own pages": lambda: [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")],
    "our own code": lambda: [file for file in ROOT.glob("skillopt_es/**/*.py") if file.name != "privacy.py"],
    "Python's own code": lambda: [
        Path(module.__file__ or "") for module in (argparse, inspect, random, typing, zipfile)
    ],
}


@parametrized("name", CORPORA, by_default=2)
def test_ordinary_texts_are_left_alone(name: str) -> None:
    """At most two places in 100,000 characters, examples of addresses and of labels with a value among them."""
    texts = [file.read_text(encoding="utf-8") for file in CORPORA[name]()]
    found = sum(sum(without_private(text).found.values()) for text in texts)
    assert found <= 2 * sum(map(len, texts)) / 100_000


def test_pages_of_plain_english_are_left_alone() -> None:
    """Python's own help, 465,000 characters."""
    found = [without_private(text).found for text in topics.topics.values()]
    assert sum(sum(each.values()) for each in found) <= 2


@each_of(
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


@each_of(
    "text",
    [
        "version 1.2.3.4567 of 2026-11-19, order 4111111111111112",
        "127.0.0.1 and localhost",
        "a skill for tokens: how many tokens does a word have?",
        "the quick brown fox jumps over the lazy dog in SomeVeryLongClassNameWithoutAnyDigitsInIt",
        "docs/dev/decisions/0010-which-rule-safe-uses.md and tests/acceptance/test_interruption.py",
        "commit 1a2b3c4",
        "my password is wrong, our password is too short and my password is not stored",
        "an x = ~mask & 3, and ~ 3 of 4",
        "a table: 100 200 3000 and 415 555 2672 88 99",
        "in the year 2024 06 12 was a day; 0.05 12 34 56 78 90",
        "+1.234567890 and -0.1234567 and 00:11:22",
        "SomeVeryHTTPLongClassNameWithXMLParserAndBase64InIt",
        "the api key is missing, and the access token is expired",
        "-home-made bread, /usr/share/users/doc",
        "at 12:30:45, std::vector::at, a::b::c, ::1 and 10:20",
        "docker run -u 1000:1000 image",
        "the password is wrong, and has to be longer than 8 characters",
        "http://localhost:8080/a@b, http://example.org/a:b@c",
        "`Authorization: Bearer TOKEN`, `**password:** of no one`",
        "SHA256WITHRSAENCRYPTION, MAX_OUTPUT_TOKENS_OF_2_MODELS and INTERNATIONALIZATION",
        "networks 2001:db8::/32 and 2001:30::/28; a::b, dead::beef",
        "see /home and/or /Users, and version 1.2.3.",
        "a\u00a0space\u202fthat stays",
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


MORE = ("://a:", "/Users/a ", "password:a,1", 'cookie: a="', " -u 'a:", "A2", "token**", "(0", "1 ", "\u00a0")


@parametrized(
    "piece", ["a", "a-", "a.", "1", "12 ", "ab:", "\\", '"', " ", "key ", "mysql ", "a[", "eyJ", *MORE], by_default=8
)
def test_a_long_text_takes_no_longer_than_many_short_ones(piece: str) -> None:
    """A picture or a log in one line: looked at from each of its characters anew, it would take hours."""
    text = piece * (100_000 // len(piece))
    assert without_private(text).text
