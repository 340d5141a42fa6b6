"""Records: a situation as plain JSON values and back, so that every decision can be kept and made again."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from clew.kernel.situation import Policy, Situation

RECORD_VERSION = 1

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class RecordError(ValueError):
    """A record that cannot be read: it says where, what stands there, and what was expected."""


def situation_to_record(situation: Situation) -> dict[str, Json]:
    return {"version": RECORD_VERSION, "situation": _encode(situation, Situation)}


def situation_from_record(record: Mapping[str, object]) -> Situation:
    version = record.get("version")
    if version != RECORD_VERSION:
        raise RecordError(f"the record has version {version!r}; this program reads version {RECORD_VERSION}")
    situation: Situation = _decode(record.get("situation"), Situation, "situation")
    return situation


def policy_to_record(policy: Policy) -> Json:
    return _encode(policy, Policy)


def policy_from_record(record: object) -> Policy:
    policy: Policy = _decode(record, Policy, "policy")
    return policy


@cache
def _shape(kind: type) -> dict[str, tuple[Any, bool]]:
    """A dataclass's own fields: name → (type, whether it may be left out)."""
    hints = get_type_hints(kind)
    return {
        each.name: (hints[each.name], each.default is not MISSING or each.default_factory is not MISSING)
        for each in fields(kind)
        if each.init
    }


def _plain(hint: Any) -> Any:
    """A NewType is written as what it is made of."""
    while hasattr(hint, "__supertype__"):
        hint = hint.__supertype__
    return hint


def _choices(hint: Any) -> tuple[Any, ...] | None:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else None


def _encode(value: Any, hint: Any) -> Json:
    hint = _plain(hint)
    choices = _choices(hint)
    if choices is not None:
        if value is None:
            return None
        kinds = [kind for kind in map(_plain, choices) if kind is not type(None)]
        if len(kinds) == 1:
            return _encode(value, kinds[0])
        encoded = _encode(value, type(value))
        assert isinstance(encoded, dict)
        return {"is": type(value).__name__, **encoded}
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return {name: _encode(getattr(value, name), inner) for name, (inner, _) in _shape(hint).items()}
    if isinstance(value, Enum):
        return str(value.value)
    if get_origin(hint) in (tuple, frozenset):
        items = [_encode(item, get_args(hint)[0]) for item in value]
        return sorted(items, key=str) if get_origin(hint) is frozenset else items
    plain: Json = value
    return plain


def _decode(stored: Any, hint: Any, where: str) -> Any:
    hint = _plain(hint)
    choices = _choices(hint)
    if choices is not None:
        return _decode_choice(stored, [_plain(kind) for kind in choices], where)
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return _decode_fields(stored, hint, where)
    if get_origin(hint) in (tuple, frozenset):
        if not isinstance(stored, list):
            raise RecordError(f"{where}: {stored!r} is not a list")
        items = [_decode(item, get_args(hint)[0], f"{where}[{at}]") for at, item in enumerate(stored)]
        return tuple(items) if get_origin(hint) is tuple else frozenset(items)
    if issubclass(hint, Enum):
        return _decode_member(stored, hint, where)
    return _decode_plain(stored, hint, where)


def _decode_choice(stored: Any, kinds: list[Any], where: str) -> Any:
    if stored is None and type(None) in kinds:
        return None
    kinds = [kind for kind in kinds if kind is not type(None)]
    if len(kinds) == 1:
        return _decode(stored, kinds[0], where)
    named = stored.get("is") if isinstance(stored, dict) else None
    for kind in kinds:
        if kind.__name__ == named:
            return _decode_fields({key: item for key, item in stored.items() if key != "is"}, kind, where)
    raise RecordError(f"{where}: {named!r} is none of {', '.join(kind.__name__ for kind in kinds)}")


def _decode_fields(stored: Any, kind: type, where: str) -> Any:
    if not isinstance(stored, dict):
        raise RecordError(f"{where}: {stored!r} is not an object")
    shape = _shape(kind)
    unknown = sorted(stored.keys() - shape.keys())
    if unknown:
        raise RecordError(f"{where}: {unknown[0]!r} is not a field of {kind.__name__}")
    missing = [name for name, (_, optional) in shape.items() if name not in stored and not optional]
    if missing:
        raise RecordError(f"{where}: the field {missing[0]!r} of {kind.__name__} is missing")
    values = {name: _decode(item, shape[name][0], f"{where}.{name}") for name, item in stored.items()}
    try:
        return kind(**values)
    except ValueError as fault:
        raise RecordError(f"{where}: {fault}") from fault


def _decode_member(stored: Any, hint: type[Enum], where: str) -> Enum:
    for member in hint:
        if member.value == stored:
            return member
    raise RecordError(f"{where}: {stored!r} is not a {hint.__name__}")


def _decode_plain(stored: Any, hint: type, where: str) -> Any:
    accepted = (int, float) if hint is float else (hint,)
    # A bool passes for an int in Python; in a record it is a mistake.
    if not isinstance(stored, accepted) or (isinstance(stored, bool) and hint is not bool):
        raise RecordError(f"{where}: {stored!r} is not a {hint.__name__}")
    return stored
