"""A promise: a name, a sentence, and the question whose answer is the rows that break it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

Question = Callable[[Connection], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Promise:
    """`words` say what holds; `broken` names the rows for which it does not."""

    name: str
    words: str
    broken: Question


def by_sql(name: str, words: str, sql: str) -> Promise:
    """A promise that one statement asks for, in words that both databases know. It answers one column of names."""

    def broken(connection: Connection) -> Iterable[str]:
        return (str(row[0]) for row in connection.exec_driver_sql(sql))

    return Promise(name, words, broken)


def listed(values: Iterable[str]) -> str:
    """Values of a closed set, as SQL writes them."""
    return ", ".join(f"'{value}'" for value in sorted(values))
