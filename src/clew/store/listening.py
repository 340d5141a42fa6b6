"""Hints between servers: PostgreSQL passes them on. What is missed while it is away counts as "anything"."""

import json
import threading
from collections.abc import Callable

import psycopg
from sqlalchemy import URL, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from clew.store.hints import Topics

CHANNEL = "clew_hints"
ANYTHING = frozenset({"*"})
_LONGEST = 7000
_LOOK_UP = 0.5
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
        self._thread = threading.Thread(target=self._serve, name="clew-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

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
        while not self._closing.is_set():
            for notice in connection.notifies(timeout=_LOOK_UP):
                self._put(_topics(notice.payload))
                if self._closing.is_set():
                    return


def _topics(payload: str) -> Topics:
    """What was told; anything, where somebody else used the channel or a newer server says it otherwise."""
    try:
        return frozenset(str(topic) for topic in json.loads(payload))
    except (ValueError, TypeError):
        return ANYTHING
