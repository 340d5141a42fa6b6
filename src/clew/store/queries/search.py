"""Search: journal entries, titles and log texts that match a query, the newest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

from sqlalchemy import Connection, Select, bindparam, select, text

from clew.kernel import AgentId, ProjectId, ThreadId
from clew.protocol.search import FoundKind, FoundPage, FoundView, MatchView
from clew.store.engine.statement import SQLITE, Row, Statement, in_one_trip
from clew.store.operations.search_documents import GONE
from clew.store.queries.refs import THREAD_NAME, run_ref, thread_ref, with_owner
from clew.store.schema.tables import agents, events, journal, lanes, runs, threads
from clew.store.search.log_text import LogLine, read_lines
from clew.store.search.query import Query, mark
from clew.store.search.snippet import snippet_of
from clew.store.search.words import words_of

KINDS: tuple[FoundKind, ...] = get_args(FoundKind)

NEWEST = 2**62
"""After every document."""

RECENT = 4_000
"""PostgreSQL: so many of the newest documents are looked at one by one before the index is asked. A word that most of
them have is found there; the index would first collect all its documents, and sort them."""

_ROUNDS = 5
"""How often more is read in the place of what was found in the index and is gone."""

Asked = tuple[Statement, Mapping[str, Any]]

_COLUMNS = "id, kind, source, seq, through"

# FTS5 walks along the ids from the newest, and stops after `most` of them. CROSS JOIN: in this order.
on_sqlite = Statement(
    lambda _: text(
        f"SELECT d.{_COLUMNS.replace(', ', ', d.')} FROM search_words CROSS JOIN search_documents d"
        " ON d.id = search_words.rowid"
        f" WHERE search_words MATCH :query AND search_words.rowid < :before AND d.kind <> '{GONE}'"
        " ORDER BY search_words.rowid DESC LIMIT :most"
    )
)

among_recent = Statement(
    lambda _: text(
        f"SELECT {_COLUMNS} FROM (SELECT {_COLUMNS}, words FROM search_documents WHERE id < :before"
        f" ORDER BY id DESC LIMIT {RECENT}) recent"
        " WHERE words @@ CAST(:query AS tsquery) ORDER BY id DESC LIMIT :most"
    )
)
end_of_recent = Statement(
    lambda _: text(f"SELECT id FROM search_documents WHERE id < :before ORDER BY id DESC OFFSET {RECENT - 1} LIMIT 1")
)
# id + 0: no condition that the index of the ids could answer.
by_index = Statement(
    lambda _: text(
        f"SELECT {_COLUMNS} FROM search_documents WHERE id + 0 < :before AND words @@ CAST(:query AS tsquery)"
        " ORDER BY id DESC LIMIT :most"
    )
)
# The index knows no positions, so a phrase is looked for in the document: from the newest on, until there are enough.
by_index_then_exactly = Statement(
    lambda _: text(
        f"SELECT d.{_COLUMNS.replace(', ', ', d.')} FROM (SELECT id FROM search_documents"
        " WHERE id + 0 < :before AND words @@ CAST(:loose AS tsquery) ORDER BY id DESC OFFSET 0) c"
        " JOIN search_documents d ON d.id = c.id WHERE d.words @@ CAST(:query AS tsquery)"
        " ORDER BY c.id DESC LIMIT :most"
    )
)
# PostgreSQL would read the documents one by one along their ids, in the hope of enough matches among them: for a rare
# word that is all of them. With these settings what is left is the index of the words. With less memory, the bitmap of
# a common word would name pages instead of documents.
_SETTINGS = {
    "enable_seqscan": "off",
    "enable_indexscan": "off",
    "enable_indexonlyscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "work_mem": "64MB",
}
_SET = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
only_by_index = Statement(lambda _: text(f"SELECT {_SET}"))
# To roll back to it undoes the settings.
_savepoint = Statement(lambda _: text("SAVEPOINT settings"))
_settings_undone = Statement(lambda _: text("ROLLBACK TO SAVEPOINT settings"))

_due = Statement(lambda _: text("SELECT COUNT(*) AS count FROM (SELECT 1 FROM search_due LIMIT :most) due"))


@dataclass(frozen=True, slots=True)
class SearchFor:
    """What is searched for, and where. Without a filter, everywhere."""

    query: Query
    thread: ThreadId | None = None
    agent: AgentId | None = None
    project: ProjectId | None = None
    kind: FoundKind | None = None

    @property
    def scoped(self) -> Query:
        named = (("t", self.thread), ("a", self.agent), ("p", self.project))
        marks = [mark(name, id_) for name, id_ in named if id_ is not None]
        return replace(self.query, scope=(*marks, *([] if self.kind is None else [mark(self.kind)])))


def search(connection: Connection, asked: SearchFor, most: int, before: int = NEWEST) -> FoundPage:
    """The newest first; with `before`, those older than that document. Every result matches the row as it is now: what
    was changed or removed since it was indexed is left out."""
    query, found = asked.scoped, list[FoundView]()
    for _ in range(_ROUNDS):
        # One more than is shown: it tells whether there is another page.
        wanted = most + 1 - len(found)
        hits = _hits(connection, query, before, wanted)
        found += _views(connection, query, hits)
        if len(hits) < wanted or len(found) > most:
            return FoundPage(tuple(found[:most]), found[most - 1].id if len(found) > most else None)
        before = hits[-1]["id"]
    return FoundPage(tuple(found), str(before))


def count_due(connection: Connection, most: int) -> int:
    """How many rows wait to be indexed, counted up to `most`."""
    row = _due.first(connection, most=most)
    return 0 if row is None else row["count"]


def _hits(connection: Connection, query: Query, before: int, most: int) -> Sequence[Row]:
    if connection.dialect.name == SQLITE:
        return on_sqlite.rows(connection, query=query.fts5, before=before, most=most)
    exact = query.tsquery
    recent, end = in_one_trip(
        connection,
        (among_recent, {"query": exact, "before": before, "most": most}),
        (end_of_recent, {"before": before}),
    )
    if len(recent.rows) == most or not end.rows:
        return recent.rows
    older = {"query": exact, "before": end.rows[0]["id"], "most": most - len(recent.rows)}
    return [*recent.rows, *_older_hits(connection, query, older)]


def _older_hits(connection: Connection, query: Query, asked: dict[str, Any]) -> Sequence[Row]:
    statement = by_index
    if not query.is_loose:
        statement, asked = by_index_then_exactly, {**asked, "loose": query.loose_tsquery}
    before: tuple[Asked, ...] = ((_savepoint, {}), (only_by_index, {}))
    return in_one_trip(connection, *before, (statement, asked), (_settings_undone, {}))[2].rows


# ---------------------------------------------------------------- what was found


def _entries(_: str) -> Select[Any]:
    source = journal.join(threads, threads.c.id == journal.c.thread_id)
    return (
        select(
            journal.c.body,
            journal.c.at,
            journal.c.author_name,
            runs.c.number,
            threads.c.title,
            threads.c.id.label("thread_id"),
            *THREAD_NAME,
        )
        .select_from(with_owner(source.outerjoin(runs, runs.c.id == journal.c.run_id)))
        .where(journal.c.thread_id == bindparam("source"), journal.c.seq == bindparam("seq"))
    )


_entry = Statement(_entries)

_title = Statement(
    lambda _: (
        select(threads.c.title, threads.c.created_at, threads.c.id.label("thread_id"), *THREAD_NAME)
        .select_from(with_owner(threads))
        .where(threads.c.id == bindparam("source"))
    )
)


def _lines(_: str) -> Select[Any]:
    source = (
        events.join(runs, runs.c.id == events.c.run_id)
        .join(agents, agents.c.id == runs.c.agent_id)
        .join(lanes, lanes.c.id == runs.c.lane_id)
        .join(threads, threads.c.id == lanes.c.thread_id)
    )
    return (
        select(
            events.c.seq,
            events.c.kind,
            events.c.body,
            events.c.at,
            runs.c.number,
            agents.c.name.label("author_name"),
            threads.c.title,
            threads.c.id.label("thread_id"),
            *THREAD_NAME,
        )
        .select_from(with_owner(source))
        .where(
            events.c.run_id == bindparam("source"),
            events.c.seq >= bindparam("seq"),
            events.c.seq <= bindparam("through"),
        )
        .order_by(events.c.seq)
    )


_log = Statement(_lines)


def _views(connection: Connection, query: Query, hits: Sequence[Row]) -> list[FoundView]:
    asked = [_details(hit) for hit in hits]
    read = zip(hits, in_one_trip(connection, *asked), strict=True)
    return [view for hit, done in read if done.rows and (view := _view(query, hit, done.rows)) is not None]


def _details(hit: Row) -> Asked:
    statements = {"entry": _entry, "title": _title, "log": _log}
    return statements[hit["kind"]], {"source": hit["source"], "seq": hit["seq"], "through": hit["through"]}


def _view(query: Query, hit: Row, rows: Sequence[Row]) -> FoundView | None:
    """None if the row does not match any more."""
    row = rows[0]
    make = partial(FoundView, id=str(hit["id"]), thread=thread_ref(row), title=row["title"])
    match hit["kind"]:
        case "entry":
            found, at = row["body"], row["at"]
            make = partial(make, kind="entry", author=row["author_name"], seq=hit["seq"], run=_run(row))
        case "title":
            found, at = row["title"], row["created_at"]
            make = partial(make, kind="title")
        case _:
            lines = [LogLine(each["seq"], each["kind"], each["body"], each["at"]) for each in rows]
            pieces = read_lines(lines, ended=True).pieces
            found, at = pieces[0].text if pieces else "", row["at"]
            make = partial(make, kind="log", author=row["author_name"], seq=hit["seq"], run=_run(row))
    spans = query.spans(words_of(found))
    if spans is None:
        return None
    snippet = snippet_of(found, spans)
    return make(at=at, snippet=snippet.text, matches=tuple(MatchView(*span) for span in snippet.matches))


def _run(row: Row) -> str | None:
    return None if row["number"] is None else run_ref(row)
