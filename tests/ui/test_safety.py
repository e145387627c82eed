"""Who may ask for what: names, tokens, origins, and the policy of every answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.asking import HOST, Asking, Rules


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8765", "localhost.evil.example", "", "a b"])
def test_a_name_that_somebody_else_may_point_here_is_refused(asking: Asking, host: str) -> None:
    """A page that rebinds its own name to this machine reads nothing."""
    assert asking.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:9000", "[::1]:8765", "LOCALHOST"])
def test_names_of_this_machine_are_answered(asking: Asking, host: str) -> None:
    """Also by another port, as of a tunnel."""
    assert asking.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/nothing", "/run/demo", "/static/ui.js", "/run/..%2f..%2fetc"])
def test_every_answer_has_the_policy(asking: Asking, path: str) -> None:
    """Whatever is asked for, and whether it is there or not."""
    headers = asking.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


def test_no_page_has_script_or_style_of_its_own(asking: Asking) -> None:
    """The policy would refuse it."""
    for path in ("/", "/run/demo", "/run/demo/step/1", "/run/demo/items", "/run/demo/skill"):
        text = asking.get(path).text
        assert "<script>" not in text
        assert "<style" not in text
        assert " style=" not in text
        assert " onclick=" not in text


def test_the_address_signs_in_and_loses_its_token(asking: Asking) -> None:
    """A cookie that scripts cannot read takes its place."""
    answer = asking.get(f"/run/demo?token={asking.rules.token}&x=1")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/run/demo?x=1"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert asking.get("/?token=wrong").status_code == 403
    assert asking.get(f"//evil.example/?token={asking.rules.token}").headers["location"] == "/evil.example/"


ACTS = "/run/demo/steer"


def test_what_acts_needs_the_cookie_our_origin_and_the_token_of_a_form(asking: Asking) -> None:
    """Each by itself."""
    assert asking.post(ACTS, {}, signed_in=False).status_code == 403
    assert asking.post(ACTS, {}, headers={"origin": "http://evil.example"}).status_code == 403
    assert asking.post(ACTS, {}, headers={"origin": "null"}).status_code == 403
    assert asking.post(ACTS, {}, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert asking.post(ACTS, {}, headers={"sec-fetch-site": "same-site"}).status_code == 403


def test_elsewhere_than_on_this_machine_nothing_is_shown_without_the_token(demo_run: Path) -> None:
    """And by numbers or the given name alone."""
    asking = Asking(directory=demo_run.parent, rules=Rules(host="0.0.0.0", port=8765))
    assert asking.get("/").status_code == 401
    assert asking.get("/static/ui.js").status_code == 401
    assert asking.get("/", signed_in=True).status_code == 200
    assert asking.get("/", signed_in=True, headers={"host": "192.168.1.7:8765"}).status_code == 200
    assert asking.get("/", signed_in=True, headers={"host": "evil.example:8765"}).status_code == 421


def test_read_only_lets_nothing_act_and_offers_nothing(demo_run: Path) -> None:
    """Whoever is signed in."""
    asking = Asking(directory=demo_run.parent, rules=Rules(host="127.0.0.1", port=8765, read_only=True))
    assert asking.post(ACTS, {}).status_code == 403
    text = asking.get("/run/demo", signed_in=True).text
    assert asking.rules.form_token not in text
    assert "Nothing can be changed from here" in text


def test_the_token_is_on_no_page(asking: Asking) -> None:
    """A page that leaks to somebody gives nothing away but what it shows."""
    for path in ("/", "/run/demo", "/run/demo/config"):
        assert asking.rules.token not in asking.get(path, signed_in=True).text
    assert asking.rules.token not in repr(asking.rules)
    assert HOST
