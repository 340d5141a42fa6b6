"""Ownership: no call of a daemon acts for a runtime or a run of another machine."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from clew.control.actor import MachineDaemon
from clew.control.daemon_api import DaemonApi
from clew.control.faults import BadRequest
from clew.control.wakes import poke
from clew.kernel import MachineId, Patience, ProviderName, RunState, WaitsFor
from clew.protocol.control import (
    ControlPlane,
    FileWanted,
    GoOnRequest,
    Held,
    OrphansRequest,
    Registration,
    RenewRequest,
)
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Completed, Finish, Report, Returned
from clew.protocol.requests import Poke
from clew.store.engine.database import Database
from clew.store.operations.runtimes import register_runtime
from clew.store.schema.tables import runs
from tests.control.kit import LAPTOP, LOOM, USER, Office, office

FOREIGN = Registration(MachineId("desktop"), "the desktop", ProviderName("loom"), "/srv/other")

CALLS: Mapping[str, Callable[[DaemonApi, Order], Awaitable[object]]] = {
    "register": lambda plane, _: plane.register(Registration(LAPTOP, "the laptop", ProviderName("loom"), "/srv/home")),
    "claim": lambda plane, _: plane.claim(ClaimRequest("daemon-2", (LOOM,))),
    "report": lambda plane, order: plane.report(Report(order.run, order.attempt, opens=True)),
    "finish": lambda plane, order: plane.finish(Finish(order.run, order.attempt, Completed("done", 1))),
    "file": lambda plane, order: plane.file(FileWanted(order.run, order.attempt, "fl_1")),
    "renew": lambda plane, order: plane.renew(RenewRequest((), (Held(order.run, order.attempt),), Patience(1e6))),
    "go_on": lambda plane, order: plane.go_on(GoOnRequest((order.run,))),
    "end_orphans": lambda plane, _: plane.end_orphans(OrphansRequest("daemon-1", (LOOM,))),
}


def test_every_call_of_a_daemon_is_tried() -> None:
    assert CALLS.keys() == {name for name, _ in inspect.getmembers(ControlPlane, inspect.isfunction) if name[0] != "_"}


async def _claimed(at: Office) -> Order:
    await at.agent()
    await poke(at.services, USER, Poke("ada", text="hello"))
    return await at.claim_one()


async def _rows(at: Office) -> list[tuple[Any, ...]]:
    return await at.services.read(lambda link: [tuple(row) for row in link.execute(select(runs))])


async def _put(at: Office, **values: object) -> None:
    await at.services.write(lambda link: link.execute(update(runs).values(**values)).rowcount)


@pytest.mark.parametrize("name", CALLS)
def test_a_daemon_of_another_machine_is_refused(name: str, database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await _claimed(at)
            before = await _rows(at)
            foreign = DaemonApi(at.services, MachineDaemon(FOREIGN.machine))
            with pytest.raises(BadRequest, match="'laptop'"):
                await CALLS[name](foreign, order)
            assert await _rows(at) == before
            assert (await at.report(order, opens=True)).held

    asyncio.run(story())


def test_a_renewal_for_foreign_runtimes_is_refused(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await _claimed(at)
            foreign = DaemonApi(at.services, MachineDaemon(FOREIGN.machine))
            with pytest.raises(BadRequest, match="'laptop'"):
                await foreign.renew(RenewRequest((LOOM,), (), Patience()))

    asyncio.run(story())


def test_a_run_that_waits_in_the_queue_is_let_go_by_its_own_machine_alone(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await _claimed(at)
            given_back = Returned("It is in use.", "place:in-use", WaitsFor.ANOTHER_TRY)
            assert (await at.finish(order, given_back)).state is RunState.QUEUED
            foreign = DaemonApi(at.services, MachineDaemon(FOREIGN.machine))
            with pytest.raises(BadRequest, match=f"Run {order.run} belongs to machine 'laptop'"):
                await foreign.go_on(GoOnRequest((order.run,)))
            assert await at.claim() == []
            await at.plane.go_on(GoOnRequest((order.run,)))
            assert (await at.claim_one()).run == order.run

    asyncio.run(story())


def test_a_server_that_was_restarted_knows_the_machine_of_a_run(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await _claimed(at)
            await at.prompt(order)
            restarted = DaemonApi(at.services, MachineDaemon(LAPTOP))
            assert (await restarted.report(Report(order.run, order.attempt))).held
            assert (await restarted.renew(RenewRequest((LOOM,), (Held(order.run, order.attempt),), Patience()))).held
            assert (await restarted.finish(Finish(order.run, order.attempt, Completed("done", 1)))).taken

    asyncio.run(story())


@pytest.mark.case("R03")
def test_an_attempt_whose_run_went_to_another_machine_is_told_so(database: Database, tmp_path: Path) -> None:
    """A refusal would have an honest daemon repeat its report for ever."""

    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await _claimed(at)
            there = await at.services.write(lambda link: register_runtime(link, FOREIGN))
            await _put(at, runtime_id=there, attempt=order.attempt + 1)
            restarted = DaemonApi(at.services, MachineDaemon(LAPTOP))
            assert not (await restarted.report(Report(order.run, order.attempt))).held
            assert not (await restarted.finish(Finish(order.run, order.attempt, Completed("done", 1)))).taken
            await _put(at, runtime_id=LOOM, attempt=order.attempt)

    asyncio.run(story())


def test_the_reports_of_a_claimed_run_cost_no_read_more(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await _claimed(at)
            reads: list[object] = []
            read = at.services.read

            async def counted(operation: Callable[[Any], Any]) -> Any:
                reads.append(operation)
                return await read(operation)

            monkeypatch.setattr(at.services, "read", counted)
            await at.prompt(order)
            await at.plane.renew(RenewRequest((LOOM,), (Held(order.run, order.attempt),), Patience()))
            await at.finish(order)
            assert reads == []

    asyncio.run(story())
