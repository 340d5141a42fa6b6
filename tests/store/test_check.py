"""The check: an intact database passes, and each promise names exactly the rows that break it."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL, CheckConstraint, Connection, Engine, create_engine, delete, insert, select, text, update
from sqlalchemy.pool import NullPool

from clew.store.backup.snapshot import snapshot
from clew.store.faults import NotADatabase
from clew.store.schema.check import NAMED, PROMISES, check, count_rows
from clew.store.schema.integrity import CHECKED_ELSEWHERE, REPLAYED, STRUCTURE
from clew.store.schema.tables import (
    agents,
    decisions,
    events,
    journal,
    lanes,
    metadata,
)
from clew.store.schema.version import upgrade
from tests.store.specimen import (
    ENDED,
    LIVE,
    RECORD,
    fill,
    put,
    put_decision,
    put_entries,
    put_run,
    put_session,
    put_wake,
)

Plant = Callable[[Connection], object]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The specimen, made once for each database; every test undoes what it plants."""
    if request.param == "sqlite":
        file = tmp_path_factory.mktemp("check") / "clew.db"
        yield from _filled(create_engine(f"sqlite:///{file}", isolation_level="AUTOCOMMIT", poolclass=NullPool))
        return
    server: URL = request.getfixturevalue("postgres")
    name = f"clew_{uuid.uuid4().hex}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield from _filled(create_engine(server.set(database=name), isolation_level="AUTOCOMMIT", poolclass=NullPool))
    with admin.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


def _filled(engine: Engine) -> Iterator[Engine]:
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        upgrade(connection)
        fill(connection)
        connection.exec_driver_sql("COMMIT")
    yield engine


@pytest.fixture
def unguarded(engine: Engine) -> Iterator[Connection]:
    """The specimen in a transaction in which no constraint holds; it is rolled back."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA ignore_check_constraints = 1")
        connection.exec_driver_sql("BEGIN")
        _take_guards_away(connection)
        yield connection
        connection.exec_driver_sql("ROLLBACK")


def _take_guards_away(connection: Connection) -> None:
    for table in metadata.tables.values():
        for index in table.indexes:
            if index.unique:
                connection.exec_driver_sql(f"DROP INDEX {index.name}")
    if connection.dialect.name == "sqlite":
        return
    connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
    # The triggers of the search are no guards.
    named = "SELECT tgrelid::regclass, tgname FROM pg_trigger WHERE tgname LIKE 'search_%%'"
    for table_name, trigger in connection.exec_driver_sql(named).all():
        connection.exec_driver_sql(f"ALTER TABLE {table_name} ENABLE ALWAYS TRIGGER {trigger}")
    for table in metadata.tables.values():
        for check_constraint in table.constraints:
            if isinstance(check_constraint, CheckConstraint):
                connection.exec_driver_sql(f"ALTER TABLE {table.name} DROP CONSTRAINT {check_constraint.name}")


def change(table: str, row: str, **values: object) -> Plant:
    target = metadata.tables[table]
    return lambda connection: connection.execute(update(target).where(target.c.id == row).values(**values))


def without_keys(table: str, then: Plant) -> Plant:
    """The table made anew from its rows, without any key."""

    def plant(connection: Connection) -> None:
        connection.exec_driver_sql(f"CREATE TABLE kept AS SELECT * FROM {table}")
        connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql(f"ALTER TABLE kept RENAME TO {table}")
        then(connection)

    return plant


def all_of(*plants: Plant) -> Plant:
    def plant(connection: Connection) -> None:
        for each in plants:
            each(connection)

    return plant


def run(name: str, lane: str, state: str, **values: object) -> Plant:
    return lambda connection: put_run(connection, name, lane, state, **values)


def wake(name: str, lane: str, state: str, **values: object) -> Plant:
    return lambda connection: put_wake(connection, name, lane, state, **values)


def session(name: str, lane: str, generation: int, **values: object) -> Plant:
    return lambda connection: put_session(connection, name, lane, generation, **values)


def _event_twice(connection: Connection) -> None:
    put(connection, events, run_id="r-live", seq=5, attempt=1, kind="text", body="again", at=3.0)


def _journal_gap(connection: Connection) -> None:
    put_entries(connection, "idle", 5)


def _journal_begins_late(connection: Connection) -> None:
    connection.execute(delete(journal).where(journal.c.thread_id == "waiting", journal.c.seq == 1))


def _replaced(*by: int, entry: int) -> Plant:
    """The entries `by` all say that they take the place of that one, in the thread of a lane at work."""

    def plant(connection: Connection) -> None:
        put_entries(connection, "busy", *by)
        connection.execute(
            update(journal).where(journal.c.thread_id == "busy", journal.c.seq.in_(by)).values(replaces=entry)
        )

    return plant


def _decision_gone(connection: Connection) -> None:
    connection.execute(delete(decisions).where(decisions.c.run_id == "r-done"))


def _other_plan(connection: Connection) -> None:
    connection.execute(
        update(decisions)
        .where(decisions.c.run_id == "r-done")
        .values(record=RECORD.replace('"outcome": "resume"', '"outcome": "reseed"'))
    )


def _record(stored: object) -> Plant:
    spoilt = update(decisions).where(decisions.c.run_id == "r-done").values(record=stored)
    return lambda connection: connection.execute(spoilt)


def _sql(statement: str) -> Plant:
    return lambda connection: connection.exec_driver_sql(statement)


def _wordless(connection: Connection) -> None:
    words, none = (", words", ", ''") if connection.dialect.name == "postgresql" else ("", "")
    connection.exec_driver_sql(
        f"INSERT INTO search_documents (id, kind, source, seq, through{words}) VALUES (7, 'log', 'r-done', 1, 1{none})"
    )


WAKE_ENDS = {"ended_at": 9.0}
SECOND = {"agent_place": 3, "runtime_place": 3, **LIVE}

PLANTS: list[tuple[str, str, Plant, list[str]]] = [
    ("wake-state", "unknown", change("wakes", "w-next", state="asleep"), ["w-next"]),
    ("wake-pending", "lost-after-the-end", wake("w-x", "idle", "pending"), ["w-x"]),
    (
        "wake-pending",
        "only-ended-runs",
        all_of(run("r-x", "idle", "failed", outcome="run:gave-up", **ENDED), wake("w-x", "idle", "pending")),
        ["w-x"],
    ),
    ("wake-claimed", "by-an-ended-run", wake("w-x", "busy", "claimed", run_id="r-done"), ["w-x"]),
    ("wake-claimed", "by-a-stopping-run", wake("w-x", "stopping", "claimed", run_id="r-stopping"), ["w-x"]),
    (
        "wake-claimed",
        "told-by-an-ended-run",
        wake("w-x", "busy", "claimed", run_id="r-done", code="carried:steering"),
        ["w-x"],
    ),
    ("wake-claimed", "by-a-queued-run", wake("w-x", "waiting", "claimed", run_id="r-queued"), ["w-x"]),
    ("wake-claimed", "by-another-lane", wake("w-x", "stopping", "claimed", run_id="r-live"), ["w-x"]),
    ("wake-claimed", "by-nobody", wake("w-x", "busy", "claimed"), ["w-x"]),
    ("wake-served", "by-a-failed-run", wake("w-x", "stopping", "served", run_id="r-failed", **WAKE_ENDS), ["w-x"]),
    (
        "wake-served",
        "by-a-live-run",
        all_of(
            change("runs", "r-live", evidence="taken"),
            wake("w-x", "busy", "served", run_id="r-live", **WAKE_ENDS),
        ),
        ["w-x"],
    ),
    ("wake-served", "by-another-lane", wake("w-x", "idle", "served", run_id="r-done", **WAKE_ENDS), ["w-x"]),
    ("wake-served", "by-nobody", wake("w-x", "idle", "served", **WAKE_ENDS), ["w-x"]),
    (
        "wake-taken",
        "by-a-run-without-a-word",
        all_of(
            run("r-x", "idle", "succeeded", outcome="run:answered", **ENDED),
            wake("w-x", "idle", "served", run_id="r-x", **WAKE_ENDS),
        ),
        ["w-x"],
    ),
    *(
        (
            "wake-taken",
            f"by-a-prompt-that-is-{evidence}",
            all_of(
                run("r-x", "idle", "lost", outcome="run:lease-lost", prompt="{}", evidence=evidence, **ENDED),
                wake("w-x", "idle", "served", run_id="r-x", code="served:read-back", **WAKE_ENDS),
            ),
            ["w-x"],
        )
        for evidence in ("unsent", "unknown")
    ),
    ("wake-end", "no-time", change("wakes", "w-skipped", ended_at=None), ["w-skipped"]),
    ("wake-end", "no-code", change("wakes", "w-skipped", code=""), ["w-skipped"]),
    ("wake-end", "no-words", change("wakes", "w-next", words=""), ["w-next"]),
    ("wake-end", "ended-and-pending", change("wakes", "w-next", ended_at=9.0), ["w-next"]),
    ("wake-thread", "of-another", change("wakes", "w-skipped", thread_id="busy"), ["w-skipped"]),
    ("wake-entry", "not-written", change("wakes", "w-next", entry=4), ["w-next"]),
    ("wake-standing", "of-one-that-waits", _replaced(4, entry=3), ["w-next"]),
    ("wake-standing", "of-one-that-a-run-has", _replaced(4, entry=2), ["w-claimed"]),
    ("run-state", "unknown", run("r-x", "idle", "asleep"), ["r-x"]),
    ("run-live", "no-lease", change("runs", "r-live", lease_until=None), ["r-live"]),
    ("run-live", "no-place-of-the-agent", change("runs", "r-live", agent_place=None), ["r-live"]),
    ("run-live", "no-place-of-the-runtime", change("runs", "r-live", runtime_place=None), ["r-live"]),
    ("run-live", "no-runtime", change("runs", "r-stopping", runtime_id=None), ["r-stopping"]),
    ("run-live", "a-lease-after-the-end", change("runs", "r-done", lease_until=1.0), ["r-done"]),
    ("run-carries", "nothing", change("wakes", "w-claimed", state="skipped", **WAKE_ENDS), ["r-live"]),
    ("run-queued", "for-nothing", run("r-x", "idle", "queued"), ["r-x"]),
    ("run-where", "where-its-lane-was", change("lanes", "waiting", runtime_id="rt-2"), ["r-queued"]),
    (
        "run-where",
        "nowhere",
        all_of(change("lanes", "waiting", runtime_id="rt-2"), change("runs", "r-queued", runtime_id=None)),
        ["r-queued"],
    ),
    ("run-end", "no-time", change("runs", "r-failed", ended_at=None), ["r-failed"]),
    ("run-end", "no-outcome", change("runs", "r-failed", outcome=None), ["r-failed"]),
    ("run-end", "ended-and-queued", change("runs", "r-queued", ended_at=9.0), ["r-queued"]),
    ("run-alone", "two-queued", run("r-x", "waiting", "queued"), ["waiting"]),
    ("run-alone", "one-queued-beside-a-live-one", run("r-x", "busy", "queued"), ["busy"]),
    ("run-place", "of-the-agent", change("runs", "r-stopping", agent_place=1), ["r-live", "r-stopping"]),
    ("run-place", "of-the-runtime", change("runs", "r-stopping", runtime_place=1), ["r-live", "r-stopping"]),
    ("run-agent", "of-another", change("runs", "r-failed", agent_id="bob"), ["r-failed"]),
    ("run-session", "of-another-lane", change("runs", "r-failed", session_id="s-1"), ["r-failed"]),
    ("run-session", "on-another-runtime", change("runs", "r-live", session_id="s-elsewhere"), ["r-live"]),
    (
        "run-session-alone",
        "two-live",
        all_of(
            change("runs", "r-stopping", session_id="s-new"),
            run("r-x", "idle", "stopping", session_id="s-new", **SECOND),
            lambda connection: put_decision(connection, "r-x"),
        ),
        ["s-new"],
    ),
    ("run-decision", "none", _decision_gone, ["r-done"]),
    ("run-decision", "of-an-earlier-attempt-only", change("runs", "r-live", attempt=2), ["r-live"]),
    ("approval-live", "of-an-ended-run", change("approvals", "ap-done", state="pending"), ["ap-done"]),
    ("delivery-ended", "of-a-live-run", change("deliveries", "de-1", run_id="r-live"), ["de-1"]),
    ("schedule-due", "never", change("schedules", "sc-on", next_due=None), ["sc-on"]),
    ("journal-whole", "a-gap", _journal_gap, ["idle"]),
    ("journal-whole", "no-beginning", _journal_begins_late, ["waiting"]),
    (
        "journal-replaces",
        "twice",
        all_of(
            without_keys("journal", _replaced(4, 5, entry=3)),
            change("wakes", "w-next", entry=5),
            # A table without its keys is without its triggers, too.
            _sql("INSERT INTO search_due (kind, source, seq) VALUES ('entry', 'busy', 4), ('entry', 'busy', 5)"),
        ),
        ["busy/3"],
    ),
    ("session-origin", "from-nowhere", change("sessions", "s-unknown", adopted_at=None), ["s-unknown"]),
    ("session-origin", "from-another-lane", change("sessions", "s-unknown", run_id="r-done"), ["s-unknown"]),
    ("session-generations", "a-gap", session("s-x", "busy", 5, adopted_at=1.0), ["busy"]),
    ("session-generations", "no-beginning", session("s-x", "idle", 2, adopted_at=1.0), ["idle"]),
    ("session-generations", "in-a-scope", change("sessions", "s-own", generation=2), ["busy/r-done"]),
    ("session-native", "two-records", change("sessions", "s-1", superseded=0), ["rt-1/n-1"]),
    ("session-native", "no-record", change("sessions", "s-2", superseded=1), ["rt-1/n-1"]),
    ("session-seen", "not-written", change("sessions", "s-2", seen=4, inherited=4), ["s-2"]),
    ("session-taken", "more-than-it-was-made-with", change("sessions", "s-unknown", seen=1), ["s-unknown"]),
    *(
        (
            "session-taken",
            f"a-prompt-that-is-{evidence or 'not-known-of'}",
            all_of(
                run("r-x", "idle", "lost", outcome="run:lease-lost", told=1, evidence=evidence, **ENDED),
                session("s-x", "idle", 1, run_id="r-x", seen=1),
                change("runs", "r-x", session_id="s-x"),
            ),
            ["s-x"],
        )
        for evidence in ("unsent", "unknown", "")
    ),
    ("decision-replay", "another-plan", _other_plan, ["r-done/1/0"]),
    ("decision-replay", "no-json", _record("{"), ["r-done/1/0"]),
    ("decision-replay", "no-record", _record("[]"), ["r-done/1/0"]),
    ("value-json", "a-policy", change("agents", "ada", policy="{"), ["agents ada (policy)"]),
    ("value-json", "capabilities", change("runtimes", "rt-1", capabilities="[]"), ["runtimes rt-1 (capabilities)"]),
    ("value-json", "what-was-told", change("push_subscriptions", "ps-1", told="x"), ["push_subscriptions ps-1 (told)"]),
    ("value-json", "what-is-kept", change("lanes", "idle", floor_kept="1,2"), ["lanes idle (floor_kept)"]),
    ("value-json", "what-else-was-told", change("sessions", "s-2", also=""), ["sessions s-2 (also)"]),
    ("value-json", "a-cursor", change("sessions", "s-2", cursor="n-1"), ["sessions s-2 (cursor)"]),
    (
        "search-complete",
        "an-entry",
        _sql("DELETE FROM search_due WHERE kind = 'entry' AND source = 'idle' AND seq = 2"),
        ["idle/2"],
    ),
    ("search-complete", "a-title", _sql("DELETE FROM search_due WHERE kind = 'title' AND source = 'idle'"), ["idle"]),
    ("search-complete", "a-log", _sql("DELETE FROM search_due WHERE kind = 'log' AND source = 'r-live'"), ["r-live"]),
    ("search-words", "none", _wordless, ["document 7"]),
    ("entry-files", "none", _sql("DELETE FROM files WHERE id = 'fl-idle'"), ["idle/2"]),
    ("entry-files", "another-thread", change("files", "fl-idle", thread_id="busy"), ["idle/2"]),
    (
        "entry-files",
        "no-list",
        _sql("UPDATE journal SET files = '{}x' WHERE thread_id = 'idle'"),
        ["idle/1", "idle/2", "idle/3"],
    ),
    ("file-content", "other-bytes", change("files", "fl-unsent", content=b"\x00\xff a plot"), ["fl-unsent"]),
    ("row-once", "an-event", without_keys("events", _event_twice), ["events r-live/5"]),
    ("row-bounds", "a-mode", change("agents", "bob", mode="all"), ["agents bob (ck_agents_mode)"]),
    ("row-bounds", "a-hold", change("runs", "r-queued", hold="ever"), ["runs r-queued (ck_runs_hold)"]),
    (
        "row-bounds",
        "a-rhythm",
        change("schedules", "sc-on", every=None),
        ["schedules sc-on (ck_schedules_has_a_rhythm)"],
    ),
    (
        "row-pointer",
        "a-runtime",
        change("sessions", "s-unknown", runtime_id="rt-9"),
        ["sessions s-unknown (runtime_id)"],
    ),
    ("row-pointer", "a-project", change("threads", "idle", project_id="gone"), ["threads idle (project_id)"]),
]

SQLITE_ONLY: list[tuple[str, str, Plant, list[str]]] = [
    ("value-type", "text-for-a-number", change("sessions", "s-2", turns=text("'two'")), ["sessions s-2 (turns)"]),
    ("value-type", "bytes-for-text", change("threads", "idle", title=text("x'ff'")), ["threads idle (title)"]),
    ("value-json", "no-text", change("sessions", "s-2", also=text("CAST(x'ff' AS TEXT)")), ["sessions s-2 (also)"]),
    ("decision-replay", "no-text", _record(text("CAST(x'7bff7d' AS TEXT)")), ["r-done/1/0"]),
]


def cases(planted: list[tuple[str, str, Plant, list[str]]]) -> list[object]:
    return [pytest.param(name, plant, rows, id=f"{name}-{how}") for name, how, plant, rows in planted]


def test_a_whole_database_keeps_every_promise(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        assert check(connection) == ()
        counted = {table.name: connection.execute(select(table)).all() for table in metadata.sorted_tables}
        assert all(counted.values()), "every table has a row"
        assert count_rows(connection) == sum(map(len, counted.values()))
        connection.exec_driver_sql("ROLLBACK")


@pytest.mark.parametrize(("promise", "plant", "rows"), cases(PLANTS))
def test_what_breaks_a_promise_is_named_and_nothing_else(
    unguarded: Connection, promise: str, plant: Plant, rows: list[str]
) -> None:
    plant(unguarded)
    found = check(unguarded)
    assert [(each.promise, each.count, list(each.rows)) for each in found] == [(promise, len(rows), rows)]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("promise", "plant", "rows"), cases(SQLITE_ONLY))
def test_what_only_sqlite_lets_in_is_named_too(
    unguarded: Connection, promise: str, plant: Plant, rows: list[str]
) -> None:
    plant(unguarded)
    found = check(unguarded)
    assert [(each.promise, each.count, list(each.rows)) for each in found] == [(promise, len(rows), rows)]


def test_every_promise_has_been_broken_once() -> None:
    names = [promise.name for promise in PROMISES]
    assert len(set(names)) == len(names)
    # The file's own promise is broken below, in a file.
    assert set(names) == {name for name, *_ in [*PLANTS, *SQLITE_ONLY]} | {"file-whole"}


def test_every_pointer_of_the_schema_is_followed(unguarded: Connection) -> None:
    pointers = next(promise for promise in STRUCTURE if promise.name == "row-pointer")
    for table in metadata.sorted_tables:
        for column in table.columns:
            if column.foreign_keys:
                unguarded.exec_driver_sql("SAVEPOINT planted")
                lost = update(table).where(column.is_not(None)).values({column: "nowhere, says " + column})
                count = unguarded.execute(lost).rowcount
                found = [row for row in pointers.broken(unguarded) if row.startswith(f"{table.name} ")]
                assert len([row for row in found if row.endswith(f"({column.name})")]) == count > 0
                if unguarded.dialect.name == "sqlite":
                    said = unguarded.exec_driver_sql(f"PRAGMA foreign_key_check({table.name})").all()
                    assert len(said) == len(found)
                unguarded.exec_driver_sql("ROLLBACK TO planted")


def test_conditions_that_are_checked_elsewhere_exist() -> None:
    conditions = {
        each.name
        for table in metadata.tables.values()
        for each in table.constraints
        if isinstance(each, CheckConstraint)
    }
    assert conditions >= CHECKED_ELSEWHERE


def test_many_rows_are_counted_and_some_are_named(unguarded: Connection) -> None:
    for number in range(25):
        put_wake(unguarded, f"w-{number:02}", "idle", "pending")
    (found,) = check(unguarded)
    assert (found.promise, found.count, len(found.rows)) == ("wake-pending", 25, NAMED)


def test_only_the_newest_decisions_are_made_again(unguarded: Connection) -> None:
    rows = [{"run_id": "r-done", "attempt": 1, "step": step, "at": 100.0 + step} for step in range(1, REPLAYED + 1)]
    unguarded.execute(insert(decisions), [{**row, "outcome": "x", "code": "x", "record": RECORD} for row in rows])
    _record("{")(unguarded)
    # The step that was there is spoilt too, and is the oldest of them all.
    assert [each.count for each in check(unguarded)] == [REPLAYED]


def test_generations_may_begin_after_a_fresh_start(unguarded: Connection) -> None:
    unguarded.execute(update(lanes).where(lanes.c.id == "idle").values(floor_generation=3))
    put_session(unguarded, "s-x", "idle", 4, adopted_at=1.0)
    assert check(unguarded) == ()


def test_a_question_that_cannot_be_asked_is_told_and_the_others_are_asked(unguarded: Connection) -> None:
    unguarded.exec_driver_sql("ALTER TABLE deliveries RENAME COLUMN run_id TO other")
    put_wake(unguarded, "w-x", "idle", "pending")
    found = {each.promise: each.rows for each in check(unguarded)}
    assert "delivery-ended" in found
    assert found["delivery-ended"][0].startswith("the query failed: ")
    assert found["wake-pending"] == ("w-x",)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "clew.db"
    with _connected(path) as connection:
        upgrade(connection)
        fill(connection)
    return path


@contextmanager
def _connected(path: Path) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{path}", isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        yield connection
        connection.exec_driver_sql("COMMIT")


def test_a_damaged_page_is_found_and_no_other_answer_is_given(file: Path) -> None:
    with _connected(file) as connection:
        page = connection.exec_driver_sql(
            "SELECT rootpage FROM sqlite_master WHERE name = 'ix_wakes_pending'"
        ).scalar_one()
        size = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    with file.open("r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(b"\xff" * size)
    with snapshot(str(file)) as connection:
        (found,) = check(connection)
    assert found.promise == "file-whole"
    assert found.count > 0


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "clew.db").write_bytes(b"no database" * 1000)
    with pytest.raises(NotADatabase), snapshot(str(tmp_path / "clew.db")) as connection:
        check(connection)


def test_a_damaged_name_is_shown_and_does_not_end_the_search(file: Path) -> None:
    with _connected(file) as connection:
        connection.exec_driver_sql(
            "UPDATE wakes SET id = CAST(x'77ff' AS TEXT), state = 'pending', ended_at = NULL WHERE id = 'w-skipped'"
        )
    with snapshot(str(file)) as connection:
        (found,) = check(connection)
    assert (found.promise, found.rows) == ("wake-pending", ("w\\xff",))


def test_a_row_out_of_bounds_is_no_damage_of_the_file(file: Path) -> None:
    with _connected(file) as connection:
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = 1")
        connection.execute(update(agents).where(agents.c.id == "bob").values(mode="all"))
    with snapshot(str(file)) as connection:
        assert [each.promise for each in check(connection)] == ["row-bounds"]


def test_a_check_leaves_its_connection_as_it_was(file: Path) -> None:
    with snapshot(str(file)) as connection:
        check(connection)
        assert connection.exec_driver_sql("PRAGMA ignore_check_constraints").scalar_one() == 0
        raw = connection.connection.driver_connection
        assert raw is not None
        assert raw.text_factory is str
    assert sorted(path.name for path in file.parent.iterdir()) == ["clew.db"]
