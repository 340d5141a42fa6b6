"""Sentences for people: they name runs by number and runtimes by home. Ids stay where programs read them."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from clew.store.engine.dialect import among
from clew.store.engine.statement import Statement
from clew.store.queries.refs import RUNTIME_NAME, run_ref, runtime_ref
from clew.store.schema.tables import machines, runs, runtimes

T = TypeVar("T")

_ID = re.compile(r"(?:\b[Rr]un(?:time)? )?\b(rn_[0-9a-f]{24,28}|rt_[0-9a-f]{24})\b")
_SENTENCES = frozenset({"headline", "words", "decision_words", "place_words", "mode_words", "notices", "refused"})
"""The fields of views, and of the bodies of log lines, that hold sentences."""

numbers = Statement(lambda dialect: select(runs.c.id, runs.c.number).where(among(dialect, runs.c.id, "runs")))

homes = Statement(
    lambda dialect: (
        select(runtimes.c.id, *RUNTIME_NAME)
        .join(machines, machines.c.id == runtimes.c.machine_id)
        .where(among(dialect, runtimes.c.id, "runtimes"))
    )
)


def spoken(connection: Connection, value: T) -> T:
    """The same views, with the ids in their sentences replaced by names; an id that nothing has stays as it is."""
    found: set[str] = set()

    def note(text: str) -> str:
        found.update(match[1] for match in _ID.finditer(text))
        return text

    _told(value, note)
    if not found:
        return value
    names = {row["id"]: run_ref(row) for row in numbers.rows(connection, runs=_of(found, "rn_"))}
    names |= {row["id"]: runtime_ref(row) for row in homes.rows(connection, runtimes=_of(found, "rt_"))}
    told: T = _told(value, lambda text: _ID.sub(lambda match: names.get(match[1], match[0]), text))
    return told


def _of(found: Iterable[str], prefix: str) -> list[str]:
    return sorted(id_ for id_ in found if id_.startswith(prefix))


def _told(value: Any, tell: Callable[[str], str], sentence: bool = False) -> Any:
    if isinstance(value, str):
        return tell(value) if sentence else value
    if isinstance(value, tuple):
        return tuple(_told(each, tell, sentence) for each in value)
    if isinstance(value, Mapping):
        return {name: _told(each, tell, name in _SENTENCES) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changes = {each.name: _told(getattr(value, each.name), tell, each.name in _SENTENCES) for each in fields(value)}
        return replace(value, **changes)
    return value
