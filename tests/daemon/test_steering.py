"""Words within a turn: told at once where the agent takes them, and by the next run where it does not."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.control.wakes import wake
from clew.kernel import (
    HUMAN,
    AgentId,
    Answer,
    ApprovalId,
    Attestation,
    Cursor,
    Directory,
    Evidence,
    Overlap,
    Sent,
    ThreadId,
    WakeId,
    WakeReason,
)
from clew.ports.events import ApprovalAsked, Done, Ending, ErrorCode, Event, Failed, SessionNamed, Text, ToolStarted
from clew.protocol.reports import Report, Reported
from clew.protocol.wakes import Accepted, Said, WakeRequest
from clew.store.operations.approvals import answer_approval
from clew.store.operations.cancel import cancel_run
from clew.store.operations.ids import new_id
from clew.store.schema.tables import approvals, sessions
from tests.daemon.kit import PERSON, QUICK, World, run, until, world
from tests.daemon.scripted import ABLE, Session

HASTY = replace(QUICK, interrupt=0.4, close=0.4, cancel=0.2, last_delivery=0.2)


async def furnished(there: World) -> None:
    await there.add_agent()
    there.add_thread()


def steer(there: World, text: str, **changes: Any) -> Accepted:
    asked = WakeRequest(
        WakeId(new_id("wk")), AgentId("ada"), WakeReason.CHAT, HUMAN, ThreadId("chat-1"), Said(PERSON, text)
    )
    asked = replace(asked, **changes)
    return there.write(lambda link: wake(link, asked, overlap=Overlap.STEER))


async def hears(session: Session, prompt: str) -> AsyncIterator[Event]:
    """Works until it is told something on the way, and answers that."""
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    yield ToolStarted("1", "shell", "sleep 60")
    heard = await session.told.get()
    yield Done(Ending.COMPLETED, f"heard {heard}")


async def works(session: Session, prompt: str) -> AsyncIterator[Event]:
    """Works until the test lets it go on."""
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    yield ToolStarted("1", "shell", "sleep 60")
    await session.loom.go_on.wait()
    yield Done(Ending.COMPLETED, "worked")


@pytest.mark.case("W13")
def test_words_reach_the_turn_that_is_going_and_are_not_told_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(hears)
            first = there.say("one")
            await until(lambda: bool(there.loom.prompts), "it works")
            at = asyncio.get_running_loop().time()
            said = steer(there, "two")
            assert said.code == "accepted:steered"
            await until(lambda: bool(there.loom.steered), "it is told")
            assert asyncio.get_running_loop().time() - at < 1.0, "not only when its lease is renewed"
            row = await there.served(said)
            assert (await there.served(first)).id == row.id
            assert len(there.runs()) == 1
            assert there.said() == [("human", "one"), ("human", "two"), ("agent", "heard two")]
            (line,) = [body for kind, body in there.log(row.id) if kind == "steer"]
            assert line == {"taken": True, "wakes": [said.wake], "entries": [2], "text": "two"}
            await there.tell("three")
            assert there.loom.prompts == ["one", "two", "three"]
            (session,) = there.rows(sessions)
            assert session.seen == 5

    run(scene())


@pytest.mark.case("W13")
def test_what_came_while_the_session_was_being_opened_is_told_when_the_turn_goes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            opening, go_on = asyncio.Event(), asyncio.Event()

            async def before(_: object) -> None:
                opening.set()
                await go_on.wait()

            there.loom.before_open = before
            there.loom.turns.append(hears)
            there.say("one")
            await opening.wait()
            said = steer(there, "two")
            await asyncio.sleep(0.1)
            go_on.set()
            await there.served(said)
            assert (there.loom.prompts, len(there.runs())) == (["one", "two"], 1)

    run(scene())


@pytest.mark.case("W13")
def test_several_are_told_one_after_the_other(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(works)
            first = there.say("one")
            await until(lambda: bool(there.loom.prompts), "it works")
            going: list[int] = []

            async def slowly(session: Session, prompt: str) -> bool:
                going.append(len(going))
                assert len(going) == 1, "one at a time"
                await asyncio.sleep(0.05)
                session.take(prompt)
                going.clear()
                return True

            there.loom.steer_with = slowly
            more = [steer(there, f"word {number}") for number in range(5)]
            await until(lambda: all(there.wake_row(each).code == "carried:steered" for each in more), "all are told")
            there.loom.go_on.set()
            row = await there.served(first)
            assert {(await there.served(each)).id for each in more} == {row.id}
            told = "\n".join(there.loom.prompts)
            assert [told.count(f"word {number}") for number in range(5)] == [1] * 5

    run(scene())


@pytest.mark.case("W13")
def test_what_was_asked_for_in_vain_while_something_was_told_is_told_after_it(tmp_path: Path) -> None:
    """The second is asked for while the answer that brings the first is on its way, and no news comes of it again."""

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            brought, let_go, plane, asked = asyncio.Event(), asyncio.Event(), there.plane, 0

            class Slow:
                def __getattr__(self, name: str) -> Any:
                    return getattr(plane, name)

                async def report(self, said: Report) -> Reported:
                    nonlocal asked
                    reported = await plane.report(said)
                    asked += reported.steer is not None
                    if reported.steer is not None and not brought.is_set():
                        brought.set()
                        await let_go.wait()
                    return reported

            await there.daemon.stop()
            there.plane = Slow()
            there.daemon = there.new_daemon()
            await there.start()
            took = asyncio.Event()

            async def later(session: Session, prompt: str) -> bool:
                session.take(prompt)
                await took.wait()
                return True

            there.loom.turns.append(works)
            there.loom.steer_with = later
            there.say("one")
            await until(lambda: bool(there.loom.prompts), "it works")
            steer(there, "two")
            await brought.wait()
            said = steer(there, "three")
            await asyncio.sleep(0.3)
            let_go.set()
            await until(lambda: asked == 2, "the second was asked for, and the first came again")
            took.set()
            await until(lambda: there.wake_row(said).code == "carried:steered", "it is told")
            there.loom.go_on.set()
            await there.served(said)
            assert (there.loom.prompts, len(there.runs())) == (["one", "two", "three"], 1)

    run(scene())


@pytest.mark.case("W13")
@pytest.mark.parametrize("how", ["refused", "fault", "too late", "does not let go"])
def test_what_the_agent_does_not_take_is_the_next_turns_exactly_once(tmp_path: Path, how: str) -> None:
    async def scene() -> None:
        async with world(tmp_path, HASTY) as there:
            await furnished(there)
            there.loom.turns.append(works)
            first = there.say("one")
            await until(lambda: bool(there.loom.prompts), "it works")

            async def not_taken(_: Session, __: str) -> bool:
                if how == "fault":
                    raise RuntimeError("nobody is there")
                if how == "does not let go":
                    there.loom.go_on.set()
                    for _number in range(4):
                        with contextlib.suppress(asyncio.CancelledError):
                            await asyncio.sleep(0.5)
                if how == "too late":
                    there.loom.go_on.set()
                    await asyncio.sleep(0.2)
                return False

            there.loom.steer_with = not_taken
            said = steer(there, "two")
            await until(lambda: bool(there.loom.steered), "it is tried")
            there.loom.go_on.set()
            before, after = await there.served(first), await there.served(said)
            assert before.id != after.id
            # A conversation that goes on hears what it has not seen: its own answer came after these words.
            assert [prompt.count("two") for prompt in there.loom.prompts] == [0, 1]
            (line,) = [body for kind, body in there.log(before.id) if kind == "steer"]
            assert line["taken"] is False
            assert len(there.loom.steered) == 1

    run(scene())


@pytest.mark.case("W13")
def test_the_turn_ends_while_the_words_are_on_their_way_from_the_server(tmp_path: Path) -> None:
    """The server has given the run the wake, and the turn is over when the daemon hears of it."""

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            answered = asyncio.Event()
            plane = there.plane

            class Slow:
                def __getattr__(self, name: str) -> Any:
                    return getattr(plane, name)

                async def report(self, said: Report) -> Reported:
                    reported = await plane.report(said)
                    if said.steers and reported.steer is not None and not answered.is_set():
                        answered.set()
                        there.loom.go_on.set()
                        await asyncio.sleep(0.3)
                    return reported

            await there.daemon.stop()
            there.plane = Slow()
            there.daemon = there.new_daemon()
            await there.start()
            there.loom.turns.append(works)
            first = there.say("one")
            await until(lambda: bool(there.loom.prompts), "it works")
            said = steer(there, "two")
            before, after = await there.served(first), await there.served(said)
            assert answered.is_set()
            assert (before.id != after.id, there.loom.steered) == (True, [])
            assert [prompt.count("two") for prompt in there.loom.prompts] == [0, 1]

    run(scene())


@pytest.mark.case("W13")
def test_an_agent_that_cannot_gets_it_in_its_next_turn_and_the_receipt_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            there.loom.capabilities = replace(ABLE, steers=False)
            await furnished(there)
            there.loom.turns.append(works)
            there.say("one")
            await until(lambda: bool(there.loom.prompts), "it works")
            said = steer(there, "two")
            assert (said.code, there.wake_row(said).code) == ("accepted:queued", "accepted:queued")
            there.loom.go_on.set()
            await there.served(said)
            assert (there.loom.steered, len(there.runs())) == ([], 2)

    run(scene())


@pytest.mark.case("W13")
def test_a_run_that_is_stopped_meanwhile_ends_and_leaves_the_words_to_the_next(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)

            async def hangs(session: Session, prompt: str) -> AsyncIterator[Event]:
                session.take(prompt)
                yield SessionNamed(session.kept.id, durable=True)
                yield Text("I begin", final=False)
                await session.interrupted.wait()
                yield Done(Ending.INTERRUPTED)

            async def until_the_end(session: Session, _: str) -> bool:
                await session.interrupted.wait()
                return False

            there.loom.turns.append(hangs)
            there.loom.steer_with = until_the_end
            first = there.say("one")
            await until(lambda: bool(there.loom.prompts), "it works")
            said = steer(there, "two")
            await until(lambda: bool(there.loom.steered), "it is being told")
            going = there.runs()[0].id
            there.write(lambda link: cancel_run(link, going))
            after = await there.served(said)
            assert (there.run_row(going).state, after.id != going) == ("cancelled", True)
            assert there.wake_row(first).state == "cancelled"
            assert [prompt.count("two") for prompt in there.loom.prompts] == [0, 1]

    run(scene())


@pytest.mark.case("W13")
def test_words_do_not_answer_what_the_agent_asks(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)

            async def asks(session: Session, prompt: str) -> AsyncIterator[Event]:
                session.take(prompt)
                yield SessionNamed(session.kept.id, durable=True)
                yield ApprovalAsked(ApprovalId("1"), "shell", "May I run this?", command="make")
                _, given, _ = await session.answered.get()
                yield Done(Ending.COMPLETED, f"{given}, and heard {session.told.get_nowait()}")

            there.loom.turns.append(asks)
            there.say("one")
            await until(lambda: len(there.rows(approvals)) == 1, "it is asked")
            said = steer(there, "yes")
            await until(lambda: there.wake_row(said).code == "carried:steered", "it is told")
            (asked,) = there.rows(approvals)
            assert (asked.state, there.runs()[0].state) == ("pending", "waiting")
            there.write(lambda link: answer_approval(link, asked.id, Answer.DENY, "a person"))
            await there.served(said)
            assert there.said()[-1] == ("agent", "deny, and heard yes")

    run(scene())


@pytest.mark.case("W13")
def test_a_turn_that_fails_after_it_was_told_something_is_not_begun_again_in_another_session(tmp_path: Path) -> None:
    """Its session "took nothing" of the prompt, and of what was told on the way everything."""

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("nought")

            async def fails(session: Session, _: str) -> AsyncIterator[Event]:
                await session.told.get()
                yield Failed(ErrorCode.MODEL_FAILED, "the model is overloaded", retryable=False)
                yield Done(Ending.FAILED)

            there.loom.turns.append(fails)
            there.say("one")
            await until(lambda: len(there.runs()) == 2 and there.runs()[1].state == "running", "it works")
            said = steer(there, "two")
            row = await there.served(said)
            assert (row.state, row.reopened) == ("failed", 0)
            assert there.wake_row(said).code == "cancelled:gave-up"

    run(scene())


@pytest.mark.case("W13")
def test_a_daemon_that_dies_while_it_tells_leaves_the_words_to_the_next_run(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, HASTY) as there:
            await furnished(there)
            there.loom.turns.append(works)
            there.say("one")
            await until(lambda: bool(there.loom.prompts), "it works")

            async def never(_: Session, __: str) -> bool:
                await asyncio.Event().wait()
                return True

            there.loom.steer_with = never
            said = steer(there, "two")
            await until(lambda: there.wake_row(said).code == "carried:steering", "the run carries it")
            await there.restart()
            row = await there.served(said)
            assert row.state == "succeeded"
            assert sum(prompt.count("two") for prompt in there.loom.prompts) == 1

    run(scene())


@pytest.mark.case("W13")
def test_a_session_that_took_a_message_within_its_turn_is_not_sent_its_prompt_again(tmp_path: Path) -> None:
    """The store has the message and not the prompt: to send that again in another session would lose the message."""

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("zero")

            async def dies_without_a_word(session: Session, _: str) -> AsyncIterator[Event]:
                await session.loom.go_on.wait()
                yield Failed(ErrorCode.PROGRAM_ENDED, "it is gone", retryable=True)
                yield Done(Ending.FAILED)

            async def takes_it_and_dies(session: Session, prompt: str) -> bool:
                session.take(prompt, session.steer_id)
                session.loom.go_on.set()
                raise OSError("the connection was cut")

            there.loom.turns.append(dies_without_a_word)
            there.loom.steer_with = takes_it_and_dies
            there.say("one")
            await until(lambda: there.runs()[-1].state == "running", "it works")
            said = steer(there, "two")
            await there.served(said)
            going = there.runs()[1].id
            assert "reopen" not in there.steps(going)
            (line,) = [body for kind, body in there.log(going) if kind == "steer"]
            assert line["taken"] is True
            assert sum(prompt.count("two") for prompt in there.loom.prompts) == 1

    run(scene())


@pytest.mark.case("P20", "W13")
def test_words_of_which_the_store_cannot_tell_are_not_told_again(tmp_path: Path) -> None:
    """The agent may have taken them, so a person decides."""

    async def cannot_tell(_cursor: Cursor, _directory: Directory, _sent: Sent) -> Attestation:
        return Attestation(Evidence.UNKNOWN, "the store is damaged", able=False)

    async def breaks_off(_session: Session, _prompt: str) -> bool:
        raise OSError("the connection was cut")

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(works)
            there.loom.steer_with, there.loom.heard_with = breaks_off, cannot_tell
            first = there.say("one")
            await until(lambda: bool(there.loom.prompts), "it works")
            said = steer(there, "two")
            await until(lambda: bool(there.loom.steered), "it is tried")
            there.loom.go_on.set()
            going = await there.served(first)
            await until(lambda: there.runs()[-1].hold == "person", "a person is asked")
            assert (there.wake_row(said).state, there.loom.prompts) == ("pending", ["one"])
            assert "steer" not in [kind for kind, _ in there.log(going.id)]

    run(scene())
