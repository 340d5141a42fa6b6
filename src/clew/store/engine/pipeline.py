"""The pipeline to PostgreSQL: prepared statements that are sent together and answered in one trip.

For each statement, psycopg's cursors take four times as long as libpq itself, and one trip. This module sends through
psycopg's wrapper of libpq, on the connection that SQLAlchemy has; psycopg still sees the state of the transaction.
"""

import select
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

from clew.store.engine.statement import Call

ANSWER = 60.0
"""Seconds to wait for the answers of a trip; a server that takes longer counts as gone."""

_WHOLE = 2.0**53
_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)

Written = tuple[bytes, list[bytes | None]]
"""A statement and its values as they are sent."""

Answer = pq.abc.PGresult


class Pipeline:
    """The pipeline of one connection; like the connection, it is used by one thread at a time."""

    def __init__(self, driver: "psycopg.Connection[Any]") -> None:
        # Off: psycopg discards its prepared statements with DEALLOCATE ALL, which would take these with them.
        driver.prepare_threshold = None
        self._driver = driver
        self._libpq = driver.pgconn
        self._prepared: dict[bytes, bytes] = {}
        # Never the same name twice: a statement of a trip that failed may be prepared all the same.
        self._names = count()
        self._left: list[Written] = []
        self.defers = False
        """Whether a commit will follow that sends deferred statements; without one they are sent at once."""
        self.lost = False
        """Whether the operation was tried before and its answer was lost: it may be committed."""
        self._reader = Transformer(driver)
        self._poll = select.poll()

    def ask(self, calls: Sequence[Call]) -> list[Answer]:
        """The answers to these, in order. Deferred statements go before them, and BEGIN if no transaction is open."""
        # Encoded first: a value that cannot be sent raises before anything is sent, and the deferred ones stay.
        written = [_write(call) for call in calls]
        left, self._left = self._left, []
        return self._trip([*left, *written])[len(left) :] if left or written else []

    def defer(self, call: Call) -> None:
        """Send it with the commit, or with the next statement that is waited for."""
        self._left.append(_write(call))
        if not self.defers:
            self.ask(())

    def commit(self) -> None:
        left, self._left = self._left, []
        if not left and self._libpq.transaction_status == pq.TransactionStatus.IDLE:
            return
        *_, end = self._trip([*left, (b"COMMIT", [])])
        if end.command_status != b"COMMIT":
            # PostgreSQL answers COMMIT with ROLLBACK when an earlier statement of the transaction failed.
            raise psycopg.errors.InFailedSqlTransaction("a statement had failed, so the transaction was undone")

    def fails(self) -> bool:
        """The transaction failed: drop its deferred statements. Whether the connection is gone too."""
        self._left = []
        return self._libpq.status != pq.ConnStatus.OK

    def rows(self, answer: Answer, make: Callable[[Sequence[Any]], Any]) -> list[Any]:
        self._reader.set_pgresult(answer)
        return self._reader.load_rows(0, answer.ntuples, make)

    def _trip(self, written: Sequence[Written]) -> list[Answer]:
        begins = not self._driver.autocommit and self._libpq.transaction_status == pq.TransactionStatus.IDLE
        try:
            self._libpq.enter_pipeline_mode()
            new = self._send(written, begins)
            answers = self._answers()
            self._libpq.exit_pipeline_mode()
        except BaseException:
            # It is unknown how far the server came and what it will answer next: close the connection.
            self._libpq.finish()
            raise
        first = int(begins)
        for sql, answer in zip(new, answers[first:], strict=False):
            if answer.status == pq.ExecStatus.COMMAND_OK:
                self._prepared[sql] = new[sql]
        for answer in answers:
            if answer.status in _FAILED:
                raise error_from_result(answer)
        return answers[first + len(new) :]

    def _send(self, written: Sequence[Written], begins: bool) -> dict[bytes, bytes]:
        """Send everything; the names of the statements that are prepared on the way."""
        libpq = self._libpq
        new: dict[bytes, bytes] = {}
        if begins:
            libpq.send_query_params(b"BEGIN", None)
        for sql in dict.fromkeys(sql for sql, _ in written if sql not in self._prepared):
            new[sql] = b"clew%d" % next(self._names)
            libpq.send_prepare(new[sql], sql)
        for sql, values in written:
            libpq.send_query_prepared(self._prepared.get(sql) or new[sql], values)
        libpq.pipeline_sync()
        return new

    def _answers(self) -> list[Answer]:
        libpq, deadline = self._libpq, time.monotonic() + ANSWER
        answers: list[Answer] = []
        unsent = libpq.flush()
        while True:
            while unsent or libpq.is_busy():
                self._wait(deadline, unsent)
                libpq.consume_input()
                unsent = unsent and libpq.flush()
            answer = libpq.get_result()
            if answer is None:
                # The end of one statement's results, or a lost connection.
                if libpq.status != pq.ConnStatus.OK:
                    raise psycopg.OperationalError("the connection was lost")
            elif answer.status == pq.ExecStatus.PIPELINE_SYNC:
                return answers
            else:
                answers.append(answer)

    def _wait(self, deadline: float, unsent: int) -> None:
        left = deadline - time.monotonic()
        self._poll.register(self._libpq.socket, select.POLLIN | (select.POLLOUT if unsent else 0))
        if left <= 0 or not self._poll.poll(left * 1000):
            raise psycopg.OperationalError(f"no answer within {ANSWER:.0f} s")


def _write(call: Call) -> Written:
    statement, values = call
    return statement.sql, [_written(values[name]) for name in statement.names]


def _written(value: object) -> bytes | None:
    """A value in PostgreSQL's text format; the server reads it as the type of the parameter."""
    if value is None:
        return None
    if isinstance(value, str):
        text = value.encode()
        if b"\0" in text:
            # libpq would cut the text there without an error.
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return text
    if isinstance(value, int):
        # bool too: 1 and 0 are valid for an integer and for a boolean parameter.
        return b"%d" % value
    if isinstance(value, float):
        # Without a fraction, so that it is valid for an integer parameter too.
        return b"%d" % value if value.is_integer() and abs(value) < _WHOLE else repr(value).encode()
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    if isinstance(value, list):
        return _listed(value)
    raise TypeError(f"a statement cannot take a value of type {type(value).__name__}")


def _listed(values: list[Any]) -> bytes:
    elements = []
    for value in values:
        text = _written(value)
        if text is None:
            elements.append(b"NULL")
        elif type(value) is str:
            elements.append(b'"%b"' % text.replace(b"\\", b"\\\\").replace(b'"', b'\\"'))
        else:
            elements.append(text)
    return b"{%b}" % b",".join(elements)
