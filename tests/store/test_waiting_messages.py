"""Messages that wait can be edited, moved, told within the turn and taken back until an agent has them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from clew.kernel import HUMAN, Author, AuthorKind, EntrySeq, Evidence, Freshness, WaitsFor, WakeId, WakeReason
from clew.protocol.reports import Returned, Steered
from clew.protocol.wakes import Accepted, Said
from clew.store.faults import MessageTaken, NotAMessage, NotWithinTurn
from clew.store.operations.cancel import Cancelled
from clew.store.operations.leases import end_orphans
from clew.store.operations.message_changes import arrange_messages, edit_message, steer_message, take_back
from clew.store.operations.retry import ask_again
from clew.store.queries.entries import entries_page
from clew.store.schema.tables import agents, runs
from tests.store.kit import ADA, BOB, PERMANENT, PERSON, RUNTIME, THREAD, Daemon, bodies, said_in
from tests.store.test_steering import asked_for, going, told

EDITOR = Author(AuthorKind.HUMAN, "an editor")


def edit(daemon: Daemon, wake: Accepted | WakeId, text: str, expected: int | None = None) -> None:
    name = wake.wake if isinstance(wake, Accepted) else wake
    entry = None if expected is None else EntrySeq(expected)
    daemon.write(lambda connection: edit_message(connection, name, Said(EDITOR, text, len(text)), entry))


def arrange(daemon: Daemon, *wakes: Accepted) -> None:
    daemon.write(lambda connection: arrange_messages(connection, [wake.wake for wake in wakes]))


def promote(daemon: Daemon, wake: Accepted) -> None:
    daemon.write(lambda connection: steer_message(connection, wake.wake))


def withdraw(daemon: Daemon, wake: Accepted) -> Cancelled:
    return daemon.write(lambda connection: take_back(connection, wake.wake, PERSON, "a person"))


def shown(daemon: Daemon) -> list[tuple[int, str, int | None, bool]]:
    """The journal: each entry with the one that took its place, and whether it was taken back."""
    page = daemon.database.read(lambda connection: entries_page(connection, THREAD))
    return [(entry.seq, entry.text, entry.replaced_by, entry.taken_back) for entry in page]


def told_next(daemon: Daemon) -> list[str]:
    """What the next run's agent is told, after which it has ended."""
    order = daemon.claim_one()
    texts = bodies(order)
    daemon.prompt(order, f"n-{order.run}")
    daemon.finish(order)
    return texts


# ---------------------------------------------------------------- edited


@pytest.mark.case("W17")
def test_an_edited_message_is_told_as_it_is_now_and_once(daemon: Daemon) -> None:
    said = daemon.say("on the dor")
    edit(daemon, said, "on the door")
    edit(daemon, said, "on the door, please")
    order = daemon.claim_one()
    assert (bodies(order), order.plan.act_on) == (["on the door, please"], (3,))
    assert order.entries[0].facts.author == EDITOR
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    assert told_after(daemon, "more") == ["more"]
    # The journal keeps what was written, and says what became of it.
    assert shown(daemon)[:3] == [
        (1, "on the dor", 2, False),
        (2, "on the door", 3, False),
        (3, "on the door, please", None, False),
    ]


def told_after(daemon: Daemon, text: str, **how: Any) -> list[str]:
    daemon.say(text, **how)
    return told_next(daemon)


@pytest.mark.case("W17")
def test_an_edited_message_keeps_its_place_among_others(daemon: Daemon) -> None:
    first, second, third = (daemon.say(text) for text in ("one", "two", "three"))
    edit(daemon, first, "one!")
    edit(daemon, third, "three!")
    order = daemon.claim_one()
    assert bodies(order) == ["one!", "two", "three!"]
    assert {wake.id for wake in order.wakes} == {first.wake, second.wake, third.wake}


@pytest.mark.case("W17")
def test_to_edit_it_to_what_it_says_changes_nothing(daemon: Daemon) -> None:
    """A request whose answer was lost is sent again."""
    said = daemon.say("one")
    for _ in range(3):
        edit(daemon, said, "two")
    assert [text for _, text, *_ in shown(daemon)] == ["one", "two"]


@pytest.mark.case("W17")
def test_who_edits_what_was_edited_meanwhile_is_told(daemon: Daemon) -> None:
    said = daemon.say("one")
    edit(daemon, said, "two", expected=1)
    with pytest.raises(MessageTaken, match="it is entry 2 now, and not 1"):
        edit(daemon, said, "three", expected=1)
    assert bodies(daemon.claim_one()) == ["two"]


@pytest.mark.case("W17")
def test_once_a_run_has_it_the_answer_names_the_run_and_since_when(daemon: Daemon) -> None:
    said, other = daemon.say("one"), daemon.say("two")
    order = daemon.claim_one()
    number = daemon.run(order.run).number
    for change in (
        lambda: edit(daemon, said, "x"),
        lambda: arrange(daemon, other, said),
        lambda: promote(daemon, said),
        lambda: withdraw(daemon, said),
    ):
        with pytest.raises(MessageTaken, match=rf"^ada has it: run-{number}, which started \d+ s ago\. It can no"):
            change()
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    with pytest.raises(MessageTaken, match=f"ada has it: run-{number}"):
        edit(daemon, said, "x")
    assert [text for _, text, *_ in shown(daemon)] == ["one", "two", "done"]


@pytest.mark.case("W17")
def test_what_came_back_from_a_run_untold_can_be_changed_again(daemon: Daemon) -> None:
    said = daemon.say("one")
    daemon.finish(daemon.claim_one(), Returned("the branch is gone", "workspace:branch-gone", WaitsFor.PERSON))
    edit(daemon, said, "two")
    assert states_of(daemon, said)[0] == "pending"
    daemon.say("three")
    assert bodies(daemon.claim_one()) == ["two", "three"]


def states_of(daemon: Daemon, wake: Accepted) -> tuple[str, str]:
    row = daemon.wake(wake.wake)
    return row.state, row.code


@pytest.mark.case("W17", "P20")
@pytest.mark.parametrize("evidence", [Evidence.UNSENT, Evidence.CUT_OFF])
def test_it_waits_again_but_its_agent_may_have_it(daemon: Daemon, evidence: Evidence) -> None:
    said = daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    daemon.write(partial(end_orphans, by=daemon.by, of=[RUNTIME], held=()))
    number = daemon.run(order.run).number
    assert states_of(daemon, said)[0] == "pending"
    with pytest.raises(MessageTaken, match=f"not known yet whether ada has it: run-{number}"):
        edit(daemon, said, "two")
    daemon.answer(daemon.claim_one(), evidence)
    assert states_of(daemon, said)[0] == "pending"
    if evidence is Evidence.UNSENT:
        edit(daemon, said, "two")
        assert "two" in bodies(daemon.claim_one())
        return
    with pytest.raises(MessageTaken, match=f"ada has it: run-{number}"):
        edit(daemon, said, "two")
    # Cancelled it can be, and the answer says that the text cannot be taken back.
    assert withdraw(daemon, said).words.endswith(f"But ada has it already (run-{number}).")
    assert not any(taken_back for *_, taken_back in shown(daemon))


@pytest.mark.case("W17")
def test_what_nobody_wrote_as_a_message_cannot_be_edited(daemon: Daemon) -> None:
    silent = daemon.accept(said=None, reason=WakeReason.MANUAL)
    with pytest.raises(NotAMessage, match=r"The wake \(manual\) has no message"):
        edit(daemon, silent, "x")
    outside = daemon.accept(said=Said(Author(AuthorKind.OUTSIDE, "github:acme/app#12"), "Review", 2))
    with pytest.raises(NotAMessage, match="github:acme/app#12 wrote it"):
        edit(daemon, outside, "x")
    handover = daemon.say("Gave this issue to ada.", freshness=Freshness.HANDOVER)
    with pytest.raises(NotAMessage):
        edit(daemon, handover, "x")
    with pytest.raises(Exception, match="There is no wake"):
        edit(daemon, WakeId("wk_none"), "x")


@pytest.mark.case("W17")
def test_a_retry_of_what_was_never_told_is_edited_as_its_message(daemon: Daemon) -> None:
    said = daemon.say("one")
    order = daemon.claim_one()
    daemon.finish(order, PERMANENT)
    (again,) = daemon.write(lambda connection: ask_again(connection, order.run, HUMAN, only_unserved=True, resume=None))
    assert again.wake != said.wake
    edit(daemon, again, "two")
    assert bodies(daemon.claim_one()) == ["two"]


# ---------------------------------------------------------------- moved


@pytest.mark.case("W17", "W01")
@pytest.mark.parametrize(
    ("order", "written"),
    [("abc", 0), ("cab", 2), ("bca", 1), ("acb", 1), ("cba", 2), ("c", 2), ("ca", 2), ("", 0)],
)
def test_messages_are_told_in_the_order_they_were_put_in(daemon: Daemon, order: str, written: int) -> None:
    """`written`: how many have to be written again, so that the journal has them in that order."""
    waiting = {text: daemon.say(text) for text in "abc"}
    for _ in range(2):
        arrange(daemon, *(waiting[text] for text in order))
    wanted = [*order, *(text for text in "abc" if text not in order)]
    assert len(said_in_thread(daemon)) == 3 + written
    taken = daemon.claim_one()
    assert bodies(taken) == wanted
    assert len(taken.wakes) == 3
    daemon.prompt(taken, "n-1")
    daemon.finish(taken)
    assert told_after(daemon, "d") == ["d"]


def said_in_thread(daemon: Daemon) -> Sequence[tuple[int, str]]:
    return daemon.database.read(said_in)


@pytest.mark.case("W17")
def test_a_message_that_is_moved_keeps_its_author(daemon: Daemon) -> None:
    outside = Author(AuthorKind.OUTSIDE, "github:acme/app#12")
    first = daemon.accept(said=Said(outside, "Review", 2), reason=WakeReason.EVENT)
    second = daemon.say("two")
    arrange(daemon, second, first)
    told = daemon.claim_one().entries
    assert [(entry.body, entry.facts.author) for entry in told] == [("two", PERSON), ("Review", outside)]


@pytest.mark.case("W17")
def test_messages_of_two_agents_are_not_put_in_one_order(daemon: Daemon) -> None:
    with pytest.raises(NotAMessage, match="for different agents"):
        arrange(daemon, daemon.say("one"), daemon.say("two", agent=BOB))


# ---------------------------------------------------------------- told within the turn


@pytest.mark.case("W17", "W13")
def test_one_that_waits_is_told_within_the_turn_and_those_before_it_wait_on(daemon: Daemon) -> None:
    daemon.put_capability("steers", value=True)
    order = going(daemon)
    first, second, third = (daemon.say(text) for text in ("two", "three", "four"))
    promote(daemon, second)
    promote(daemon, second)
    steered = asked_for(daemon, order)
    assert (told(steered), [wake.id for wake in steered.wakes]) == (["three"], [second.wake])
    for change in (lambda: edit(daemon, second, "x"), lambda: withdraw(daemon, second)):
        with pytest.raises(MessageTaken, match="ada has it: run-"):
            change()
    daemon.report(order, steered=Steered(True, steered.through))
    assert daemon.report(order, steers=True).steer is None
    daemon.finish(order)
    after = daemon.claim_one()
    assert [each.body for each in after.entries if each.facts.author == PERSON] == ["two", "four"]
    assert {wake.id for wake in after.wakes} == {first.wake, third.wake}


@pytest.mark.case("W17", "W13")
def test_one_that_the_turn_did_not_take_can_be_tried_again_by_a_person(daemon: Daemon) -> None:
    daemon.put_capability("steers", value=True)
    order = going(daemon)
    said = daemon.say("two")
    promote(daemon, said)
    first = asked_for(daemon, order)
    daemon.report(order, steered=Steered(False, first.through))
    promote(daemon, said)
    again = asked_for(daemon, order)
    assert (told(again), again.id != first.id, again.through > first.through) == (["two"], True, True)
    # The first report is repeated, because its answer was lost: it says nothing of the second message.
    daemon.report(order, steered=Steered(False, first.through))
    assert states_of(daemon, said) == ("claimed", "carried:steering")
    daemon.report(order, steered=Steered(True, again.through))
    daemon.finish(order)
    assert states_of(daemon, said) == ("served", "served:by-run")
    assert daemon.claim() == ()


@pytest.mark.case("W17")
def test_where_no_turn_can_be_told_the_answer_says_why(daemon: Daemon) -> None:
    early = daemon.say("one")
    with pytest.raises(NotWithinTurn, match="ada has no turn going here: the next run takes it"):
        promote(daemon, early)
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    said, fresh = daemon.say("two"), daemon.say("three", freshness=Freshness.FRESH)
    with pytest.raises(NotWithinTurn, match=f"`clew interrupt run-{daemon.run(order.run).number}`"):
        promote(daemon, said)
    with pytest.raises(NotWithinTurn, match="another session"):
        promote(daemon, fresh)


# ---------------------------------------------------------------- taken back


@pytest.mark.case("W17")
def test_what_is_taken_back_is_told_to_no_agent_and_the_journal_says_so(daemon: Daemon) -> None:
    daemon.say("before", agent=BOB)
    daemon.serve("n-b")
    said, other = daemon.say("a secret"), daemon.say("two")
    done = withdraw(daemon, said)
    assert (done.taken, done.state, done.words) == (True, "cancelled", "Taken back: ada is not told.")
    row = daemon.wake(said.wake)
    assert (row.code, row.words) == ("cancelled:taken-back", "The message was taken back (by a person).")
    again = withdraw(daemon, said)
    assert (again.taken, again.state, again.words) == (False, "cancelled", row.words)
    assert shown(daemon)[2:] == [(3, "a secret", 5, True), (4, "two", None, False), (5, "", None, False)]
    order = daemon.claim_one()
    assert ([wake.id for wake in order.wakes], bodies(order)) == ([other.wake], ["before", "done", "two"])
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    # Neither is another agent, which catches up with the thread.
    assert told_after(daemon, "and you?", agent=BOB) == ["two", "done", "and you?"]
    with pytest.raises(MessageTaken, match="It does not wait any more: The message was taken back"):
        edit(daemon, said, "x")


@pytest.mark.case("W17")
def test_with_the_last_message_its_queued_run_ends_too(daemon: Daemon) -> None:
    withdraw(daemon, daemon.say("one"))
    assert daemon.claim() == ()
    assert [row.state for row in daemon.rows(runs)] == ["cancelled"]


@pytest.mark.case("W17")
def test_another_agent_that_has_read_it_is_named_and_reads_what_replaces_it(daemon: Daemon) -> None:
    daemon.say("hello", agent=BOB)
    daemon.serve("n-b")
    daemon.put(agents, {"id": ADA}, max_live=0)
    said, other = daemon.say("for ada"), daemon.say("for ada, too")
    daemon.say("for bob", agent=BOB)
    read = daemon.claim_one()
    number = daemon.run(read.run).number
    assert bodies(read) == ["for ada", "for ada, too", "for bob"]
    # Its prompt has not gone out yet.
    edit(daemon, other, "for ada, changed")
    daemon.prompt(read)
    daemon.finish(read)
    assert withdraw(daemon, said).words == f"Taken back: ada is not told. But bob has it already (run-{number})."
    assert withdraw(daemon, other).words == "Taken back: ada is not told."


@pytest.mark.case("W17")
def test_another_agent_begins_anew_and_is_not_told_what_waits(daemon: Daemon) -> None:
    daemon.put(agents, {"id": ADA}, max_live=0)
    said = daemon.say("for ada")
    assert told_after(daemon, "for bob", agent=BOB, freshness=Freshness.FRESH) == ["for bob"]
    assert withdraw(daemon, said).words == "Taken back: ada is not told."


@pytest.mark.case("W17")
def test_the_text_of_an_issue_stays_when_its_assignment_is_cancelled(daemon: Daemon) -> None:
    opened = daemon.say("The door does not open.", reason=WakeReason.ASSIGNMENT)
    done = withdraw(daemon, opened)
    assert (done.taken, done.words) == (True, "It was cancelled (by a person).")
    assert shown(daemon) == [(1, "The door does not open.", None, False)]
    assert told_after(daemon, "Well?") == ["The door does not open.", "Well?"]
