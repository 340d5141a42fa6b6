"""Admission: accepted, deferred, skipped or refused, always with the reason."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.admission import (
    Admission,
    AdmissionPolicy,
    AdmissionReason,
    AdmissionVerdict,
    AgentState,
    Deduped,
    Overlap,
    Request,
    Sameness,
    admit,
    dedupe,
    thread_for,
)
from clew.kernel.ids import AgentId, ThreadId, WakeId, own_thread, subject_thread
from clew.kernel.wake import HUMAN, Origin, OriginKind, WakeEnd, WakeReason

ME, OTHER = AgentId("me"), AgentId("other")
POLICY = AdmissionPolicy()
NOW = 1_000.0
SPOKEN = (WakeReason.COMMENT, WakeReason.MENTION, WakeReason.CHAT, WakeReason.REVIEW)
TIMER = Request(ME, WakeReason.TIMER, Origin(OriginKind.TIMER), NOW)
FLOODED = replace(TIMER, starts=(950.0, 960.0, 970.0, 980.0, 990.0))


def said_by(agent: AgentId, depth: int = 1, reason: WakeReason = WakeReason.MENTION) -> Request:
    return Request(ME, reason, Origin(OriginKind.AGENT, agent, depth), NOW)


def test_a_free_lane_takes_the_wake() -> None:
    assert admit(TIMER, POLICY) == Admission(
        AdmissionVerdict.ACCEPT, AdmissionReason.LANE_FREE, "The next run of the lane takes it.", None, None
    )
    assert AdmissionReason.LANE_FREE.code == "accepted:lane-free"


@pytest.mark.case("W09")
@pytest.mark.parametrize(
    ("state", "reason", "code", "words"),
    [
        (
            AgentState.PAUSED,
            AdmissionReason.PAUSED,
            "refused:agent-paused",
            "The agent is paused; resume it, then wake it again.",
        ),
        (
            AgentState.ARCHIVED,
            AdmissionReason.ARCHIVED,
            "refused:agent-archived",
            "The agent was removed; choose another, or bring it back.",
        ),
    ],
)
def test_a_paused_or_archived_agent_refuses_before_every_other_rule(
    state: AgentState, reason: AdmissionReason, code: str, words: str
) -> None:
    for request in (
        TIMER,
        FLOODED,
        said_by(ME),
        said_by(OTHER, 99),
        replace(TIMER, lane_busy=True),
        Request(ME, WakeReason.MANUAL, HUMAN, NOW),
    ):
        assert admit(replace(request, agent_state=state), POLICY) == Admission(AdmissionVerdict.REFUSE, reason, words)
    assert reason.code == code


@pytest.mark.case("W11")
@pytest.mark.parametrize("reason", list(WakeReason))
def test_an_agents_own_words_do_not_wake_it(reason: WakeReason) -> None:
    admission = admit(said_by(ME, reason=reason), POLICY)
    if reason in SPOKEN:
        assert admission == Admission(AdmissionVerdict.SKIP, WakeEnd.SELF, "An agent's own message does not wake it.")
    else:
        assert admission.verdict is AdmissionVerdict.ACCEPT


@pytest.mark.case("W11")
@pytest.mark.parametrize("reason", SPOKEN)
def test_another_agents_words_and_a_persons_do(reason: WakeReason) -> None:
    assert admit(said_by(OTHER, reason=reason), POLICY).verdict is AdmissionVerdict.ACCEPT
    assert admit(Request(ME, reason, HUMAN, NOW), POLICY).verdict is AdmissionVerdict.ACCEPT
    by_person_for_agent = Request(ME, reason, Origin(OriginKind.HUMAN, ME), NOW)
    assert admit(by_person_for_agent, POLICY).verdict is AdmissionVerdict.ACCEPT


@pytest.mark.case("W11")
def test_agents_that_wake_one_another_stop_at_the_set_depth() -> None:
    assert POLICY.depth_limit == 6
    assert admit(said_by(OTHER, 6), POLICY).verdict is AdmissionVerdict.ACCEPT
    assert admit(said_by(OTHER, 7), POLICY) == Admission(
        AdmissionVerdict.SKIP,
        WakeEnd.PING_PONG,
        "Agents have woken one another 7 times in a row; the limit is 6.",
    )
    assert admit(said_by(OTHER, 3), AdmissionPolicy(depth_limit=2)).reason is WakeEnd.PING_PONG
    assert admit(said_by(OTHER, 2), AdmissionPolicy(depth_limit=2)).verdict is AdmissionVerdict.ACCEPT


@pytest.mark.case("W11")
@pytest.mark.parametrize("kind", list(OriginKind))
def test_only_a_person_breaks_the_chain(kind: OriginKind) -> None:
    admission = admit(Request(ME, WakeReason.EVENT, Origin(kind, depth=7), NOW), POLICY)
    assert (admission.reason is WakeEnd.PING_PONG) is (kind is not OriginKind.HUMAN)


@pytest.mark.case("W11")
def test_own_words_are_named_before_the_chain() -> None:
    assert admit(said_by(ME, 99), POLICY).reason is WakeEnd.SELF


@pytest.mark.case("W10")
def test_five_runs_in_the_last_minute_defer_the_next_until_the_oldest_leaves() -> None:
    assert (POLICY.flood_limit, POLICY.flood_window) == (5, 60.0)
    assert admit(FLOODED, POLICY) == Admission(
        AdmissionVerdict.DEFER,
        AdmissionReason.FLOOD,
        "The agent started 5 runs in the last 60 s; the limit is 5.",
        until=1_010.0,
    )
    assert AdmissionReason.FLOOD.code == "deferred:flood"
    assert admit(replace(FLOODED, starts=FLOODED.starts[1:]), POLICY).verdict is AdmissionVerdict.ACCEPT


@pytest.mark.case("W10")
@pytest.mark.parametrize(("oldest", "verdict"), [(940.0, AdmissionVerdict.ACCEPT), (940.001, AdmissionVerdict.DEFER)])
def test_a_run_leaves_the_window_at_its_very_end(oldest: float, verdict: AdmissionVerdict) -> None:
    assert admit(replace(FLOODED, starts=(oldest, *FLOODED.starts[1:])), POLICY).verdict is verdict


@pytest.mark.case("W10")
def test_with_more_runs_than_the_limit_enough_of_them_must_leave() -> None:
    admission = admit(replace(FLOODED, starts=(990.0, 951.0, 970.0, 952.0, 980.0, 953.0, 960.0)), POLICY)
    assert admission.until == 1_013.0
    assert admission.words == "The agent started 7 runs in the last 60 s; the limit is 5."


@pytest.mark.case("W10")
@pytest.mark.parametrize("reason", list(WakeReason))
@pytest.mark.parametrize("kind", list(OriginKind))
def test_a_manual_wake_or_a_persons_is_never_deferred(reason: WakeReason, kind: OriginKind) -> None:
    admission = admit(replace(FLOODED, reason=reason, origin=Origin(kind)), POLICY)
    free = reason is WakeReason.MANUAL or kind is OriginKind.HUMAN
    assert admission.verdict is (AdmissionVerdict.ACCEPT if free else AdmissionVerdict.DEFER)


@pytest.mark.case("W10")
@given(
    st.lists(st.floats(1.7e9, 1.7e9 + 100), max_size=12),
    st.integers(1, 6),
    st.floats(0.1, 100),
)
def test_a_deferred_wake_is_let_in_at_that_instant_and_not_before(
    starts: list[float], limit: int, window: float
) -> None:
    policy = AdmissionPolicy(flood_limit=limit, flood_window=window)
    request = replace(TIMER, starts=tuple(starts), now=1.7e9 + 100)
    admission = admit(request, policy)
    if admission.until is not None:
        assert admission.until > request.now
        assert admit(replace(request, now=admission.until), policy).verdict is AdmissionVerdict.ACCEPT
        just_before = replace(request, now=(request.now + admission.until) / 2)
        if just_before.now < admission.until:
            assert admit(just_before, policy).verdict is AdmissionVerdict.DEFER


@pytest.mark.case("W10")
def test_the_flood_is_named_before_the_busy_lane() -> None:
    policy = AdmissionPolicy(overlap=Overlap.REJECT)
    assert admit(replace(FLOODED, lane_busy=True), policy).reason is AdmissionReason.FLOOD


@pytest.mark.case("W10")
def test_a_flood_limit_below_one_is_no_limit_at_all() -> None:
    with pytest.raises(ValueError, match=r"^a flood limit lets at least one run start: to stop an agent, pause it$"):
        AdmissionPolicy(flood_limit=0)
    once = AdmissionPolicy(flood_limit=1)
    assert admit(replace(TIMER, starts=(999.0,)), once).until == 1_059.0


@pytest.mark.case("W13")
@pytest.mark.parametrize(
    ("overlap", "verdict", "reason", "code", "words"),
    [
        (
            Overlap.QUEUE,
            AdmissionVerdict.ACCEPT,
            AdmissionReason.QUEUED,
            "accepted:queued",
            "The agent is busy; this waits for the next run.",
        ),
        (
            Overlap.STEER,
            AdmissionVerdict.ACCEPT,
            AdmissionReason.STEERED,
            "accepted:steered",
            "The agent is busy; it will be told during this turn, or at the start of the next.",
        ),
        (
            Overlap.INTERRUPT,
            AdmissionVerdict.ACCEPT,
            AdmissionReason.INTERRUPTS,
            "accepted:interrupts",
            "The agent is busy; its run is interrupted for this.",
        ),
        (
            Overlap.REJECT,
            AdmissionVerdict.SKIP,
            WakeEnd.OVERLAP,
            "skipped:overlap",
            "The agent is busy, and its policy refuses wakes until it is free; the message stays in the thread.",
        ),
    ],
)
def test_a_busy_lane_does_as_its_policy_says_and_the_answer_names_it(
    overlap: Overlap, verdict: AdmissionVerdict, reason: AdmissionReason | WakeEnd, code: str, words: str
) -> None:
    policy = AdmissionPolicy(overlap=overlap)
    busy = replace(TIMER, lane_busy=True)
    assert admit(busy, policy) == Admission(verdict, reason, words, overlap=overlap)
    assert reason.code == code
    assert admit(TIMER, policy).reason is AdmissionReason.LANE_FREE


@pytest.mark.case("W13")
def test_a_busy_lane_queues_unless_told_otherwise() -> None:
    assert admit(replace(TIMER, lane_busy=True), POLICY).overlap is Overlap.QUEUE


@pytest.mark.case("W03")
def test_the_same_key_twice_gives_the_first_wake() -> None:
    thread, other = ThreadId("t"), ThreadId("other")
    assert dedupe(None, thread) == Deduped(Sameness.NEW, None, None)
    assert dedupe((WakeId("w1"), thread), thread) == Deduped(Sameness.SAME, WakeId("w1"), WakeEnd.DUPLICATE)
    assert dedupe((WakeId("w1"), other), thread) == Deduped(Sameness.CONFLICT, None, AdmissionReason.KEY_CONFLICT)
    assert AdmissionReason.KEY_CONFLICT.code == "refused:key-conflict"
    assert AdmissionReason.KEY_CONFLICT.fill() == "This key was used for a wake on another thread; choose another key."


@pytest.mark.case("W12")
def test_a_wake_without_a_thread_lands_in_the_agents_own() -> None:
    assert thread_for(ME, None) == own_thread(ME)
    assert thread_for(ME, None) != thread_for(OTHER, None)
    assert thread_for(ME, ThreadId("t")) == "t"
    assert thread_for(ME, ThreadId("")) == ""


@pytest.mark.case("W14")
def test_a_wake_on_an_outside_subject_lands_in_the_subjects_thread() -> None:
    thread = subject_thread("github", "org/repo#1")
    assert thread_for(ME, thread) == thread_for(OTHER, thread) == thread
