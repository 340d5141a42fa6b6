"""A database, whichever it is: operations are plain functions over a connection, and each is one transaction."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from sqlalchemy import Connection

Result = TypeVar("Result")
Operation = Callable[[Connection], Result]


class Database(Protocol):
    """Where Clew remembers. An answer to a write is given when it is durable; reads do not wait for writes."""

    def write(self, operation: Operation[Result]) -> Future[Result]: ...

    def read(self, operation: Operation[Result]) -> Result: ...

    def close(self) -> None: ...
