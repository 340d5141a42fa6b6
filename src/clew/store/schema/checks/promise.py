"""A promise: a name, a sentence, and a query for the rows that break it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from clew.kernel import LIVE, RUN_ENDS, RunState

Question = Callable[[Connection], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Promise:
    """`words` says what always holds; `broken` yields the names of the rows that break it."""

    name: str
    words: str
    broken: Question


def by_sql(name: str, words: str, sql: str) -> Promise:
    """A promise checked by one SELECT of one column, the names of the rows. The SQL must be valid on both databases."""

    def broken(connection: Connection) -> Iterable[str]:
        return (str(row[0]) for row in connection.exec_driver_sql(sql))

    return Promise(name, words, broken)


def listed(values: Iterable[str]) -> str:
    """The values of a closed set as SQL literals, for IN (…)."""
    return ", ".join(f"'{value}'" for value in sorted(values))


# The states of a run as conditions. They test the state only: whether the other columns agree is what is checked.
IS_LIVE = f"state IN ({listed(LIVE)})"
IS_CARRYING = f"state IN ({listed(LIVE - {RunState.STOPPING})})"
HAS_ENDED = f"state IN ({listed(RUN_ENDS)})"
