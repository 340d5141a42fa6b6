"""The interface of both databases: an operation is a plain function over a connection, and runs as one transaction."""

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
    """A concurrent transaction was faster. The operation is run again and sees what that one committed."""


class Database(Protocol):
    """A write is answered when it is durable. Reads do not wait for writes."""

    def write(self, operation: Operation[Result]) -> Future[Result]:
        """Run the operation and return at once; the future has its result."""
        ...

    def do(self, operation: Operation[Result]) -> Result:
        """Run the operation and return its result. On PostgreSQL it runs on the caller's own thread."""
        ...

    def read(self, operation: Operation[Result]) -> Result: ...

    def subscribe(self) -> Subscription:
        """Get hints of what changed. A hint may be lost, so a reader also polls now and then."""
        ...

    def unsubscribe(self, reader: Subscription) -> None: ...

    def close(self) -> None: ...
