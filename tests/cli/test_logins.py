"""Logins at the command line: a missing login names the keys that this shell has; no value is shown or sent."""

from pathlib import Path

import pytest

from clew.cli.logins import with_keys_here
from clew.protocol.checks import LoginView, TrialView
from clew.protocol.views import CheckView
from tests.cli import samples
from tests.cli.kit import here
from tests.cli.stub import Stub

Cap = pytest.CaptureFixture[str]
SECRET = "sk-very-secret"
REMEDY = (
    "Log in with `claude /login` or pass a key on with `clew agent edit ada --add-env NAME` "
    "(ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN)."
)
HERE = "ANTHROPIC_API_KEY is set here; pass it on with `clew agent edit ada --add-env ANTHROPIC_API_KEY`."


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)


def test_only_a_key_that_is_set_is_offered() -> None:
    assert with_keys_here(REMEDY) == f"{REMEDY} {HERE}"
    assert with_keys_here("The key ANTHROPIC_API_KEY was refused.") == "The key ANTHROPIC_API_KEY was refused."


def test_a_key_that_the_server_has_too_is_named_once_and_without_an_agent_one_is_added() -> None:
    words = (
        "Pass a key on with `clew agent add AGENT --provider claude --env NAME` (ANTHROPIC_API_KEY or "
        "ANTHROPIC_AUTH_TOKEN). ANTHROPIC_API_KEY is set for the server, which passes on only what an agent is given."
    )
    add = "Pass it on with `clew agent add AGENT --provider claude --env ANTHROPIC_API_KEY`."
    assert with_keys_here(words) == f"{words} {add}"


def test_a_new_agent_is_told_of_its_login(stub: Stub, capfd: Cap) -> None:
    stub.on("POST", "/agents", samples.AGENT)
    stub.on("GET", "/agents/ada/login", LoginView("ada", "", f"No login is known for ada. {REMEDY}"))
    said = here(capfd, "agent", "add", "ada", "--provider", "claude")
    assert said.status == 0
    assert said.err == f"No login is known for ada. {REMEDY} {HERE}\n"
    assert all(SECRET not in repr(each.body) for each in stub.asked)


def test_a_login_that_cannot_be_looked_up_fails_nothing(stub: Stub, capfd: Cap) -> None:
    stub.on("POST", "/agents", samples.AGENT)
    said = here(capfd, "agent", "add", "ada", "--provider", "claude")
    assert (said.status, said.err) == (0, "")


def test_the_doctor_names_the_keys_of_this_shell(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/doctor", [CheckView("agent ada", "warning", "claude 2.1, no login known.", REMEDY)])
    said = here(capfd, "doctor")
    assert said.status == 0
    assert f"claude 2.1, no login known. {REMEDY} {HERE}" in said.out


def test_a_prompt_is_tried_and_its_answer_shown(stub: Stub, capfd: Cap) -> None:
    stub.on("POST", "/agents/ada/test", TrialView("ada", True, "ready", 2.25, "read"))
    said = here(capfd, "agent", "test", "ada")
    assert (said.status, said.out) == (0, "ada answered after 2.2 s (mode read): ready\n")
    failed = f"Not logged in. No login is known for ada. {REMEDY}"
    stub.on("POST", "/agents/ada/test", TrialView("ada", False, failed, 0.5, "read"))
    said = here(capfd, "agent", "test", "ada")
    assert (said.status, said.out) == (1, f"ada did not answer: {failed} {HERE}\n")


def test_variables_are_replaced_set_and_removed(stub: Stub, capfd: Cap, tmp_path: Path) -> None:
    stub.on("PATCH", "/agents/ada", samples.AGENT)
    for words in (
        ("--env", "A=b"),
        ("--env", ""),
        ("--add-env", "ANTHROPIC_API_KEY", "--remove-env", "B", "--remove-env", "C"),
        ("--home", f"HOME={tmp_path}", "--create-home"),
        ("--home", ""),
        ("--option", ""),
    ):
        assert here(capfd, "agent", "edit", "ada", *words).status == 0
    assert stub.bodies("PATCH", "/agents/ada") == [
        {"environment": {"A": "b"}},
        {"environment": {}},
        {"add_environment": {"ANTHROPIC_API_KEY": SECRET}, "remove_environment": ["B", "C"]},
        {"home": {"HOME": str(tmp_path)}, "create_home": True},
        {"home": {}},
        {"options": {}},
    ]
