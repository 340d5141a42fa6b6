"""Building blocks of the tables: the metadata with its naming convention, column types, partial indexes, conditions."""

from collections.abc import Iterable

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, MetaData, Text, text

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def row_id() -> Column[str]:
    return Column("id", Text, primary_key=True)


def required(name: str, default: str | None = None) -> Column[str]:
    """Text, NOT NULL. `default` is the server default, for writers that leave the column out."""
    return Column(name, Text, nullable=False, server_default=default)


def optional(name: str) -> Column[str]:
    return Column(name, Text)


def integer(name: str, default: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(str(default)))


def big_integer(name: str) -> Column[int]:
    """A counter that can outgrow 32 bits."""
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def timestamp(name: str, nullable: bool = True) -> Column[float]:
    """Seconds since the epoch, by the database's clock."""
    return Column(name, Float(53), nullable=nullable)


def reference(name: str, target: str, nullable: bool = False) -> Column[str]:
    """A foreign key."""
    return Column(name, Text, ForeignKey(target), nullable=nullable)


def partial_index(name: str, condition: str, *columns: str, unique: bool = False) -> Index:
    """An index over the rows that meet `condition` only: it stays small however large the table grows."""
    return Index(name, *columns, unique=unique, sqlite_where=text(condition), postgresql_where=text(condition))


def one_of(column: str, values: Iterable[str]) -> str:
    """`column = … OR column = …`, not IN: SQLite builds a temporary table for every IN of every write."""
    return "(" + " OR ".join(f"{column} = '{value}'" for value in sorted(values)) + ")"


def set_only_in(column: str, states: Iterable[str]) -> str:
    """A condition: the column is NOT NULL in these states, and NULL in all others."""
    return f"{one_of('state', states)} = ({column} IS NOT NULL)"
