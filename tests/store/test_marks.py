"""Marks of threads: what each reader has read and pinned, and that an archived thread comes back with what is new."""

import pytest
from sqlalchemy import Connection

from clew.kernel import ApprovalId, Author, AuthorKind, ThreadId, WaitsFor
from clew.protocol.marks import MarksView
from clew.protocol.reports import Asked, End, Returned
from clew.protocol.wakes import Said
from clew.store.operations import marks
from clew.store.operations.journal import append
from clew.store.queries.threads import list_pinned, list_threads, show_thread
from tests.store.kit import OTHER_THREAD, PERMANENT, PERSON, THREAD, TRANSIENT, Daemon

READER, OTHER = "reader", "other"
AGENT = Author(AuthorKind.AGENT, "ada")


def note(daemon: Daemon, author: Author = AGENT, thread: ThreadId = THREAD) -> int:
    return daemon.write(lambda connection: append(connection, thread, Said(author, "It is done.")))


def of(daemon: Daemon, reader: str = READER, thread: ThreadId = THREAD) -> MarksView:
    found = daemon.database.read(lambda connection: show_thread(connection, thread, reader)).marks
    assert found is not None
    return found


def listed(daemon: Daemon, only: str | None = None) -> list[str]:
    found = daemon.database.read(
        lambda connection: list_threads(connection, "issue", "open", None, 50, None, READER, only)
    )
    return [view.id for view in found]


def is_archived(daemon: Daemon) -> bool:
    return daemon.database.read(lambda connection: show_thread(connection, THREAD)).archived


def archive(daemon: Daemon, thread: ThreadId = THREAD) -> None:
    daemon.write(lambda connection: marks.archive_thread(connection, thread))


def test_what_others_than_people_write_is_unread_until_it_is_read(daemon: Daemon) -> None:
    note(daemon, PERSON)
    assert not of(daemon).unread
    last = [note(daemon, Author(kind, "x")) for kind in AuthorKind if kind is not AuthorKind.HUMAN][-1]
    assert of(daemon) == MarksView(unread=True, pinned=False, seen=0)
    daemon.write(lambda connection: marks.mark_read(connection, READER, THREAD, last - 1))
    assert of(daemon) == MarksView(unread=True, pinned=False, seen=last - 1)
    daemon.write(lambda connection: marks.mark_read(connection, READER, THREAD))
    assert of(daemon) == MarksView(unread=False, pinned=False, seen=last)
    # Another page that was read only halfway takes nothing back, and none is read before it is written.
    daemon.write(lambda connection: marks.mark_read(connection, READER, THREAD, 1))
    daemon.write(lambda connection: marks.mark_read(connection, READER, THREAD, last + 9))
    assert of(daemon).seen == last
    note(daemon, PERSON)
    assert not of(daemon).unread
    note(daemon)
    assert of(daemon).unread


def test_each_reader_has_marks_of_their_own(daemon: Daemon) -> None:
    note(daemon)
    daemon.write(lambda connection: marks.mark_read(connection, READER, THREAD))
    daemon.write(lambda connection: marks.pin_thread(connection, READER, THREAD))
    assert (of(daemon).unread, of(daemon).pinned) == (False, True)
    assert (of(daemon, OTHER).unread, of(daemon, OTHER).pinned) == (True, False)
    assert daemon.database.read(lambda connection: show_thread(connection, THREAD)).marks is None


@pytest.mark.parametrize("written", [False, True])
def test_a_thread_is_marked_as_unread_whether_it_has_news_or_not(daemon: Daemon, written: bool) -> None:
    if written:
        note(daemon)
        daemon.write(lambda connection: marks.mark_read(connection, READER, THREAD))
    assert not of(daemon).unread
    for _ in range(2):
        daemon.write(lambda connection: marks.mark_unread(connection, READER, THREAD))
        assert of(daemon).unread
    daemon.write(lambda connection: marks.mark_read(connection, READER, THREAD))
    assert not of(daemon).unread


def test_pinned_threads_are_listed_the_last_pinned_first(daemon: Daemon) -> None:
    def pinned() -> list[str]:
        return [view.id for view in daemon.database.read(lambda connection: list_pinned(connection, READER, 50))]

    for thread in (THREAD, OTHER_THREAD, THREAD):
        daemon.write(lambda connection, it=thread: marks.pin_thread(connection, READER, it))  # type: ignore[misc]
    assert pinned() == [OTHER_THREAD, THREAD]
    archive(daemon, OTHER_THREAD)
    assert pinned() == [THREAD]
    daemon.write(lambda connection: marks.unpin_thread(connection, READER, THREAD))
    assert pinned() == []


def test_lists_have_what_is_asked_for(daemon: Daemon) -> None:
    note(daemon)
    assert listed(daemon, "unread") == [THREAD]
    assert set(listed(daemon)) == {THREAD, OTHER_THREAD}
    archive(daemon)
    assert (listed(daemon), listed(daemon, "unread"), listed(daemon, "archived")) == ([OTHER_THREAD], [], [THREAD])
    daemon.write(lambda connection: marks.unarchive_thread(connection, THREAD))
    assert set(listed(daemon)) == {THREAD, OTHER_THREAD}


@pytest.mark.parametrize("author", [AGENT, PERSON], ids=["agent", "person"])
def test_an_archived_thread_comes_back_when_somebody_speaks_in_it(daemon: Daemon, author: Author) -> None:
    note(daemon)
    archive(daemon)
    assert is_archived(daemon)
    note(daemon, author, OTHER_THREAD)
    assert is_archived(daemon)
    note(daemon, author)
    assert not is_archived(daemon)


def test_a_run_without_a_word_leaves_it_archived_until_it_needs_a_person(daemon: Daemon) -> None:
    archive(daemon)
    daemon.accept(said=None)
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    assert is_archived(daemon)
    daemon.report(order, asks=(Asked(ApprovalId("ap-1"), "May I?"),))
    assert not is_archived(daemon)


@pytest.mark.parametrize(
    ("end", "needs_a_person"),
    [(TRANSIENT, False), (PERMANENT, True), (Returned("no branch", "place:branch-gone", WaitsFor.PERSON), True)],
    ids=["tried again", "failed for good", "held for a person"],
)
def test_a_run_that_ends_badly_brings_it_back_if_a_person_has_to_act(
    daemon: Daemon, end: End, needs_a_person: bool
) -> None:
    archive(daemon)
    daemon.accept(said=None)
    order = daemon.claim_one()
    if not isinstance(end, Returned):
        daemon.prompt(order, "n-1")
    daemon.finish(order, end)
    assert is_archived(daemon) is not needs_a_person


def test_two_messages_at_once_bring_it_back(daemon: Daemon) -> None:
    archive(daemon)

    def speak(connection: Connection) -> int:
        return append(connection, THREAD, Said(PERSON, "And now?"))

    for each in [daemon.database.write(speak) for _ in range(8)]:
        each.result(30)
    assert not is_archived(daemon)
