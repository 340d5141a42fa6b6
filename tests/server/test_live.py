"""The live stream of a real server: each line once and in order, for however many clients, whatever cuts them off."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import insert

from clew.control.wakes import say
from clew.protocol.reports import Report, RunEventRecord
from clew.protocol.requests import Words
from clew.store.engine.database import Database
from clew.store.engine.hints import hint_anything
from clew.store.schema.tables import events as kept_events
from tests.control.kit import USER
from tests.server.streams import LONG, Client, Event, Site, Writer, allow_sockets, site, writer

MANY = 500


def within(database: Database, root: Path, story: Callable[[Site], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(4 * LONG), site(database, root) as opened:
            await story(opened)

    asyncio.run(run())


def numbers(lines: list[Event]) -> list[tuple[str, int]]:
    return [each.line for each in lines]


# ---------------------------------------------------------------- many clients


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
def test_hundreds_get_each_line_once_and_the_store_is_read_once_for_all(database: Database, tmp_path: Path) -> None:
    allow_sockets(2 * MANY + 200)

    async def story(at: Site) -> None:
        told = await writer(at)
        await told.begin()
        clients = [await at.client(follow=[told.ref]) for _ in range(MANY)]
        await told.write()
        assert {(await each.lines(1))[0].line for each in clients} == {told.written[0]}
        at.reads = 0
        for number in range(40):
            await told.write(1 + number % 3)
        expected = told.written[1:]
        for each in clients:
            assert numbers(await each.lines(len(expected))) == expected
        # At most one read for each report, and those that come by the clock.
        assert 0 < at.reads <= 40 + 20
        for each in clients:
            await each.close()

    within(database, tmp_path, story)


@pytest.mark.case("U02")
def test_a_slow_client_misses_nothing_and_holds_nobody_up(database: Database, tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        told = await writer(at)
        await told.begin()
        slow, quick = await at.client(follow=[told.ref]), await at.client(follow=[told.ref])
        # More than the sockets, the client's chunk and the feed's ring hold together.
        for _ in range(60):
            await told.write(4, "x" * 60_000)
            assert len(await quick.lines(4)) == 4
        assert numbers(await slow.lines(240)) == told.written
        await told.write(2)
        assert numbers(await slow.lines(2)) == numbers(await quick.lines(2)) == told.written[-2:]
        await slow.close()
        await quick.close()

    within(database, tmp_path, story)


def test_the_feed_ends_with_its_last_client(database: Database, tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        told = await writer(at)
        clients = [await at.client(follow=[told.ref]), await at.client(f"thread={told.ref}")]
        assert feeds() == [f"feed of {told.id}"]
        for each in clients:
            await each.next("beat")
            await each.close()
        async with asyncio.timeout(LONG):
            while feeds():
                await asyncio.sleep(0.01)

    def feeds() -> list[str]:
        return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("feed of ")]

    within(database, tmp_path, story)


# ---------------------------------------------------------------- cut off


@pytest.mark.case("U02")
def test_a_client_that_reconnects_after_every_event_misses_nothing_and_gets_nothing_twice(
    database: Database, tmp_path: Path
) -> None:
    async def story(at: Site) -> None:
        told = await writer(at)
        await told.begin()
        await told.write()
        working = asyncio.create_task(work(told))
        got, last = list[Event](), ""
        while len(got) < 1 + 40 + 20:
            client = await at.client(follow=[told.ref], last=last)
            got.append(await client.next("log"))
            last = client.last
            await client.close()
        await working
        assert numbers(got) == told.written

    async def work(told: Writer) -> None:
        for number in range(40):
            await told.write(1 + number % 2)
            await asyncio.sleep(0.02)
            if number % 8 == 7:
                await told.end()
                await told.begin()
        await told.end()

    within(database, tmp_path, story)


@pytest.mark.case("U02")
def test_from_every_position_exactly_the_rest_comes(database: Database, tmp_path: Path) -> None:
    """Two threads, two agents in the second, and runs that came and went: more than a position lists."""

    async def story(at: Site) -> None:
        one, two = await writer(at), await writer(at, "bob")
        other = Writer(at.office, two.ref, two.id, "ada")
        client = await at.client(follow=[one.ref, two.ref])
        start = await client.next("beat")
        for each in (one, two, other, one, two, one, one, one, other, two, one):
            await each.run(2)
        written = [*one.written, *two.written, *other.written]
        got = await client.lines(len(written))
        assert sorted(numbers(got)) == sorted(written)
        for count, place in enumerate([start, *got]):
            again = await at.client(follow=[two.ref, one.ref], last=place.id)
            rest = await again.lines(len(written) - count)
            assert sorted(numbers(got[:count] + rest)) == sorted(written), place
            await again.close()
        await client.close()

    within(database, tmp_path, story)


@pytest.mark.case("U02")
def test_after_a_restart_and_a_long_pause_the_stream_goes_on(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with site(database, tmp_path) as at:
            told = await writer(at)
            quiet = await writer(at, new=False)
            client = await at.client(follow=[told.ref, quiet.ref])
            await told.begin()
            await told.write(3)
            got = await client.lines(3)
        assert await client.ended()
        await client.close()
        async with site(database, tmp_path) as at:
            told.office = quiet.office = at.office
            await told.write(2)
            await told.end()
            for _ in range(6):
                await told.run(2)
            # The thread had no run at all when the client saw it last.
            await quiet.run(2)
        async with site(database, tmp_path) as at:
            told.office = at.office
            client = await at.client(follow=[told.ref, quiet.ref], last=client.last)
            got += await client.lines(len(told.written) + len(quiet.written) - 3)
            assert [each for each in numbers(got) if each in told.written] == told.written
            assert [each for each in numbers(got) if each in quiet.written] == quiet.written
            await told.run(1)
            assert numbers(await client.lines(1)) == told.written[-1:]
            await client.close()

    asyncio.run(story())


def test_at_shutdown_the_streams_end(database: Database, tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        told = await writer(at)
        clients = [await at.client(follow=[told.ref]), await at.client(), await at.client(f"thread={told.ref}")]
        at.live.close()
        assert all([await each.ended() for each in clients])
        for each in clients:
            await each.close()

    within(database, tmp_path, story)


# ---------------------------------------------------------------- what comes


def test_a_page_gets_a_beat_first_and_is_told_to_read_all_it_shows(database: Database, tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        client = await at.client()
        assert client.headers["x-accel-buffering"] == "no"
        assert client.headers["cache-control"] == "no-cache, no-transform"
        assert client.headers["content-type"].startswith("text/event-stream")
        first = await client.next()
        assert (first.kind, set(first.data), first.id) == ("beat", {"at", "version"}, "1")
        assert len(client.raw) > 2048
        second = await client.next()
        assert (second.kind, second.data) == ("changed", {"threads": [], "runs": [], "all": True})
        await client.close()

    within(database, tmp_path, story)


def test_what_changes_is_named_without_reading_it(database: Database, tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        told = await writer(at)
        run = await told.begin()
        client = await at.client()
        await client.next("changed")
        at.reads = 0
        await say(at.office.services, USER, told.ref, Words("and this"))
        await told.write()
        threads, runs = set[str](), set[str]()
        while told.id not in threads or run not in runs:
            changed = (await client.next("changed")).data
            assert changed["all"] is False
            threads |= set(changed["threads"])
            runs |= set(changed["runs"])
        assert at.reads == 0
        await client.close()

    within(database, tmp_path, story)


@pytest.mark.case("U02")
def test_when_hints_were_lost_all_is_read(database: Database, tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        told = await writer(at)
        run = await told.begin()
        client = await at.client(follow=[told.ref])
        await client.next("changed")
        row = {"run_id": run, "attempt": 1, "seq": 1, "kind": "text", "body": "{}", "at": 1.0}
        await at.office.services.write(lambda tx: tx.execute(insert(kept_events).values(row)).rowcount)
        await at.office.services.write(hint_anything)
        got = list[Event]()
        all_changed = {"threads": [], "runs": [], "all": True}
        while all_changed not in [each.data for each in got] or "log" not in {each.kind for each in got}:
            got.append(await client.next("log", "changed"))
        assert numbers([each for each in got if each.kind == "log"]) == [(run, 1)]
        await client.close()

    within(database, tmp_path, story)


def test_a_beat_has_the_position(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.server.watch.BEAT", 0.05)

    async def story(at: Site) -> None:
        told = await writer(at)
        await told.begin()
        client = await at.client(follow=[told.ref])
        places = [await client.next("beat")]
        await told.write(2)
        got = await client.lines(2)
        places.append(await client.next("beat"))
        assert places[-1].id == got[-1].id != places[0].id
        await told.write(1)
        for place, count in zip(places, (3, 1), strict=True):
            again = await at.client(follow=[told.ref], last=place.id)
            assert numbers(await again.lines(count)) == told.written[-count:]
            await again.close()
        await client.close()

    within(database, tmp_path, story)


def test_a_new_client_gets_the_whole_log_of_a_live_run_and_none_of_an_ended_one(
    database: Database, tmp_path: Path
) -> None:
    async def story(at: Site) -> None:
        told = await writer(at)
        await told.run(3)
        await told.begin()
        await told.write(300)
        client = await at.client(follow=[told.ref])
        assert numbers(await client.lines(300)) == told.written[3:]
        await client.close()

    within(database, tmp_path, story)


def test_another_thread_is_followed_by_reconnecting(database: Database, tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        one, two = await writer(at), await writer(at, "bob")
        for each in (one, two):
            await each.begin()
            await each.write(2)
        client = await at.client(follow=[one.ref])
        await client.lines(2)
        await one.write(1)
        query = f"follow={one.ref}&follow={two.ref}&position={client.last}"
        await client.close()
        client = await at.client(query)
        assert sorted(numbers(await client.lines(3))) == sorted([one.written[-1], *two.written])
        await client.close()
        assert client.last != ""

    within(database, tmp_path, story)


def test_lines_that_become_durable_after_the_end_of_their_run_come_too(database: Database, tmp_path: Path) -> None:
    async def story(at: Site) -> None:
        told = await writer(at)
        client = await at.client(follow=[told.ref])
        run = await told.run(2)
        first = told.order
        await told.begin()
        await told.write(1)
        await client.lines(3)
        assert first is not None
        late = RunEventRecord(3, "text", "{}")
        await at.office.plane.report(Report(first.run, first.attempt, events=(late,)))
        assert (await client.next("log")).line == (run, 3)
        await client.close()

    within(database, tmp_path, story)


@pytest.mark.parametrize("query", ["thread={ref}", "run={run}"])
def test_all_lines_of_a_run_come_before_the_view_that_says_it_ended(
    database: Database, tmp_path: Path, query: str
) -> None:
    async def story(at: Site) -> None:
        told = await writer(at)
        run = await told.begin()
        client = await at.client(query.format(ref=told.ref, run=run))
        viewer = await at.client(query.format(ref=told.ref, run=run))
        await told.write(70)
        await told.end()
        for each in (client, viewer):
            got = list[Event]()
            while not got or not (got[-1].kind == "run" and got[-1].data["ended_at"] is not None):
                got.append(await each.next("log", "run"))
            assert numbers([line for line in got if line.kind == "log"]) == told.written
            await each.close()

    within(database, tmp_path, story)


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("follow=chat-1&follow=chat-99", 404, "store:no-such-thread"),
        ("follow=", 422, "ask:invalid"),
        ("follow=chat-1&thread=chat-1", 422, "ask:bad-request"),
        ("thread=chat-1&run=run-1", 422, "ask:bad-request"),
        ("thread=chat-99", 404, "store:no-such-thread"),
    ],
)
@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
def test_what_cannot_be_followed_is_refused_before_the_stream(
    database: Database, tmp_path: Path, query: str, status: int, code: str
) -> None:
    async def story(at: Site) -> None:
        await writer(at)
        client: Client = await at.client(query)
        assert (client.status, client.headers["content-type"]) == (status, "application/problem+json")
        assert (await client.body())["code"] == code
        await client.close()

    within(database, tmp_path, story)
