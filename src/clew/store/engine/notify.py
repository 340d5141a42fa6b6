"""Hints between servers, over PostgreSQL's LISTEN and NOTIFY. After a lost connection "anything" may have changed."""

import json
import select
import socket
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from sqlalchemy import URL

from clew.store.engine.hints import ANYTHING, Topics

CHANNEL = "clew_hints"
ALIVE: Mapping[str, Any] = {
    "connect_timeout": 10,
    # TCP keepalives find a server that is gone even while no statement is sent.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Settings of every connection, so that it notices a server that is gone."""

_FROM = "from:"
"""The sending server is named among the topics. A server that does not know this prefix ignores it like any topic that
it does not follow."""

_LONGEST = 7000
_LOOK_UP = 5.0
_PAUSE = 1.0


class Teller:
    """One connection that only notifies. A hint that cannot be sent is dropped: readers poll as well."""

    def __init__(self, url: URL) -> None:
        self._address = _address(url)
        self._connection: psycopg.Connection | None = None
        self._own = f"{_FROM}{uuid.uuid4().hex}"

    def is_own(self, topics: Topics) -> bool:
        """Whether this server sent them."""
        return self._own in topics

    def tell(self, topics: Topics) -> None:
        payload = json.dumps(sorted({self._own, *topics}))
        if len(payload) > _LONGEST:
            payload = json.dumps(sorted({self._own, *ANYTHING}))
        # Twice, the second time on a new connection: a lost connection is often noticed here first.
        for _ in range(2):
            try:
                self._connected().execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
            except psycopg.Error:
                self.close()
            else:
                return

    def _connected(self) -> "psycopg.Connection[Any]":
        if self._connection is None:
            self._connection = psycopg.connect(self._address, autocommit=True, prepare_threshold=0, **ALIVE)
            # A hint need not survive a crash, so its commit does not wait for the disk, nor make others wait.
            self._connection.execute("SET synchronous_commit = off")
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Listener:
    """One connection that only listens, and reconnects when PostgreSQL is back. Hints that this server sent are
    skipped: its own readers already have them."""

    def __init__(self, url: URL, put: Callable[[Topics], None], is_own: Callable[[Topics], bool]) -> None:
        self._address = _address(url)
        self._put, self._is_own = put, is_own
        self._closing = threading.Event()
        self._bell, self._rope = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="clew-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._rope.close()
        self._thread.join()
        self._bell.close()

    def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                with psycopg.connect(self._address, autocommit=True, **ALIVE) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._put(ANYTHING)
                    self._listen(connection)
            except psycopg.Error:
                self._closing.wait(_PAUSE)

    def _listen(self, connection: psycopg.Connection) -> None:
        # A poll over two descriptors: closing the rope in close() wakes it at once.
        ready = select.poll()
        ready.register(connection.fileno(), select.POLLIN)
        ready.register(self._bell, select.POLLIN)
        while not self._closing.is_set():
            ready.poll(_LOOK_UP * 1000)
            for notice in connection.notifies(timeout=0):
                topics = _topics(notice.payload)
                if not self._is_own(topics):
                    self._put(frozenset(topic for topic in topics if not topic.startswith(_FROM)))


def _topics(payload: str) -> Topics:
    """The topics of a payload; ANYTHING if another program used the channel, or a newer server another format."""
    try:
        return frozenset(str(topic) for topic in json.loads(payload))
    except (ValueError, TypeError):
        return ANYTHING


def _address(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)
