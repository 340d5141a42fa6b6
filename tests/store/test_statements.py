"""How many statements one wake takes, from its arrival to its end."""

from clew.kernel import WakeReason
from clew.protocol.orders import ClaimRequest
from clew.protocol.reports import Completed, Finish, Landed, Report
from clew.store.operations.claim import claim
from clew.store.operations.finish import finish
from clew.store.operations.report import report
from clew.store.operations.wakes import accept_wake
from tests.store.kit import RUNTIME, Daemon, pin_of, prompted_of, request, sent

MOST = 15


def wake_once(daemon: Daemon, native: str, reason: WakeReason = WakeReason.COMMENT) -> list[str]:
    """Every statement of one wake: accepted, claimed, opened and pinned in one report, finished."""
    asked, database = request(reason=reason), daemon.database
    _, accepting = sent(database, lambda connection: accept_wake(connection, asked))
    (order,), claiming = sent(database, lambda connection: claim(connection, ClaimRequest("daemon-1", (RUNTIME,))))
    told = Report(
        order.run,
        order.attempt,
        opens=True,
        landed=Landed("{}", "started"),
        told=order.plan.situation.head,
        prompted=prompted_of(order, native),
        pin=pin_of(order.plan, native),
    )
    reported, reporting = sent(database, lambda connection: report(connection, told))
    assert reported.may_prompt
    ended = Finish(order.run, order.attempt, Completed("done"))
    finished, finishing = sent(database, lambda connection: finish(connection, ended))
    assert finished.taken
    return [*accepting, *claiming, *reporting, *finishing]


def listed(statements: list[str]) -> str:
    return "\n".join([f"{len(statements)} statements", *(" ".join(text.split())[:100] for text in statements)])


def test_a_first_wake_in_a_new_lane_takes_few_statements(daemon: Daemon) -> None:
    statements = wake_once(daemon, "n-1")
    assert 10 < len(statements) <= MOST, listed(statements)


def test_a_wake_that_resumes_takes_few_statements(daemon: Daemon) -> None:
    wake_once(daemon, "n-1")
    statements = wake_once(daemon, "n-1")
    assert daemon.sessions() == [(1, "n-1", "healthy")]
    assert 10 < len(statements) <= MOST, listed(statements)


def test_a_fresh_start_by_policy_takes_one_more_to_cut_the_lanes_history_off(daemon: Daemon) -> None:
    wake_once(daemon, "n-1")
    statements = wake_once(daemon, "n-2", WakeReason.ASSIGNMENT)
    assert daemon.lane().floor_generation == 1
    assert 10 < len(statements) <= MOST + 1, listed(statements)
