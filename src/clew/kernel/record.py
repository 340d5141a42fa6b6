"""Records: a situation as JSON values and back, so that every decision can be stored, and replayed under its own
policy or another."""

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from enum import Enum
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from clew.kernel.capability import Capabilities
from clew.kernel.contract import must_be
from clew.kernel.decision import decide
from clew.kernel.ids import ProjectId
from clew.kernel.plan import Plan
from clew.kernel.situation import Policy, Situation

RECORD_VERSION = 1

_T = TypeVar("_T")

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class RecordError(ValueError):
    """A record that cannot be read. The message names the field, its value and what was expected."""


def situation_to_record(situation: Situation) -> dict[str, Json]:
    return {"version": RECORD_VERSION, "situation": _writer(Situation)(situation)}


def situation_from_record(record: Mapping[str, object]) -> Situation:
    version = record.get("version")
    if type(version) is not int or version != RECORD_VERSION:
        raise RecordError(f"the record has version {version!r}; this program reads version {RECORD_VERSION}")
    situation: Situation = _reader(Situation)(record.get("situation"), "situation")
    return situation


@dataclass(frozen=True, slots=True)
class RecordedFor:
    """The agent that a recorded decision is about, and the project of its thread."""

    agent: str
    project: ProjectId | None


def recorded_for(record: object) -> RecordedFor:
    """Read the subject of a recorded decision alone; the rest is not looked at."""
    situation = record.get("situation") if isinstance(record, Mapping) else None
    if not isinstance(situation, Mapping):
        raise RecordError("the record has no situation")
    here, place = situation.get("here"), situation.get("place")
    if not isinstance(here, Mapping) or not isinstance(place, Mapping):
        raise RecordError("the situation has no here or no place")
    agent, project = here.get("agent", ""), place.get("project")
    if not isinstance(agent, str) or not isinstance(project, str | None):
        raise RecordError("the agent or the project of the situation is not a text")
    return RecordedFor(agent, None if project is None else ProjectId(project))


def policy_to_record(policy: Policy) -> Json:
    return _writer(Policy)(policy)


def policy_from_record(record: object) -> Policy:
    policy: Policy = _reader(Policy)(record, "policy")
    return policy


def capabilities_to_record(capabilities: Capabilities) -> Json:
    return _writer(Capabilities)(capabilities)


def capabilities_from_record(record: object) -> Capabilities:
    capabilities: Capabilities = _reader(Capabilities)(record, "capabilities")
    return capabilities


def value_to_record(kind: Any, value: object) -> Json:
    """Write any frozen value that is made of the types of a situation."""
    return _writer(kind)(value)


def value_from_record(kind: type[_T], record: object) -> _T:
    """Read such a value. Raises `RecordError` when the record does not fit."""
    shape: Any = kind
    value: _T = _reader(shape)(record, kind.__name__)
    return value


_Write = Callable[[Any], Json]
_Read = Callable[[Any, str], Any]


@cache
def _shape(kind: type) -> dict[str, tuple[Any, bool]]:
    """The fields of a dataclass: name → (type, whether it is optional)."""
    hints = get_type_hints(kind)
    return {
        each.name: (_plain(hints[each.name]), each.default is not MISSING or each.default_factory is not MISSING)
        for each in fields(kind)
        if each.init
    }


def _plain(hint: Any) -> Any:
    """A NewType is written as its base type."""
    while hasattr(hint, "__supertype__"):
        hint = hint.__supertype__
    return hint


def _choices(hint: Any) -> tuple[Any, ...]:
    """The types of a union without None; empty for other types."""
    if get_origin(hint) not in (Union, types.UnionType):
        return ()
    return tuple(kind for kind in map(_plain, get_args(hint)) if kind is not type(None))


def _as_it_is(value: Any) -> Json:
    plain: Json = value
    return plain


# Inspecting types is slow and every claim writes records, so each type is inspected once.
@cache
def _writer(hint: Any) -> _Write:
    choices = _choices(hint)
    if len(choices) == 1:
        write = _writer(choices[0])
        return write if write is _as_it_is else lambda value: None if value is None else write(value)
    if choices:
        writers = {kind: _writer(kind) for kind in choices}

        def write_choice(value: Any) -> Json:
            if value is None:
                return None
            written = writers[type(value)](value)
            assert isinstance(written, dict)
            return {"is": type(value).__name__, **written}

        return write_choice
    if hint is Plan:
        # The situation says all of it: who reads it decides again.
        write = _writer(Situation)
        return lambda plan: write(plan.situation)
    if is_dataclass(hint):
        assert isinstance(hint, type)
        # Every claim writes these two again, and nothing changes a written record, so they are cached.
        return lru_cache(maxsize=256)(_write_fields(hint)) if hint in (Capabilities, Policy) else _write_fields(hint)
    if get_origin(hint) in (tuple, frozenset):
        write = _writer(_plain(get_args(hint)[0]))
        if get_origin(hint) is tuple:
            return lambda value: [write(item) for item in value]
        return lambda value: sorted([write(item) for item in value], key=str)
    if get_origin(hint) is Mapping:
        write = _writer(_plain(get_args(hint)[1]))
        return lambda value: {str(key): write(item) for key, item in value.items()}
    if issubclass(hint, Enum):
        return lambda value: str(value.value)
    return _as_it_is


def _write_fields(kind: type) -> _Write:
    writers = {name: _writer(inner) for name, (inner, _) in _shape(kind).items()}
    names, changed = tuple(writers), [(name, write) for name, write in writers.items() if write is not _as_it_is]
    values = attrgetter(*names)

    def write_fields(value: Any) -> Json:
        found = values(value)
        written = dict(zip(names, found if len(names) > 1 else (found,), strict=True))
        for name, write in changed:
            written[name] = write(written[name])
        return written

    return write_fields


@cache
def _reader(hint: Any) -> _Read:
    choices = _choices(hint)
    if choices:
        return _read_choice(choices, type(None) in get_args(hint))
    if hint is Plan:
        return _read_plan
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return _read_fields(hint)
    if get_origin(hint) in (tuple, frozenset):
        return _read_items(_reader(_plain(get_args(hint)[0])), get_origin(hint))
    if get_origin(hint) is Mapping:
        return _read_mapping(_reader(_plain(get_args(hint)[1])))
    if issubclass(hint, Enum):
        return _read_member(hint)
    return _read_plain(hint)


def _read_choice(choices: tuple[Any, ...], may_be_none: bool) -> _Read:
    readers = {kind.__name__: _reader(kind) for kind in choices}
    # A writer that does not know these types leaves the name out; the fields tell them apart.
    by_fields = {frozenset(_shape(kind)): kind.__name__ for kind in choices if len(choices) > 1}

    def read(stored: Any, where: str) -> Any:
        if stored is None and may_be_none:
            return None
        if len(choices) == 1:
            return readers[choices[0].__name__](stored, where)
        named = stored.get("is", by_fields.get(frozenset(stored))) if isinstance(stored, dict) else None
        if not isinstance(named, str) or named not in readers:
            raise RecordError(f"{where}: {named!r} is none of {', '.join(readers)}")
        return readers[named]({key: item for key, item in stored.items() if key != "is"}, where)

    return read


def _read_fields(kind: type) -> _Read:
    shape = _shape(kind)
    derived = {each.name for each in fields(kind) if not each.init}
    readers = {name: _reader(inner) for name, (inner, _) in shape.items()}

    def read(stored: Any, where: str) -> Any:
        if not isinstance(stored, dict):
            raise RecordError(f"{where}: {_shown(stored)} is not an object")
        unknown = sorted(stored.keys() - shape.keys() - derived)
        if unknown:
            raise RecordError(f"{where}: {unknown[0]!r} is not a field{_meant(unknown[0], shape)}")
        missing = [name for name, (_, optional) in shape.items() if name not in stored and not optional]
        if missing:
            raise RecordError(f"{where}: the field {missing[0]!r} of {kind.__name__} is missing")
        values = {name: readers[name](stored[name], f"{where}.{name}") for name in shape if name in stored}
        try:
            return kind(**values)
        except ValueError as fault:
            raise RecordError(f"{where}: {fault}") from fault

    return read


def _read_items(read_one: _Read, collection: Any) -> _Read:
    def read(stored: Any, where: str) -> Any:
        if not isinstance(stored, list):
            raise RecordError(f"{where}: {_shown(stored)} is not a list")
        return collection([read_one(item, f"{where}[{at}]") for at, item in enumerate(stored)])

    return read


def _read_plan(stored: Any, where: str) -> Plan:
    return decide(_reader(Situation)(stored, where))


def _read_mapping(read_one: _Read) -> _Read:
    def read(stored: Any, where: str) -> Any:
        if not isinstance(stored, dict):
            raise RecordError(f"{where}: {_shown(stored)} is not an object")
        return {key: read_one(item, f"{where}.{key}") for key, item in stored.items()}

    return read


def _read_member(kind: type[Enum]) -> _Read:
    members = {member.value: member for member in kind}

    def read(stored: Any, where: str) -> Enum:
        if not isinstance(stored, str) or stored not in members:
            raise RecordError(f"{where}: {_shown(stored)} is none of {', '.join(members)}")
        return members[stored]

    return read


def _read_plain(kind: type) -> _Read:
    accepted = (int, float) if kind is float else (kind,)

    def read(stored: Any, where: str) -> Any:
        # In Python a bool is an int; in a record it is an error.
        if not isinstance(stored, accepted) or (isinstance(stored, bool) and kind is not bool):
            raise RecordError(f"{where}: {_shown(stored)} is not {_NOUNS.get(kind, kind.__name__)}")
        return stored

    return read


_NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_CUT = 100
_MOST_LISTED = 8


def _shown(stored: Any) -> str:
    """As it stands in JSON, where Python has another word for it."""
    if isinstance(stored, bool) or stored is None:
        return {True: "true", False: "false", None: "null"}[stored]
    text = repr(stored)
    return text if len(text) <= _CUT else f"{text[:_CUT]}…"


def _meant(name: str, there: Iterable[str]) -> str:
    names = tuple(there)
    near = get_close_matches(name, names, n=1)
    if near:
        return f" (did you mean {near[0]}?)"
    return f" (the fields are {', '.join(names)})" if len(names) <= _MOST_LISTED else ""


@dataclass(frozen=True, slots=True)
class Change:
    """One field in which a plan differs from the recorded one."""

    field: str
    was: Json
    now: Json


@dataclass(frozen=True, slots=True)
class Replay:
    plan: Plan
    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        return not self.changes


def plan_to_record(plan: Plan) -> dict[str, Json]:
    """What was decided, without the situation. Sentences are separate fields, so that programs can leave them out."""
    workspace = plan.workspace
    return {
        "outcome": plan.outcome.value,
        "code": plan.reason.code,
        "session": None if plan.session is None else plan.session.id,
        "native_id": plan.native_id,
        "workspace": None if workspace is None else {"id": workspace.id, "directory": workspace.directory.place},
        "mode": None if plan.mode is None else plan.mode.value,
        "model": plan.model,
        "catch_up": [plan.catch_up.after, plan.catch_up.through],
        "kept": list(plan.kept),
        "act_on": list(plan.act_on),
        "proven": plan.proven,
        "waits_for": None if plan.waits_for is None else plan.waits_for.value,
        "marks": [[each.session, each.event.value, each.reason.code] for each in plan.session_changes],
        "notices": [[notice.audience.value, notice.reason.code, notice.words] for notice in plan.notices],
        "words": plan.words,
        "trace": [[step.subject, step.rule, step.outcome, step.code, step.words] for step in plan.brief_trace],
    }


def decision_to_record(plan: Plan) -> dict[str, Json]:
    """A whole decision, situation and plan, as a store keeps it."""
    return {**situation_to_record(plan.situation), "plan": plan_to_record(plan)}


# A later release may reword a sentence; that does not change the decision.
_WORDING = frozenset({"words", "trace", "notices"})


def replay(record: Mapping[str, object], policy: Policy | None = None) -> Replay:
    """Decide a recorded situation again, with `policy` instead of its own where one is given."""
    must_be(record, Mapping, "the record of a decision")
    kept = record.get("plan")
    if not isinstance(kept, dict):
        raise RecordError("the record has no plan to compare with")
    situation = situation_from_record(record)
    plan = decide(situation if policy is None else replace(situation, policy=policy))
    now = plan_to_record(plan)
    changes = (Change(name, kept.get(name), now[name]) for name in now if name not in _WORDING)
    return Replay(plan, tuple(change for change in changes if change.was != change.now))
