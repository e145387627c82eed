"""Who may ask for what: names, tokens, origins, and the policy of every answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.asking import HOST, Asking, Rules
from support.params import each_of, parametrized


@each_of("host",
    [
        "evil.example", "127.0.0.1.evil.example:8765", "localhost.evil.example", "", "a b", "evil.example@127.0.0.1",
        "evil.example:x@127.0.0.1:8765", "127.0.0.1/", "127.0.0.1#", "127.0.0.1?", "127.0.0.1:", "127.0.0.1:0",
        "127.0.0.1:99999", "127.0.0.1:+80", "127.0.0.1:8765:8765", " 127.0.0.1", "127.0.0.1\t",
        "127.0.0.1,evil.example", "localhost.", "::1", "[::1", "[localhost]", "[::1]x:80", "127.1", "0x7f000001",
    ])  # fmt: skip
def test_a_name_that_somebody_else_may_point_here_is_refused(asking: Asking, host: str) -> None:
    """A page that rebinds its own name to this machine reads nothing."""
    assert asking.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:9000", "[::1]:8765", "LOCALHOST"])
def test_names_of_this_machine_are_answered(asking: Asking, host: str) -> None:
    """Also by another port, as of a tunnel."""
    assert asking.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/nothing", "/run/demo", "/static/ui.js", "/run/..%2f..%2fetc"])
@pytest.mark.parametrize("signed_in", [True, False])
def test_every_answer_has_the_policy(asking: Asking, path: str, signed_in: bool) -> None:
    """Whatever is asked for, and whether it is there or not."""
    headers = asking.get(path, signed_in=signed_in).headers
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
        assert "<main" in text
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
    assert asking.get("/?token=wrong").status_code == 401
    assert asking.get(f"//evil.example/?token={asking.rules.token}").headers["location"] == "/evil.example/"


ACTS = "/run/demo/steer"


def test_what_acts_needs_the_cookie_our_origin_and_the_token_of_a_form(asking: Asking) -> None:
    """Each by itself."""
    assert asking.post(ACTS, {}, signed_in=False).status_code == 401
    assert asking.post(ACTS, {}, headers={"origin": "http://evil.example"}).status_code == 403
    assert asking.post(ACTS, {}, headers={"origin": "null"}).status_code == 403
    assert asking.post(ACTS, {}, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert asking.post(ACTS, {}, headers={"sec-fetch-site": "same-site"}).status_code == 403


EVERY_KIND = (
    "/", "/compare?run=demo", "/start", "/started/x", "/stream", "/run/demo", "/run/demo/stream", "/run/demo/scores",
    "/run/demo/scores.json", "/run/demo/item?item=name-06", "/run/demo/config", "/run/demo/event/1", "/nothing",
    "/run/nothing", "/static/../run/demo", "//run/demo", "/run/demo?said=x", "/run/demo?token=",
    "/run/demo?token=wrong", "/static/nothing", "/static/a/b", "/static/style.css/..%2f..%2frun",
)  # fmt: skip


@each_of("host", ["127.0.0.1", "localhost", "0.0.0.0"])
@each_of("path", EVERY_KIND)
def test_nothing_is_shown_without_the_token(demo_run: Path, host: str, path: str) -> None:
    """Other users of the machine reach a port on loopback, and so do agents from which answers are hidden."""
    asking = Asking(directory=demo_run.parent, rules=Rules(host=host, port=8765))
    for headers in ({}, {"accept": "text/html"}, {"cookie": f"{asking.rules.cookie}=x"}, {"authorization": "Bearer x"}):
        answer = asking.get(path, signed_in=False, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert str(demo_run.parent) not in answer.text
        assert 'href="/run/' not in answer.text
        assert asking.rules.form_token not in answer.text
        assert asking.rules.token not in answer.text + str(answer.headers)


def test_whoever_is_not_signed_in_is_shown_the_way_in(asking: Asking) -> None:
    """In the frame of the page, whose style needs no token; a program gets a line of text."""
    answer = asking.get("/run/demo", signed_in=False, headers={"accept": "text/html,*/*"})
    assert '<header class="bar"' in answer.text
    assert "<code>skillopt-es ui</code> printed" in answer.text
    assert "Authorization: Bearer TOKEN" in answer.text
    assert "not the token" in asking.get("/?token=x", headers={"accept": "text/html"}).text
    assert asking.get("/run/demo", signed_in=False).headers["content-type"].startswith("text/plain")
    for path in ("/static/ui.js", "/static/style.css"):
        assert asking.get(path, signed_in=False).status_code == 200
        assert asking.post(path, {}, signed_in=False).status_code == 401


def test_a_program_reads_with_the_header_and_acts_with_no_more(asking: Asking) -> None:
    """What acts needs our own origin and a form's token from it, too."""
    bearer = {"authorization": f"bearer {asking.rules.token}"}
    assert asking.get("/run/demo/scores.json", signed_in=False, headers=bearer).status_code == 200
    assert asking.post(ACTS, {"form_token": "x"}, signed_in=False, headers=bearer).status_code == 403
    assert (
        asking.post(ACTS, {}, signed_in=False, headers={**bearer, "origin": "http://evil.example"}).status_code == 403
    )
    assert asking.get("/", signed_in=False, headers={"authorization": f"Basic {asking.rules.token}"}).status_code == 401


def test_cookies_of_other_servers_on_this_machine_do_not_lock_anybody_out(asking: Asking) -> None:
    """Browsers send them, too: they do not tell ports apart."""
    own = f"{asking.rules.cookie}={asking.rules.token}"
    for cookie in (f'a[b]={{"x": 1}}; {own}', f"{own}; =; ;;", f"skillopt_es_9000=other; {own}"):
        assert asking.get("/", signed_in=False, headers={"cookie": cookie}).status_code == 200


def test_a_link_of_another_site_is_asked_for_once_more(asking: Asking) -> None:
    """A browser keeps a strict cookie back until our own page asks."""
    page = {"accept": "text/html", "sec-fetch-site": "cross-site"}
    assert asking.get("/", signed_in=False, headers=page).headers["refresh"] == "0"
    own = {**page, "sec-fetch-site": "same-origin"}
    assert "refresh" not in asking.get("/", signed_in=False, headers=own).headers


def test_elsewhere_than_on_this_machine_numbers_and_the_given_name_alone_are_answered(demo_run: Path) -> None:
    """A name can be pointed here by others."""
    asking = Asking(directory=demo_run.parent, rules=Rules(host="0.0.0.0", port=8765))
    assert asking.get("/").status_code == 200
    assert asking.get("/", headers={"host": "192.168.1.7:8765"}).status_code == 200
    assert asking.get("/", headers={"host": "evil.example:8765"}).status_code == 421


def test_read_only_lets_nothing_act_and_offers_nothing(demo_run: Path) -> None:
    """Whoever is signed in."""
    asking = Asking(directory=demo_run.parent, rules=Rules(host="127.0.0.1", port=8765, read_only=True))
    assert asking.post(ACTS, {}).status_code == 403
    text = asking.get("/run/demo").text
    assert asking.rules.form_token not in text
    assert "Nothing can be changed from here" in text


def test_the_token_is_on_no_page(asking: Asking) -> None:
    """A page that leaks to somebody gives nothing away but what it shows."""
    for path in ("/", "/run/demo", "/run/demo/config"):
        assert asking.rules.token not in asking.get(path).text
    assert asking.rules.token not in repr(asking.rules)
    assert HOST


AS_SERVED = """
import ctypes, sys
from skillopt_es.ui import serving

GET_DUMPABLE = 3
serving.serve = lambda *_: print("dumpable:", ctypes.CDLL(None).prctl(GET_DUMPABLE, 0, 0, 0, 0))
from skillopt_es.cli.main import main
main(["ui", "--port", "0", *sys.argv[1:]])
"""


def as_served(folder: Path, *words: str) -> tuple[str, str]:
    """What the command says before it serves, and how its process stands then."""
    script = [sys.executable, "-c", AS_SERVED, *words]
    done = subprocess.run(script, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this switch")
def test_other_processes_of_the_user_cannot_read_the_token_from_memory(tmp_path: Path) -> None:
    """The kernel gives the memory of a process that is not dumpable to root alone."""
    out, _ = as_served(tmp_path)
    assert "dumpable: 0" in out


@pytest.mark.skipif(sys.platform != "linux", reason="the script asks Linux")
@parametrized(("words", "warned"), [((), False), (("--host", "0.0.0.0"), True)], by_default=1)
def test_the_command_says_what_the_token_allows_where_others_reach_it(
    tmp_path: Path, words: tuple[str, ...], warned: bool
) -> None:
    """And that it travels unencrypted."""
    out, err = as_served(tmp_path, *words)
    assert "?token=" in out
    assert "token=" not in err
    for each in ("can run commands on this machine as you", "unencrypted"):
        assert (each in err) is warned
