"""Evidence: after a turn that did not end well, the agent's own store says what became of the prompt."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import Attestation, Cursor, Directory, Evidence, Sent
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, SessionNamed, Text
from clew.ports.provider import OpenSpec
from clew.programs.faults import TooSlow
from tests.daemon.kit import World, run, until, world
from tests.daemon.scripted import ABLE, Session, Turn

CUT_OFF = "cut off"


async def furnished(there: World) -> None:
    await there.add_agent()
    there.add_thread()


async def dies() -> AsyncIterator[Event]:
    yield Failed(ErrorCode.PROGRAM_ENDED, "the program was killed", True)
    yield Done(Ending.FAILED)


async def dies_before_it_takes_it(_session: Session, _prompt: str) -> AsyncIterator[Event]:
    async for event in dies():
        yield event


async def dies_within(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    yield Text("I begin", final=False)
    async for event in dies():
        yield event


async def dies_with_its_reply(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    session.reply("all is done")
    async for event in dies():
        yield event


@pytest.mark.case("P19", "P21")
def test_what_the_store_does_not_have_is_sent_in_full_and_no_turn_is_called_cut_off(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(dies_before_it_takes_it)
            row = await there.tell("first-words")
            assert row.state == "succeeded"
            (prompt,) = there.loom.prompts
            assert "first-words" in prompt
            assert CUT_OFF not in prompt
            assert len(there.loom.asked) == 1

    run(scene())


@pytest.mark.case("P19", "P21")
def test_what_the_store_has_is_not_sent_again_and_its_cut_is_told_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(dies_within)
            said = there.say("first-words")
            await until(lambda: len(there.loom.prompts) == 2, "it goes on")
            await there.served(said)
            await there.tell("second-words")
            first, second, third = there.loom.prompts
            assert "first-words" in first
            assert "first-words" not in second
            assert [CUT_OFF in each for each in (first, second, third)] == [False, True, False]
            assert len(there.loom.kept) == 1

    run(scene())


@pytest.mark.case("C35", "P19")
def test_a_finished_reply_is_read_back_and_nothing_is_asked_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(dies_with_its_reply)
            row = await there.tell("first-words")
            assert row.state == "succeeded"
            assert there.said() == [("human", "first-words"), ("agent", "all is done")]
            assert len(there.loom.prompts) == 1
            assert any("a finished reply" in str(body) for _, body in there.log(row.id))

    run(scene())


@pytest.mark.case("P19")
def test_what_nobody_can_tell_waits_for_a_person(tmp_path: Path) -> None:
    async def cannot_say(_cursor: Cursor, _directory: Directory, _sent: Sent) -> Attestation:
        return Attestation(Evidence.UNKNOWN, "the store is damaged", able=False)

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(dies_within)
            there.loom.heard_with = cannot_say
            said = there.say("first-words")
            await until(lambda: there.runs()[-1].hold == "person", "it is held")
            assert there.wake_row(said).state == "pending"
            assert len(there.loom.prompts) == 1

    run(scene())


@pytest.mark.case("P21")
def test_a_try_that_came_to_no_prompt_leaves_no_trace_in_the_session(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:

            async def slow_once(_spec: OpenSpec) -> None:
                there.loom.before_open = None
                raise TooSlow("It did not start in time.", "It is tried again.")

            await furnished(there)
            await there.tell("first-words")
            await there.restart()
            there.loom.before_open = slow_once
            await there.tell("second-words")
            assert len(there.loom.prompts) == 2
            assert not any(CUT_OFF in each for each in there.loom.prompts)

    run(scene())


async def is_not_started(_session: Session, _prompt: str) -> AsyncIterator[Event]:
    yield Failed(ErrorCode.PROGRAM_ENDED, "there is no such program", False, handed=False)
    yield Done(Ending.FAILED)


async def says_nothing(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield Failed(ErrorCode.PROGRAM_ENDED, "it ended", False)
    yield Done(Ending.FAILED)


async def breaks_off(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    raise RuntimeError("the pipe is gone")


@pytest.mark.case("P19")
@pytest.mark.parametrize(
    ("turn", "evidence"),
    [
        (is_not_started, Evidence.UNSENT),
        (says_nothing, Evidence.TAKEN),
        (dies_within, Evidence.CUT_OFF),
        (breaks_off, Evidence.UNKNOWN),
    ],
)
def test_of_an_agent_without_a_store_it_is_known_what_the_daemon_saw(
    tmp_path: Path, turn: Turn, evidence: Evidence
) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            there.loom.capabilities = replace(ABLE, hears=False)
            await furnished(there)
            there.loom.turns.append(turn)
            there.say("first-words")
            await until(lambda: there.runs() != [] and there.runs()[0].ended_at is not None, "its run ends")
            assert there.runs()[0].evidence == evidence.value
            assert there.loom.asked == []

    run(scene())
