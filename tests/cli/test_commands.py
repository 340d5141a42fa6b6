"""Every command against a server: what it asks, what it shows, what it prints as JSON."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from clew.protocol import requests as asks
from clew.protocol.replay import Changed, ReplayView
from clew.protocol.usage import UsageRow, UsageView, UsedView
from clew.protocol.views import Cancelled, CheckView, FoundSessionView, RuntimeView, Spoken
from clew.protocol.work_views import CleanedView, WorkspaceView, WorkView
from tests.cli import samples
from tests.cli.kit import Said, here
from tests.cli.stub import Problem, Stub, plain

Cap = pytest.CaptureFixture[str]


def done(said: Said) -> str:
    assert (said.status, said.err) == (0, ""), said
    return said.out


FOUND = FoundSessionView("claude", "rt-2", "5f2a9c", "/src/web", "Mend it", samples.AT, 3, None)
WORKSPACE = WorkspaceView(
    "/srv/web/issue-3", "ready", "lane-1", "issue-3", "ada", "web", "clew/issue-3", 3_000_000, 2, 1, "", samples.AT, ""
)
WORKED, MERGED = (
    replace(samples.PAGE, lanes=(replace(samples.PAGE.lanes[0], work=work),))
    for work in (
        WorkView("main", 1, 0, 1, samples.AT, "1 file changed"),
        WorkView("main", 0, 0, 0, samples.AT, "", "main", samples.AT),
    )
)
REVIEWED = replace(WORKED, thread=replace(samples.ISSUE, assignee="cody"))
CHANGED = Changed("rn_1", "run-1", "chat-1", samples.AT, "resume", "reseed", "Too many turns.")
REPLAYED = ReplayView(9, 1, (CHANGED, replace(CHANGED, step=1)))
CHECKS = [CheckView("claude", "ok", "2.1 answers."), CheckView("codex", "missing", "It is not here.", "Install it.")]

USED = UsageView(
    "project",
    samples.AT,
    (UsageRow("web", 2, 1, UsedView(12_345, 678, 9_000, 0.5)),),
    UsageRow("total", 2, 1, UsedView(12_345, 678, 9_000, 0.5)),
)

LOOKS: list[tuple[tuple[str, ...], str, Any, tuple[str, ...]]] = [
    (("doctor",), "/doctor", CHECKS, ("codex", "missing", "It is not here. Install it.")),
    (("usage", "--by", "project"), "/usage", USED, ("web", "12,345", "$0.50", "1 run reported no tokens.")),
    (("agent", "list"), "/agents", [samples.AGENT], ("ada", "guide", "edit", "30m")),
    (("agent", "show", "ada"), "/agents/ada", samples.AGENT, ("Be brief.", "KEY", "every 30m", "2025-06-15T15:06:40Z")),
    (("project", "list"), "/projects", [samples.PROJECT], ("web", "/src/web", "main")),
    (("project", "show", "web"), "/projects/web", samples.PROJECT, ("npm ci", "repository")),
    (
        ("threads",),
        "/threads",
        [samples.THREAD],
        ("chat-1  2025-06-15T15:06:40Z  idle    Hello", "OPENED", "2025-06-15T15:07:40Z"),
    ),
    (("issue", "list"), "/threads", [samples.ISSUE], ("issue-3", "The page is blank")),
    (("issue", "show", "3"), "/threads/issue-3", samples.PAGE, ("#2 ada (agent)", "  I look at it.", "rm -r build")),
    (
        ("issue", "show", "3"),
        "/threads/issue-3",
        WORKED,
        ("1 file changed: clew diff issue-3\n", "branch clew/issue-3-ada"),
    ),
    (("issue", "show", "3"), "/threads/issue-3", REVIEWED, ("1 file changed: clew diff issue-3 --agent ada\n",)),
    (("issue", "show", "3"), "/threads/issue-3", MERGED, ("merged into main\n",)),
    (("thread", "show", "chat-1"), "/threads/chat-1", samples.PAGE, ("earlier entries", "/srv/web/issue-3")),
    (("runs",), "/runs", [samples.RUN], ("run-1", "succeeded", "resume", "2.5 s")),
    (("runs",), "/runs", [replace(samples.RUN, tries=4)], ("run-1 (4 tries)",)),
    (("runs",), "/runs", [samples.HELD], ("held", "The branch is gone. Once that is fixed, run `clew retry run-1`.")),
    (("runs", "show", "run-1"), "/runs/run-1", samples.HELD, ("held", "workspace:branch-gone")),
    (("runs", "show", "run-"), "/runs/run-", samples.RUN, ("Continuing the same conversation", "resumed")),
    (("why", "run-1"), "/why/run-1", samples.WHY, ("reseed: Its session is lost", "fit         lane")),
    (("sessions",), "/sessions", [samples.SESSION], ("session-1", "never")),
    (("sessions", "--found"), "/sessions/found", [FOUND], ("5f2a9c", "Mend it")),
    (
        ("runtimes",),
        "/runtimes",
        [RuntimeView("rt-1", "m-1", "guide", "/home", ("me@home", "me@work"), True, samples.AT, 1, 4, 0)],
        ("rt-1", "online", "1 of 4", "me@home, me@work"),
    ),
    (("approvals",), "/approvals", [samples.APPROVAL, samples.QUESTION], ("ap_1", "rm -r build", "(red / blue)")),
    (("workspaces",), "/workspaces", [WORKSPACE], ("/srv/web/issue-3", "2.9 MiB", "1 workspace, 2.9 MiB.")),
    (("workspaces", "list"), "/workspaces", [WORKSPACE], ("clew/issue-3",)),
]


@pytest.mark.parametrize(("words", "path", "answer", "shown"), LOOKS, ids=lambda value: str(value)[:30])
def test_what_is_looked_at_is_shown(
    stub: Stub, capfd: Cap, words: tuple[str, ...], path: str, answer: Any, shown: tuple[str, ...]
) -> None:
    stub.on("GET", path, answer)
    said = done(here(capfd, *words))
    for each in shown:
        assert each in said, said
    assert "\x1b" not in said
    assert json.loads(done(here(capfd, *words, "--json"))) == json.loads(json.dumps(plain(answer)))


EMPTY = [words for words, _, answer, _ in LOOKS if isinstance(answer, list)]


@pytest.mark.parametrize("words", EMPTY, ids=" ".join)
def test_where_there_is_nothing_it_says_so(stub: Stub, capfd: Cap, words: tuple[str, ...]) -> None:
    path = next(path for each, path, _, _ in LOOKS if each == words)
    stub.on("GET", path, [])
    said = done(here(capfd, *words))
    assert said.count("\n") == 1
    assert said.rstrip().endswith((".", "add`."))


CHANGES: list[tuple[tuple[str, ...], str, str, Any, dict[str, Any], str]] = [
    (
        ("agent", "add", "t", "--provider", "command", "--env", "A=b=c", "--", "make", "-j", "--json"),
        "POST",
        "/agents",
        samples.AGENT,
        {"provider": "command", "program": ["make", "-j", "--json"], "environment": {"A": "b=c"}, "mode": "edit"},
        "Added ada: guide, mode edit.",
    ),
    (
        ("agent", "add", "n", "--provider", "guide", "--every", "1h30m", "--shared", "--thread", "issue-3"),
        "POST",
        "/agents",
        samples.AGENT,
        {"heartbeat": {"every": 5400.0, "cron": None, "zone": "UTC", "isolated": False, "thread": "issue-3"}},
        "clew chat ada",
    ),
    (("agent", "pause", "ada"), "PATCH", "/agents/ada", samples.AGENT, {"paused": True}, "ada"),
    (("agent", "resume", "ada"), "PATCH", "/agents/ada", samples.AGENT, {"paused": False}, "ada"),
    (
        ("agent", "edit", "ada", "--model", "", "--no-heartbeat"),
        "PATCH",
        "/agents/ada",
        samples.AGENT,
        {"model": "", "no_heartbeat": True},
        "ada",
    ),
    (
        ("agent", "edit", "ada", "--across-accounts", "yes"),
        "PATCH",
        "/agents/ada",
        replace(samples.AGENT, across_accounts=True),
        {"across_accounts": True},
        "across accounts  yes",
    ),
    (
        ("agent", "edit", "ada", "--across-accounts", "no"),
        "PATCH",
        "/agents/ada",
        samples.AGENT,
        {"across_accounts": False},
        "across accounts  no",
    ),
    (
        ("agent", "add", "n", "--provider", "guide", "--across-accounts", "yes"),
        "POST",
        "/agents",
        samples.AGENT,
        {"across_accounts": True},
        "clew chat ada",
    ),
    (
        ("project", "add", "web", "/src/../src/web", "--setup", "npm ci", "--setup", "-x", "--plain"),
        "POST",
        "/projects",
        samples.PROJECT,
        {"source": "/src/../src/web", "setup": ["npm ci", "-x"], "plain": True},
        "Added web: /src/web (repository).",
    ),
    (
        ("project", "add", "lib", "git@git.example:lib.git"),
        "POST",
        "/projects",
        samples.PROJECT,
        {"source": "git@git.example:lib.git"},
        "clew issue new",
    ),
    (
        ("project", "edit", "web", "--path", "https://git.example/web.git"),
        "PATCH",
        "/projects/web",
        samples.PROJECT,
        {"source": "https://git.example/web.git"},
        "web",
    ),
    (
        ("project", "edit", "web", "--setup", ""),
        "PATCH",
        "/projects/web",
        samples.PROJECT,
        {"setup": []},
        "web",
    ),
    (
        ("issue", "new", "- blank", "--project", "web", "--assign", "ada"),
        "POST",
        "/issues",
        samples.PAGE,
        {"title": "- blank", "body": "", "project": "web", "assignee": "ada"},
        "Opened issue-3; ada is woken.",
    ),
    (
        ("issue", "assign", "#3", "ada"),
        "POST",
        "/threads/issue-3/assign",
        samples.ISSUE,
        {"agent": "ada"},
        "issue-3 is assigned to ada.",
    ),
    (
        ("issue", "assign", "3", "--nobody"),
        "POST",
        "/threads/issue-3/assign",
        replace(samples.ISSUE, assignee=None),
        {"agent": None},
        "issue-3 is not assigned.",
    ),
    (("issue", "close", "3"), "POST", "/threads/issue-3/close", samples.ISSUE, {}, "issue-3"),
    (
        ("issue", "reopen", "issue-3"),
        "POST",
        "/threads/issue-3/reopen",
        samples.ISSUE,
        {},
        "issue-3 is open already.",
    ),
    (
        ("issue", "comment", "3", "On Firefox.", "--silent"),
        "POST",
        "/threads/issue-3/words",
        Spoken(3, None),
        {"text": "On Firefox.", "wakes": False},
        "No agent is woken",
    ),
    (
        ("say", "chat-1", "hello", "--to", "bob", "--resume", "run-0"),
        "POST",
        "/threads/chat-1/words",
        Spoken(3, samples.WAKE),
        {"text": "hello", "agent": "bob", "fresh": False, "resume_run": "run-0", "wakes": True},
        "Sent to ada in chat-1; starting now. (run run-1, wake wake-1)",
    ),
    (
        ("wake", "ada", "look", "--thread", "chat-1", "--priority", "-2"),
        "POST",
        "/wakes",
        samples.WAKE,
        {"agent": "ada", "text": "look", "thread": "chat-1", "priority": -2, "fresh": False},
        "wake-1",
    ),
    (("wake", "ada"), "POST", "/wakes", samples.WAKE, {"text": "", "thread": None}, "wake-1"),
    (
        ("approvals", "allow", "ap_1"),
        "POST",
        "/approvals/ap_1",
        replace(samples.APPROVAL, state="approved"),
        {"allow": True, "text": ""},
        "approved",
    ),
    (
        ("approvals", "deny", "ap_1", "not now"),
        "POST",
        "/approvals/ap_1",
        replace(samples.APPROVAL, state="denied"),
        {"allow": False, "text": "not now"},
        "denied",
    ),
    (
        ("approvals", "answer", "ap_2", "blue"),
        "POST",
        "/approvals/ap_2",
        replace(samples.QUESTION, state="approved"),
        {"allow": True, "text": "blue"},
        "ap_2",
    ),
    (
        ("cancel", "run-1"),
        "POST",
        "/runs/run-1/cancel",
        Cancelled(True, "stopping", "It is told to stop."),
        {},
        "It is told to stop.",
    ),
    (
        ("interrupt", "run-1"),
        "POST",
        "/runs/run-1/interrupt",
        Cancelled(True, "stopping", "It is told to stop."),
        {},
        "told",
    ),
    (("retry", "run-1"), "POST", "/runs/run-1/retry", [samples.WAKE], {}, "wake-1"),
    (
        ("retry", "run-1", "--taken"),
        "POST",
        "/runs/run-1/retry",
        [],
        {"taken": True},
        "It is recorded. No wake of this run is left to serve.",
    ),
    (("rerun", "run-1"), "POST", "/runs/run-1/rerun", [samples.WAKE], {}, "wake-1"),
    (
        ("workspaces", "clean"),
        "POST",
        "/workspaces/clean",
        [CleanedView("/srv/a", True, "clean:removed", "It is gone.")],
        {"asked": []},
        "It is gone.",
    ),
    (
        ("adopt", "chat-1", "5f2a9c", "--agent", "ada", "--runtime", "rt-2"),
        "POST",
        "/threads/chat-1/adopt",
        samples.SESSION,
        {"agent": "ada", "runtime": "rt-2", "native_id": "5f2a9c"},
        "chat-1 continues session native-1 with ada, and works in",
    ),
]


def threads_there(stub: Stub) -> None:
    """The threads that a command looks at before or after it changes one."""
    stub.on("GET", "/threads/issue-3", replace(samples.PAGE, thread=replace(samples.ISSUE, assignee=None)))
    stub.on("GET", "/threads/chat-1", replace(samples.PAGE, thread=samples.THREAD))


@pytest.mark.parametrize(("words", "method", "path", "answer", "body", "shown"), CHANGES, ids=lambda v: str(v)[:40])
def test_what_is_asked_for_is_sent_and_its_answer_shown(
    stub: Stub,
    capfd: Cap,
    words: tuple[str, ...],
    method: str,
    path: str,
    answer: Any,
    body: dict[str, Any],
    shown: str,
) -> None:
    threads_there(stub)
    stub.on(method, path, answer)
    assert shown in done(here(capfd, *words))
    sent = stub.bodies(method, path)[0]
    assert {name: sent[name] for name in body} == body
    at = words.index("--") if "--" in words else len(words)
    said = done(here(capfd, *words[:at], "--json", *words[at:]))
    assert json.loads(said) == json.loads(json.dumps(plain(answer)))


BODIES: dict[str, type] = {
    "/agents": asks.NewAgent,
    "/agents/ada": asks.AgentChange,
    "/projects": asks.NewProject,
    "/projects/web": asks.ProjectChange,
    "/issues": asks.NewIssue,
    "/threads/issue-3/assign": asks.Assign,
    "/threads/issue-3/words": asks.Words,
    "/threads/chat-1/words": asks.Words,
    "/wakes": asks.Poke,
    "/approvals/ap_1": asks.AnswerTo,
    "/approvals/ap_2": asks.AnswerTo,
    "/threads/chat-1/adopt": asks.Adopt,
    "/runs/run-1/retry": asks.Retry,
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: " ".join(change[0])[:40])
def test_what_is_sent_is_what_the_api_takes(stub: Stub, capfd: Cap, change: tuple[Any, ...]) -> None:
    words, method, path, answer, _, _ = change
    threads_there(stub)
    stub.on(method, path, answer)
    done(here(capfd, *words))
    (sent,) = stub.bodies(method, path)
    if path in BODIES:
        TypeAdapter(BODIES[path]).validate_python(sent, extra="forbid")
    else:
        assert set(sent) <= {"asked"}


@pytest.mark.case("S15")
def test_another_account_is_allowed_by_a_command(stub: Stub, capfd: Cap) -> None:
    stub.on("PATCH", "/agents/ada", replace(samples.AGENT, across_accounts=True))
    done(here(capfd, "agent", "edit", "ada", "--across-accounts", "yes"))
    assert stub.bodies("PATCH", "/agents/ada") == [{"across_accounts": True}]


def test_what_is_not_named_in_an_edit_stays(stub: Stub, capfd: Cap) -> None:
    stub.on("PATCH", "/agents/ada", samples.AGENT)
    done(here(capfd, "agent", "edit", "ada", "--mode", "read"))
    assert stub.bodies("PATCH", "/agents/ada") == [{"mode": "read"}]


def test_a_heartbeat_is_changed_where_it_is_named_and_stays_otherwise(stub: Stub, capfd: Cap) -> None:
    stub.on("PATCH", "/agents/ada", samples.AGENT)
    changes: list[tuple[tuple[str, ...], dict[str, object]]] = [
        (("--every", "1h"), {"every": 3600.0}),
        (("--cron", "0 9 * * *"), {"cron": "0 9 * * *"}),
        (("--shared",), {"isolated": False}),
        (("--isolated",), {"isolated": True}),
        (("--zone", "Asia/Tokyo"), {"zone": "Asia/Tokyo"}),
        (("--thread", ""), {"thread": ""}),
    ]
    for words, _ in changes:
        done(here(capfd, "agent", "edit", "ada", *words))
    sent = stub.bodies("PATCH", "/agents/ada")
    assert [body["heartbeat"] for body in sent] == [change for _, change in changes]
    for body in sent:
        TypeAdapter(asks.AgentChange).validate_python(body, extra="forbid")
    for both in (("--shared", "--isolated"), ("--every", "1h", "--cron", "* * * * *")):
        assert here(capfd, "agent", "edit", "ada", *both).status == 2
    assert len(stub.bodies("PATCH", "/agents/ada")) == len(changes)


def test_a_path_is_meant_from_where_the_command_is_typed(
    stub: Stub, capfd: Cap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/srv/me")
    stub.on("POST", "/projects", samples.PROJECT)
    done(here(capfd, "project", "add", "web", "."))
    done(here(capfd, "project", "add", "web", "~/web"))
    assert [body["source"] for body in stub.bodies("POST", "/projects")] == [str(tmp_path), "/srv/me/web"]


def test_a_secret_need_not_be_typed(stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "secret")
    stub.on("POST", "/agents", samples.AGENT)
    said = done(here(capfd, "agent", "add", "ada", "--provider", "guide", "--env", "KEY"))
    assert stub.bodies("POST", "/agents")[0]["environment"] == {"KEY": "secret"}
    assert "secret" not in said


def test_every_request_that_wakes_has_a_key_of_its_own(stub: Stub, capfd: Cap) -> None:
    stub.on("POST", "/wakes", samples.WAKE)
    for _ in range(2):
        done(here(capfd, "wake", "ada"))
    done(here(capfd, "wake", "ada", "--key", "mine"))
    first, second, mine = (body["key"] for body in stub.bodies("POST", "/wakes"))
    assert first != second
    assert mine == "mine"


@pytest.mark.parametrize("words", [("say", "issue-3", "hi"), ("issue", "comment", "3", "hi")])
def test_what_wakes_nobody_has_no_key(stub: Stub, capfd: Cap, words: tuple[str, ...]) -> None:
    stub.on("POST", "/threads/issue-3/words", Spoken(3, None))
    assert "No agent is woken" in done(here(capfd, *words, "--silent"))
    (body,) = stub.bodies("POST", "/threads/issue-3/words")
    assert body["key"] is None


@pytest.mark.parametrize("words", [("say", "issue-3", "hi"), ("chat", "--in", "issue-3", "--once", "hi")])
def test_something_is_said_in_a_thread_that_is_nobodys(stub: Stub, capfd: Cap, words: tuple[str, ...]) -> None:
    refused = Problem(400, "ask:bad-request", "A key names a wake, and this wakes nobody.")
    stub.on("POST", "/threads/issue-3/words", lambda asked: refused if asked.body.get("key") else Spoken(3, None))
    stub.on("GET", "/threads/issue-3", replace(samples.PAGE, thread=replace(samples.ISSUE, assignee=None)))
    said = here(capfd, *words)
    assert said.status == 0
    assert "No agent is woken: issue-3 is not assigned" in said.out + said.err
    stub.on("GET", "/threads/issue-3", samples.PAGE)
    assert "[ask:bad-request]" in here(capfd, *words).err


@pytest.mark.case("C26", "W15")
def test_why_says_the_outcome_first_then_the_sessions_then_what_the_agent_confirmed(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/why/run-1", samples.WHY)
    lines = done(here(capfd, "why", "run-1")).splitlines()
    assert lines[0] == samples.WHY.headline
    text = "\n".join(lines)
    order = ["session session-1, generation 1: cannot be used", "It is lost.", "Confirmed by the agent", "native-2"]
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)
    assert "It belongs to this lane." not in text
    assert "It belongs to this lane." in done(here(capfd, "why", "run-1", "--full"))
    never = replace(
        samples.WHY,
        subject="wake-1",
        headline="The wake never ran: ada is paused. [wake:paused]",
        run=None,
        wakes=(replace(samples.WAKE, state="skipped", words="ada is paused.", code="wake:paused", run=None),),
        decisions=(),
        landing={},
    )
    stub.on("GET", "/why/wake-1", never)
    said = done(here(capfd, "why", "wake-1"))
    assert said.startswith("The wake never ran: ada is paused. [wake:paused]\n")
    assert "ada is paused. [wake:paused]" in said.splitlines()[2]
    assert "confirmed" not in said


@pytest.mark.case("C33")
def test_replay_shows_what_another_policy_would_have_decided(stub: Stub, capfd: Cap, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"parallel": true}')
    stub.on("POST", "/replay", REPLAYED)
    said = done(here(capfd, "replay", "--since", "7d", "--policy", policy))
    assert "Too many turns." in said
    # Two decisions of one run are two lines, and say which they are.
    assert [line[:26] for line in said.splitlines()[1:3]] == [
        "run-1  attempt 1, step 0  ",
        "run-1  attempt 1, step 1  ",
    ]
    assert "2 of 9 decisions would change; 1 could not be read." in said
    (body,) = stub.bodies("POST", "/replay")
    assert body["policy"] == {"parallel": True}
    assert json.loads(done(here(capfd, "replay", "--policy", policy, "--json"))) == json.loads(
        json.dumps(asdict(REPLAYED))
    )


@pytest.mark.case("S12")
def test_a_found_session_is_adopted_by_its_beginning(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/sessions/found", [FOUND, replace(FOUND, native_id="777")])
    stub.on("GET", "/threads/chat-1", replace(samples.PAGE, thread=samples.THREAD))
    stub.on("POST", "/threads/chat-1/adopt", samples.SESSION)
    done(here(capfd, "adopt", "chat-1", "5f"))
    (body,) = stub.bodies("POST", "/threads/chat-1/adopt")
    assert body == {"agent": "ada", "runtime": "rt-2", "native_id": "5f2a9c"}
    stub.on("GET", "/sessions/found", [FOUND, replace(FOUND, native_id="5f99")])
    said = here(capfd, "adopt", "chat-1", "5f")
    assert said.status == 1
    assert "'5f' matches 2 sessions: 5f2a9c, 5f99." in said.err
    assert "No agent on this machine has a session '99'" in here(capfd, "adopt", "chat-1", "99").err


def test_an_approval_is_answered_by_its_beginning(stub: Stub, capfd: Cap) -> None:
    answered = replace(samples.APPROVAL, state="approved", answered_by="user", ended_at=samples.AT)
    stub.on("POST", "/approvals/ap", answered)
    assert done(here(capfd, "approvals", "allow", "ap")) == (
        "ap_1 of ada in chat-1: approved. Answered by user, 2025-06-15T15:06:40Z.\n"
    )
    assert "[api:no-such-thing]" in here(capfd, "approvals", "allow", "x").err


def test_a_wake_is_cancelled_where_no_run_has_that_id(stub: Stub, capfd: Cap) -> None:
    stub.on("DELETE", "/wakes/wake-1", Cancelled(False, "served", "It is served already."))
    said = here(capfd, "cancel", "wake-1")
    assert (said.status, said.out) == (1, "It is served already.\n")
    stub.on("POST", "/runs/x/cancel", Problem(404, "store:no-such-run", "There is no run x."))
    said = here(capfd, "cancel", "x")
    assert (said.status, said.err) == (1, "clew: There is no run x. Do something else. [store:no-such-run]\n")


@pytest.mark.case("D12")
def test_a_workspace_that_was_named_and_is_kept_is_a_failure(stub: Stub, capfd: Cap) -> None:
    kept = [CleanedView("/srv/a", False, "clean:in-use", "A run is going in it.")]
    stub.on("POST", "/workspaces/clean", kept)
    assert here(capfd, "workspaces", "clean", "/srv/a").status == 1
    assert here(capfd, "workspaces", "clean").status == 0
    assert stub.bodies("POST", "/workspaces/clean") == [{"asked": ["/srv/a"]}, {"asked": []}]


def test_a_doctor_who_found_something_broken_says_so_by_the_status(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/doctor", [CheckView("database", "failed", "It is damaged.", "Restore it.")])
    assert here(capfd, "doctor").status == 1
    assert here(capfd, "doctor", "--json").status == 1


def test_a_wake_that_is_turned_away_is_a_failure_with_its_reason(stub: Stub, capfd: Cap) -> None:
    stub.on("POST", "/wakes", replace(samples.WAKE, state="skipped", run=None, words="ada is paused."))
    for more in ((), ("-w",)):
        said = here(capfd, "wake", "ada", *more)
        assert said.status == 1
        assert "ada is paused." in (said.err if more else said.out)


def test_lists_ask_for_what_was_named(stub: Stub, capfd: Cap) -> None:
    for path in ("/threads", "/runs", "/sessions", "/approvals"):
        stub.on("GET", path, [])
    done(here(capfd, "threads", "--state", "all", "--agent", "ada", "--kind", "chat", "--limit", "5"))
    for more in ((), ("--all",)):
        done(here(capfd, "runs", "--thread", "chat-1", "--state", "failed", *more))
    done(here(capfd, "sessions", "--thread", "chat 1&x=2"))
    done(here(capfd, "approvals", "--state", "all", "--run", "run-1"))
    assert stub.queries("/threads") == [{"agent": "ada", "kind": "chat", "limit": "5"}]
    asked = {"thread": "chat-1", "state": "failed", "limit": "20"}
    assert stub.queries("/runs") == [{**asked, "folded": "true"}, {**asked, "folded": "false"}]
    assert stub.queries("/sessions") == [{"thread": "chat 1&x=2", "limit": "50"}]
    assert stub.queries("/approvals") == [{"state": "all", "run": "run-1"}]


def test_a_doctor_without_a_server_looks_at_what_is_installed(tmp_path: Path, capfd: Cap) -> None:
    said = done(here(capfd, "doctor", "--data", tmp_path))
    assert re.search(r"^clew +missing +Clew is not running\. Start it with `clew up`\.$", said, re.MULTILINE)
    for name in ("claude", "codex", "opencode"):
        assert f"\n{name} " in said
    first, *_ = json.loads(done(here(capfd, "doctor", "--data", tmp_path, "--json")))
    assert first["name"] == "clew"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("check", "status"),
    [
        (CheckView("agent ada", "missing", "There is no program claude on the PATH of the server."), 1),
        (CheckView("claude", "missing", "There is no program claude on the PATH of the server."), 0),
        (CheckView("agent ada", "warning", "run-3 in issue-1 waits.", "", samples.AT), 0),
        (CheckView("token", "failed", "Others can read it."), 1),
    ],
)
def test_doctor_fails_where_a_check_failed_or_an_agent_has_no_program(
    stub: Stub, capfd: Cap, check: CheckView, status: int
) -> None:
    stub.on("GET", "/doctor", [check])
    said = here(capfd, "doctor")
    assert said.status == status
    assert ("Held until " in said.out) is (check.until is not None)
