"""Live events over a real socket: everything once and in order, however often a client is cut off."""

import contextlib
import itertools
import json
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.up.kit import LONG, Up, up


@dataclass(frozen=True)
class Event:
    id: str
    kind: str
    data: Any


# One server for all of them.
pytestmark = pytest.mark.xdist_group("live")

VIEWS = ("thread", "run", "approval", "log")
PAGES = ("beat", "changed", "log")


def events(clew: Up, query: str, last: str | None = None, kinds: Sequence[str] = VIEWS) -> Generator[Event]:
    headers = {} if last is None else {"Last-Event-ID": last}
    with clew.http() as http, http.stream("GET", f"/live?{query}", headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        told: dict[str, str] = {}
        end = time.monotonic() + LONG
        # A beat comes now and then, so this is looked at even when nothing happens.
        for line in answer.iter_lines():
            assert time.monotonic() < end, "what is waited for was never told"
            if line:
                name, _, value = line.partition(": ")
                told[name] = value
            elif told["event"] in kinds:
                yield Event(told["id"], told["event"], json.loads(told["data"]))
                told = {"id": told["id"]}
            else:
                told = {"id": told["id"]}


def ended(event: Event) -> bool:
    return event.kind == "run" and event.data["ended_at"] is not None


def until_ended(told: Iterator[Event], run: str | None = None) -> list[Event]:
    """Up to the view that says that a run has ended."""
    found = []
    for event in told:
        found.append(event)
        if ended(event) and run in (None, event.data["id"]):
            return found
    raise AssertionError("the stream ended before the run")


def log_of(told: list[Event], run: str) -> list[tuple[int, str]]:
    return [(each.data["seq"], each.data["kind"]) for each in told if each.kind == "log" and each.data["run"] == run]


def kept(clew: Up, run: str) -> list[tuple[int, str]]:
    return [(each["seq"], each["kind"]) for each in clew.ask("GET", f"/runs/{run}/events?limit=500")]


@pytest.fixture(scope="module")
def clew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("live") / "data") as started:
        started.guide()
        started.ask("POST", "/agents", {"name": "free", "provider": "guide", "mode": "full"})
        yield started
        assert started.stop() == 0


def chat(clew: Up, agent: str = "guide") -> str:
    ref: str = clew.ask("POST", "/chats", {"agent": agent})["ref"]
    return ref


def say(clew: Up, ref: str, text: str) -> Any:
    return clew.ask("POST", f"/threads/{ref}/words", {"text": text})["wake"]


def test_a_thread_is_told_as_it_goes_on(clew: Up) -> None:
    ref = chat(clew)
    stream = events(clew, f"thread={ref}")
    first = next(stream)
    assert (first.kind, first.data["ref"], first.data["status"]) == ("thread", ref, "idle")
    say(clew, ref, "THINK: well\nSAY: hello")
    told = until_ended(stream)
    run = told[-1].data["id"]
    # When it is said to have ended, all of its log was told.
    assert log_of(told, run) == kept(clew, run)
    assert "done" in [kind for _, kind in log_of(told, run)]
    stream.close()


@pytest.mark.parametrize("cut", [1, 3, 6])
def test_a_client_that_is_cut_off_misses_nothing_and_hears_nothing_twice(clew: Up, cut: int) -> None:
    ref = chat(clew, "free")
    stream = events(clew, f"thread={ref}")
    seen = [next(stream)]
    say(clew, ref, "THINK: one\nRUN: echo two\nSAY: three, four, five, six, seven")
    seen += itertools.islice(stream, cut)
    stream.close()
    # While it is away one run ends, and another comes and goes.
    clew.ran(say(clew, ref, "SAY: meanwhile"))
    last = clew.ran(say(clew, ref, "SAY: and after"))["id"]
    again = events(clew, f"thread={ref}", seen[-1].id)
    seen += until_ended(again, last)
    again.close()
    runs = [each["id"] for each in clew.ask("GET", f"/runs?thread={ref}")]
    assert len(runs) >= 2
    for run in runs:
        assert log_of(seen, run) == kept(clew, run), run


def test_a_run_is_told_from_its_first_line_or_after_one(clew: Up) -> None:
    ref = chat(clew)
    run = clew.ran(say(clew, ref, "THINK: one\nSAY: two"))["id"]
    whole = kept(clew, run)
    for after in (0, 2, len(whole)):
        stream = events(clew, f"run={run}&after={after}")
        assert log_of(until_ended(stream), run) == whole[after:]
        stream.close()


def test_what_is_asked_and_answered_is_told(clew: Up) -> None:
    clew.ask("POST", "/agents", {"name": "careful", "provider": "guide", "mode": "ask"})
    ref = chat(clew, "careful")
    stream = events(clew, f"thread={ref}")
    next(stream)
    say(clew, ref, "RUN: echo allowed")
    asked = next(each for each in stream if each.kind == "approval")
    assert (asked.data["state"], asked.data["agent"]) == ("pending", "careful")
    clew.ask("POST", f"/approvals/{asked.data['id']}", {"allow": True})
    answered = next(each for each in stream if each.kind == "approval")
    assert (answered.data["id"], answered.data["state"]) == (asked.data["id"], "approved")
    stream.close()


def test_a_page_is_told_what_changed_and_gets_the_lines_of_what_it_follows(clew: Up) -> None:
    ref, other = chat(clew), chat(clew)
    thread = clew.ask("GET", f"/threads/{ref}")["thread"]["id"]
    stream = events(clew, f"follow={ref}", kinds=PAGES)
    first, second = next(stream), next(stream)
    assert (first.kind, set(first.data)) == ("beat", {"at", "version"})
    assert (second.kind, second.data) == ("changed", {"threads": [], "runs": [], "all": True})
    clew.ran(say(clew, other, "SAY: not followed"))
    run = clew.ran(say(clew, ref, "THINK: well\nSAY: hello"))["id"]
    told: list[Event] = []
    while log_of(told, run) != kept(clew, run):
        told.append(next(stream))
    assert {each.data["run"] for each in told if each.kind == "log"} == {run}
    changed = [each.data for each in told if each.kind == "changed"]
    assert thread in {each for data in changed for each in data["threads"]}
    assert run in {each for data in changed for each in data["runs"]}
    stream.close()


@pytest.mark.parametrize("last", ["", "nonsense", "1;2", "9" * 5000, "1.0,rn_x:1", "\u00e9"])
def test_a_mark_that_is_none_begins_anew(clew: Up, last: str) -> None:
    ref = chat(clew)
    try:
        stream = events(clew, f"thread={ref}", last.encode("latin-1").decode("latin-1"))
        assert next(stream).data["ref"] == ref
    except UnicodeEncodeError:
        pytest.skip("the client does not send it")
    stream.close()


def test_what_is_not_there_is_refused_before_the_stream(clew: Up) -> None:
    with clew.http() as http:
        for query, status in (
            ("thread=issue-999", 404),
            ("follow=issue-999", 404),
            ("run=rn_nothing", 404),
            ("run=x&after=-1", 422),
        ):
            answer = http.get(f"/live?{query}")
            assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


def test_a_client_that_reads_nothing_holds_nobody_up(tmp_path: Path) -> None:
    with up(tmp_path / "data") as clew:
        clew.guide()
        ref = chat(clew)
        with clew.http() as http, http.stream("GET", f"/live?thread={ref}"):
            for _ in range(3):
                clew.ran(say(clew, ref, "SAY: " + "x" * 50_000))
        assert clew.stop() == 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_page_goes_on_after_a_restart_where_it_was(tmp_path: Path, how: signal.Signals) -> None:
    with up(tmp_path / "data") as clew:
        clew.guide()
        ref = chat(clew)
        stream = events(clew, f"follow={ref}", kinds=PAGES)
        next(stream)
        say(clew, ref, "THINK: one\nSAY: two\nRUN: sleep 60")
        seen = [next(each for each in stream if each.kind == "log") for _ in range(3)]
        clew.stop(how)
        # A killed server cuts the stream, one that stops ends it.
        with contextlib.suppress(httpx2.HTTPError):
            seen += stream
    with up(tmp_path / "data") as clew:
        clew.ran(say(clew, ref, "SAY: meanwhile"))
        again = events(clew, f"follow={ref}", seen[-1].id, PAGES)
        last = clew.ran(say(clew, ref, "SAY: and after"))["id"]
        while log_of(seen, last) != kept(clew, last):
            seen.append(next(again))
        again.close()
        runs = [each["id"] for each in clew.ask("GET", f"/runs?thread={ref}")]
        assert len(runs) >= 2
        for run in runs:
            assert log_of(seen, run) == kept(clew, run), run
        assert clew.stop() == 0


def test_open_streams_do_not_hold_up_the_end_of_the_server(tmp_path: Path) -> None:
    with up(tmp_path / "data") as clew:
        streams = [events(clew, "", kinds=PAGES) for _ in range(100)]
        for each in streams:
            assert next(each).kind == "beat"
        assert clew.stop() == 0
        for each in streams:
            assert {event.kind for event in each} <= {"beat", "changed"}
