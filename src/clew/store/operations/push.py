"""Push subscriptions: kept for each browser, with what it was told of and why the last message was given up."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.sql import ClauseElement

from clew.store.engine.dialect import insert_in, now, storable
from clew.store.engine.statement import Row, Statement
from clew.store.operations.ids import derived_id
from clew.store.schema.tables import push_subscriptions

REMEMBERED = 500
"""How many notices that are over are remembered: one may come back, and is not told again."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One browser."""

    id: str
    person: str
    endpoint: str = field(repr=False)
    p256dh: str = field(repr=False)
    auth: str = field(repr=False)
    server_key: str
    titled: bool
    told: tuple[str, ...]
    failure: str | None = None
    created_at: float = 0.0


_GIVEN = ("id", "person", "endpoint", "p256dh", "auth", "server_key", "titled", "told")


def _kept(dialect: str) -> ClauseElement:
    made = insert_in(dialect, push_subscriptions).values(
        {name: bindparam(name) for name in _GIVEN} | {"created_at": now()}
    )
    # What it was told of stays.
    again = ("person", "p256dh", "auth", "server_key", "titled")
    return made.on_conflict_do_update(
        index_elements=[push_subscriptions.c.id], set_={name: made.excluded[name] for name in again}
    )


_its_id = push_subscriptions.c.id == bindparam("id")
_keep = Statement(_kept)
_one = Statement(lambda _: select(push_subscriptions).where(_its_id))
of_person = Statement(
    lambda _: (
        select(push_subscriptions)
        .where(push_subscriptions.c.person == bindparam("person"))
        .order_by(push_subscriptions.c.created_at, push_subscriptions.c.id)
    )
)
_all = Statement(lambda _: select(push_subscriptions).order_by(push_subscriptions.c.id))
_forget = Statement(lambda _: push_subscriptions.delete().where(_its_id))
_record = Statement(
    lambda _: push_subscriptions.update().where(_its_id).values(told=bindparam("told"), failure=bindparam("failure"))
)


def subscription_id(endpoint: str) -> str:
    return derived_id("ps", storable(endpoint))


def keep_subscription(connection: Connection, given: Subscription) -> Subscription:
    """Safe to repeat. What a known one was told of stays."""
    said = {name: getattr(given, name) for name in _GIVEN if name not in ("titled", "told", "person")}
    told = {"told": json.dumps(given.told), "titled": int(given.titled)}
    _keep.count(connection, person=storable(given.person), **said, **told)
    kept = find_subscription(connection, given.id)
    assert kept is not None
    return kept


def find_subscription(connection: Connection, id_: str) -> Subscription | None:
    row = _one.first(connection, id=storable(id_))
    return None if row is None else _subscription(row)


def list_subscriptions(connection: Connection, person: str) -> tuple[Subscription, ...]:
    """Those of a person, the oldest first."""
    return tuple(_subscription(row) for row in of_person.rows(connection, person=storable(person)))


def all_subscriptions(connection: Connection) -> tuple[Subscription, ...]:
    """Those of all persons, and of all servers that share the database."""
    return tuple(_subscription(row) for row in _all.rows(connection))


def forget_subscription(connection: Connection, id_: str) -> bool:
    return _forget.count(connection, id=storable(id_)) > 0


def record_told(
    connection: Connection, id_: str, told: Sequence[str], current: Collection[str], failure: str | None
) -> None:
    """What it was told of, of which `current` still needs somebody; and why the last message failed, if it did."""
    over = [each for each in told if each not in current][-REMEMBERED:]
    kept = [*over, *(each for each in told if each in current)]
    _record.count(connection, id=id_, told=json.dumps(kept), failure=failure)


def _subscription(row: Row) -> Subscription:
    try:
        told = json.loads(row["told"])
    except ValueError:
        told = None
    return Subscription(
        **{name: row[name] for name in ("id", "person", "endpoint", "p256dh", "auth", "server_key")},
        titled=bool(row["titled"]),
        told=tuple(map(str, told)) if isinstance(told, list) else (),
        failure=row["failure"],
        created_at=row["created_at"],
    )
