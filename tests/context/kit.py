"""Orders, plans and entries of which prompts are made."""

from dataclasses import replace
from typing import Any

from clew.context.prompt import prompt_for
from clew.daemon.limits import BUDGET
from clew.kernel import AgentId, Author, AuthorKind, Budget, EntrySeq, JournalEntry, Plan, Wake, coalesce, decide
from clew.ports.context import Prompt, PromptRequest
from clew.protocol.orders import Entry, Order, OrderedAgent, OrderedThread
from tests.kernel.kit import ACCOUNT, AGENT, HERE, LANE, PROVIDER, RUN, THREAD, session, situation, wake

PERSON = Author(AuthorKind.HUMAN, "Eva")
BOB = Author(AuthorKind.AGENT, "bob", AgentId("bob"))
ADA = Author(AuthorKind.AGENT, "ada", AGENT)
HOOK = Author(AuthorKind.OUTSIDE, "ci")
CHAT = OrderedThread(THREAD, "chat")
ISSUE = OrderedThread(THREAD, "issue", "Find the way out", 3)


def entry(seq: int, author: Author, text: str, **facts: Any) -> Entry:
    own = {"provider": PROVIDER, "account": ACCOUNT} if author.kind is AuthorKind.AGENT else {}
    return Entry(JournalEntry(EntrySeq(seq), 0, author, **{**own, **facts}), text, 0.0)


def order(
    plan: Plan, *entries: Entry, thread: OrderedThread = CHAT, wakes: tuple[Wake, ...] = (), **more: Any
) -> Order:
    plain = Order(
        run=RUN,
        attempt=1,
        lane=LANE,
        thread=thread,
        agent=OrderedAgent(AGENT, "ada"),
        project=None,
        runtime=HERE,
        lease_until=0.0,
        session=session().id,
        plan=plan,
        wakes=wakes or (wake(1),),
        entries=entries,
    )
    return replace(plain, **more)


def planned(*wakes: Wake, seen: int | None = 3, head: int = 5, cut_off: bool = False, **changes: Any) -> Plan:
    """A plan for those wakes; with `seen`, of a lane whose session has seen that far, and whose turn was cut off."""
    sessions = [] if seen is None else [session(seen=EntrySeq(seen), cut_off=cut_off)]
    changes = {"demand": coalesce(wakes or (wake(1),)), "head": EntrySeq(head), **changes}
    return decide(situation(sessions, **changes))


def request_of(order: Order, budget: Budget = BUDGET) -> PromptRequest:
    return PromptRequest(order.plan, order.agent.id, order.thread, order.wakes, order.entries, budget, order.tries)


def prompt(of: Order, budget: Budget = Budget(10_000, 500)) -> Prompt:  # noqa: B008 - a frozen value
    return prompt_for(request_of(of, budget))
