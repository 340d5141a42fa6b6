"""Programs: account, key and capabilities belong to the agent's own program, whatever else runs in that home."""

import json
import random
from dataclasses import dataclass, replace

import pytest
from sqlalchemy import Connection

from clew.kernel import (
    AccountId,
    AgentId,
    Capabilities,
    MachineId,
    Outcome,
    RunId,
    ThreadId,
    capabilities_to_record,
    lane_id,
)
from clew.protocol.control import Registration
from clew.protocol.orders import Order
from clew.store.operations.runtimes import accounts_there, as_started, register_runtime
from clew.store.operations.steering import steerable_run
from clew.store.schema.tables import agents, journal, programs, runtimes, sessions, threads
from tests.store.kit import ABLE, ADA, BOB, LANE, LOOM, RUNTIME, THREAD, Daemon, pin_of


@dataclass(frozen=True)
class Known:
    account: str | None
    credential: str | None
    able: Capabilities


WORK = Known("me@work", None, ABLE)
KEYED = Known(None, "k1", replace(ABLE, steers=True, fork=False))


def registered(key: str, known: Known) -> Registration:
    return Registration(
        MachineId("laptop"),
        "laptop",
        LOOM,
        "/srv/home",
        None if known.account is None else AccountId(known.account),
        json.dumps(capabilities_to_record(known.able)),
        max_live=50,
        program=key,
        credential=known.credential,
    )


def register(daemon: Daemon, key: str, known: Known) -> None:
    assert daemon.write(lambda connection: register_runtime(connection, registered(key, known))) == RUNTIME


def start(daemon: Daemon, agent: AgentId, key: str, known: Known) -> None:
    """As a start of the server finds that agent."""
    register(daemon, key, known)
    daemon.put(agents, {"id": agent}, program=key, max_live=50)


def here(order: Order) -> Known:
    found = order.plan.situation.here
    return Known(found.account, found.credential, found.capabilities)


def asked(daemon: Daemon, agent: AgentId, thread: ThreadId = THREAD) -> Order:
    daemon.say("look", agent=agent, thread=thread)
    return daemon.claim_one()


@pytest.mark.case("S14")
def test_two_agents_in_one_home_keep_apart_over_twenty_starts_in_any_order(daemon: Daemon) -> None:
    chance = random.Random(7)
    own = {ADA: ("key-ada", WORK), BOB: ("key-bob", KEYED)}
    for number in range(20):
        for agent in chance.sample([ADA, BOB], 2):
            start(daemon, agent, *own[agent])
        daemon.make_room()
        thread = ThreadId(f"t-{number}")
        daemon.add(threads, id=thread, kind="issue", created_at=0.0)
        for agent in chance.sample([ADA, BOB], 2):
            order = asked(daemon, agent, thread)
            assert (order.agent.id, here(order)) == (agent, own[agent][1])
            daemon.prompt(order, f"n-{agent}-{number}")
            daemon.finish(order)
    stamped = {(row.lane_id, row.account, row.credential) for row in daemon.rows(sessions)}
    assert stamped == {
        (lane_id(agent, ThreadId(f"t-{number}")), known.account, known.credential)
        for agent, (_, known) in own.items()
        for number in range(20)
    }
    written = {(row.agent_id, row.account) for row in daemon.rows(journal, "seq", author_kind="agent")}
    assert written == {(ADA, "me@work"), (BOB, None)}
    assert daemon.database.read(accounts_there) == {RUNTIME: ("me@work",)}
    assert len(daemon.rows(programs, "key")) == 2


@pytest.mark.case("S14")
def test_only_who_can_be_told_something_within_a_turn_is(daemon: Daemon) -> None:
    start(daemon, BOB, "key-bob", KEYED)
    start(daemon, ADA, "key-ada", WORK)
    runs: dict[AgentId, RunId] = {}
    for agent in (ADA, BOB):
        order = asked(daemon, agent)
        daemon.prompt(order, f"n-{agent}")
        runs[agent] = order.run

    def able(agent: AgentId) -> RunId | None:
        return daemon.database.read(lambda connection: steerable_run(connection, lane_id(agent, THREAD)))

    # Ada was registered last, and so stands with the runtime.
    assert (able(ADA), able(BOB)) == (None, runs[BOB])
    register(daemon, "key-bob", KEYED)
    assert (able(ADA), able(BOB)) == (None, runs[BOB])


def test_an_agent_of_an_older_database_is_what_was_registered_there_last(daemon: Daemon) -> None:
    daemon.put(runtimes, {"id": RUNTIME}, account="me@home")
    order = asked(daemon, ADA)
    assert here(order) == Known("me@home", None, ABLE)
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    assert [row.account for row in daemon.rows(journal, "seq", author_kind="agent")] == ["me@home"]
    start(daemon, BOB, "key-bob", KEYED)
    start(daemon, ADA, "key-ada", WORK)
    assert here(asked(daemon, ADA)) == WORK


@pytest.mark.case("S14")
def test_what_a_run_said_is_its_sessions_account_whatever_its_agent_is_by_then(daemon: Daemon) -> None:
    start(daemon, ADA, "key-ada", WORK)
    order = asked(daemon, ADA)
    daemon.prompt(order, "n-1")
    start(daemon, ADA, "key-other", replace(WORK, account="me@home"))
    daemon.finish(order)
    assert [row.account for row in daemon.rows(journal, "seq", author_kind="agent")] == ["me@work"]
    # One that has no session to tell is who its agent is.
    order = asked(daemon, BOB)
    start(daemon, BOB, "key-bob", KEYED)
    daemon.prompt(order)
    daemon.finish(order)
    assert [row.account for row in daemon.rows(journal, "seq", agent_id=BOB)] == [None]


@pytest.mark.case("S15")
def test_another_key_goes_on_in_the_same_session_which_then_has_that_key(daemon: Daemon) -> None:
    start(daemon, ADA, "key-1", KEYED)
    order = asked(daemon, ADA)
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    start(daemon, ADA, "key-2", replace(KEYED, credential="k2"))
    order = asked(daemon, ADA)
    assert (order.plan.outcome, order.plan.native_id) == (Outcome.RESUME, "n-1")
    assert [finding.code for finding in order.plan.considered[0].findings] == ["key:drift"]
    daemon.prompt(order, pin=pin_of(order.plan, "n-1"))
    daemon.finish(order)
    assert [(row.native_id, row.credential) for row in daemon.rows(sessions, lane_id=LANE)] == [("n-1", "k2")]
    order = asked(daemon, ADA)
    assert (order.plan.outcome, order.plan.considered[0].findings) == (Outcome.RESUME, ())


@pytest.mark.case("S15")
def test_another_named_account_is_withheld_unless_the_agent_allows_it(daemon: Daemon) -> None:
    start(daemon, ADA, "key-1", WORK)
    order = asked(daemon, ADA)
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    start(daemon, ADA, "key-2", KEYED)
    daemon.say("look")
    refused = daemon.claim_one().plan
    assert (refused.outcome, refused.reason.code) == (Outcome.BLANK, "account:withheld")
    assert refused.words == (
        "The account changed from account me@work to a key that names no account, "
        "so the agent does not get the earlier history. "
        "`clew agent edit ada --across-accounts yes` allows it from the next change on."
    )


@pytest.mark.case("S15")
def test_what_an_agent_allows_is_handed_on_and_its_session_left_alone(daemon: Daemon) -> None:
    start(daemon, ADA, "key-1", WORK)
    order = asked(daemon, ADA)
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    start(daemon, ADA, "key-2", replace(WORK, account="me@home"))
    daemon.put(agents, {"id": ADA}, policy='{"history_across_accounts": true}')
    order = asked(daemon, ADA)
    assert (order.plan.outcome, order.plan.session, order.plan.reason.code) == (Outcome.RESEED, None, "account:other")
    assert [entry.body for entry in order.entries] == ["look", "done", "look"]
    assert order.plan.reader.across_accounts


def test_nobody_is_started_where_there_is_no_such_agent_or_runtime(daemon: Daemon) -> None:
    def look(agent: str, runtime: str) -> bool:
        def do(connection: Connection) -> bool:
            return as_started(connection, agent, runtime) is not None

        return daemon.database.read(do)

    assert (look(ADA, RUNTIME), look("eve", RUNTIME), look(ADA, "rt-none")) == (True, False, False)
