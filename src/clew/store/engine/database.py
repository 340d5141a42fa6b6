"""A database, whichever it is: operations are plain functions over a connection, and each is one transaction."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from clew.store.engine.hints import Subscription

Result = TypeVar("Result")

Transaction = Connection
"""The handle that an operation of the store is called with. Above the store it is opaque: callers pass it on."""

Operation = Callable[[Transaction], Result]


class LostRace(Exception):
    """Somebody else was faster; the same operation, run again, sees what they did."""


class Database(Protocol):
    """Where Clew remembers. An answer to a write is given when it is durable; reads do not wait for writes."""

    def write(self, operation: Operation[Result]) -> Future[Result]:
        """For whoever has something else to do meanwhile."""
        ...

    def do(self, operation: Operation[Result]) -> Result:
        """The same for whoever waits for it: where the database allows, on the caller's own thread."""
        ...

    def read(self, operation: Operation[Result]) -> Result: ...

    def subscribe(self) -> Subscription:
        """Be told that something changed, soon and seldom. Look by yourself as well, now and then."""
        ...

    def unsubscribe(self, reader: Subscription) -> None: ...

    def close(self) -> None: ...
