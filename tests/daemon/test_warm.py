"""Warm sessions: used by the next turn, ended when nobody comes, and never in a turn's way."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from clew.daemon import warm as room
from clew.daemon.warm import OpenedAs, WarmSession, WarmSessions
from clew.kernel import Directory, Fate, Moment, NativeId, PermissionMode, RuntimeId
from clew.kernel.warm import WarmReason
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, SessionNamed, Text, ToolStarted
from clew.ports.provider import LiveSession, OpenSpec, Settings
from clew.programs.faults import Refused
from clew.store.schema.tables import agents
from tests.daemon.kit import QUICK, World, run, until, world
from tests.daemon.scripted import Loom, Session, Weaver

RUNTIME = RuntimeId("rt-1")


async def furnished(there: World) -> None:
    await there.add_agent()
    there.add_thread()


def test_the_next_turn_goes_on_in_the_open_session(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("one")
            row = await there.tell("two")
            assert (len(there.loom.opened), there.loom.probed, there.loom.closed) == (1, [], [])
            assert (row.claim, row.state) == ("resumed", "succeeded")
            assert there.outcomes(row.id)[-1][0] == "resume"

    run(scene())


@pytest.mark.case("R14")
def test_a_session_that_is_let_go_is_closed_at_once_and_opened_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("one")
            (runtime,) = there.machine.offered
            assert await there.machine.release(runtime, [NativeId("loom-1"), NativeId("loom-9")]) == ["loom-1"]
            assert (there.loom.closed, there.loom.open) == (["loom-1"], set())
            assert await there.machine.release(runtime, [NativeId("loom-1")]) == []
            row = await there.tell("two")
            assert (row.claim, row.state) == ("resumed", "succeeded")

    run(scene())


def test_what_does_not_run_between_turns_is_asked_for_each_time(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            there.loom.capabilities = replace(there.loom.capabilities, warm=False)
            await furnished(there)
            await there.tell("one")
            row = await there.tell("two")
            assert (len(there.loom.opened), there.loom.probed, there.loom.closed[:1]) == (2, ["loom-1"], ["loom-1"])
            assert row.claim == "resumed"

    run(scene())


@pytest.mark.case("P03")
def test_another_mode_is_set_before_the_prompt_and_one_that_cannot_be_set_opens_anew(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("one")
            there.put(agents, {"id": "ada"}, mode="ask")
            await there.tell("two")
            assert [mode.value for mode in there.loom.modes] == ["ask"]
            assert len(there.loom.opened) == 1

            async def cannot(mode: PermissionMode) -> PermissionMode:  # noqa: ARG001
                raise Refused("It does not.", "Open it anew.")

            there.loom.set_mode_with = cannot
            there.put(agents, {"id": "ada"}, mode="read")
            row = await there.tell("three")
            assert (row.claim, there.loom.opened[-1].mode.value, there.loom.closed) == ("resumed", "read", ["loom-1"])

    run(scene())


@pytest.mark.case("X07")
@pytest.mark.parametrize("changed", [{"instructions": "Be brief."}, {"model": "small"}])
def test_other_instructions_or_another_model_open_it_anew(tmp_path: Path, changed: dict[str, str]) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("one")
            there.put(agents, {"id": "ada"}, **changed)
            row = await there.tell("two")
            assert (row.claim, len(there.loom.opened), there.loom.closed) == ("resumed", 2, ["loom-1"])
            spec = there.loom.opened[-1]
            assert {"instructions": spec.instructions, "model": spec.model}.items() >= changed.items()

    run(scene())


@pytest.mark.case("L13", "P08")
def test_a_process_that_died_while_it_was_kept_is_opened_anew_and_told(tmp_path: Path) -> None:
    async def was_dead(session: Session, prompt: str) -> AsyncIterator[Event]:  # noqa: ARG001
        yield SessionNamed(session.kept.id, durable=True)
        yield Failed(ErrorCode.PROGRAM_ENDED, "it has ended", retryable=True)
        yield Done(Ending.FAILED)

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.turns.append(was_dead)
            row = await there.tell("two")
            assert (row.state, row.claim, row.reopened) == ("succeeded", "resumed", 1)
            (kept,) = there.loom.kept.values()
            assert kept.prompts == ["one", "two"]

    run(scene())


@pytest.mark.case("P15")
def test_an_idle_session_is_ended_and_its_cursor_kept(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, replace(QUICK, idle=0.1, sweep=0.05)) as there:
            await furnished(there)
            await there.tell("one")
            await until(lambda: there.loom.closed == ["loom-1"], "it is ended")
            row = await there.tell("two")
            assert (row.claim, len(there.loom.opened)) == ("resumed", 2)

    run(scene())


@pytest.mark.case("P16")
def test_a_turn_that_comes_while_its_session_is_being_ended_waits_for_that(tmp_path: Path) -> None:
    async def scene() -> None:
        closing, gone = asyncio.Event(), asyncio.Event()

        async def slowly(_: Session) -> None:
            there.loom.close_with = None
            closing.set()
            await gone.wait()

        async with world(tmp_path, replace(QUICK, idle=0.1, sweep=0.05)) as there:
            await furnished(there)
            there.loom.close_with = slowly
            await there.tell("one")
            await closing.wait()
            second = asyncio.create_task(there.tell("two"))
            await asyncio.sleep(0.3)
            # Its program would have said that the session is in use: by the process that is about to end.
            assert there.loom.probed == []
            gone.set()
            row = await second
            assert (row.claim, len(there.loom.opened)) == ("resumed", 2)

    run(scene())


async def session_of(loom: Loom, number: int) -> WarmSession:
    directory = Directory(f"/w/{number}")
    live = await Weaver(loom, Settings()).open(OpenSpec(directory, PermissionMode.READ))
    return WarmSession(live, NativeId(f"n{number}"), OpenedAs(RUNTIME, "p", directory, None, None), PermissionMode.READ)


def at(monkeypatch: pytest.MonkeyPatch, wall: float, active: float) -> None:
    monkeypatch.setattr(room, "moment", lambda: Moment(wall, active))


@pytest.mark.case("P16")
def test_a_turn_that_starts_while_the_reaper_looks_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        loom, warm = Loom(), WarmSessions(replace(QUICK, idle=10.0))
        at(monkeypatch, 0.0, 0.0)
        first, second = await session_of(loom, 1), await session_of(loom, 2)
        warm.park(first)
        warm.park(second)
        at(monkeypatch, 20.0, 20.0)

        async def a_turn_starts(closing: Session) -> None:
            loom.close_with = None
            assert closing is first.live
            assert warm.pop(RUNTIME, NativeId("n2")) is second

        loom.close_with = a_turn_starts
        fates = await warm.sweep()
        assert [fate.reason for fate in fates] == [WarmReason.IDLE, WarmReason.USED_MEANWHILE]
        assert loom.closed == ["loom-1"]

    run(scene())


def test_a_session_that_is_given_back_after_the_end_is_ended_too() -> None:
    async def scene() -> None:
        loom, warm = Loom(), WarmSessions(QUICK)
        first, second = await session_of(loom, 1), await session_of(loom, 2)
        warm.park(first)
        await warm.close()
        assert loom.closed == ["loom-1"]
        warm.park(second)
        assert len(warm) == 0
        await until(lambda: loom.closed == ["loom-1", "loom-2"], "it is ended")

    run(scene())


@pytest.mark.case("P16")
def test_machine_sleep_is_not_counted_as_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        loom, warm = Loom(), WarmSessions(replace(QUICK, idle=10.0))
        at(monkeypatch, 0.0, 0.0)
        warm.park(await session_of(loom, 1))
        at(monkeypatch, 9_000.0, 5.0)
        assert [fate.reason for fate in await warm.sweep()] == [WarmReason.RECENT]

    run(scene())


@pytest.mark.case("P17")
def test_a_session_that_knows_its_work_is_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Knowing:
        works_on = True

        async def close(self) -> None:
            pass

    async def scene() -> None:
        warm, live = WarmSessions(replace(QUICK, idle=10.0)), Knowing()
        at(monkeypatch, 0.0, 0.0)
        directory = Directory("/w")
        opened = OpenedAs(RUNTIME, "p", directory, None, None)
        warm.park(WarmSession(cast(LiveSession, live), NativeId("n"), opened, PermissionMode.READ))
        at(monkeypatch, 20.0, 20.0)
        assert [fate.fate for fate in await warm.sweep()] == [Fate.KEEP]
        live.works_on = False
        assert [fate.fate for fate in await warm.sweep()] == [Fate.END]

    run(scene())


@pytest.mark.case("R14")
def test_a_session_that_a_person_opens_is_let_go() -> None:
    class Visited:
        visited = closed = False

        def has_visitor(self) -> bool:
            return self.visited

        async def close(self) -> None:
            self.closed = True

    async def scene() -> None:
        warm, live = WarmSessions(QUICK), Visited()
        opened = OpenedAs(RUNTIME, "p", Directory("/w"), None, None)
        warm.park(WarmSession(cast(LiveSession, live), NativeId("n"), opened, PermissionMode.READ))
        await warm.yield_to_people()
        assert (len(warm), live.closed) == (1, False)
        live.visited = True
        await warm.yield_to_people()
        assert (len(warm), live.closed) == (0, True)

    run(scene())


@pytest.mark.case("P17")
@pytest.mark.parametrize("busy", ["left_running", "open_question"])
def test_who_works_in_the_background_or_asks_is_spared(monkeypatch: pytest.MonkeyPatch, busy: str) -> None:
    async def scene() -> None:
        loom, warm = Loom(), WarmSessions(replace(QUICK, idle=10.0, warm=1))
        at(monkeypatch, 0.0, 0.0)
        session = await session_of(loom, 1)
        setattr(session, busy, True)
        warm.park(session)
        at(monkeypatch, 99.0, 99.0)
        await warm.sweep()
        # Not even when there is no room.
        warm.park(await session_of(loom, 2))
        await until(lambda: loom.closed == ["loom-2"], "the other one is ended")
        assert len(warm) == 1

    run(scene())


@pytest.mark.case("P18")
def test_one_that_fails_to_close_does_not_stop_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        loom, warm = Loom(), WarmSessions(replace(QUICK, idle=10.0, close=0.1))
        at(monkeypatch, 0.0, 0.0)
        sessions = [await session_of(loom, number) for number in range(4)]
        for session in sessions:
            warm.park(session)
        at(monkeypatch, 99.0, 99.0)

        async def badly(closing: Session) -> None:
            if closing is sessions[1].live:
                raise RuntimeError("it cannot")
            if closing is sessions[2].live:
                await asyncio.sleep(3600)

        loom.close_with = badly
        await warm.sweep()
        assert loom.closed == ["loom-1", "loom-4"]
        assert len(warm) == 0

    run(scene())


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, replace(QUICK, warm=2)) as there:
            await there.add_agent(max_live=9)
            for number in range(4):
                there.add_thread(f"chat-{number}")
                await there.tell("hello", thread=f"chat-{number}")
            await until(lambda: there.loom.closed == ["loom-1", "loom-2"], "the oldest are ended")

    run(scene())


def test_what_is_kept_is_closed_with_the_daemon(tmp_path: Path) -> None:
    async def scene() -> Loom:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("one")
            assert there.loom.closed == []
        return there.loom

    assert run(scene()).closed == ["loom-1"]


def test_a_tool_that_goes_on_after_its_turn_keeps_the_session(tmp_path: Path) -> None:
    async def leaves_a_server(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.take(prompt)
        yield ToolStarted("t", "shell", "serve &")
        yield Text("it serves")
        session.reply("it serves")
        yield Done(Ending.COMPLETED, "it serves")

    async def scene() -> None:
        async with world(tmp_path, replace(QUICK, idle=0.05, sweep=0.02)) as there:
            await furnished(there)
            there.loom.turns.append(leaves_a_server)
            await there.tell("one")
            await asyncio.sleep(0.3)
            assert there.loom.closed == []

    run(scene())
