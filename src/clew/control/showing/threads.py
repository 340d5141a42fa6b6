"""Threads as they are shown: what goes on in them is what their lanes' newest runs say."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection

from clew.control.showing.runs import until_retried
from clew.kernel import LIVE, RunState, WaitsFor
from clew.protocol.orders import Entry
from clew.protocol.views import EntryView, LaneView, ThreadView
from clew.store.engine.statement import Row
from clew.store.faults import NoSuchThread
from clew.store.queries.threads import newest_runs_in, read_thread, thread_ref

_RANKS: Mapping[str, int] = {"waiting": 0, "running": 1, "held": 2, "queued": 3, "idle": 4}
"""What is shown of a thread in which several things go on: the first of them."""


def show_threads(connection: Connection, rows: Sequence[Row]) -> tuple[ThreadView, ...]:
    newest: dict[str, list[Row]] = {}
    for run in newest_runs_in(connection, [row["id"] for row in rows]):
        newest.setdefault(run["thread_id"], []).append(run)
    return tuple(_show(row, newest.get(row["id"], [])) for row in rows)


def show_thread(connection: Connection, thread: str) -> ThreadView:
    row = read_thread(connection, thread)
    if row is None:
        raise NoSuchThread(f"There is no thread {thread}.", "See them with `clew threads`.")
    return show_threads(connection, [row])[0]


def _show(row: Row, newest: Iterable[Row]) -> ThreadView:
    status, words = min((_status(run) for run in newest), key=lambda each: _RANKS[each[0]], default=("idle", ""))
    return ThreadView(
        id=row["id"],
        ref=thread_ref(row),
        kind=row["kind"],
        title=row["title"],
        state=row["state"],
        status=status,
        words=words,
        project=row["project_name"],
        assignee=row["thread_owner"],
        entries=row["entries"],
        created_at=row["created_at"],
        updated_at=max(row["updated_at"], row["created_at"]),
    )


def _status(run: Row) -> tuple[str, str]:
    state, words = RunState(run["state"]), run["words"] or ""
    if state is RunState.WAITING:
        return "waiting", words or "It waits for an answer."
    if state in LIVE:
        return "running", words
    if state is RunState.QUEUED:
        held = until_retried(words, run["id"], run["hold_code"]) if run["hold"] == WaitsFor.PERSON else words
        return ("held" if run["hold"] else "queued"), held
    # How the last one ended is worth a word only where it did not go well.
    return "idle", words if state in (RunState.FAILED, RunState.LOST) else ""


def show_entry(entry: Entry) -> EntryView:
    author = entry.facts.author
    return EntryView(entry.seq, author.kind.value, author.name, entry.body, entry.at, entry.run)


def show_lane(row: Row) -> LaneView:
    """Without a workspace it works in its agent's home."""
    return LaneView(
        id=row["id"],
        agent=row["agent_name"],
        directory=row["directory"] or row["home"],
        branch=row["branch"],
        runtime=row["runtime_id"] or row["agent_runtime"],
        overlap=row["overlap"],
    )
