"""The search index: what was written is indexed in small batches, apart from the transactions that wrote it.

Triggers of the schema note what is due: an entry or a title that is new, changed or gone, a thread that belongs to
another project, and the log of a run that has started. A batch is one transaction, so a due row is gone if and only if
its document is there. docs/decisions/0018-search.md says why.
"""

from dataclasses import dataclass, field

from sqlalchemy import Connection, text

from clew.kernel import RunId
from clew.store.engine.statement import POSTGRESQL, SQLITE, Row, Statement
from clew.store.operations.search_documents import Document, forgetting, write_documents
from clew.store.search.log_text import LogLine, Piece, read_lines
from clew.store.search.query import mark
from clew.store.search.words import indexed_words

CHARACTERS = 50_000
"""Text of one batch: on SQLite other writers wait for it, some milliseconds."""

_ROWS = 50
"""Due rows of one batch, at most."""

LINES = 100
"""Lines of one log that are read at once."""

_try_lock = Statement(lambda _: text("SELECT pg_try_advisory_xact_lock(hashtext('clew:search')) AS got"))

# The limit is a literal and stands inside: PostgreSQL then knows that few entries are looked up, and reads no others.
due_rows = Statement(
    lambda _: text(
        "SELECT d.id, d.kind, d.source, d.seq, j.body, j.at, j.agent_id, t.title, t.project_id, t.created_at"
        f" FROM (SELECT id, kind, source, seq FROM search_due ORDER BY id LIMIT {_ROWS}) d"
        " LEFT JOIN journal j ON d.kind = 'entry' AND j.thread_id = d.source AND j.seq = d.seq"
        " LEFT JOIN threads t ON d.kind <> 'log' AND t.id = d.source"
        " ORDER BY d.id"
    )
)
_any_due = Statement(lambda _: text("SELECT id FROM search_due LIMIT 1"))

_LOG = (
    "r.id AS run_id, r.ended_at, r.agent_id, l.thread_id, t.project_id,"
    " COALESCE((SELECT MAX(e.seq) FROM events e WHERE e.run_id = r.id), 0) AS head"
    " FROM {} JOIN runs r ON r.id = {}"
    " JOIN lanes l ON l.id = r.lane_id JOIN threads t ON t.id = l.thread_id"
)
_log_of_run = Statement(lambda _: text(f"SELECT {_LOG.format('(SELECT 1) one', ':run')}"))
followed_logs = Statement(lambda _: text(f"SELECT f.through, {_LOG.format('search_logs f', 'f.run_id')}"))

_lines = Statement(
    lambda _: text(
        "SELECT seq, kind, body, at FROM events WHERE run_id = :run AND seq > :after ORDER BY seq LIMIT :most"
    )
)

_remove_due = Statement(lambda _: text("DELETE FROM search_due WHERE id = :id"))
_move_due = Statement(lambda _: text("UPDATE search_due SET seq = :seq WHERE id = :id"))
_note_log = Statement(
    lambda _: text("INSERT INTO search_due (kind, source, seq) VALUES ('log', :run, CAST(:after AS integer))")
)

_follow = Statement(
    lambda _: text(
        "INSERT INTO search_logs (run_id, through) VALUES (:run, CAST(:through AS integer))"
        " ON CONFLICT (run_id) DO UPDATE SET through = excluded.through"
    )
)
_unfollow = Statement(lambda _: text("DELETE FROM search_logs WHERE run_id = :run"))

_remove = forgetting("kind = :kind AND source = :source AND seq = :seq")

_RUNS_OF_THREAD = "SELECT r.id FROM runs r JOIN lanes l ON l.id = r.lane_id WHERE l.thread_id = :thread"
_index_thread_again = (
    forgetting("kind IN ('entry', 'title') AND source = :thread"),
    forgetting(f"kind = 'log' AND source IN ({_RUNS_OF_THREAD})"),
    Statement(lambda _: text("INSERT INTO search_due (kind, source, seq) VALUES ('title', :thread, 0)")),
    Statement(
        lambda _: text(
            "INSERT INTO search_due (kind, source, seq)"
            " SELECT 'entry', thread_id, seq FROM journal WHERE thread_id = :thread"
        )
    ),
    Statement(
        lambda _: text(
            "INSERT INTO search_due (kind, source, seq)"
            f" SELECT 'log', id, 0 FROM ({_RUNS_OF_THREAD} AND r.started_at IS NOT NULL) started"
        )
    ),
)


@dataclass(frozen=True, slots=True)
class Indexed:
    """How many documents a batch indexed or removed; `more`: the next batch would have something to do."""

    documents: int
    more: bool


@dataclass(slots=True)
class _Batch:
    """What one transaction indexes."""

    removed: dict[tuple[str, str, int], None] = field(default_factory=dict)
    added: list[Document] = field(default_factory=list)
    characters: int = 0

    @property
    def full(self) -> bool:
        return self.characters >= CHARACTERS

    def remove(self, kind: str, source: str, seq: int) -> None:
        self.removed[kind, source, seq] = None

    def add(self, kind: str, source: str, piece: Piece, marks: tuple[str, ...]) -> None:
        self.characters += len(piece.text)
        words = indexed_words(piece.text)
        self.added.append(Document(kind, source, piece.first, piece.last, piece.at, words, (mark(kind), *marks)))


def index_next(connection: Connection) -> Indexed:
    """Index the next batch. On PostgreSQL another server may be at it: then nothing is done here."""
    if connection.dialect.name == POSTGRESQL and not _got_lock(connection):
        return Indexed(0, more=True)
    batch = _Batch()
    more = _take_due(connection, batch)
    more |= _take_followed(connection, batch)
    _remove.defer_all(connection, [{"kind": kind, "source": source, "seq": seq} for kind, source, seq in batch.removed])
    write_documents(connection, batch.added)
    return Indexed(len(batch.added) + len(batch.removed), more)


def anything_to_index(connection: Connection) -> bool:
    """Whether a batch would find something: a due row, or a line of a log that is followed."""
    if _any_due.rows(connection):
        return True
    return any(row["head"] > row["through"] or row["ended_at"] is not None for row in followed_logs.rows(connection))


def note_late_lines(connection: Connection, run: RunId, first: int) -> None:
    """The log of a run that has ended gets more lines, from `first` on. Until its end the log is followed."""
    _note_log.defer(connection, run=run, after=first - 1)


def clear_index(connection: Connection) -> None:
    """Forget the index and what is due, before every row is written anew: that makes all of it due."""
    for table in ("search_documents", "search_logs", "search_due"):
        connection.exec_driver_sql(f"DELETE FROM {table}")
    if connection.dialect.name == SQLITE:
        connection.exec_driver_sql("INSERT INTO search_words (search_words) VALUES ('delete-all')")


def _got_lock(connection: Connection) -> bool:
    row = _try_lock.first(connection)
    return row is not None and bool(row["got"])


def _take_due(connection: Connection, batch: _Batch) -> bool:
    """Whether due rows are left."""
    rows = due_rows.rows(connection)
    taken: dict[tuple[str, str, int], None] = {}
    for row in rows:
        if batch.full:
            return True
        key = (row["kind"], row["source"], row["seq"])
        if key not in taken and not _take(connection, row, batch):
            # Its log has more lines: they are due.
            return True
        taken[key] = None
        _remove_due.defer(connection, id=row["id"])
    return len(rows) == _ROWS or any(row["kind"] == "thread" for row in rows)


def _take(connection: Connection, row: Row, batch: _Batch) -> bool:
    """Whether nothing of it is left to be done."""
    match row["kind"]:
        case "entry":
            batch.remove("entry", row["source"], row["seq"])
            if row["body"] is not None:
                piece = Piece(row["seq"], row["seq"], row["body"], row["at"])
                batch.add("entry", row["source"], piece, _marks(row["source"], row["agent_id"], row["project_id"]))
        case "title":
            batch.remove("title", row["source"], 0)
            if row["title"] is not None:
                piece = Piece(0, 0, row["title"], row["created_at"])
                batch.add("title", row["source"], piece, _marks(row["source"], None, row["project_id"]))
        case "thread":
            for statement in _index_thread_again:
                statement.count(connection, thread=row["source"])
        case _:
            return _take_log(connection, row, batch)
    return True


def _take_log(connection: Connection, due: Row, batch: _Batch) -> bool:
    log = _log_of_run.first(connection, run=due["source"])
    if log is None:
        return True
    if log["ended_at"] is None:
        _follow.count(connection, run=log["run_id"], through=due["seq"])
        return True
    through = _read_log(connection, log, due["seq"], batch)
    if through >= log["head"]:
        return True
    _move_due.count(connection, id=due["id"], seq=through)
    return False


def _take_followed(connection: Connection, batch: _Batch) -> bool:
    """The new lines of the logs that are followed. Whether there are more."""
    more = False
    for log in followed_logs.rows(connection):
        if batch.full:
            return True
        through = log["through"]
        if log["head"] > through:
            through = _read_log(connection, log, through, batch)
        if log["ended_at"] is not None and through >= log["head"]:
            _unfollow.count(connection, run=log["run_id"])
        elif through > log["through"]:
            _follow.count(connection, run=log["run_id"], through=through)
            more |= through < log["head"]
    return more


def _read_log(connection: Connection, log: Row, after: int, batch: _Batch) -> int:
    """Index the next lines of a log. The last line that needs no second look."""
    rows = _lines.rows(connection, run=log["run_id"], after=after, most=LINES)
    if not rows:
        return int(log["head"])
    lines = [LogLine(row["seq"], row["kind"], row["body"], row["at"]) for row in rows]
    at_end = log["ended_at"] is not None and lines[-1].seq >= log["head"]
    read = read_lines(lines, ended=at_end)
    if read.through <= after and len(rows) == LINES:
        # One message fills all of them.
        read = read_lines(lines, ended=True)
    marks = _marks(log["thread_id"], log["agent_id"], log["project_id"])
    for piece in read.pieces:
        batch.add("log", log["run_id"], piece, marks)
    return max(read.through, after)


def _marks(thread: str, agent: str | None, project: str | None) -> tuple[str, ...]:
    named = (("t", thread), ("a", agent), ("p", project))
    return tuple(mark(kind, id_) for kind, id_ in named if id_)
