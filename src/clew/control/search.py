"""Search: what was written in journals, titles and logs, found by its words."""

from dataclasses import replace

from clew.control.actor import Actor
from clew.control.faults import BadRequest
from clew.control.search_index import catch_up
from clew.control.services import Services
from clew.control.validation import check_limit
from clew.kernel import ProjectId
from clew.protocol.search import FoundKind, FoundPage
from clew.store.engine.database import Transaction
from clew.store.engine.dialect import storable
from clew.store.queries import search as queries
from clew.store.queries.names import agent_named, project_named, thread_called
from clew.store.search.query import Query, read_query

MOST_WORDS = 64
"""Words of one query."""

MOST_COUNTED = 10_000
_SHOWN = 60


async def search(
    services: Services,
    actor: Actor,
    q: str,
    thread: str | None = None,
    agent: str | None = None,
    project: str | None = None,
    kind: str | None = None,
    limit: int = 50,
    before: str | None = None,
) -> FoundPage:
    """Find entries, titles and log texts, the newest first; with `before`, those older than that result. With `agent`,
    what that agent wrote, and the logs of its runs."""
    most, of_kind, older_than = check_limit(limit), _kind(kind), _place(before)
    query = _query(q)

    def read(tx: Transaction) -> FoundPage:
        asked = queries.SearchFor(
            query,
            thread=None if thread is None else thread_called(tx, thread).id,
            agent=None if agent is None else agent_named(tx, agent).id,
            project=None if project is None else ProjectId(project_named(tx, project).id),
            kind=of_kind,
        )
        page = queries.search(tx, asked, most, older_than)
        return replace(page, unindexed=queries.count_due(tx, MOST_COUNTED))

    await catch_up(services, actor)
    return await services.read(read)


def _query(typed: str) -> Query:
    query = read_query(storable(typed))
    shown = repr(typed if len(typed) <= _SHOWN else f"{typed[:_SHOWN]}…")
    if not query.wanted and query.unwanted:
        raise BadRequest(f"{shown} only says what to leave out.", "Add a word to search for.")
    if not query.wanted:
        words = f"{shown} has no word or number in it." if typed.strip() else "The search is empty."
        raise BadRequest(words, "Type one or more words to search for.")
    count = sum(len(term.words) for term in (*query.wanted, *query.unwanted))
    if count > MOST_WORDS:
        raise BadRequest(f"The search has {count} words; the limit is {MOST_WORDS}.", "Search for fewer words.")
    return query


def _kind(kind: str | None) -> FoundKind | None:
    for known in queries.KINDS:
        if kind == known:
            return known
    if kind is None:
        return None
    raise BadRequest(f"Unknown kind of result {kind!r}.", f"Use one of: {', '.join(queries.KINDS)}.")


def _place(before: str | None) -> int:
    if before is None:
        return queries.NEWEST
    if not (before.isascii() and before.isdecimal() and int(before) <= queries.NEWEST):
        raise BadRequest(f"There is no result {before!r}.", "Give the `older` of a page, or the `id` of a result.")
    return int(before)
