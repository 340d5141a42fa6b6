"""The pipeline to PostgreSQL: prepared statements sent together, and answered in one trip.

psycopg's cursors take four times as long for each statement as libpq itself, and one trip for each. What is sent here
goes by psycopg's own wrapper of libpq, on the connection that SQLAlchemy holds; its transactions stay psycopg's to see.
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
"""Seconds within which a statement is answered; a server that takes longer counts as gone."""

_WHOLE = 2.0**53
_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)


Written = tuple[bytes, list[bytes | None]]
"""The same as it is sent."""

Answer = pq.abc.PGresult


class Pipeline:
    """One connection's side of it, used by one thread at a time, as the connection is."""

    def __init__(self, driver: "psycopg.Connection[Any]") -> None:
        # What psycopg prepares itself it may discard with all the rest.
        driver.prepare_threshold = None
        self._driver = driver
        self._libpq = driver.pgconn
        self._prepared: dict[bytes, bytes] = {}
        # Never the same name twice: what was prepared on a way that failed may still be there.
        self._names = count()
        self._left: list[Written] = []
        self.defers = False
        """Whether somebody sends with the commit what was left for it; else it is sent at once."""
        self.lost = False
        """Whether the operation was tried before and its answer lost: it may be done already."""
        self._reader = Transformer(driver)
        self._poll = select.poll()

    def ask(self, calls: Sequence[Call]) -> list[Answer]:
        """The answers to these, in order; a transaction begins with them where none has begun."""
        # Whatever cannot be written is found before anything is sent, and what was left stays.
        written = [_write(call) for call in calls]
        left, self._left = self._left, []
        return self._trip([*left, *written])[len(left) :] if left or written else []

    def defer(self, call: Call) -> None:
        """To be sent with the commit, or with what is asked before it: nobody waits for its answer."""
        self._left.append(_write(call))
        if not self.defers:
            self.ask(())

    def commit(self) -> None:
        left, self._left = self._left, []
        if not left and self._libpq.transaction_status == pq.TransactionStatus.IDLE:
            return
        *_, end = self._trip([*left, (b"COMMIT", [])])
        if end.command_status != b"COMMIT":
            # The server says so, and no more, when a statement had failed before.
            raise psycopg.errors.InFailedSqlTransaction("a statement had failed, so the transaction was undone")

    def fails(self) -> bool:
        """The transaction has failed: what was left for its end is not sent. Whether the connection is gone too."""
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
            # Nobody knows how far the server has come, nor what it will answer next.
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
        """The names of the statements that are prepared on the way."""
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
                # Between two statements; or there is nobody any more who could answer.
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
    """A value as text, which the server reads as the type it expects there."""
    if value is None:
        return None
    if isinstance(value, str):
        text = value.encode()
        if b"\0" in text:
            # libpq would end the text there and say nothing.
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return text
    if isinstance(value, int):
        # True and False, too: a number or a truth is wanted there, and 1 and 0 are both.
        return b"%d" % value
    if isinstance(value, float):
        # A whole one may stand where an integer is wanted.
        return b"%d" % value if value.is_integer() and abs(value) < _WHOLE else repr(value).encode()
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    if isinstance(value, list):
        return _listed(value)
    raise TypeError(f"{type(value).__name__} has no place in a statement")


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
