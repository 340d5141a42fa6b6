"""Records and replay: every decision can be kept, made again, and tried under another policy."""

import json
from dataclasses import replace
from typing import Any

import pytest

import clew.kernel.record as codec
from clew.kernel import (
    Archive,
    EntrySeq,
    Outcome,
    PermissionMode,
    Policy,
    Probe,
    ProbeKind,
    ProjectId,
    RecordedFor,
    RecordError,
    ResetPolicy,
    RunId,
    RunScope,
    SessionId,
    SessionLimits,
    SessionState,
    Situation,
    UnreadableCursor,
    WakeReason,
    decide,
    decision_to_record,
    plan_to_record,
    policy_from_record,
    policy_to_record,
    recorded_for,
    replay,
    settle,
    situation_from_record,
    situation_to_record,
)
from clew.kernel.probe import Probed
from tests.kernel.kit import ELSEWHERE, GONE, LANE, OTHER_ACCOUNT, RUN, THERE, can, demand, here, session, situation

SITUATIONS = [
    situation(),
    situation([session(1), session(2, cursor=None), session(3, cursor=UnreadableCursor("it is not JSON"))]),
    situation([session(1, runtime=THERE, archive=Archive("loom/1", EntrySeq(2)))], scope=RunScope(LANE, RUN)),
    situation([session(1)], demand=demand(resume_run=RunId("run-1"))),
    situation([session(1, account=OTHER_ACCOUNT)], policy=Policy(limits=SessionLimits(turns=3, age=1.5))),
    situation(
        [session(1, directory=ELSEWHERE, state=SessionState.POISONED)],
        probes=(Probed(SessionId("s1"), Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE)),),
        machinery_gone=("a timer",),
    ),
]


@pytest.fixture(autouse=True)
def types_are_read_anew() -> None:
    """Every test reads the types itself, so that it also tests how they are read."""
    for value in vars(codec).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def stored(known: Situation) -> Any:
    return json.loads(json.dumps(situation_to_record(known)))


@pytest.mark.case("C33")
@pytest.mark.parametrize("known", SITUATIONS)
def test_a_situation_survives_being_stored(known: Situation) -> None:
    back = situation_from_record(stored(known))
    assert back == known
    assert decide(back) == decide(known)


@pytest.mark.case("C33")
@pytest.mark.parametrize("known", SITUATIONS)
def test_a_kept_decision_made_again_is_the_same(known: Situation) -> None:
    record = json.loads(json.dumps(decision_to_record(decide(known))))
    again = replay(record)
    assert again.same
    assert again.changes == ()
    assert json.loads(json.dumps(plan_to_record(again.plan))) == record["plan"]


@pytest.mark.case("C33")
def test_another_policy_shows_what_would_have_gone_otherwise() -> None:
    record = json.loads(json.dumps(decision_to_record(decide(situation([session(1)])))))
    other = replay(record, Policy(reset=ResetPolicy(frozenset({WakeReason.COMMENT}))))
    assert not other.same
    changes = {change.field: (change.was, change.now) for change in other.changes}
    assert changes["outcome"] == ("resume", "blank")
    assert changes["code"] == ("session:fits", "policy:comment")
    assert changes["session"] == ("s1", None)
    assert changes["catch_up"] == ([3, 5], [5, 5])
    assert "words" not in changes
    assert "trace" not in changes
    assert other.plan.outcome is Outcome.BLANK


@pytest.mark.case("C33")
def test_a_settled_decision_replays_with_its_probes() -> None:
    plan = settle(decide(situation([session(1)])), Probe(ProbeKind.MISSING, signal=GONE))
    record = json.loads(json.dumps(decision_to_record(plan)))
    assert replay(record).plan == plan
    assert record["plan"]["marks"] == [["s1", "confirmed-missing", "session:lost"]]


def test_a_plan_is_kept_in_full() -> None:
    plan = settle(decide(situation([session(1)], machinery_gone=("a timer",))), Probe(ProbeKind.FOUND_HERE))
    kept = plan_to_record(plan)
    trace = kept.pop("trace")
    assert isinstance(trace, list)
    assert trace[-1] == ["plan", "outcome", "resume", "session:fits", plan.words]
    assert kept == {
        "outcome": "resume",
        "code": "session:fits",
        "session": "s1",
        "native_id": "n-1",
        "workspace": {"id": "ws-1", "directory": "/srv/maze"},
        "mode": "edit",
        "model": "large",
        "catch_up": [3, 5],
        "kept": [],
        "act_on": [5],
        "proven": True,
        "waits_for": None,
        "marks": [],
        "notices": [["agent", "notice:machinery-gone", plan.notices[0].words]],
        "words": "Continuing the same conversation (session 1).",
    }
    mute = here(capabilities=can(modes=frozenset()))
    held = plan_to_record(decide(situation([session(1, busy_with="x")], here=mute)))
    assert (held["mode"], held["waits_for"], held["session"]) == (None, "person", None)
    nowhere = plan_to_record(decide(situation(place=replace(situation().place, remembered=None, prepared=None))))
    assert nowhere["workspace"] is None


def test_a_policy_survives_being_stored() -> None:
    policy = Policy(limits=SessionLimits(age=60.0), parallel=True)
    assert policy_from_record(json.loads(json.dumps(policy_to_record(policy)))) == policy
    assert policy_from_record({}) == Policy()


def test_a_policy_that_cannot_be_read_says_where() -> None:
    with pytest.raises(RecordError, match=r"^policy\.parallel: 'yes' is not true or false$"):
        policy_from_record({"parallel": "yes"})


def test_sets_are_written_in_one_order() -> None:
    able = can(modes=frozenset(PermissionMode), cursor_versions=frozenset({2, 10, 1}))
    written: Any = situation_to_record(situation(here=here(capabilities=able)))
    capabilities = written["situation"]["here"]["capabilities"]
    assert capabilities["modes"] == ["ask", "edit", "full", "read"]
    assert capabilities["cursor_versions"] == [1, 10, 2]
    assert written["situation"]["here"]["mode_limits"] == []
    limited: Any = situation_to_record(situation(here=here(mode_limits=(PermissionMode.READ, PermissionMode.ASK))))
    assert limited["situation"]["here"]["mode_limits"] == ["read", "ask"]


def test_what_a_record_leaves_out_takes_its_default() -> None:
    record = stored(situation([session(1)]))
    del record["situation"]["probes"]
    del record["situation"]["sources"][0]["sessions"][0]["archive"]
    assert situation_from_record(record) == situation([session(1)])


def test_whole_numbers_are_accepted_as_instants() -> None:
    record = stored(situation())
    record["situation"]["now"] = 1000
    assert situation_from_record(record) == situation()


def broken(path: tuple[str | int, ...], value: object) -> Any:
    record = stored(situation([session(1)]))
    at: Any = record
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return record


IN_SESSION = ("situation", "sources", 0, "sessions", 0)


@pytest.mark.case("C27")
@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), True, "the record has version True; this program reads version 1"),
        (("version",), 2, "the record has version 2; this program reads version 1"),
        (("situation",), None, "situation: null is not an object"),
        (("situation", "head"), "5", "situation.head: '5' is not a whole number"),
        (("situation", "head"), True, "situation.head: true is not a whole number"),
        (("situation", "now"), "soon", "situation.now: 'soon' is not a number"),
        (("situation", "sources"), {}, "situation.sources: {} is not a list"),
        (("situation", "run"), 7, "situation.run: 7 is not a text"),
        (("situation", "colour"), "red", "situation: 'colour' is not a field"),
        (("situation", "scope"), {"is": "World"}, "situation.scope: 'World' is none of LaneScope, RunScope"),
        (("situation", "scope"), {"is": "LaneScope", "lane": 5}, "situation.scope.lane: 5 is not a text"),
        (("situation", "scope"), {"is": []}, "situation.scope: [] is none of LaneScope, RunScope"),
        (("situation", "scope"), "lane", "situation.scope: None is none of LaneScope, RunScope"),
        (
            (*IN_SESSION, "state"),
            "sleepy",
            "situation.sources[0].sessions[0].state: 'sleepy' is none of " + ", ".join(SessionState),
        ),
        (
            (*IN_SESSION, "directory"),
            {"path": "maze"},
            "situation.sources[0].sessions[0].directory: a directory must be an absolute path, and 'maze' is not",
        ),
        (
            (*IN_SESSION, "mode"),
            "root",
            "situation.sources[0].sessions[0].mode: 'root' is none of read, ask, edit, full",
        ),
        (
            ("situation", "here", "capabilities", "modes"),
            ["edit", "all"],
            "situation.here.capabilities.modes[1]: 'all' is none of read, ask, edit, full",
        ),
    ],
)
def test_a_record_that_cannot_be_read_says_where_and_why(
    path: tuple[str | int, ...], value: object, message: str
) -> None:
    with pytest.raises(RecordError) as refused:
        situation_from_record(broken(path, value))
    assert str(refused.value).split(": give ")[0] == message


def test_a_missing_field_is_named() -> None:
    record = stored(situation())
    del record["situation"]["lane"]
    with pytest.raises(RecordError, match=r"^situation: the field 'lane' of Situation is missing$"):
        situation_from_record(record)


def test_a_record_without_a_plan_cannot_be_replayed() -> None:
    with pytest.raises(RecordError, match=r"^the record has no plan to compare with$"):
        replay(situation_to_record(situation()))


def test_the_subject_of_a_record_is_read_alone() -> None:
    asked = situation(here=replace(situation().here, agent="ada"))
    asked = replace(asked, place=replace(asked.place, project=ProjectId("pr-1")))
    record = situation_to_record(asked)
    assert recorded_for(record) == RecordedFor("ada", ProjectId("pr-1"))
    # Nothing else has to be readable, not even the version.
    assert recorded_for({"situation": {"here": {"agent": "eve"}, "place": {}}}) == RecordedFor("eve", None)


@pytest.mark.parametrize(
    "record",
    [
        None,
        {},
        {"situation": []},
        {"situation": {"here": {}, "place": None}},
        {"situation": {"here": [], "place": {}}},
        {"situation": {"here": {"agent": 1}, "place": {}}},
        {"situation": {"here": {"agent": "ada"}, "place": {"project": 7}}},
    ],
)
def test_a_record_without_a_subject_is_refused(record: object) -> None:
    with pytest.raises(RecordError):
        recorded_for(record)
