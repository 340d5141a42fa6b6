"""Explanations: the outcome first, then everything that was considered."""

import pytest

from clew.kernel import EntrySeq, Floor, ReadState, RunId, SessionState, Source, SourceRead, decide, explain, headline
from tests.kernel.kit import HERE, THERE, demand, session, situation


@pytest.mark.case("C26")
def test_an_explanation_says_what_why_and_what_else_there_was() -> None:
    rows = [session(3, runtime=THERE), session(2, tools="t0"), session(1)]
    plan = decide(situation(rows, machinery_gone=("a timer",)))
    assert headline(plan) == "resume: Continuing the same conversation (session 2). [session:fits]"
    assert explain(plan).splitlines() == [
        "resume: Continuing the same conversation (session 2). [session:fits]",
        "  directory  /srv/maze  (The lane works in /srv/maze.)",
        "  mode       edit  (The mode is edit, as asked.)",
        "  catch-up   entries 4 to 5",
        "  note       The last run ended abruptly. Do not wait for what is gone: a timer.",
        "  source     lane: It has sessions to consider.",
        "  session    s3, generation 3: cannot be used",
        f"    carry       runtime       It is on runtime {THERE}; this run is on {HERE}.",
        "    out         archive       There is no archive of it.",
        "  session    s2, generation 2: can be resumed",
        "    note        tools         The list of tools has changed; the current one is given.",
        "  session    s1, generation 1: was not weighed",
    ]


@pytest.mark.case("C26")
def test_every_rule_can_be_shown() -> None:
    lines = explain(decide(situation([session(1)])), every_rule=True).splitlines()
    assert sum(line.startswith("    fit ") for line in lines) == 21
    assert "    fit         runtime       It lives on the runtime of this run." in lines


def test_every_source_is_shown_with_its_own_words() -> None:
    reads = (
        SourceRead(Source.ASKED, ReadState.NOT_READ, detail="nobody asked"),
        SourceRead(Source.LANE, ReadState.EMPTY),
    )
    lines = explain(decide(situation(sources=reads))).splitlines()
    assert [line for line in lines if line.startswith("  source")] == [
        "  source     asked: It was not read: nobody asked.",
        "  source     lane: It has no session.",
    ]


def test_the_catch_up_is_put_in_words() -> None:
    assert "  catch-up   entry 5" in explain(decide(situation([session(1, seen=EntrySeq(4))])))
    assert "  catch-up   nothing" in explain(decide(situation([session(1, seen=EntrySeq(5))])))


def test_what_is_kept_from_before_is_named_too() -> None:
    floor = Floor(0, EntrySeq(3), (EntrySeq(1),))
    assert "  catch-up   entry 1, entries 4 to 5" in explain(decide(situation([session(1, cursor=None)], floor=floor)))


def test_a_held_run_without_a_place_is_explained_too() -> None:
    asked = demand(resume_run=RunId("run-1"))
    text = explain(decide(situation([session(1, state=SessionState.RETIRED)], demand=asked)))
    assert text.startswith("hold: The session of run run-1 was asked for but cannot be used: It was retired.")
