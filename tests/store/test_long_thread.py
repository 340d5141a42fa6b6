"""What the newest screen of a thread reads: as much in a long thread as in a short one."""

from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select

from clew.control.threads import thread_page
from clew.kernel import AgentId
from clew.store.queries.run_log import last_events
from clew.store.schema.tables import events, journal
from tests.store.kit import THREAD, Daemon, sent

LONGEST = 6_000


def fill(daemon: Daemon, entries: int, characters: int) -> None:
    def write(connection: Connection) -> None:
        row = {"thread_id": THREAD, "author_kind": "human", "author_name": "ada", "at": 1.0, "body": "x" * characters}
        last = connection.execute(select(func.max(journal.c.seq)).where(journal.c.thread_id == THREAD)).scalar() or 0
        connection.execute(insert(journal), [{**row, "seq": last + 1 + number} for number in range(entries)])

    daemon.database.do(write)


def screen(daemon: Daemon) -> tuple[Any, list[str]]:
    return sent(daemon.database, lambda tx: thread_page(tx, THREAD, None, 30, 0, LONGEST, used=False))


@pytest.mark.case("U06")
def test_the_newest_screen_reads_no_more_of_a_long_thread(daemon: Daemon) -> None:
    fill(daemon, 40, 10)
    short, few = screen(daemon)
    fill(daemon, 4_960, 4_000)
    long, many = screen(daemon)
    assert len(short.entries) == len(long.entries) == 30
    assert long.entries[-1].seq == 5_000
    assert many == few
    assert not any("kind = 'used'" in each and "lanes.thread_id" in each for each in many), "it reads every run"


@pytest.mark.case("U06")
def test_only_the_beginning_of_a_long_text_leaves_the_database(daemon: Daemon) -> None:
    fill(daemon, 1, 1_000_000)
    page, _ = screen(daemon)
    assert [(len(each.text), each.length) for each in page.entries] == [(LONGEST, 1_000_000)]
    whole = daemon.database.read(lambda tx: thread_page(tx, THREAD))
    assert [(len(each.text), each.length) for each in whole.entries] == [(1_000_000, None)]


@pytest.mark.case("U06")
def test_the_end_of_a_long_log_is_read_alone(daemon: Daemon) -> None:
    daemon.say("go on", agent=AgentId("ada"))
    order = daemon.claim_one()

    def write(connection: Connection) -> None:
        row = {"run_id": order.run, "attempt": 1, "kind": "step", "body": "{}", "at": 1.0}
        connection.execute(insert(events), [{**row, "seq": number} for number in range(1, 2_001)])

    daemon.database.do(write)
    found = daemon.database.read(lambda tx: last_events(tx, order.run, 100))
    assert [each.seq for each in found] == list(range(1_901, 2_001))
