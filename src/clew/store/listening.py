"""Hints between servers: PostgreSQL passes them on. What is missed while it is away counts as "anything"."""

import json
import select
import socket
import threading
from collections.abc import Callable

import psycopg
from sqlalchemy import URL, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from clew.store.hints import ANYTHING, Topics

CHANNEL = "clew_hints"
_LONGEST = 7000
_LOOK_UP = 5.0
_PAUSE = 1.0


def notify(engine: Engine, topics: Topics) -> None:
    """Tell every server. A hint that cannot be sent is let go: readers look by themselves as well."""
    payload = json.dumps(sorted(topics))
    if len(payload) > _LONGEST:
        payload = json.dumps(sorted(ANYTHING))
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": CHANNEL, "payload": payload})
    except (SQLAlchemyError, psycopg.Error):
        pass


class Listener:
    """One connection that only listens; it comes back by itself when the server does."""

    def __init__(self, url: URL, put: Callable[[Topics], None]) -> None:
        self._address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._put = put
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
                with psycopg.connect(self._address, autocommit=True, connect_timeout=10) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._put(ANYTHING)
                    self._listen(connection)
            except psycopg.Error:
                self._closing.wait(_PAUSE)

    def _listen(self, connection: psycopg.Connection) -> None:
        # Until something comes, or until this is closed, at once.
        ready = select.poll()
        ready.register(connection.fileno(), select.POLLIN)
        ready.register(self._bell, select.POLLIN)
        while not self._closing.is_set():
            ready.poll(_LOOK_UP * 1000)
            for notice in connection.notifies(timeout=0):
                self._put(_topics(notice.payload))


def _topics(payload: str) -> Topics:
    """What was told; anything, where somebody else used the channel or a newer server says it otherwise."""
    try:
        return frozenset(str(topic) for topic in json.loads(payload))
    except (ValueError, TypeError):
        return ANYTHING
