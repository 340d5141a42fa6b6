"""Secrets do not show, wherever they stand and however they come in parts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.programs.program import environment_for
from clew.programs.secrets import HIDDEN, Redactor

KEY, LONGER = "sk-abcdef", "sk-abcdef-and-more"
SECRETS = Redactor({"API_KEY": KEY, "OTHER_TOKEN": LONGER, "SHORT_KEY": "abc", "PLAIN": "plain-value"})


def test_a_secret_is_hidden_in_text_and_in_all_that_json_holds() -> None:
    assert SECRETS.text(f"a {KEY} b {LONGER} c") == f"a {HIDDEN} b {HIDDEN} c"
    value = {"list": [KEY, {"deep": f"x{LONGER}"}], "number": 7, "none": None, "true": True}
    shown = json.dumps(SECRETS.value(value))
    assert KEY not in shown
    assert json.loads(shown)["number"] == 7
    assert json.loads(shown)["none"] is None


def test_a_secret_is_hidden_where_it_is_a_name() -> None:
    assert SECRETS.value({f"x {KEY}": [{KEY: 1}], "plain": 2}) == {f"x {HIDDEN}": [{HIDDEN: 1}], "plain": 2}


def test_what_is_not_called_a_secret_or_is_too_short_stays() -> None:
    assert SECRETS.text("abc plain-value") == "abc plain-value"


@pytest.mark.parametrize(
    "name",
    [
        "API_KEY",
        "github_token",
        "DB_PASSWORD",
        "PGPASSWD",
        "SSH_PASSPHRASE",
        "DB_PASS",
        "MYSQL_PWD",
        "GH_PAT",
        "SENTRY_DSN",
        "PROXY_AUTHORIZATION",
        "CLIENT_SECRET",
        "AWS_CREDENTIALS",
        "AUTH",
        "SESSION_COOKIE",
    ],
)
def test_names_that_say_so_make_a_secret(name: str) -> None:
    assert Redactor({name: "value-of-it"}).text("value-of-it") == HIDDEN


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "GIT_AUTHOR_NAME", "PATH", "COMPASS_SIDE", "PASSENGER"])
def test_names_that_only_sound_like_it_make_none(name: str) -> None:
    assert Redactor({name: "ordinary-words"}).text("ordinary-words") == "ordinary-words"


def test_a_password_in_an_address_is_a_secret_whatever_its_name() -> None:
    secrets = Redactor({"DATABASE_URL": "postgres://me:hunter2222@db/x", "HTTPS_PROXY": "http://:proxypass@p:80"})
    assert secrets.text("hunter2222 proxypass postgres://me@db") == f"{HIDDEN} {HIDDEN} postgres://me@db"


def test_a_key_of_several_lines_is_hidden_line_by_line() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nshort\n-----END KEY-----"
    secrets = Redactor({"DEPLOY_KEY": key})
    assert secrets.text(f"x {key} y") == f"x {HIDDEN} y"
    assert [secrets.text(line) for line in key.splitlines()] == [HIDDEN, HIDDEN, "short", HIDDEN]


@given(st.lists(st.sampled_from([KEY, LONGER, "s", "sk-", "sk-abc", "def", "-and", " ", "x"]), max_size=8), st.data())
def test_no_way_of_cutting_a_text_into_parts_shows_a_secret(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    stream = SECRETS.stream()
    shown = [*(stream.feed(part) for part in parts), stream.flush()]
    assert KEY not in "".join(shown)
    if KEY not in text:
        assert "".join(shown) == text


def test_text_without_secrets_is_not_held_back() -> None:
    stream = Redactor({}).stream()
    assert stream.feed("anything") == "anything"
    assert stream.flush() == ""
    stream = SECRETS.stream()
    assert stream.feed("hello sk-a") == "hello "
    assert stream.feed("nother") == "sk-another"


def test_an_environment_is_cut_down_and_the_parts_lie_over_it() -> None:
    ours = {"PATH": "/bin", "HOME": "/home/me", "LANG": "C", "SECRET": "s", "PYTHONPATH": "x", "CLEW_MARK": "m"}
    assert environment_for({"HOME": "/other"}, {"A": "1"}, {"A": "2"}, of=ours) == {
        "PATH": "/bin",
        "HOME": "/other",
        "LANG": "C",
        "A": "2",
    }
