"""The journal: a thread's entries, numbered in order without a gap. No entry is ever changed: a later one replaces it,
or takes it back (docs/decisions/0019)."""

from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, literal_column, select

from clew.kernel import (
    AgentId,
    Author,
    AuthorKind,
    EntrySeq,
    Instant,
    JournalEntry,
    RunId,
    ThreadId,
)
from clew.protocol.files import read_files, write_files
from clew.protocol.orders import Entry
from clew.protocol.wakes import Said
from clew.store.engine.database import LostRace
from clew.store.engine.dialect import insert_in, now, storable
from clew.store.engine.statement import Done, Row, Statement, in_one_trip
from clew.store.operations.rows import unreadable
from clew.store.schema.tables import journal

_MOST_RACES = 1000
"""How often an entry is tried at the next number. Each failure means that another writer got that number."""

_MOST_ENTRIES = 500
"""How many entries are read at once, the newest first. Earlier ones are on the page before."""

_SAID = (
    "author_kind",
    "author_name",
    "agent_id",
    "provider",
    "account",
    "body",
    "size",
    "pair",
    "run_id",
    "replaces",
    "files",
)
"""The columns of an entry that say who said what."""

# Inserting the next number takes it (primary key). A concurrent insert of the same number waits for the winner's
# commit, then does nothing, and is tried again with the next.
_append = Statement(
    lambda dialect: (
        insert_in(dialect, journal)
        .from_select(
            ["thread_id", "seq", *_SAID, "at"],
            select(
                bindparam("thread_id", type_=journal.c.thread_id.type),
                func.coalesce(func.max(journal.c.seq), 0) + 1,
                *(bindparam(name, type_=journal.c[name].type) for name in _SAID),
                now(),
            ).where(journal.c.thread_id == bindparam("thread_id")),
        )
        .on_conflict_do_nothing(index_elements=[journal.c.thread_id, journal.c.seq])
        .returning(journal.c.seq)
    )
)


def _within() -> Select[Any]:
    return (
        select(journal)
        .where(
            journal.c.thread_id == bindparam("thread"),
            journal.c.seq > bindparam("after"),
            journal.c.seq <= bindparam("through"),
        )
        .order_by(journal.c.seq.desc())
        .limit(bindparam("most"))
    )


_every = Statement(lambda _: _within())

_later = journal.alias("later")
# By uq_journal_replaces.
_replaced = select(_later.c.seq).where(_later.c.thread_id == journal.c.thread_id, _later.c.replaces == journal.c.seq)
_between = Statement(
    lambda _: _within().where(
        ~_replaced.exists(), journal.c.replaces.is_(None) | (journal.c.body != literal_column("''"))
    )
)


def append(connection: Connection, thread: ThreadId, said: Said) -> EntrySeq:
    return appended_seq(connection, thread, said, in_one_trip(connection, append_statement(thread, said))[0])


Tried = dict[EntrySeq, Instant]
"""The number and time of an entry in attempts whose commit was not confirmed."""


def append_once(connection: Connection, thread: ThreadId, said: Said, tried: Tried) -> EntrySeq:
    """Append an entry that an earlier attempt may have committed already: `tried` has what those wrote."""
    for seq, at in tried.items():
        row = _entry_row(connection, thread, seq)
        if row is not None and row["at"] == at:
            return seq
    seq = append(connection, thread, said)
    row = _entry_row(connection, thread, seq)
    assert row is not None
    tried[seq] = row["at"]
    return seq


def _entry_row(connection: Connection, thread: ThreadId, seq: EntrySeq) -> Row | None:
    return _every.first(connection, thread=thread, after=seq - 1, through=seq, most=1)


def append_statement(thread: ThreadId, said: Said) -> tuple[Statement, Row]:
    """The statement that inserts the entry at the next number; its result goes to `appended_seq`."""
    return _append, {"thread_id": thread, **_columns(said)}


def appended_seq(connection: Connection, thread: ThreadId, said: Said, tried: Done) -> EntrySeq:
    """The number that the entry got. While other writers were faster, the insert is repeated."""
    for _ in range(_MOST_RACES):
        if tried.rows:
            return EntrySeq(tried.rows[0]["seq"])
        tried = in_one_trip(connection, append_statement(thread, said))[0]
    raise LostRace(f"other writers to thread {thread} were faster {_MOST_RACES} times in a row")


def reply_of(run: Row, text: str, size: int | None = None) -> Said:
    """The final reply of a run's agent. Without a count of its tokens, four bytes count as one."""
    author = Author(AuthorKind.AGENT, run["agent_name"], AgentId(run["agent_id"]))
    length = -(-len(text.encode("utf-8", "surrogatepass")) // 4) if size is None else size
    return Said(author, text, length, provider=run["provider"], account=run["account"], run=RunId(run["id"]))


def _columns(said: Said) -> dict[str, object]:
    return {
        "author_kind": said.author.kind.value,
        "author_name": storable(said.author.name),
        "agent_id": said.author.agent,
        "provider": said.provider,
        "account": said.account,
        "body": storable(said.body),
        "size": said.size,
        "pair": said.pair,
        "run_id": said.run,
        "replaces": said.replaces,
        "files": write_files(said.files),
    }


def entries_between(
    connection: Connection, thread: ThreadId, after: EntrySeq, through: EntrySeq, most: int = _MOST_ENTRIES
) -> tuple[Entry, ...]:
    """What an agent may be told: the entries after `after` up to `through`, in order, without those that were replaced
    or taken back; the newest `most` of them if there are more."""
    rows = _between.rows(connection, thread=thread, after=after, through=through, most=most)
    return tuple(read_entry(row) for row in reversed(rows))


def entry_at(connection: Connection, thread: ThreadId, seq: EntrySeq) -> Entry | None:
    """The entry with that number, whatever became of it since."""
    row = _entry_row(connection, thread, seq)
    return None if row is None else read_entry(row)


def read_entry(row: Row, prefix: str = "") -> Entry:
    """The entry in the columns with that prefix."""
    agent = row[f"{prefix}agent_id"]
    try:
        kind = AuthorKind(row[f"{prefix}author_kind"])
    except ValueError as fault:
        raise unreadable("journal", f"{row['thread_id']}/{row[f'{prefix}seq']}", "author_kind", fault) from fault
    author = Author(kind, row[f"{prefix}author_name"], None if agent is None else AgentId(agent))
    facts = JournalEntry(
        EntrySeq(row[f"{prefix}seq"]),
        row[f"{prefix}size"],
        author,
        row[f"{prefix}pair"],
        row[f"{prefix}provider"],
        row[f"{prefix}account"],
        row[f"{prefix}replaces"],
    )
    try:
        files = read_files(row[f"{prefix}files"])
    except ValueError as fault:
        raise unreadable("journal", f"{row['thread_id']}/{row[f'{prefix}seq']}", "files", fault) from fault
    return Entry(facts, row[f"{prefix}body"], row[f"{prefix}at"], row[f"{prefix}run_id"], files)
