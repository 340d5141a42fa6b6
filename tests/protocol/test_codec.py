"""The codec: every message between server and daemon comes back as it was sent, in every field, or is refused."""

import inspect
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.kernel import (
    Directory,
    EntrySeq,
    Patience,
    Plan,
    RecordError,
    RetryPolicy,
    RunId,
    RuntimeId,
    Situation,
    decide,
    value_from_record,
    value_to_record,
)
from clew.ports.work import WorkOf
from clew.ports.workspaces import Progress
from clew.protocol.codec import MESSAGES, VERSION, decode, encode
from clew.protocol.control import ControlPlane, Held
from clew.protocol.machine import Machine
from clew.protocol.reports import Prompted, Report
from tests.kernel.kit import demand, session, situation

instants = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec=None), max_size=20)
"""Lone surrogates among them: an agent may print anything."""

st.register_type_strategy(float, instants)
st.register_type_strategy(str, texts)
st.register_type_strategy(Directory, st.builds(Directory, texts.map(lambda name: f"/{name}"), st.none()))
st.register_type_strategy(Patience, st.builds(Patience, lease=st.floats(1.0, 1e6)))
st.register_type_strategy(RetryPolicy, st.builds(RetryPolicy, max_tries=st.integers(1, 9)))

SITUATIONS = (
    situation(),
    situation([session(1)]),
    situation([session(2), session(1)]),
    situation([session(1)], demand=demand(resume_run=RunId("run-1"))),
    situation([session(1, cursor=None)]),
)
PLANS = [decide(each) for each in SITUATIONS]
st.register_type_strategy(Plan, st.integers(0, len(PLANS) - 1).map(lambda number: PLANS[number]))

# A prompt and how far it tells come together, or neither does.
_REST = {name: st.from_type(hint) for name, hint in get_type_hints(Report).items() if name not in ("told", "prompted")}
REPORTS = st.one_of(
    st.builds(Report, told=st.none(), prompted=st.none(), **_REST),
    st.builds(Report, told=st.from_type(EntrySeq), prompted=st.from_type(Prompted), **_REST),
)


@pytest.mark.parametrize("name", MESSAGES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_message_comes_back_as_it_was_sent(name: str, data: st.DataObject) -> None:
    kind = MESSAGES[name]
    message: Any = data.draw(REPORTS if kind is Report else st.from_type(kind))
    sent = encode(message)
    assert decode(sent, kind) == message
    # Every field travels: one that did not would come back with its default, which may be what was sent.
    assert json.loads(sent)["message"].keys() == {each.name for each in fields(kind) if each.init}


@pytest.mark.parametrize("each", SITUATIONS)
def test_a_plan_is_decided_again_on_arrival_and_is_equal(each: Situation) -> None:
    plan = decide(each)
    arrived = value_from_record(Plan, json.loads(json.dumps(value_to_record(Plan, plan))))
    assert arrived == plan
    assert arrived is not plan


def passed(protocol: type) -> set[type]:
    """Every dataclass that the methods of a protocol take or return."""
    found: set[type] = set()

    def walk(hint: Any) -> None:
        if is_dataclass(hint) and isinstance(hint, type):
            found.add(hint)
        elif get_origin(hint) in (tuple, frozenset, Sequence, Collection, Mapping) or get_args(hint):
            for inner in get_args(hint):
                walk(inner)

    for _, method in inspect.getmembers(protocol, inspect.isfunction):
        if not method.__name__.startswith("_"):
            for hint in get_type_hints(method).values():
                walk(hint)
    return found


@pytest.mark.parametrize("protocol", [ControlPlane, Machine, WorkOf])
def test_everything_that_server_and_daemon_pass_is_a_message(protocol: type) -> None:
    assert passed(protocol) - set(MESSAGES.values()) == set()
    assert passed(protocol)


def test_every_call_of_a_daemon_is_one_message() -> None:
    for name, method in inspect.getmembers(ControlPlane, inspect.isfunction):
        if not name.startswith("_"):
            hints = get_type_hints(method)
            hints.pop("return")
            (kind,) = hints.values()
            assert kind in MESSAGES.values(), f"{name} takes {kind}"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"v": VERSION + 1}, "version 2; this program reads version 1"),
        ({"v": True}, "version True"),
        ({"is": "Claimed"}, "it is 'Claimed', and Held was expected"),
        ({"more": 1}, "has to say v, is and message, and nothing else"),
        ({"message": {"run": "r", "attempt": 1, "by": "x"}}, "Held: 'by' is not a field"),
        ({"message": {"run": "r"}}, "the field 'attempt' of Held is missing"),
        ({"message": {"run": 7, "attempt": 1}}, "Held.run: 7 is not a text"),
    ],
)
def test_what_is_not_understood_is_refused_with_the_reason(changed: dict[str, object], why: str) -> None:
    said = json.loads(encode(Held(RunId("r"), 1)))
    with pytest.raises(RecordError, match=why.replace("(", r"\(")):
        decode(json.dumps(said | changed), Held)


def test_what_is_no_json_or_no_message_is_refused() -> None:
    for text in ("", "[]", "{", "null", "7"):
        with pytest.raises(RecordError):
            decode(text, Held)
    with pytest.raises(TypeError, match="str is not a message"):
        encode(RuntimeId("rt"))
    with pytest.raises(TypeError, match="is not a message"):
        encode(Progress)
