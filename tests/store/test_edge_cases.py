"""Edge cases of the operations: odd texts, late runtimes, crowded threads, repeated crashes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import update

from clew.kernel import MachineId, ProviderName, RouteKey, RouteKind, WakeReason
from clew.protocol.control import Registration
from clew.protocol.reports import Completed, Usage
from clew.store.engine.address import read_address
from clew.store.engine.database import Database
from clew.store.engine.open import open_current, open_database
from clew.store.faults import BadAddress, BadText, KeyConflict, NewerThanProgram
from clew.store.operations.leases import end_orphans, mark_seen
from clew.store.operations.runtimes import register_runtime
from clew.store.operations.wakes import accept_wake
from clew.store.schema.tables import agents, meta, runs, sessions
from clew.store.schema.version import upgrade
from tests.store.kit import ADA, BOB, ELSEWHERE, RUNTIME, THREAD, Daemon, furnish, request, said_in


def test_many_agents_speak_in_one_thread_at_once_and_each_is_heard(database: Database) -> None:
    database.write(furnish).result(30)
    asked = [request(agent=agent) for agent in (ADA, BOB) for _ in range(40)]
    with ThreadPoolExecutor(16) as callers:
        entries = list(
            callers.map(lambda each: database.write(lambda connection: accept_wake(connection, each)).result(60), asked)
        )
    assert sorted(entry.entry or 0 for entry in entries) == list(range(1, 81))
    assert len(database.read(said_in)) == 80


def test_a_name_that_cannot_be_kept_is_refused_at_the_door(daemon: Daemon) -> None:
    for odd in ("a\0b", "\ud800"):
        with pytest.raises(BadText):
            daemon.accept(dedupe_key=odd)
        with pytest.raises(BadText):
            daemon.accept(route=RouteKey(RouteKind.WEBHOOK, odd))
    daemon.accept()
    assert daemon.claim_one().thread.id == THREAD


def test_an_odd_reply_is_kept_all_the_same(daemon: Daemon) -> None:
    daemon.accept()
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    odd = Usage(1, model="a\0b", mode="\ud800")
    assert daemon.finish(order, Completed("half \ud800, none \0", usage=odd)).taken
    (session,) = daemon.rows(sessions)
    assert (session.model, session.mode) == ("a\N{SYMBOL FOR NULL}b", "?")
    assert said_in_words(daemon)[-1] == "half ?, none \N{SYMBOL FOR NULL}"


def said_in_words(daemon: Daemon) -> list[str]:
    return [words for _, words in daemon.database.read(said_in)]


@pytest.mark.case("W03")
def test_a_key_of_another_agent_is_a_conflict(daemon: Daemon) -> None:
    daemon.accept(dedupe_key="k")
    with pytest.raises(KeyConflict):
        daemon.accept(dedupe_key="k", agent=BOB)


def test_what_was_asked_for_before_any_runtime_was_there_is_claimed_when_one_comes(database: Database) -> None:
    database.write(furnish).result(30)
    database.write(
        lambda connection: connection.execute(update(agents).values(runtime_id=None, provider="weaver"))
    ).result(30)
    database.write(lambda connection: accept_wake(connection, request())).result(30)
    came = Registration(MachineId("server"), "server", ProviderName("weaver"), "/srv/weaver")
    runtime = database.write(lambda connection: register_runtime(connection, came)).result(30)
    queued = database.read(lambda connection: connection.execute(runs.select()).one())
    assert (queued.state, queued.runtime_id) == ("queued", runtime)


def test_what_was_asked_for_as_a_runtime_came_is_claimed_once_that_speaks_again(database: Database) -> None:
    database.write(furnish).result(30)
    database.write(lambda connection: connection.execute(update(agents).values(runtime_id=None))).result(30)
    database.write(lambda connection: accept_wake(connection, request())).result(30)
    # As where neither saw the other.
    database.write(lambda connection: connection.execute(update(runs).values(runtime_id=None))).result(30)
    hints = database.subscribe()
    database.write(lambda connection: mark_seen(connection, [ELSEWHERE])).result(30)
    assert f"queue:{ELSEWHERE}" in hints.wait(5)
    queued = database.read(lambda connection: connection.execute(runs.select()).one())
    assert (queued.state, queued.runtime_id) == ("queued", ELSEWHERE)


@pytest.mark.case("R05")
def test_a_run_that_is_lost_again_and_again_waits_longer_and_then_for_a_person(daemon: Daemon) -> None:
    daemon.accept()
    for _ in range(5):
        daemon.put(runs, {"state": "queued"}, not_before=None)
        daemon.claim_one()
        daemon.write(lambda connection: end_orphans(connection, daemon.by, [RUNTIME]))
    (run,) = daemon.rows(runs)
    assert (run.state, run.hold, run.hold_code) == ("queued", "person", "retry:tried-out")
    daemon.accept(reason=WakeReason.COMMENT)
    assert daemon.claim_one().attempt == 6


def test_a_path_is_the_file_it_names(tmp_path: Path) -> None:
    for name in ("team?a.db", "team#b.db", "team%20c.db"):
        database = open_database(str(tmp_path / name))
        database.write(upgrade).result(30)
        database.close()
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "team").exists()
    with pytest.raises(BadAddress, match="would forget everything"):
        read_address(":memory:")
    for nothing in ("", " "):
        with pytest.raises(BadAddress, match="is empty"):
            read_address(nothing)


def test_a_server_is_not_given_a_database_that_is_too_new_for_it(address: str) -> None:
    database = open_database(address)
    database.write(upgrade).result(30)
    database.write(
        lambda connection: connection.execute(update(meta).values(value="9").where(meta.c.key == "oldest-program"))
    ).result(30)
    database.close()
    with pytest.raises(NewerThanProgram, match="needs a program for schema 9"):
        open_current(address)
