"""Statements for several sets of values at once. PostgreSQL is handed them as tables: to begin and end a statement
there takes longer than what it does to a row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, Column, Connection, bindparam, cast, func, select
from sqlalchemy.sql import ClauseElement

from clew.store.statement import SQLITE, Given, Statement, named, wire_of

Columns = Mapping[str, Column[Any]]
Sets = Sequence[Mapping[str, Any]]
Build = Callable[[str, Mapping[str, Given]], ClauseElement]


class Many(Statement):
    """One statement for several sets of values: SQLite runs it for each, PostgreSQL once, with all of them."""

    def __init__(self, columns: Columns, build: Callable[[str, Given], ClauseElement]) -> None:
        super().__init__(lambda dialect: build(dialect, named(columns) if dialect == SQLITE else _as_table(columns)))
        self._names = tuple(columns)

    def leave_all(self, connection: Connection, each: Iterable[Mapping[str, Any]]) -> None:
        sets = list(each)
        if connection.dialect.name == SQLITE:
            self.many(connection, sets)
        elif sets:
            wire_of(connection).leave(self.call(_in_columns(sets, self._names)))


class Grouped:
    """PostgreSQL only: one statement for groups, to which tables are handed by their names. A single set of values is
    handed in by itself: to read lists of one takes longer than what is done with them."""

    def __init__(self, tables: Mapping[str, Columns], build: Build) -> None:
        self._tables = tables
        self.of_many = Statement(
            lambda dialect: build(dialect, {name: _as_table(columns, name) for name, columns in tables.items()})
        )
        self.of_one = Statement(
            lambda dialect: build(dialect, {name: _as_row(columns, name) for name, columns in tables.items()})
        )

    def of(self, **tables: Sets) -> tuple[Statement, Mapping[str, Any]]:
        """The statement, and what it is to be asked with."""
        values: dict[str, Any] = {}
        if all(len(sets) == 1 for sets in tables.values()):
            for name, columns in self._tables.items():
                (only,) = tables[name]
                values |= {f"{name}_{column}": only[column] for column in columns}
            return self.of_one, values
        for name, columns in self._tables.items():
            values |= _in_columns(tables[name], columns, name)
        return self.of_many, values


def _as_table(columns: Columns, name: str = "given") -> Given:
    """The columns of a table that is handed in as lists, under the names that `_in_columns` gives them."""
    lists = (bindparam(f"{name}_{each}", type_=ARRAY(column.type)) for each, column in columns.items())
    rows = func.unnest(*lists).table_valued(*columns, name=f"{name}_rows").render_derived()
    return dict(select(*rows.c).cte(name).c)


def _as_row(columns: Columns, name: str) -> Given:
    """The same of a table with a single row."""
    values = (cast(bindparam(f"{name}_{each}"), column.type).label(each) for each, column in columns.items())
    return dict(select(*values).cte(name).c)


def _in_columns(sets: Sets, columns: Iterable[str], name: str = "given") -> dict[str, list[Any]]:
    """Sets of values as the lists of a table."""
    return {f"{name}_{column}": [each[column] for each in sets] for column in columns}
