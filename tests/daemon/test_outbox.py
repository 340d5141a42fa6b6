"""The outbox: what was said of a run is not lost, and counts once, whoever was away meanwhile."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from clew.daemon.outbox import Letter, Outbox, OutboxUnusable, letter_of, read_letter
from clew.kernel import (
    AccountId,
    ApprovalId,
    Attestation,
    Cursor,
    Directory,
    EntrySeq,
    Evidence,
    FailureKind,
    Floor,
    NativeId,
    PromptId,
    RunId,
    RuntimeId,
    Sent,
    WaitsFor,
)
from clew.ports.events import Done, Ending, Event, SessionNamed
from clew.ports.fault import Fault
from clew.protocol import codec
from clew.protocol.control import (
    Claimed,
    ControlPlane,
    Expired,
    FileContent,
    FileWanted,
    GoOnRequest,
    OrphansRequest,
    Registration,
    Renewed,
    RenewRequest,
)
from clew.protocol.orders import ClaimRequest
from clew.protocol.reports import (
    Asked,
    Completed,
    Failed,
    Finish,
    Finished,
    NewSession,
    Prompted,
    Report,
    Reported,
    Returned,
    RunEventRecord,
    Stopped,
    StoreAnswer,
    StoreAsked,
    Usage,
)
from clew.store.schema.tables import runs, wakes
from tests.daemon.kit import QUICK, World, run, until, world
from tests.daemon.scripted import Session, Turn

T = TypeVar("T")

# A daemon that cannot say what it has to say tries for as long as a turn may take to end.
HASTY = replace(QUICK, interrupt=0.2, close=0.2, last_delivery=0.2)

RUN = RunId("rn_1")
HEARD = Attestation(Evidence.CUT_OFF, "it is in the store", "half a reply")
PIN = NewSession(
    Cursor(1, NativeId("n-1"), "more"),
    Directory("/srv/link", "/srv/real"),
    AccountId("me"),
    EntrySeq(3),
    (EntrySeq(1),),
    Floor(2, EntrySeq(3), (EntrySeq(1),)),
    "large",
    "edit",
    "i1",
    "t1",
)


class Away(Fault):
    code = "server:away"


class Server:
    """The control plane behind a line that a test cuts, before or after what is said has arrived."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.away = False
        self.loses_answers = 0
        self.finishes = 0

    async def _over(self, call: Callable[[], Awaitable[T]]) -> T:
        if self.away:
            raise Away("The server is away.", "It is tried again.")
        answer = await call()
        if self.loses_answers:
            self.loses_answers -= 1
            raise ConnectionResetError("the answer was lost")
        return answer

    async def register(self, registration: Registration) -> RuntimeId:
        return await self._over(lambda: self._plane.register(registration))

    async def claim(self, asked: ClaimRequest) -> Claimed:
        if self.away:
            raise Away("The server is away.", "It is tried again.")
        return await self._plane.claim(asked)

    async def report(self, said: Report) -> Reported:
        return await self._over(lambda: self._plane.report(said))

    async def finish(self, said: Finish) -> Finished:
        self.finishes += 1
        return await self._over(lambda: self._plane.finish(said))

    async def file(self, asked: FileWanted) -> FileContent:
        return await self._over(lambda: self._plane.file(asked))

    async def renew(self, asked: RenewRequest) -> Renewed:
        return await self._over(lambda: self._plane.renew(asked))

    async def go_on(self, asked: GoOnRequest) -> None:
        await self._over(lambda: self._plane.go_on(asked))

    async def end_orphans(self, asked: OrphansRequest) -> tuple[Expired, ...]:
        return await self._over(lambda: self._plane.end_orphans(asked))


async def behind_a_line(there: World) -> Server:
    """From now on the daemon speaks to the server over a line."""
    server = Server(there.plane)
    await there.daemon.stop()
    there.plane = server
    there.daemon = there.new_daemon()
    await there.start()
    await there.add_agent()
    there.add_thread()
    return server


@pytest.mark.parametrize(
    "said",
    [
        Report(
            RUN, 2, pin=PIN, tool_ran=True, answered=True, events=(RunEventRecord(7, "text", '{"text": "\ud800"}'),)
        ),
        Report(RUN, 2, asks=(Asked(ApprovalId("ap_1"), "{}", 5.0),)),
        *(
            Finish(RUN, 3, end, pin)
            for pin in (None, PIN, replace(PIN, floor=None, account=None))
            for end in (
                Completed("done", 4, Usage(1, 5, 6, "m", "edit")),
                Completed(),
                Completed("read back", 4, read_back=True),
                Failed(FailureKind.USAGE_LIMIT, "wait", 9.5, True),
                Failed(FailureKind.CRASHED, "killed", heard=HEARD),
                StoreAsked((StoreAnswer(RUN, HEARD), StoreAnswer(RUN, None, HEARD))),
                Stopped("by a person", heard=HEARD),
                Returned("no", "place:held", WaitsFor.PERSON),
                Stopped("by a person"),
            )
        ),
    ],
)
def test_a_letter_is_read_as_it_was_written(said: Report | Finish, tmp_path: Path) -> None:
    async def scene() -> list[Letter]:
        outbox = Outbox(tmp_path / "outbox.db")
        await outbox.put([letter_of(said)]).safe
        outbox.close()
        again = Outbox(tmp_path / "outbox.db")
        left = again.left()
        again.close()
        return left

    (letter,) = run(scene())
    assert read_letter(letter) == said


def test_whether_a_prompt_may_go_out_is_never_asked_later() -> None:
    with pytest.raises(ValueError, match="never sent later"):
        letter_of(Report(RUN, 1, told=EntrySeq(1), prompted=Prompted(Sent(PromptId("p"), "d"), PIN, ())))


def test_a_file_that_is_no_outbox_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "outbox.db").write_bytes(b"no database at all, but long enough to be looked at" * 50)
    with pytest.raises(OutboxUnusable, match="cannot be used"):
        Outbox(tmp_path / "outbox.db")


def test_a_disk_that_fails_keeps_nobody_from_saying_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent()
            there.add_thread()
            with sqlite3.connect(tmp_path / "outbox.db", isolation_level=None) as file:
                file.execute("CREATE TRIGGER full BEFORE INSERT ON said BEGIN SELECT RAISE(ABORT, 'full'); END")
            assert (await there.tell("one")).state == "succeeded"

    run(scene())


@pytest.mark.case("R07")
def test_a_server_that_is_away_when_a_run_ends_is_told_later(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            server = await behind_a_line(there)

            async def cut() -> None:
                server.away = True

            there.loom.turns.append(_then(cut))
            said = there.say("one")
            await until(lambda: there.loom.prompts == ["one"] and server.finishes > 3, "it tries to tell")
            assert there.wake_row(said).state == "claimed"
            server.away = False
            row = await there.served(said)
            assert (row.state, there.said()) == ("succeeded", [("human", "one"), ("agent", "done")])
            await until(lambda: _left(tmp_path) == 0, "nothing is left in the outbox")

    run(scene())


@pytest.mark.case("R07")
def test_what_a_daemon_could_not_say_is_said_by_the_next_exactly_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, HASTY) as there:
            server = await behind_a_line(there)

            async def cut() -> None:
                server.away = True

            there.loom.turns.append(_then(cut))
            said = there.say("one")
            await until(lambda: server.finishes > 1, "it tries to tell")
            await there.daemon.stop()
            assert _left(tmp_path) > 0
            there.daemon = there.new_daemon()
            starting = asyncio.create_task(there.start())
            await asyncio.sleep(0.2)
            server.away = False
            server.loses_answers = 3
            await starting
            row = await there.served(said)
            assert (row.state, row.attempt) == ("succeeded", 1)
            assert there.said() == [("human", "one"), ("agent", "done")]
            assert there.sessions()[0].turns == 1
            await until(lambda: _left(tmp_path) == 0, "nothing is left in the outbox")

    run(scene())


def test_a_daemon_has_stopped_when_the_runs_that_it_gave_up_have_closed_their_sessions(tmp_path: Path) -> None:
    def of_runs() -> list[str]:
        return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("run ")]

    async def slow_for_a_run(_: Session) -> None:
        closing = asyncio.current_task()
        if closing is not None and closing.get_name() in of_runs():
            await asyncio.sleep(0.3)

    async def scene() -> None:
        async with world(tmp_path, replace(HASTY, close=2.0)) as there:
            server = await behind_a_line(there)

            async def never_durable(_session: Session, _prompt: str) -> AsyncIterator[Event]:
                server.away = True
                yield Done(Ending.COMPLETED, "done")

            there.loom.turns.append(never_durable)
            there.loom.close_with = slow_for_a_run
            there.say("one")
            await until(lambda: server.finishes > 1, "it tries to tell")
            await there.daemon.stop()
            assert of_runs() == []

    run(scene())


@pytest.mark.case("R07", "P09")
def test_answers_that_are_lost_change_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            server = await behind_a_line(there)
            for number in range(1, 6):
                server.loses_answers = number
                row = await there.tell(f"message {number}")
                assert row.state == "succeeded", row.words
                server.loses_answers = 0
            (kept,) = there.loom.kept.values()
            assert kept.prompts == [f"message {number}" for number in range(1, 6)]
            assert there.sessions()[0].turns == 5
            assert all(row.attempt == 1 for row in there.rows(runs))
            assert all(row.state == "served" for row in there.rows(wakes))

    run(scene())


@pytest.mark.case("R07")
def test_a_letter_that_cannot_be_read_is_kept_reported_once_and_stands_in_nobodys_way(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent()
            there.add_thread()
            await there.daemon.stop()
            with sqlite3.connect(tmp_path / "outbox.db", isolation_level=None) as file:
                file.execute("INSERT INTO said (run, attempt, kind, body) VALUES ('rn_9', 1, 'finish', 'nonsense')")
                file.execute("INSERT INTO said (run, attempt, kind, body) VALUES ('rn_8', 1, 'odd', '{\"pin\": null}')")
            there.daemon = there.new_daemon()
            await there.start()
            assert (await there.tell("one")).state == "succeeded"
            await there.restart()
            assert (await there.tell("two")).state == "succeeded"
            await until(lambda: _left(tmp_path) == 2, "nothing else is left in the outbox")
            unread = await there.machine.unread_letters()
            assert [(each.run, each.kind) for each in unread] == [("rn_9", "finish"), ("rn_8", "odd")]
            assert "not JSON" in unread[0].why
            assert caplog.text.count("cannot be read and is kept") == 2

    run(scene())


@pytest.mark.case("R07")
def test_an_end_of_another_version_is_delivered_by_the_version_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with world(tmp_path, HASTY) as there:
            server = await behind_a_line(there)

            async def cut() -> None:
                server.away = True

            there.loom.turns.append(_then(cut))
            said = there.say("one")
            await until(lambda: server.finishes > 1, "it tries to tell")
            await there.daemon.stop()
            kept = _left(tmp_path)
            with monkeypatch.context() as upgraded:
                upgraded.setattr(codec, "VERSION", codec.VERSION + 1)
                there.daemon = there.new_daemon()
                # The server stays away: this version asks it nothing about the run.
                there.daemon._backlog.start()  # noqa: SLF001 - the part of a start that reads the outbox
                assert there.daemon._backlog.held == ()  # noqa: SLF001
                await there.daemon.stop()
                assert (_left(tmp_path), len(_unread(tmp_path))) == (kept, kept)
            server.away = False
            there.daemon = there.new_daemon()
            await there.start()
            assert (await there.served(said)).state == "succeeded"
            assert there.said() == [("human", "one"), ("agent", "done")]
            await until(lambda: _left(tmp_path) == 0, "nothing is left in the outbox")
            assert _unread(tmp_path) == []

    run(scene())


def test_a_run_that_is_lost_takes_no_letter_of_an_earlier_attempt_along(tmp_path: Path) -> None:
    async def scene() -> None:
        outbox = Outbox(tmp_path / "outbox.db")
        await outbox.put([Letter(RUN, 1, "finish", "of another version"), Letter(RUN, 2, "report", "{}")]).safe
        outbox.drop_attempt(RUN, 2)
        outbox.close()
        again = Outbox(tmp_path / "outbox.db")
        assert [letter.attempt for letter in again.left()] == [1]
        again.close()

    run(scene())


def _then(after: Callable[[], Awaitable[None]]) -> Turn:
    async def turn(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.take(prompt)
        yield SessionNamed(session.kept.id, durable=True)
        await asyncio.sleep(0.05)
        await after()
        session.reply("done")
        yield Done(Ending.COMPLETED, "done")

    return turn


def _unread(place: Path) -> list[int]:
    with sqlite3.connect(place / "outbox.db") as file:
        return [letter for (letter,) in file.execute("SELECT letter FROM unread")]


def _left(place: Path) -> int:
    with sqlite3.connect(place / "outbox.db") as file:
        (count,) = file.execute("SELECT count(*) FROM said").fetchone()
        return int(count)
