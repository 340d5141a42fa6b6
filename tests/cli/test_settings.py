"""Settings at the command line: policies, removal, editing an issue, letting go, and a chat inside a project."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from clew.protocol.checks import ReleasedView
from clew.protocol.policies import PolicyView
from clew.protocol.replay import Changed, ReplayView
from clew.protocol.views import Spoken
from tests.cli import samples
from tests.cli.kit import here
from tests.cli.stub import Stub

Cap = pytest.CaptureFixture[str]
APPLIES = {"reset": {"reasons": ["assignment"]}, "limits": {"turns": 50}, "parallel": False}
POLICY = PolicyView("agent", "ada", {"limits": {"turns": 50}}, APPLIES)
CHANGED = Changed("rn_1", "run-1", "chat-1", samples.AT, "resume", "reseed", "Too many turns.")


def test_a_policy_is_shown_with_what_is_set_and_what_is_not(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/agents/ada/policy", POLICY)
    said = here(capfd, "policy", "show", "--agent", "ada")
    assert said.status == 0
    assert 'limits                   {"turns": 50}\n' in said.out
    assert "parallel                 false  (default)" in said.out


def test_a_policy_is_tried_on_the_past_before_it_is_saved(stub: Stub, capfd: Cap, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(POLICY.set))
    stub.on("POST", "/replay", ReplayView(9, 0, (CHANGED, CHANGED)))
    stub.on("POST", "/agents/ada/policy", POLICY)
    said = here(capfd, "policy", "set", file, "--agent", "ada", "--dry-run")
    assert said.status == 0
    assert "2 of 9 decisions of the last 7 days would change. See them with `clew replay" in said.err
    assert stub.bodies("POST", "/agents/ada/policy") == []
    assert here(capfd, "policy", "set", file, "--agent", "ada").status == 0
    assert stub.bodies("POST", "/agents/ada/policy") == [{"policy": POLICY.set}]
    (asked, _) = stub.bodies("POST", "/replay")
    assert (asked["policy"], asked["agent"], asked["project"]) == (POLICY.set, "ada", None)


@pytest.mark.parametrize("words", [("show",), ("set", "x.json"), ("show", "--agent", "a", "--project", "b")])
def test_a_policy_is_an_agents_or_a_projects(stub: Stub, capfd: Cap, words: tuple[str, ...]) -> None:
    said = here(capfd, "policy", *words)
    assert (said.status, "Name either an agent or a project." in said.err) == (2, True)
    assert stub.asked == []


def test_an_issue_is_edited_and_what_becomes_of_its_directories_is_said(stub: Stub, capfd: Cap) -> None:
    stub.on("PATCH", "/threads/issue-3", samples.PAGE)
    said = here(capfd, "issue", "edit", "3", "--project", "web", "--title", "New")
    assert said.status == 0
    assert stub.bodies("PATCH", "/threads/issue-3") == [{"title": "New", "project": "web"}]
    assert "next run works in web. What it left in /srv/web/issue-3 stays there." in said.out
    assert here(capfd, "issue", "edit", "3").status == 2


def test_what_is_removed_is_said(stub: Stub, capfd: Cap) -> None:
    stub.on("DELETE", "/agents/ada", samples.AGENT)
    stub.on("DELETE", "/projects/web", samples.PROJECT)
    assert "Bring it back with `clew agent resume ada`" in here(capfd, "agent", "remove", "ada").out
    assert here(capfd, "project", "remove", "web").out == "Removed web. /src/web is not touched.\n"


def test_sessions_are_let_go(stub: Stub, capfd: Cap) -> None:
    stub.on("POST", "/threads/chat-1/release", ReleasedView("chat-1", ("5f2a",), ()))
    said = here(capfd, "release", "chat-1")
    assert (said.status, said.out) == (0, "Let go of session 5f2a; you can open it now.\n")
    stub.on("POST", "/threads/chat-1/release", ReleasedView("chat-1", (), ("run-1",)))
    said = here(capfd, "release", "chat-1")
    assert (said.status, "`clew interrupt run-1`" in said.out) == (1, True)
    stub.on("POST", "/threads/chat-1/release", ReleasedView("chat-1", (), ()))
    said = here(capfd, "release", "chat-1")
    assert (said.status, said.out) == (0, "No session of chat-1 is kept open.\n")


def test_an_agent_that_has_the_issue_is_not_said_to_start(stub: Stub, capfd: Cap) -> None:
    idle = replace(samples.ISSUE, assignee="ada", status="idle")
    stub.on("GET", "/threads/issue-3", replace(samples.PAGE, thread=idle))
    stub.on("POST", "/threads/issue-3/assign", idle)
    said = here(capfd, "issue", "assign", "3", "ada", "--wait")
    assert (said.status, said.err) == (0, "")
    assert "issue-3 is assigned to ada already; it was not woken again." in said.out
    # Neither its runs nor their output is asked for.
    assert [each.path for each in stub.asked if "runs" in each.path] == []


def test_a_message_that_wakes_nobody_says_why_and_what_to_type(stub: Stub, capfd: Cap) -> None:
    stub.on("POST", "/threads/issue-3/words", Spoken(3, None))
    said = here(capfd, "say", "issue-3", "hello")
    assert said.status == 0
    assert "No agent is woken: issue-3 is not assigned to one." in said.out
    assert "`clew issue assign issue-3 AGENT`" in said.out


def test_adopting_says_where_the_agent_will_really_work(stub: Stub, capfd: Cap) -> None:
    lane = replace(samples.PAGE.lanes[0], agent=samples.SESSION.agent)
    thread = replace(samples.PAGE.thread, project="web", assignee="bob")
    stub.on("POST", "/threads/chat-1/adopt", samples.SESSION)
    ref = samples.SESSION.thread
    words = ("adopt", "chat-1", "5f2a9c", "--agent", "ada", "--runtime", "rt-2")
    for directory, where in (
        (samples.SESSION.directory, f"and works in {samples.SESSION.directory}."),
        ("/srv/other", "and works in /srv/other: its history is copied there"),
        (None, "and works in a new worktree of web: its history is copied there"),
    ):
        page = replace(samples.PAGE, thread=thread, lanes=(replace(lane, directory=directory),))
        stub.on("GET", f"/threads/{ref}", page)
        said = here(capfd, *words)
        assert said.status == 0, said
        assert where in said.out
        assert f"TEXT --to {samples.SESSION.agent}" in said.out


def test_a_chat_that_is_begun_inside_a_project_works_there(
    stub: Stub, capfd: Cap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "src" / "web" / "pages"
    inner.mkdir(parents=True)
    projects = [
        replace(samples.PROJECT, name="all", source=str(tmp_path / "src")),
        replace(samples.PROJECT, name="web", source=str(tmp_path / "src" / "web")),
        replace(samples.PROJECT, name="far", source="https://git.example/far.git"),
    ]
    stub.on("GET", "/projects", projects)
    stub.on("POST", "/chats", samples.THREAD)
    stub.on("POST", "/threads/chat-1/words", Spoken(1, None))
    for directory, more, project in (
        (inner, (), "web"),
        (tmp_path / "src", (), "all"),
        (tmp_path, (), None),
        (inner, ("--no-project",), None),
        (inner, ("--project", "all"), "all"),
    ):
        monkeypatch.chdir(directory)
        said = here(capfd, "chat", "ada", *more, "--once", "hello")
        assert said.status == 0, said
        assert stub.bodies("POST", "/chats")[-1]["project"] == project
        assert ("because you are in its directory" in said.err) is (project is not None and not more)


@pytest.mark.case("R13")
def test_an_agent_whose_program_is_gone_is_shown_as_missing_with_the_reason(stub: Stub, capfd: Cap) -> None:
    gone = replace(samples.AGENT, missing="There is no program guide on the PATH of the server.")
    stub.on("GET", "/agents", [gone])
    stub.on("GET", "/agents/ada", gone)
    (row,) = (line for line in here(capfd, "agent", "list").out.splitlines() if line.startswith("ada"))
    assert row.split()[1] == "missing"
    shown = here(capfd, "agent", "show", "ada").out
    assert re.search(r"^cannot start +There is no program guide on the PATH of the server\.$", shown, re.MULTILINE)
