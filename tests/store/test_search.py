"""Search: entries, titles and logs are found by their words, the same on both databases."""

import json
from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from clew.kernel import ProjectId
from clew.protocol.reports import RunEventRecord
from clew.protocol.search import MatchView
from clew.store.engine.dialect import storable
from clew.store.operations.search_index import LINES, anything_to_index, index_next
from clew.store.operations.threads import change_thread
from clew.store.queries.search import RECENT
from clew.store.schema.tables import journal, machines, projects, threads
from clew.store.search.query import read_query
from clew.store.search.words import words_of
from tests.store.kit import ADA, BOB, OTHER_THREAD, THREAD, Daemon, overlapping
from tests.store.search_kit import found, index, page

pytestmark = pytest.mark.case("U08")

TORN = ("The build is gr", "een ag", "ain.")


def line(seq: int, kind: str, **body: Any) -> RunEventRecord:
    return RunEventRecord(seq, kind, json.dumps(body))


def text(seq: int, words: str, final: bool = True) -> RunEventRecord:
    return line(seq, "text", text=words, final=final)


def write_entries(daemon: Daemon, first: int, *bodies: str, thread: str = THREAD, at: float = 1.0) -> None:
    said = {"author_kind": "human", "author_name": "a person"}
    rows = [
        {"thread_id": thread, "seq": seq, "body": body, "at": at + seq, **said}
        for seq, body in enumerate(bodies, first)
    ]
    daemon.write(lambda connection: connection.execute(insert(journal), rows).rowcount)


# ---------------------------------------------------------------- each kind


def test_an_entry_a_title_and_a_line_of_a_log_are_found(daemon: Daemon) -> None:
    daemon.put(threads, {"id": THREAD}, title="The login page", number=7)
    daemon.say("Please repair the login in src/app.py, it crashes.")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    daemon.report(
        order, events=(line(1, "tool-started", id="t", name="Bash", command="grep -rn login src", file=None),)
    )
    daemon.finish(order)
    index(daemon.database)
    entry, log, title = page(daemon.database, "LOGIN").found[:3]
    assert {entry.kind, log.kind, title.kind} == {"entry", "log", "title"}
    log, entry, title = sorted((entry, log, title), key=lambda each: ("log", "entry", "title").index(each.kind))
    assert (entry.thread, entry.title, entry.seq, entry.author, entry.run) == (
        "issue-7",
        "The login page",
        1,
        "a person",
        None,
    )
    assert entry.snippet == "Please repair the login in src/app.py, it crashes."
    assert [part for part, is_match in entry.parts() if is_match] == ["login"]
    assert (log.thread, log.seq, log.author, log.snippet) == ("issue-7", 1, "ada", "Bash grep -rn login src")
    assert log.run == f"run-{daemon.run(order.run).number}"
    assert (title.seq, title.author, title.snippet, title.matches) == (0, "", "The login page", (MatchView(4, 9),))
    (reply,) = page(daemon.database, "done").found
    assert (reply.author, reply.run) == ("ada", log.run)


def test_words_are_anded_and_phrases_prefixes_and_exclusions_are_kept(daemon: Daemon) -> None:
    write_entries(
        daemon,
        1,
        "merge the conflict",
        "a merge conflict in src/app.py and foo_bar",
        "conflict: merge",
        "issue-12 is a merge",
        "app src py",
    )
    index(daemon.database)
    for query, seqs in {
        "merge": [4, 3, 2, 1],
        "merge conflict": [3, 2, 1],
        '"merge conflict"': [2],
        "merge -conflict": [4],
        'merge -"merge conflict"': [4, 3, 1],
        "conf*": [3, 2, 1],
        "conf": [],
        "src/app.py": [2],
        "src app py": [5, 2],
        "src/app*": [2],
        "foo_bar": [2],
        "foo-bar": [2],
        "bar": [2],
        "issue-12": [4],
        "12": [4],
        '"the conflict" merge*': [1],
    }.items():
        assert [seq for _, _, seq in found(daemon.database, query)] == seqs, query


def test_every_language_is_found(daemon: Daemon) -> None:
    write_entries(
        daemon,
        1,
        "Ärger mit dem CAFÉ",
        "cafe\u0301 au lait",
        "你好世界。",
        "検索エンジン",
        "검색을 한다",
        "हिन्दी में",
    )
    index(daemon.database)
    for query, seqs in {
        "ärger": [1],
        "café": [2, 1],
        "世界": [3],
        "界世": [],
        "エンジン": [4],
        "검색": [5],
        "हिन्दी": [6],
    }.items():
        assert [seq for _, _, seq in found(daemon.database, query)] == seqs, query


# ---------------------------------------------------------------- filters and pages


def test_filters_narrow_it(daemon: Daemon) -> None:
    daemon.put(threads, {"id": THREAD}, title="needle and thread")
    daemon.add(projects, id="maze", name="maze", source="/srv", machine_id="laptop")
    daemon.put(threads, {"id": OTHER_THREAD}, project_id="maze")
    daemon.say("a needle")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    daemon.report(order, events=(text(1, "the needle is here"), line(2, "tool-finished", output="needle")))
    daemon.finish(order)
    daemon.say("another needle", thread=OTHER_THREAD)
    index(daemon.database)
    every = {
        ("entry", THREAD, 1),
        ("title", THREAD, 0),
        ("log", THREAD, 1),
        ("log", THREAD, 2),
        ("entry", OTHER_THREAD, 1),
    }
    assert set(found(daemon.database, "needle")) == every
    for where, expected in (
        ({"thread": THREAD}, {each for each in every if each[1] == THREAD}),
        ({"kind": "entry"}, {each for each in every if each[0] == "entry"}),
        ({"kind": "log"}, {each for each in every if each[0] == "log"}),
        ({"agent": ADA}, {each for each in every if each[0] == "log"}),
        ({"agent": BOB}, set()),
        ({"project": ProjectId("maze")}, {("entry", OTHER_THREAD, 1)}),
        ({"thread": THREAD, "kind": "title"}, {("title", THREAD, 0)}),
    ):
        assert set(found(daemon.database, "needle", **where)) == expected, where


def test_pages_have_no_gap_and_no_repeat_while_more_is_written(daemon: Daemon) -> None:
    write_entries(daemon, 1, *(f"needle {seq}" for seq in range(1, 26)))
    index(daemon.database)
    seen: list[int] = []
    before, pages = 2**62, 0
    while True:
        got = page(daemon.database, "needle", most=4, before=before)
        seen += [each.seq for each in got.found]
        write_entries(daemon, 26 + 2 * pages, "a newer needle", "and a needle", at=10.0)
        index(daemon.database)
        pages += 1
        if got.older is None:
            break
        before = int(got.older)
    assert seen == list(range(25, 0, -1))
    assert pages == 7
    assert len(page(daemon.database, "needle", most=500).found) == 25 + 2 * 7


def test_the_last_page_says_that_it_is_the_last(daemon: Daemon) -> None:
    write_entries(daemon, 1, *(f"needle {seq}" for seq in range(1, 5)))
    index(daemon.database)
    assert page(daemon.database, "needle", most=4).older is None
    assert page(daemon.database, "needle", most=3).older is not None
    assert page(daemon.database, "nothing", most=3).older is None


def test_what_is_older_than_the_newest_thousands_is_found_too(daemon: Daemon) -> None:
    """PostgreSQL looks through the newest one by one, and asks its index for the rest."""
    write_entries(daemon, 1, "a rare needle in the hay", "needle rare")
    write_entries(daemon, 3, *(f"hay {seq}" for seq in range(RECENT + 10)))
    index(daemon.database)
    for query, seqs in {"rare": [2, 1], '"rare needle"': [1], "rare -hay": [2], "nee*": [2, 1]}.items():
        assert [seq for _, _, seq in found(daemon.database, query)] == seqs, query
    hay = page(daemon.database, "hay", most=500)
    assert [each.seq for each in hay.found[:2]] == [RECENT + 12, RECENT + 11]
    last = page(daemon.database, "hay", most=5, before=int(page(daemon.database, "hay 7").found[-1].id))
    assert [each.seq for each in last.found] == [9, 8, 7, 6, 5]


# ---------------------------------------------------------------- what changes


def test_what_is_changed_or_removed_is_not_found_even_before_it_is_indexed(daemon: Daemon) -> None:
    write_entries(daemon, 1, "first needle", "second needle")
    daemon.put(threads, {"id": THREAD}, title="needle work")
    index(daemon.database)
    assert len(found(daemon.database, "needle")) == 3
    daemon.put(journal, {"thread_id": THREAD, "seq": 1}, body="first thimble")
    gone = delete(journal).where(journal.c.thread_id == THREAD, journal.c.seq == 2)
    daemon.write(lambda connection: connection.execute(gone).rowcount)
    daemon.write(lambda connection: change_thread(connection, THREAD, "thimble work", None))
    assert found(daemon.database, "needle") == []
    assert found(daemon.database, "thimble") == []
    index(daemon.database)
    assert found(daemon.database, "needle") == []
    changed = {("entry", THREAD, 1), ("title", THREAD, 0)}
    assert set(found(daemon.database, "thimble")) == changed == set(found(daemon.database, "thimble -needle"))


def test_what_is_gone_leaves_no_hole_in_a_page(daemon: Daemon) -> None:
    write_entries(daemon, 1, *(f"needle {seq}" for seq in range(1, 11)))
    index(daemon.database)
    changed = update(journal).where(journal.c.seq.in_((10, 9, 7))).values(body="nothing")
    daemon.write(lambda connection: connection.execute(changed).rowcount)
    got = page(daemon.database, "needle", most=3)
    assert [each.seq for each in got.found] == [8, 6, 5]
    assert [each.seq for each in page(daemon.database, "needle", before=int(got.older or 0)).found] == [4, 3, 2, 1]


def test_a_thread_that_goes_to_another_project_is_found_there(daemon: Daemon) -> None:
    for name in ("maze", "web"):
        daemon.add(projects, id=name, name=name, source="/srv", machine_id="laptop")
    daemon.put(machines, {"id": "laptop"}, root="/srv/work")
    daemon.put(threads, {"id": THREAD}, project_id="maze", title="needle")
    daemon.say("needle")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    daemon.report(order, events=(line(1, "tool-finished", output="needle"),))
    index(daemon.database)
    assert len(found(daemon.database, "needle", project=ProjectId("maze"))) == 3
    daemon.write(lambda connection: change_thread(connection, THREAD, None, ProjectId("web")))
    index(daemon.database)
    assert found(daemon.database, "needle", project=ProjectId("maze")) == []
    assert len(found(daemon.database, "needle", project=ProjectId("web"))) == 3
    assert len(found(daemon.database, "needle")) == 3
    daemon.finish(order)
    index(daemon.database)
    assert len(found(daemon.database, "needle", project=ProjectId("web"))) == 3


# ---------------------------------------------------------------- logs


def test_a_log_is_found_while_its_run_goes_and_what_comes_after_its_end(daemon: Daemon) -> None:
    daemon.say("go")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    index(daemon.database)
    assert not daemon.database.read(anything_to_index)
    daemon.report(order, events=(line(1, "tool-finished", id="t", ok=True, output="first needle"),))
    assert daemon.database.read(anything_to_index)
    index(daemon.database)
    assert found(daemon.database, "needle") == [("log", THREAD, 1)]
    daemon.report(order, events=(line(2, "tool-finished", id="t", ok=True, output="second needle"),))
    daemon.finish(order)
    daemon.report(order, events=(line(3, "tool-finished", id="t", ok=True, output="late needle"),))
    index(daemon.database)
    daemon.report(order, events=(line(4, "tool-finished", id="t", ok=True, output="later needle"),))
    index(daemon.database)
    assert sorted(found(daemon.database, "needle")) == [("log", THREAD, seq) for seq in (1, 2, 3, 4)]
    assert not daemon.database.read(anything_to_index)


def test_a_message_that_came_in_parts_is_one_and_the_reply_is_in_the_journal_alone(daemon: Daemon) -> None:
    daemon.say("go")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    for seq, part in enumerate(TORN, 1):
        daemon.report(order, events=(text(seq, part, final=False),))
        index(daemon.database)
    assert found(daemon.database, "green") == [], "what follows is not known yet"
    daemon.report(order, events=(line(4, "used", input=1), line(5, "tool-started", id="t", name="Bash", command="ls")))
    index(daemon.database)
    (torn,) = page(daemon.database, "green again").found
    assert (torn.seq, torn.snippet) == (1, "".join(TORN))
    parts = [text(6, "All is w", final=False), text(7, "ell.", final=False), text(8, "All is well.")]
    daemon.report(order, events=(*parts, line(9, "done", ending="completed", reply="All is well.")))
    index(daemon.database)
    assert found(daemon.database, "well") == []
    daemon.report(order, events=(text(10, "Half a sen", final=False), text(11, "tence", final=False)))
    daemon.finish(order)
    index(daemon.database)
    assert found(daemon.database, "sentence") == [("log", THREAD, 10)]


def test_a_log_of_any_length_is_indexed_to_its_end(daemon: Daemon) -> None:
    count = 3 * LINES + 7
    daemon.say("go")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    daemon.report(order, events=tuple(line(seq, "tool-finished", output=f"row {seq}") for seq in range(1, count)))
    index(daemon.database)
    daemon.report(order, events=tuple(text(seq, f"part{seq} ", final=False) for seq in range(count, 2 * count)))
    daemon.finish(order)
    index(daemon.database)
    assert len(page(daemon.database, "row", most=500).found) == count - 1
    assert found(daemon.database, f"part{2 * count - 1}")
    assert found(daemon.database, f"part{count}")


def test_of_a_long_output_the_beginning_and_the_end_are_found(daemon: Daemon) -> None:
    daemon.say("go")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    output = f"begins {'hay ' * 8_000} middle {'hay ' * 8_000} ends"
    daemon.report(
        order, events=(line(1, "tool-finished", output=output), line(2, "tool-finished", output="x" * 70_000))
    )
    daemon.finish(order)
    index(daemon.database)
    for query, count in {"begins": 1, "ends": 1, "middle": 0, "x" * 100: 1}.items():
        assert len(found(daemon.database, query)) == count, query
    assert len(page(daemon.database, "ends").found[0].snippet) < 300


# ---------------------------------------------------------------- the index


def test_servers_that_index_at_once_index_each_row_once(daemon: Daemon) -> None:
    write_entries(daemon, 1, *(f"needle {seq}" for seq in range(1, 31)))
    one, other = overlapping(daemon.database, index_next, index_next)
    assert one.result(30).documents > 0
    other.result(30)
    index(daemon.database)
    assert [seq for _, _, seq in found(daemon.database, "needle")] == list(range(30, 0, -1))


def test_an_entry_that_is_written_while_others_are_indexed_is_not_forgotten(daemon: Daemon) -> None:
    write_entries(daemon, 1, "first needle")

    def write(connection: Any) -> None:
        said = {"author_kind": "human", "author_name": "a person", "at": 5.0}
        connection.execute(insert(journal).values(thread_id=THREAD, seq=2, body="second needle", **said))

    one, other = overlapping(daemon.database, write, index_next)
    one.result(30)
    other.result(30)
    daemon.put(journal, {"thread_id": THREAD, "seq": 1}, body="changed needle")
    index(daemon.database)
    assert found(daemon.database, "needle") == [("entry", THREAD, 2), ("entry", THREAD, 1)]


def test_a_batch_that_fails_leaves_all_of_it_due(daemon: Daemon) -> None:
    write_entries(daemon, 1, "needle")

    def fail(connection: Any) -> None:
        index_next(connection)
        raise RuntimeError("a power cut")

    with pytest.raises(RuntimeError):
        daemon.write(fail)
    assert found(daemon.database, "needle") == []
    index(daemon.database)
    assert found(daemon.database, "needle") == [("entry", THREAD, 1)]


HOSTILE = (
    '"',
    '""',
    '"needle',
    'needle"',
    "'",
    "''",
    "needle'; DROP TABLE journal; --",
    "NEAR(needle, 5)",
    "needle NEAR/2 hay",
    "needle AND",
    "OR needle",
    "NOT needle",
    "needle NOT",
    "(needle",
    "needle)",
    "{needle}",
    "words:needle",
    "search_words : needle",
    "^needle",
    "needle + hay",
    "*needle",
    "**",
    "needle**",
    "-",
    "--",
    "- needle",
    "-needle*",
    "needle & !hay | x <-> y:*",
    "needle:*A",
    "\\",
    "needle\\",
    "%needle_",
    "%(needle)s :needle $1 ?",
    "needle\x00hay",
    "\ud800needle",
    "=entry",
    '"=entry" needle',
    "needle\r\n\thay",
    "🪡 needle",
    "a" * 5_000,
    '" needle " hay',
    "needle" * 100,
    "｡needle｡",
)


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_is_typed_is_words(daemon: Daemon, query: str) -> None:
    bodies = ("needle", "needle hay", "near needle hay", "hay", query if query.isprintable() else "needle")
    write_entries(daemon, 1, *bodies)
    index(daemon.database)
    read = read_query(storable(query))
    if not read.wanted:
        return
    expected = [seq for seq, body in reversed(list(enumerate(bodies, 1))) if read.spans(words_of(body)) is not None]
    assert [seq for _, _, seq in found(daemon.database, storable(query))] == expected
