"""A landing says whether the agent has shown anything of the session that it goes on with."""

import json
from dataclasses import replace
from typing import Any

import pytest

from clew.daemon.landing import ON_ITS_WORD, Pins, landed_of
from clew.kernel import (
    Cursor,
    Directory,
    EntrySeq,
    Landing,
    NativeId,
    Outcome,
    PermissionMode,
    Plan,
    Probe,
    ProbeKind,
    decide,
    settle,
    verify,
)
from tests.kernel.kit import ELSEWHERE, WORKTREE, can, here, session, situation

UNNAMED = here(capabilities=can(reports=frozenset(), names_itself=False))


def resumed() -> Plan:
    return settle(decide(situation([session(1)], here=UNNAMED)), Probe(ProbeKind.FOUND_HERE))


@pytest.mark.case("S16")
@pytest.mark.parametrize(
    ("landing", "on_its_word"),
    [
        (Landing(), True),
        (Landing(native_id=NativeId("n-1")), True),
        (Landing(native_id=NativeId("n-1"), turns=2), False),
    ],
)
def test_what_was_not_shown_is_said_to_be_on_its_word(landing: Landing, on_its_word: bool) -> None:
    landed = landed_of(verify(resumed(), landing), landing)
    said = json.loads(landed.landing)
    assert (landed.claim, said.get("on_its_word")) == ("resumed", ON_ITS_WORD if on_its_word else None)
    assert said.get("native_id") == landing.native_id, "confirmed is only what the agent said"


@pytest.mark.case("S16")
def test_nothing_of_it_is_said_of_a_new_session() -> None:
    plan = decide(situation([], here=UNNAMED))
    assert "on_its_word" not in json.loads(landed_of(verify(plan, Landing()), Landing()).landing)


@pytest.mark.case("S16")
@pytest.mark.parametrize("mode", [None, PermissionMode.READ])
def test_a_mode_that_the_agent_did_not_say_is_not_said_for_it(mode: PermissionMode | None) -> None:
    landing = Landing(mode=mode)
    said = json.loads(landed_of(verify(resumed(), landing), landing).landing)
    assert said.get("mode") == (None if mode is None else "read")


CURSOR = Cursor(1, NativeId("n-1"))


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"cursor": Cursor(1, NativeId("n-1"), "more")},
        {"directory": Directory(WORKTREE.directory.path, "/elsewhere")},
        {"directory": Directory(f"{WORKTREE.directory.path}/.")},
        {"model": "small"},
        {"mode": PermissionMode.READ},
        {"mode": None},
        {"instructions": "i2"},
        {"tools": "t2"},
        {"credential": "another key"},
    ],
)
def test_a_session_that_goes_on_is_reported_only_where_the_server_has_it_otherwise(known: dict[str, Any]) -> None:
    pins = Pins(replace(resumed(), session=session(1, **known)), WORKTREE.directory, Landing(model="large"))
    due = pins.due(CURSOR)
    assert (due is None) == (not known)
    assert due is None or due.cursor == CURSOR
    assert pins.due(CURSOR) is None, "the server has it now"


@pytest.mark.case("C16")
def test_a_fork_has_been_told_what_its_origin_was() -> None:
    origin = session(1, begins=EntrySeq(2), also=(EntrySeq(1),))
    plan = settle(decide(situation([origin])), Probe(ProbeKind.FOUND_ELSEWHERE, ELSEWHERE))
    assert plan.outcome is Outcome.FORK
    new = Pins(plan, WORKTREE.directory, Landing()).at(CURSOR)
    assert new is not None
    assert (new.begins, new.also) == (2, (1,))
