"""Leases, restarts and stopping: what a daemon loses, leaves behind and gives back."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import Patience
from clew.ports.events import Done, Ending, Event, SessionNamed, Text
from clew.ports.provider import OpenSpec
from clew.protocol.control import Held, Renewed, RenewRequest
from clew.store.schema.tables import runs
from tests.daemon.kit import QUICK, World, run, until, world
from tests.daemon.scripted import Session

SHORT = replace(QUICK, patience=Patience(lease=0.3, offline_after=60.0, grace=60.0))


OWN_TASKS = ("run ", "claims ", "lease ", "warm ", "reports ", "turn", "backlog")


async def furnished(there: World) -> None:
    await there.add_agent()
    there.add_thread()


async def hangs(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    yield Text("I look", final=False)
    assert session.prompt_id is not None
    session.loom.worked.add(session.prompt_id)
    await session.interrupted.wait()
    yield Done(Ending.INTERRUPTED)


def texts(there: World) -> list[tuple[str, str]]:
    return [(kind, body.get("text", "")) for row in there.runs() for kind, body in there.log(row.id)]


async def slow(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    await asyncio.sleep(0.5)
    session.reply("at last")
    yield Done(Ending.COMPLETED, "at last")


@pytest.mark.case("R03")
def test_a_run_that_another_holds_is_ended_here_and_nothing_more_is_said_of_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, SHORT) as there:
            await furnished(there)
            there.loom.turns.append(hangs)
            there.say("one")
            await until(lambda: there.loom.prompts == ["one"], "it works")
            await until(lambda: there.runs()[0].state == "running", "it runs")
            there.put(runs, {"id": there.runs()[0].id}, attempt=7, words="held by another")
            await until(lambda: there.loom.closed == ["loom-1"], "its session is ended")
            await until(lambda: there.daemon.live == 0, "it is let go of")
            (row,) = there.runs()
            assert (row.state, row.attempt, row.words) == ("running", 7, "held by another")

    run(scene())


@pytest.mark.case("R04")
def test_leases_are_renewed_while_a_turn_goes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, SHORT) as there:
            await furnished(there)
            there.loom.turns.append(hangs)
            there.say("one")

            # Reports renew the lease, too. After the last of them the agent is silent.
            await until(lambda: ("text", "I look") in texts(there), "its last report has arrived")
            leases = []

            def renewed_thrice() -> bool:
                (row,) = there.runs()
                assert row.state == "running"
                if row.lease_until not in leases:
                    leases.append(row.lease_until)
                return len(leases) > 3 and leases[-1] > leases[0] + 2 * SHORT.patience.lease

            await until(renewed_thrice, "its lease is renewed three times and outlasts two leases")
            assert leases == sorted(leases)

    run(scene())


@pytest.mark.case("R04")
def test_a_renewal_asks_for_the_lease_that_the_daemon_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RenewRequest] = []

    async def scene() -> None:
        async with world(tmp_path, SHORT) as there:
            renew = there.plane.renew

            async def renewing(request: RenewRequest) -> Renewed:
                asked.append(request)
                return await renew(request)

            monkeypatch.setattr(there.plane, "renew", renewing)
            await furnished(there)
            there.loom.turns.append(hangs)
            there.say("one")
            await until(lambda: bool(asked), "its lease is renewed")
            (row,) = there.runs()
            assert {each.patience for each in asked} == {SHORT.patience}
            assert asked[0].held == (Held(row.id, 1),)

    run(scene())


STOPPED = {"state": "stopping", "stop_code": "run:by-user"}
LOST = {"attempt": 7, "words": "held by another"}


@pytest.mark.case("R03")
@pytest.mark.parametrize(("became", "ends"), [(STOPPED, ("cancelled", 1)), (LOST, ("running", 7))])
def test_a_renewal_tells_what_no_hint_and_no_report_told(
    tmp_path: Path, became: dict[str, object], ends: tuple[str, int]
) -> None:
    async def scene() -> None:
        async with world(tmp_path, SHORT) as there:
            await furnished(there)
            there.loom.turns.append(hangs)
            there.say("one")
            await until(lambda: ("text", "I look") in texts(there), "the agent is silent")
            # Written behind the server's back, so there is no hint.
            there.put(runs, {"id": there.runs()[0].id}, **became)
            await until(lambda: there.daemon.live == 0, "the daemon ends the turn", seconds=20)
            (row,) = there.runs()
            assert (row.state, row.attempt) == ends

    run(scene())


@pytest.mark.case("R05", "C28", "L11", "P12")
def test_a_daemon_that_starts_anew_settles_its_runs_and_they_go_on_in_their_session(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(hangs)
            said = there.say("one")
            await until(lambda: len(there.sessions()) == 1, "its session is pinned")
            # As if it had been killed: nothing is said of the run, and its process is gone.
            await crash(there)
            there.daemon = there.new_daemon()
            await there.start()
            row = await there.served(said)
            assert [each.state for each in there.runs()] == ["lost", "succeeded"]
            assert there.outcomes(row.id)[-1][0] == "resume"
            (kept,) = there.loom.kept.values()
            first, second = kept.prompts
            assert first == "one"
            assert "\none\n" not in second
            assert "Do not wait for them" in second

    run(scene())


async def crash(there: World) -> None:
    daemon = there.daemon
    for task in asyncio.all_tasks():
        name = task.get_name()
        if name.startswith(OWN_TASKS):
            task.cancel()
    await asyncio.sleep(0.05)
    daemon._outbox.close()  # noqa: SLF001 - a crash asks nobody
    there.loom.open.clear()


@pytest.mark.case("C28")
def test_a_restart_with_idle_sessions_goes_on_in_them(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("one")
            await there.restart()
            row = await there.tell("two")
            assert (row.claim, row.state) == ("resumed", "succeeded")
            (kept,) = there.loom.kept.values()
            assert kept.prompts == ["one", "two"]

    run(scene())


@pytest.mark.case("L02")
def test_what_was_accepted_while_nobody_served_is_served_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.daemon.stop()
            said = there.say("one")
            there.daemon = there.new_daemon()
            await there.start()
            assert (await there.served(said)).state == "succeeded"
            assert there.loom.prompts == ["one"]

    run(scene())


def test_a_daemon_that_stops_may_let_its_turns_finish(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(slow)
            there.say("one")
            await until(lambda: there.loom.prompts == ["one"], "it works")
            await there.restart(finish=True)
            assert [row.state for row in there.runs()] == ["succeeded"]
            assert there.loom.interrupts == 0

    run(scene())


@pytest.mark.case("L13")
def test_a_daemon_that_stops_at_once_gives_back_what_goes_and_the_next_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(hangs)
            said = there.say("one")
            await until(lambda: len(there.sessions()) == 1, "its session is pinned")
            await there.restart()
            row = await there.served(said)
            assert [each.state for each in there.runs()] == ["failed", "succeeded"]
            assert (row.claim, there.loom.interrupts) == ("resumed", 1)

    run(scene())


def test_what_was_not_told_yet_is_given_back_and_told_by_the_next(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            opening = asyncio.Event()

            async def hangs_while_opening(spec: OpenSpec) -> None:  # noqa: ARG001
                opening.set()
                await asyncio.sleep(3600)

            there.loom.before_open = hangs_while_opening
            said = there.say("one")
            await asyncio.wait_for(opening.wait(), 20)
            there.loom.before_open = None
            await there.restart()
            assert (await there.served(said)).state == "succeeded"
            assert there.loom.prompts == ["one"]

    run(scene())


def test_a_daemon_that_is_full_takes_the_next_when_there_is_room(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, replace(QUICK, capacity=1)) as there:
            await there.add_agent(max_live=5)
            for number in range(5):
                there.add_thread(f"chat-{number}")
            said = [there.say("hello", thread=f"chat-{number}") for number in range(5)]
            assert [(await there.served(each)).state for each in said] == ["succeeded"] * 5

    run(scene())


def test_a_daemon_that_was_full_hears_of_new_work_as_soon_as_it_has_room(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, replace(QUICK, capacity=1, poll=600.0)) as there:
            await there.add_agent()
            there.add_thread()
            await there.tell("one")
            await until(lambda: there.daemon.live == 0, "it has room")
            await there.tell("two")
            assert there.loom.prompts[-1] == "two"

    run(scene())


def test_stopping_may_be_called_off_and_called_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(hangs)
            said = there.say("one")
            await until(lambda: len(there.sessions()) == 1, "its session is pinned")
            patient = asyncio.create_task(there.daemon.stop(finish=True))
            await asyncio.sleep(0.05)
            patient.cancel()
            await asyncio.wait([patient])
            await there.daemon.stop()
            await there.daemon.stop()
            assert [each.state for each in there.runs()] == ["failed", "queued"]
            there.daemon = there.new_daemon()
            await there.start()
            assert (await there.served(said)).state == "succeeded"

    run(scene())


def test_who_waits_for_a_place_gets_it_when_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Neither the server nor the daemon looks again by itself: only the end of a run makes the daemon ask.
    monkeypatch.setattr("clew.control.daemon_api.POLL", 3600.0)

    async def scene() -> None:
        async with world(tmp_path, replace(QUICK, poll=3600.0)) as there:
            await there.add_agent(max_live=1)
            for number in range(4):
                there.add_thread(f"chat-{number}")
            said = [there.say("hello", thread=f"chat-{number}") for number in range(4)]
            assert [(await there.served(each, seconds=15)).state for each in said] == ["succeeded"] * 4

    run(scene())


@pytest.mark.parametrize("finish", [True, False])
def test_a_daemon_that_has_stopped_leaves_no_task_and_no_thread(tmp_path: Path, finish: bool) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.turns.append(slow if finish else hangs)
            there.say("two")
            await until(lambda: there.loom.prompts == ["one", "two"], "it works")
            await there.daemon.stop(finish)
            left = {task.get_name() for task in asyncio.all_tasks()}
            assert not [name for name in left if name.startswith(OWN_TASKS)]
            assert "clew-outbox" not in {thread.name for thread in threading.enumerate()}

    run(scene())
