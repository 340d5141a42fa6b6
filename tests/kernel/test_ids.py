"""Ids: derived names that survive, and the two keys that never meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.ids import (
    NOTHING_SEEN,
    AgentId,
    LaneId,
    LaneScope,
    MachineId,
    ProviderName,
    RouteKey,
    RouteKind,
    RunId,
    RunScope,
    ThreadId,
    isolated,
    lane_id,
    own_thread,
    runtime_id,
    subject_thread,
)

THREE = st.tuples(st.text(), st.text(), st.text())


def runtime(parts: tuple[str, str, str]) -> str:
    machine, provider, home = parts
    return runtime_id(MachineId(machine), ProviderName(provider), home)


@pytest.mark.case("R06")
@given(THREE, THREE)
def test_a_runtime_is_the_same_exactly_when_all_three_are(one: tuple[str, str, str], two: tuple[str, str, str]) -> None:
    assert (runtime(one) == runtime(two)) is (one == two)


@pytest.mark.case("R06")
@pytest.mark.parametrize(
    "other", [("m2", "claude", "/home/a"), ("m1", "codex", "/home/a"), ("m1", "claude", "/home/b")]
)
def test_any_of_the_three_makes_another_runtime(other: tuple[str, str, str]) -> None:
    assert runtime(("m1", "claude", "/home/a")) == runtime(("m1", "claude", "/home/a"))
    assert runtime(("m1", "claude", "/home/a")) != runtime(other)


@pytest.mark.case("R06")
def test_ids_never_change_between_versions() -> None:
    assert runtime(("m1", "claude", "/home/a")) == "rt_eddf225654a0e0b452f4fdc6"
    assert lane_id(AgentId("a"), ThreadId("t")) == "ln_494ec14b2f08814c6d34e78c"
    assert subject_thread("github", "org/repo#1") == "th_f7b1f3dfb54b773708550645"
    assert own_thread(AgentId("a")) == "th_17c7d213077e9e95bb1e2a4b"


@given(st.text(), st.text(), st.integers(0, 10))
def test_moving_characters_between_parts_makes_another_id(left: str, right: str, cut: int) -> None:
    whole = left + right
    moved = whole[:cut], whole[cut:]
    same = moved == (left, right)
    assert (lane_id(AgentId(left), ThreadId(right)) == lane_id(AgentId(moved[0]), ThreadId(moved[1]))) is same
    assert (subject_thread(left, right) == subject_thread(*moved)) is same


def test_a_part_that_looks_like_a_length_is_not_taken_for_one() -> None:
    assert subject_thread("a1:", "b") != subject_thread("a", "1:b")
    assert subject_thread("", "1:a") != subject_thread("1:a", "")


def test_a_name_that_is_no_valid_text_still_has_an_id() -> None:
    assert runtime(("m", "p", "/home/\udcff")) != runtime(("m", "p", "/home/\udcfe"))


@pytest.mark.case("W14")
def test_the_next_event_on_a_subject_lands_in_the_same_thread() -> None:
    assert subject_thread("github", "org/repo#1") == subject_thread("github", "org/repo#1")
    assert subject_thread("github", "org/repo#1") != subject_thread("github", "org/repo#2")
    assert subject_thread("github", "org/repo#1") != subject_thread("gitlab", "org/repo#1")


@pytest.mark.case("W12", "W14")
@given(st.text(), st.text())
def test_no_subject_and_no_other_agent_names_an_agents_own_thread(agent: str, other: str) -> None:
    own = own_thread(AgentId(agent))
    assert own != subject_thread("own", agent)
    assert own != subject_thread(agent, other)
    assert (own == own_thread(AgentId(other))) is (agent == other)


@pytest.mark.case("H04")
def test_an_isolated_scope_stays_what_it_is() -> None:
    scope = isolated(LaneScope(LaneId("lane")), RunId("r1"))
    assert scope == RunScope(LaneId("lane"), RunId("r1"))
    assert isolated(scope, RunId("r2")) is scope


@pytest.mark.case("H04")
def test_a_scope_is_a_value_that_no_name_can_forge() -> None:
    assert isolated(LaneScope(LaneId("lane:r1")), RunId("r2")) != isolated(LaneScope(LaneId("lane")), RunId("r1:r2"))
    keys: set[object] = {LaneScope(LaneId("a")), RouteKey(RouteKind.THREAD, "a"), RunScope(LaneId("a"), RunId("a"))}
    assert len(keys) == 3


def test_nothing_seen_is_before_the_first_entry() -> None:
    assert NOTHING_SEEN == 0
