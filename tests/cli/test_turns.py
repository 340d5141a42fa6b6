"""Work shown as it goes on: what is said, done and asked, whatever breaks in between."""

import io
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from clew.cli.live import Outage
from clew.protocol.views import EventView, LogView, Spoken
from tests.cli import samples
from tests.cli.kit import here
from tests.cli.samples import log
from tests.cli.stub import BREAK, Asked, Frame, Stub, serving

Cap = pytest.CaptureFixture[str]
Event = tuple[str, Mapping[str, object]]
SAY = ("say", "chat-1", "hello", "-w")

PARTS = [
    log(1, "step", what="open", words="It is opened."),
    log(2, "text", text="Hel", final=False),
    log(3, "text", text="lo\x1b[3", final=False),
    log(4, "text", text="1m!", final=False),
    log(5, "text", text="Hello\x1b[31m! All well.", final=True),
    log(6, "tool-started", id="1", name="Bash", command="make\ntest\x07", file=None),
    log(7, "tool-finished", id="1", ok=False, output="No rule.\nSorry."),
    log(8, "text", text="Done.", final=True),
    log(9, "done", ending="completed", reply="Done."),
]
NOTES = "· Continuing (run-1).\n· Bash: make test\n· failed: No rule. Sorry.\n"


def frames(*views: object) -> list[Frame | str]:
    return [each if isinstance(each, str) else frame(each) for each in views]


def frame(view: object) -> Frame:
    kinds = {"LogView": "log", "RunView": "run", "ApprovalView": "approval", "ThreadView": "thread"}
    return Frame(kinds[type(view).__name__], view, f"m-{getattr(view, 'seq', 'x')}")


def accepted(stub: Stub, state: str = "served") -> None:
    """A message that is accepted; its run ends well, and its log is complete."""
    stub.on("POST", "/threads/chat-1/words", Spoken(3, samples.WAKE))
    stub.on("GET", "/wakes/wake-1", replace(samples.SERVED, state=state))
    stub.on("GET", "/runs/run-1", samples.RUN)
    stub.on("GET", "/runs/run-1/events", written)
    stub.on("GET", "/approvals", [])


def written(asked: Asked) -> list[EventView]:
    after = int(asked.query.get("after", 0))
    return [EventView(each.seq, each.kind, each.at, each.body) for each in PARTS if each.seq > after]


def test_an_answer_is_shown_as_it_comes_and_all_else_beside_it(stub: Stub, capfd: Cap) -> None:
    accepted(stub)
    stub.streams.append(frames(samples.THREAD, samples.GOING, *PARTS, samples.RUN))
    said = here(capfd, *SAY)
    assert (said.status, said.out) == (0, "Hello! All well.\nDone.\n")
    assert said.err == NOTES
    assert stub.queries("/live") == [{"run": "run-1", "after": "0"}]


def test_every_line_is_shown_once_and_in_order_whatever_breaks(stub: Stub, capfd: Cap) -> None:
    """The stream breaks, repeats itself, leaves a gap, and tells the end before the last lines."""
    accepted(stub)
    stub.streams.append(frames(samples.GOING, *PARTS[:3], BREAK))
    stub.streams.append(frames(samples.GOING, *PARTS[:5], PARTS[6], BREAK))
    stub.streams.append(frames(samples.RUN, *PARTS[7:]))
    said = here(capfd, *SAY)
    assert (said.status, said.out) == (0, "Hello! All well.\nDone.\n")
    marks = [each.headers.get("Last-Event-ID") for each in stub.asked if each.path == "/live"]
    assert marks == [None, "m-3", "m-7"]


def test_a_restart_of_the_server_is_waited_for(tmp_path: Path, capfd: Cap, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes back at another address, while a stream is open."""
    data = tmp_path / "data"
    monkeypatch.setenv("CLEW_DATA", str(data))
    first, second = Stub(data), Stub(data)
    gone = threading.Event()
    accepted(first)
    accepted(second)
    first.streams.append(frames(samples.GOING, *PARTS[:5], BREAK))
    second.streams.append(frames(samples.RUN))

    def restart() -> None:
        with serving(first):
            ready.set()
            while len(first.streams):
                gone.wait(0.01)
        with serving(second):
            gone.wait(60)

    ready = threading.Event()
    thread = threading.Thread(target=restart)
    thread.start()
    try:
        assert ready.wait(30)
        said = here(capfd, *SAY)
    finally:
        gone.set()
        thread.join()
    assert (said.status, said.out) == (0, "Hello! All well.\nDone.\n")
    assert first.queries("/live")


def test_a_server_that_stays_away_is_not_waited_for_forever(
    stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Outage.__init__, "__defaults__", (0.0,))
    accepted(stub)

    def leave(_: Asked) -> object:
        (stub.data / "address").unlink()
        return BREAK

    stub.on("GET", "/runs/run-1", leave)
    stub.streams.append(frames(samples.RUN))
    said = here(capfd, *SAY)
    assert said.status == 1
    assert said.err.endswith(
        "clew: Clew is not running. What you asked for is stored (wake-1) and is served when Clew runs again. "
        "Do not send it again: start Clew with `clew up` and see `clew thread show chat-1`. [cli:not-running]\n"
    )


def test_a_run_that_is_tried_again_is_followed_to_the_end(stub: Stub, capfd: Cap) -> None:
    accepted(stub)
    failed = replace(samples.RUN, state="failed", words="The model is busy.", code="turn:failed")
    again = replace(samples.RUN, id="run-2")
    seen = iter([replace(samples.WAKE), replace(samples.WAKE, run="run-2"), replace(samples.SERVED, run="run-2")])
    stub.on("GET", "/wakes/wake-1", lambda _: next(seen))
    stub.on("GET", "/runs/run-1", failed)
    stub.on("GET", "/runs/run-2", again)
    stub.on("GET", "/runs/run-1/events", [])
    stub.on("GET", "/runs/run-2/events", [EventView(1, "text", samples.AT, {"text": "At last.", "final": True})])
    stub.streams += [frames(failed), frames(again)]
    said = here(capfd, *SAY)
    assert (said.status, said.out) == (0, "At last.\n")


@pytest.mark.case("R13")
def test_a_hold_is_said_once_however_often_it_is_tried(stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.cli.live.LONG", 0.0)
    accepted(stub)
    retrying = log(1, "retrying", words="500")
    failed = [
        replace(samples.RUN, id=f"run-{at}", ref=f"run-{at}", state="failed", words="500", code="run:retrying")
        for at in (1, 2, 3)
    ]
    last = replace(samples.RUN, id="run-4", ref="run-4")
    now = iter((1, 1, 2, 2, 2, 3, 3, 4, 4))
    wakes = (replace(samples.WAKE, run=f"run-{at}") for at in (1, 1, 2, 2, 2, 3, 3, 3, 4))
    stub.on("GET", "/wakes/wake-1", lambda _: next(wakes, replace(samples.SERVED, run="run-4")))

    def waiting(_: Asked) -> object:
        words = f"The model does not answer, so this is tried again (try {next(now)}): 500"
        return [replace(samples.HELD, thread="chat-1", held="time", words=words, not_before=time.time() + 100)]

    stub.on("GET", "/runs", waiting)
    for run in failed:
        stub.on("GET", f"/runs/{run.id}", run)
        stub.on("GET", f"/runs/{run.id}/events", [])
        stub.streams.append(frames(replace(run, state="running"), replace(retrying, run=run.id), run))
    stub.on("GET", "/runs/run-4", last)
    stub.on("GET", "/runs/run-4/events", [])
    said = replace(log(1, "text", text="At last.", final=True), run="run-4")
    stub.streams.append(frames(replace(last, state="running"), said, last))
    shown = here(capfd, *SAY)
    assert (shown.status, shown.out) == (0, "At last.\n")
    first, outage, hold, end = shown.err.splitlines()
    assert (first, end) == ("· Continuing (run-1).", "· Continuing (run-4).")
    assert outage == "· the model does not answer, and the agent tries again: 500"
    assert hold.startswith("· Held until ")
    assert hold.endswith(
        "The model does not answer, so this is tried again: 500 "
        "(Further tries are not shown: `clew runs --thread chat-1 --all`.)"
    )


def test_a_run_that_failed_is_a_failure_with_its_reason(stub: Stub, capfd: Cap) -> None:
    accepted(stub, "cancelled")
    failed = replace(samples.RUN, state="failed", words="The model is gone.", code="turn:failed")
    stub.on("GET", "/runs/run-1", failed)
    stub.on("GET", "/runs/run-1/events", [])
    stub.streams.append(frames(failed))
    said = here(capfd, *SAY)
    assert said.status == 1
    assert "· The run failed: The model is gone. See `clew why run-1`.\n" in said.err
    stub.streams.append(frames(failed))
    said = here(capfd, *SAY, "--json")
    problem = json.loads(said.err.splitlines()[-1])
    assert (said.status, problem["code"], problem["detail"]) == (1, "turn:failed", "The model is gone.")
    assert problem["remedy"] == "See `clew why run-1`."


def test_a_reply_that_was_read_back_after_a_crash_is_shown(stub: Stub, capfd: Cap) -> None:
    accepted(stub)
    found = replace(samples.RUN, id="run-2", words="Its reply was read.", code="run:read-back")
    wakes = iter(
        [samples.WAKE, replace(samples.WAKE, run="run-2"), replace(samples.SERVED, code="served:read-back")] * 2
    )
    stub.on("GET", "/wakes/wake-1", lambda _: next(wakes))
    stub.on("GET", "/runs/run-2", found)
    stub.on("GET", "/runs/run-2/events", [])
    lost = replace(samples.RUN, state="lost", words="Its daemon restarted.", code="run:daemon-restarted")
    stub.on("GET", "/runs/run-1", lost)
    stub.on("GET", "/runs/run-1/events", [log(1, "tool-started", id="1", name="Bash", command="make", file=None)])
    stub.on("GET", "/threads/chat-1", samples.PAGE)
    stub.streams += [frames(lost), frames(found)]
    said = here(capfd, *SAY)
    assert (said.status, said.out) == (0, "I look at it.\n")
    assert "· Its daemon restarted. ada had finished; this is its reply:\n" in said.err
    assert said.err.count("· Bash: make\n") == 1
    stub.streams += [frames(lost), frames(found)]
    said = here(capfd, *SAY, "--json")
    assert (said.status, json.loads(said.out.splitlines()[-1])["text"]) == (0, "I look at it.")


MESSAGES = [
    (["one\n", "two\n"], "one\ntwo", "one\ntwo\n"),
    (["\none\n\n"], "one", "\none\n\n"),
    (["one"], "one\n", "one\n"),
    (["one\n"], "one\ntwo", "one\ntwo\n"),
    (["\n"], "one", "\none\n"),
    (["one\n"], "other", "one\nother\n"),
    (["one"], "other", "one\nother\n"),
    ([], "one\n", "one\n"),
]


@pytest.mark.parametrize(("parts", "whole", "shown"), MESSAGES)
def test_what_was_shown_in_parts_is_not_shown_once_more_as_a_whole(
    stub: Stub, capfd: Cap, parts: list[str], whole: str, shown: str
) -> None:
    spoken(stub, [("text", {"text": each, "final": False}) for each in parts], whole)
    assert here(capfd, *SAY).out == shown


@pytest.mark.parametrize("parts", [("one\n", "two\n"), ("on", "e\ntwo")])
def test_something_shown_between_the_parts_does_not_repeat_them(stub: Stub, capfd: Cap, parts: tuple[str, str]) -> None:
    tool: Event = ("tool-started", {"id": "1", "name": "Bash", "command": "make"})
    first, second = [("text", {"text": each, "final": False}) for each in parts]
    spoken(stub, [first, tool, second], "one\ntwo")
    said = here(capfd, *SAY)
    assert said.out == (parts[0] if parts[0].endswith("\n") else f"{parts[0]}\n") + parts[1].rstrip() + "\n"
    assert "· Bash: make" in said.err
    spoken(stub, [first, second, tool], "one\ntwo")
    assert here(capfd, *SAY).out == "one\ntwo\n"


def spoken(stub: Stub, events: list[Event], whole: str) -> None:
    """A run that says and does this, and ends with the whole message."""
    accepted(stub)
    last: list[Event] = [("text", {"text": whole, "final": True}), ("done", {"ending": "completed", "reply": whole})]
    numbered = enumerate([*events, *last], 1)
    stub.on("GET", "/runs/run-1/events", [EventView(at, kind, samples.AT, body) for at, (kind, body) in numbered])
    stub.streams.append(frames(samples.RUN))


@pytest.mark.case("V02")
def test_a_run_without_a_reply_says_so(stub: Stub, capfd: Cap) -> None:
    accepted(stub)
    stub.on("GET", "/runs/run-1/events", [EventView(1, "done", samples.AT, {"ending": "completed", "reply": ""})])
    stub.streams.append(frames(samples.RUN))
    said = here(capfd, *SAY)
    assert (said.status, said.out) == (0, "")
    assert "ada ended its turn without a reply." in said.err


def test_a_reply_that_was_never_streamed_is_shown_at_the_end(stub: Stub, capfd: Cap) -> None:
    accepted(stub)
    stub.on("GET", "/runs/run-1/events", [EventView(1, "done", samples.AT, {"ending": "completed", "reply": "Yes."})])
    stub.streams.append(frames(samples.RUN))
    assert here(capfd, *SAY).out == "Yes.\n"


def test_a_wake_that_waits_says_what_for(stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.cli.live.LONG", 0.0)
    accepted(stub)
    waits = replace(samples.WAKE, run=None)
    seen = iter([waits, waits, samples.SERVED, samples.SERVED, samples.SERVED])
    stub.on("POST", "/threads/chat-1/words", Spoken(3, waits))
    stub.on("GET", "/wakes/wake-1", lambda _: next(seen))
    # Another agent's run in the thread may be held too, and for something else.
    held = replace(samples.THREAD, status="held", words="The model of cody does not answer.")
    stub.on("GET", "/threads/chat-1", replace(samples.PAGE, thread=held))
    stub.on("GET", "/runs", [replace(samples.HELD, held="another-try", words="Codex is not installed.")])
    stub.streams.append(frames(samples.RUN))
    said = here(capfd, *SAY)
    assert said.status == 0
    assert said.err.count("· Codex is not installed.\n") == 1
    assert "cody" not in said.err
    (asked,) = {tuple(sorted(each.query.items())) for each in stub.asked if each.path == "/runs"}
    assert dict(asked) == {"thread": "chat-1", "agent": "ada", "limit": "1"}


@pytest.mark.case("R13")
def test_a_message_behind_a_question_says_that_it_waits_for_the_answer(
    stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.cli.live.LONG", 0.0)
    accepted(stub)
    waits = replace(samples.WAKE, run=None, words="The agent is busy.")
    seen = iter([waits, waits, samples.SERVED, samples.SERVED, samples.SERVED])
    stub.on("POST", "/threads/chat-1/words", Spoken(3, waits))
    stub.on("GET", "/wakes/wake-1", lambda _: next(seen))
    stub.on("GET", "/runs", [replace(samples.GOING, ref="run-7", state="waiting")])
    stub.streams.append(frames(samples.RUN))
    said = here(capfd, *SAY)
    assert said.err.count("· run-7 waits for your answer first: `clew approvals`.\n") == 1
    assert "busy" not in said.err


@pytest.mark.parametrize("claimed", [False, True])
def test_nobody_waits_for_a_run_that_is_held_for_them(
    stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch, claimed: bool
) -> None:
    monkeypatch.setattr("clew.cli.live.LONG", 0.0)
    accepted(stub)
    stub.on("POST", "/threads/chat-1/words", Spoken(3, samples.WAKE if claimed else replace(samples.WAKE, run=None)))
    stub.on("GET", "/wakes/wake-1", replace(samples.WAKE, run="run-1" if claimed else None))
    stub.on("GET", "/threads/chat-1", replace(samples.PAGE, thread=replace(samples.THREAD, status="held")))
    stub.on("GET", "/runs", [samples.HELD])
    stub.streams += [frames(samples.HELD), frames(samples.HELD)]
    problem = json.loads(here(capfd, *SAY, "--json").err.splitlines()[-1])
    assert (problem["detail"], problem["remedy"]) == (
        "The branch is gone.",
        "Once that is fixed, run `clew retry run-1`.",
    )
    said = here(capfd, *SAY)
    assert said.status == 1
    assert said.err.endswith(
        "clew: The branch is gone. Once that is fixed, run `clew retry run-1`. [workspace:branch-gone]\n"
    )


@pytest.mark.case("A03")
def test_what_an_agent_asks_is_shown_with_how_to_answer(stub: Stub, capfd: Cap) -> None:
    accepted(stub)
    asked = frames(samples.GOING, samples.APPROVAL, samples.APPROVAL, samples.QUESTION, samples.RUN)
    stub.streams.append(asked)
    said = here(capfd, *SAY)
    assert said.err.count("· Answer with `clew approvals allow ap_1`.") == 1
    assert "· ada wants to run a command:\n· $ rm -r build\n" in said.err
    assert "· 2. blue\n· Answer with `clew approvals answer ap_2`." in said.err


@pytest.mark.case("A03")
def test_a_tool_that_was_denied_is_called_denied(stub: Stub, capfd: Cap) -> None:
    accepted(stub)
    tool = log(1, "tool-started", id="7", name="Bash", command="rm -r build", file=None)
    failed = log(2, "tool-finished", id="7", ok=False, output="The user does not allow this.")
    denied = replace(samples.APPROVAL, state="denied", ended_at=samples.AT)
    stub.streams.append(frames(samples.GOING, tool, samples.APPROVAL, denied, failed, samples.RUN))
    said = here(capfd, *SAY)
    assert "· Denied: rm -r build\n" in said.err
    assert "does not allow" not in said.err


def test_as_json_every_line_is_one_value(stub: Stub, capfd: Cap) -> None:
    accepted(stub)
    stub.streams.append(frames(samples.GOING, *PARTS, samples.RUN))
    said = here(capfd, *SAY, "--json")
    receipt, going, *events, run = [json.loads(line) for line in said.out.splitlines()]
    assert receipt == json.loads(json.dumps(asdict(Spoken(3, samples.WAKE))))
    assert (going["state"], run["state"]) == ("running", "succeeded")
    assert [event["seq"] for event in events] == list(range(1, 10))


def test_an_assigned_issue_can_be_watched(stub: Stub, capfd: Cap) -> None:
    accepted(stub)
    stub.on("POST", "/issues", samples.PAGE)
    stub.on("GET", "/runs", [samples.RUN])
    stub.on("GET", "/why/run-1", samples.WHY)
    stub.streams.append(frames(samples.GOING, samples.RUN))
    said = here(capfd, "issue", "new", "Blank", "--assign", "ada", "-w")
    assert said.status == 0
    assert said.out.endswith("Hello! All well.\nDone.\n")


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_a_log_is_complete_and_puts_messages_together(stub: Stub, capfd: Cap, follow: tuple[str, ...]) -> None:
    accepted(stub)
    stub.streams.append(frames(samples.GOING, *PARTS[:4], samples.RUN))
    said = here(capfd, "logs", "run-1", *follow)
    lines = [line[20:].strip() for line in said.out.splitlines()[:7]]
    assert lines == [
        "open: It is opened.",
        "says: Hello! All well.",
        "Bash: make",
        "",
        "Bash failed: No rule.",
        "",
        "says: Done.",
    ]
    assert "\n    test\n" in said.out
    assert "\n    Sorry.\n" in said.out
    assert said.out.startswith("2025-06-15T15:06:41Z  open")
    assert ("The run succeeded." in said.out) is bool(follow)


def test_what_falls_into_an_answer_does_not_break_it_in_a_log(stub: Stub, capfd: Cap) -> None:
    """The answer is shown once and whole, after what it was told on the way; a part only where no whole one comes."""
    begun = log(1, "text", text="ba", final=False)
    told = log(2, "steer", taken=True, text="Be quick.")
    quiet = log(3, "step", what="silence", words="It is quiet.")
    more = log(4, "text", text="se rej", final=False)
    whole, done = log(5, "text", text="base reject", final=True), log(6, "done", ending="completed", reply="")
    beside = ["received: Be quick.", "silence: It is quiet."]
    assert in_log(stub, capfd, begun, told, quiet, more, whole, done) == [
        *beside,
        "says: base reject",
        "done: completed",
    ]
    assert in_log(stub, capfd, begun, told, quiet, more, done) == [*beside, "says: base rej", "done: completed"]
    assert in_log(stub, capfd, begun, told) == ["received: Be quick.", "says: ba"]
    # Another try of the run says its own: what the first one said is not lost in it.
    again = log(3, "step", what="open", words="Again.")
    assert in_log(stub, capfd, begun, told, again, whole)[1:] == ["says: ba", "open: Again.", "says: base reject"]


def in_log(stub: Stub, capfd: Cap, *lines: LogView) -> list[str]:
    """The same for who reads it later and for who follows it."""
    accepted(stub)
    stub.on("GET", "/runs/run-1/events", [EventView(each.seq, each.kind, each.at, each.body) for each in lines])
    later = [line[20:].strip() for line in here(capfd, "logs", "run-1").out.splitlines()]
    stub.on("GET", "/runs/run-1/events", [])
    stub.streams.append(frames(samples.GOING, *lines, samples.RUN))
    followed = here(capfd, "logs", "run-1", "-f").out.splitlines()
    assert [line[20:].strip() for line in followed[:-1]] == later
    return later


def test_an_answer_by_a_person_does_not_break_what_the_agent_says(stub: Stub, capfd: Cap) -> None:
    logged(stub)
    parts = [log(3, "text", text="On", final=False), log(4, "text", text="One.", final=True)]
    stub.streams.append(frames(samples.GOING, *ASKED[:2], parts[0], ANSWERED[1], parts[1], samples.RUN))
    stub.on("GET", "/runs/run-1/events", [])
    said = here(capfd, "logs", "run-1", "-f").out
    assert [line[20:].strip() for line in said.splitlines()][2:4] == ["allowed by user (ap_1)", "says: One."]


ASKED = [
    log(1, "tool-started", id="1", name="Bash", command="make", file=None),
    log(2, "approval", id="ap_1", tool="Bash", words="Run a command", command="make", file=None),
    log(4, "tool-finished", id="1", ok=True, output="".join(f"line {number}\n" for number in range(100))),
    log(5, "step", what="open", words="x" * 3_000),
    log(6, "question", id="ap_2", words="Which one?", choices=["red", "blue"]),
    log(8, "text", text="Done.", final=True),
]
ANSWERED = [
    replace(samples.QUESTION, state="approved", answered_by="eve", answer="red", ended_at=samples.AT + 7),
    replace(samples.APPROVAL, state="approved", answered_by="user", ended_at=samples.AT + 3),
]


def logged(stub: Stub) -> None:
    stub.on("GET", "/runs/run-1", samples.RUN)
    stub.on("GET", "/approvals", ANSWERED)
    stub.on("GET", "/runs/run-1/events", [EventView(each.seq, each.kind, each.at, each.body) for each in ASKED])


def test_a_log_shows_what_tools_printed_and_who_answered_and_says_what_it_leaves_out(stub: Stub, capfd: Cap) -> None:
    logged(stub)
    said = here(capfd, "logs", "run-1").out
    lines = [line[20:].strip() if line.startswith("2025") else line for line in said.splitlines()]
    assert lines[:5] == [
        "Bash: make",
        "asks: Run a command (make) (ap_1)",
        "allowed by user (ap_1)",
        "Bash printed: line 0",
        "    line 1",
    ]
    assert lines[22:24] == ["    line 19", "    … 640 characters more; see `clew logs run-1 --full`."]
    assert lines[24].startswith("open: xxx")
    assert lines[25] == "    … 1,006 characters more; see `clew logs run-1 --full`."
    assert lines[26:] == ["asks: Which one? (ap_2)", "answered by eve: red (ap_2)", "says: Done."]
    assert stub.queries("/approvals")[0]["run"] == "run-1"
    whole = here(capfd, "logs", "run-1", "--full").out
    assert "    line 99\n" in whole
    assert "x" * 3_000 in whole
    assert "more:" not in whole


def test_a_log_of_a_run_that_is_held_says_so(stub: Stub, capfd: Cap) -> None:
    logged(stub)
    stub.on("GET", "/runs/run-1", samples.HELD)
    said = here(capfd, "logs", "run-1").out
    assert said.endswith("\nThe run is held: The branch is gone. Once that is fixed, run `clew retry run-1`.\n")


def test_an_answer_is_shown_at_once_to_who_follows(stub: Stub, capfd: Cap) -> None:
    logged(stub)
    waiting, answered = samples.APPROVAL, replace(ANSWERED[1], state="denied", answer="Not now.")
    stub.streams.append(frames(samples.GOING, *ASKED[:2], waiting, answered, samples.RUN))
    stub.on("GET", "/runs/run-1/events", [])
    said = here(capfd, "logs", "run-1", "-f").out
    assert [line[20:].strip() for line in said.splitlines()][2] == "denied by user: Not now. (ap_1)"


def test_a_log_as_json_is_what_the_api_says(stub: Stub, capfd: Cap) -> None:
    accepted(stub)
    said = here(capfd, "logs", "run-1", "--json")
    assert json.loads(said.out) == json.loads(json.dumps([asdict(event) for event in written_all()]))
    stub.streams.append(frames(samples.GOING, *PARTS, samples.RUN))
    lines = here(capfd, "logs", "run-1", "-f", "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == json.loads(said.out)


def written_all() -> list[EventView]:
    return written(Asked("GET", "", {}, None, {}))


def test_a_long_log_is_read_in_pages(stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.cli.live.PAGE", 4)
    accepted(stub)
    stub.on("GET", "/runs/run-1/events", lambda asked: written(asked)[: int(asked.query["limit"])])
    said = here(capfd, "logs", "run-1", "--json")
    assert [event["seq"] for event in json.loads(said.out)] == list(range(1, 10))
    assert [query["after"] for query in stub.queries("/runs/run-1/events")] == ["0", "4", "8"]


# ---------------------------------------------------------------- chat


def chatting(stub: Stub) -> None:
    accepted(stub)
    stub.on("GET", "/agents", [samples.AGENT])
    stub.on("POST", "/chats", samples.THREAD)
    stub.on("GET", "/threads/chat-1", replace(samples.PAGE, thread=samples.THREAD))


def test_a_single_message_is_said_and_answered(stub: Stub, capfd: Cap) -> None:
    chatting(stub)
    stub.streams.append(frames(samples.RUN))
    said = here(capfd, "chat", "--once", "hello", "--project", "web")
    assert (said.status, said.out) == (0, "Hello! All well.\nDone.\n")
    assert stub.bodies("POST", "/chats") == [{"agent": "ada", "project": "web", "title": ""}]


def test_lines_of_a_pipe_are_said_one_after_another(stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch) -> None:
    chatting(stub)
    stub.streams += [frames(samples.RUN), frames(samples.RUN)]
    monkeypatch.setattr("sys.stdin", io.StringIO("one\n\n - two"))
    said = here(capfd, "chat", "ada")
    assert (said.status, said.out) == (0, "Hello! All well.\nDone.\n" * 2)
    assert [body["text"] for body in stub.bodies("POST", "/threads/chat-1/words")] == ["one", " - two"]


def test_a_chat_is_taken_up_again(stub: Stub, capfd: Cap) -> None:
    chatting(stub)
    stub.on("GET", "/threads", [samples.THREAD])
    stub.streams += [frames(samples.RUN)] * 3
    assert here(capfd, "chat", "--in", "chat-1", "--once", "on").status == 0
    assert here(capfd, "chat", "ada", "-c", "--once", "on").status == 0
    assert stub.bodies("POST", "/chats") == []
    stub.on("GET", "/threads", [])
    assert here(capfd, "chat", "ada", "--continue", "--once", "on").status == 0
    assert len(stub.bodies("POST", "/chats")) == 1


def test_which_agent_is_asked_only_when_there_are_several(stub: Stub, capfd: Cap) -> None:
    chatting(stub)
    stub.on("GET", "/agents", [samples.AGENT, replace(samples.AGENT, name="bob")])
    said = here(capfd, "chat", "--once", "hello")
    assert said.err == "clew: There are several agents: ada, bob. Choose one: `clew chat NAME`. [cli:which-agent]\n"
    stub.on("GET", "/agents", [])
    assert "Add one with `clew agent add`." in here(capfd, "chat", "--once", "hello").err
    assert stub.bodies("POST", "/chats") == []


def test_an_interrupt_reaches_the_agent_and_the_rest_is_still_shown(
    stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch
) -> None:
    chatting(stub)
    stub.on("POST", "/runs/run-1/interrupt", {"taken": True, "state": "stopping", "words": "It is told to stop."})
    stub.streams += [frames(samples.GOING, *PARTS[:5], BREAK), frames(samples.RUN)]
    interrupt_once(monkeypatch)
    said = here(capfd, "chat", "ada", "--once", "hello")
    assert (said.status, said.out) == (0, "Hello! All well.\nDone.\n")
    assert len(stub.bodies("POST", "/runs/run-1/interrupt")) == 1
    assert "It is told to stop." in said.err


def test_what_was_shown_before_an_interrupt_is_not_shown_again(
    stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch
) -> None:
    chatting(stub)
    stub.on("POST", "/runs/run-1/interrupt", {"taken": True, "state": "stopping", "words": "It is told to stop."})
    part, whole = log(1, "text", text="half\n", final=False), log(2, "text", text="half", final=True)
    written = [EventView(each.seq, each.kind, each.at, each.body) for each in (part, whole)]
    stub.on("GET", "/runs/run-1/events", lambda asked: written[int(asked.query.get("after", 0)) :])
    stub.streams += [frames(samples.GOING, part, BREAK), frames(samples.RUN)]
    interrupt_once(monkeypatch)
    assert here(capfd, "chat", "ada", "--once", "hello").out == "half\n"


def interrupt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a person presses Ctrl-C while the stream is silent."""
    pressed: list[bool] = []

    def press(_: float) -> None:
        if not pressed:
            pressed.append(True)
            raise KeyboardInterrupt

    monkeypatch.setattr("clew.cli.live.time.sleep", press)
