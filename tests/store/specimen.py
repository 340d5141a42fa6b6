"""A database in which everything occurs once: every table, and every state of a wake and of a run. All of it holds."""

import hashlib
import json
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, update

from clew.kernel import decide, decision_to_record
from clew.protocol.files import SentFile, write_files
from clew.store.schema.tables import (
    agents,
    approvals,
    archives,
    decisions,
    deliveries,
    events,
    files,
    journal,
    landings,
    lanes,
    machines,
    marks,
    programs,
    projects,
    push_subscriptions,
    routes,
    runs,
    runtimes,
    schedules,
    sessions,
    threads,
    tokens,
    wakes,
    workspaces,
)
from tests.kernel.kit import session as kept_session
from tests.kernel.kit import situation

RECORD = json.dumps(decision_to_record(decide(situation([kept_session(1)]))))

LANES = {"busy": "ada", "waiting": "bob", "stopping": "ada", "idle": "bob"}
"""The lanes by name, each with its agent. Each is in a thread of its own, called after it."""

LIVE = {"lease_until": 1e12, "attempt": 1, "started_at": 2.0}
ENDED = {"ended_at": 9.0, "started_at": 2.0}


def put(connection: Connection, table: Table, **values: Any) -> None:
    connection.execute(insert(table).values(**values))


def put_run(connection: Connection, name: str, lane: str, state: str, **values: Any) -> None:
    plain: dict[str, Any] = {"agent_id": LANES[lane], "runtime_id": "rt-1", "rank": 1.0, "queued_at": 1.0}
    plain["number"] = select(func.coalesce(func.max(runs.c.number), 0) + 1).scalar_subquery()
    put(connection, runs, **{**plain, "id": name, "lane_id": lane, "state": state, **values})


def put_wake(connection: Connection, name: str, lane: str, state: str, **values: Any) -> None:
    plain = {"reason": "comment", "origin_kind": "human", "accepted_at": 1.0, "code": "accepted", "words": "It is."}
    put(connection, wakes, **{**plain, "id": name, "lane_id": lane, "thread_id": lane, "state": state, **values})


def put_session(connection: Connection, name: str, lane: str, generation: int, **values: Any) -> None:
    plain = {"provider": "loom", "runtime_id": "rt-1", "native_id": f"n-{name}", "directory": "/srv/maze"}
    cursor = json.dumps({"v": 1, "id": f"n-{name}", "extra": ""})
    row = {**plain, "cursor": cursor, "born_at": 1.0, "id": name, "lane_id": lane, "generation": generation, **values}
    put(connection, sessions, **row)


def put_decision(connection: Connection, run: str, attempt: int = 1, step: int = 0, **values: Any) -> None:
    plain = {"outcome": "resume", "code": "session:fits", "record": RECORD, "at": 2.0}
    put(connection, decisions, **{**plain, "run_id": run, "attempt": attempt, "step": step, **values})


def put_entries(connection: Connection, thread: str, *numbers: int) -> None:
    for seq in numbers:
        said = {"author_kind": "human", "author_name": "a person", "body": f"entry {seq} — ünïcode ✓", "at": float(seq)}
        put(connection, journal, thread_id=thread, seq=seq, **said)


def put_file(connection: Connection, name: str, thread: str | None, content: bytes = b"\x00\xff a plan") -> None:
    """A file; with a thread, sent with its second entry."""
    said = {"name": "plan.bin", "kind": "application/octet-stream", "owner": "a person", "created_at": 1.0}
    digest = hashlib.sha256(content).hexdigest()
    put(connection, files, id=name, thread_id=thread, size=len(content), digest=digest, content=content, **said)
    sent = write_files([SentFile(name, "plan.bin", "application/octet-stream", len(content))])
    where = (journal.c.thread_id == thread) & (journal.c.seq == 2)
    connection.execute(update(journal).where(where).values(files=sent))


def fill(connection: Connection) -> None:
    _furniture(connection)
    _runs(connection)
    _wakes(connection)
    _conversations(connection)
    _rest(connection)


def _furniture(connection: Connection) -> None:
    put(connection, machines, id="laptop", name="laptop", root="/srv", seen_at=1.5)
    put(connection, machines, id="server", name="server")
    for number, machine in enumerate(("laptop", "server"), 1):
        put(connection, runtimes, id=f"rt-{number}", machine_id=machine, provider="loom", home="/srv/home")
    program = {"account": "me", "credential": "c0ffee", "capabilities": "{}", "seen_at": 1.5}
    put(connection, programs, runtime_id="rt-1", key="k-1", **program)
    put(connection, projects, id="maze", name="maze", source="/srv/maze", machine_id="laptop")
    for agent in ("ada", "bob"):
        put(connection, agents, id=agent, name=agent, provider="loom", runtime_id="rt-1", home=f"/srv/{agent}")
    for lane, agent in LANES.items():
        archived = {"archived": int(lane == "idle"), "archived_entry": 3}
        put(connection, threads, id=lane, kind="issue", project_id="maze", created_at=0.0, **archived)
        put(connection, marks, reader="a person", thread_id=lane, seen=2, pinned_at=1.5)
        put(connection, lanes, id=lane, agent_id=agent, thread_id=lane, runtime_id="rt-1", workspace_id=f"ws-{lane}")
        put_entries(connection, lane, 1, 2, 3)
        put_file(connection, f"fl-{lane}", lane)
        place = {"kind": "worktree", "project_id": "maze", "machine_id": "laptop", "directory": f"/srv/{lane}"}
        put(connection, workspaces, id=f"ws-{lane}", lane_id=lane, created_at=1.0, **place)


def _runs(connection: Connection) -> None:
    done: dict[str, Any] = {"outcome": "run:answered", "attempt": 1, "session_id": "s-1", **ENDED}
    heard = {"prompt_sent": 1, "told": 2, "prompt": "{}", "evidence": "finished", "evidence_at": 9.0}
    put_run(connection, "r-done", "busy", "succeeded", **done, **heard)
    put_run(connection, "r-live", "busy", "running", agent_place=1, runtime_place=1, session_id="s-2", told=3, **LIVE)
    put_run(connection, "r-queued", "waiting", "queued", hold="another-try", hold_code="hold:later")
    put_run(connection, "r-lost", "waiting", "lost", outcome="run:lease-lost", **ENDED)
    cut_off = {"prompt": "{}", "evidence": "cut-off", "evidence_words": "half a turn", "evidence_at": 9.5}
    put_run(connection, "r-failed", "stopping", "failed", outcome="run:gave-up", prompt_sent=1, **cut_off, **ENDED)
    put_run(connection, "r-cancelled", "stopping", "cancelled", outcome="run:by-user", **ENDED)
    put_run(connection, "r-stopping", "stopping", "stopping", agent_place=2, runtime_place=2, **LIVE)
    for run in ("r-done", "r-live", "r-stopping"):
        put_decision(connection, run)


def _wakes(connection: Connection) -> None:
    put_wake(connection, "w-served", "busy", "served", run_id="r-done", entry=1, ended_at=9.0)
    put_wake(connection, "w-claimed", "busy", "claimed", run_id="r-live", entry=2, dedupe_key="k")
    put_wake(connection, "w-next", "busy", "pending", entry=3)
    put_wake(connection, "w-pending", "waiting", "pending", scope="own")
    put_wake(connection, "w-cancelled", "stopping", "cancelled", run_id="r-failed", ended_at=9.0)
    put_wake(connection, "w-skipped", "idle", "skipped", ended_at=9.0)


def _conversations(connection: Connection) -> None:
    put_session(connection, "s-1", "busy", 1, run_id="r-done", seen=2, archive_id="ar-1", superseded=1, native_id="n-1")
    put_session(connection, "s-2", "busy", 2, run_id="r-live", seen=3, native_id="n-1")
    put_session(connection, "s-own", "busy", 1, run_id="r-done", scope_run="r-done")
    put_session(connection, "s-elsewhere", "busy", 3, run_id="r-done", runtime_id="rt-2", native_id="n-1")
    put_session(connection, "s-unknown", "stopping", 1, runtime_id="unknown", adopted_at=3.0)
    put(connection, archives, id="ar-1", session_id="s-1", format="loom/1", digest="d", location="/a", at=2.0)


def _rest(connection: Connection) -> None:
    for seq in (1, 2, 5):
        put(connection, events, run_id="r-live", seq=seq, attempt=1, kind="text", body="…", at=2.0)
    put(connection, landings, run_id="r-live", attempt=1, step=0, landing="{}", words="It opened elsewhere.", at=2.0)
    put(connection, approvals, id="ap-open", run_id="r-live", attempt=1, question="May I?", asked_at=2.0)
    done = {"state": "approved", "answered_by": "a person", "ended_at": 3.0}
    put(connection, approvals, id="ap-done", run_id="r-done", attempt=1, question="May I?", asked_at=2.0, **done)
    put(connection, schedules, id="sc-on", lane_id="idle", every=60.0, next_due=1e12)
    put(connection, schedules, id="sc-off", lane_id="idle", enabled=0, cron="0 9 * * *")
    put(connection, routes, id="ro-1", kind="webhook", address="https://example.invalid/")
    put(connection, deliveries, id="de-1", run_id="r-done", route_id="ro-1", body="Done.")
    put_file(connection, "fl-unsent", None)
    browser = {"endpoint": "https://push.invalid/1", "p256dh": "BA", "auth": "AA", "server_key": "BB", "told": '["x"]'}
    put(connection, push_subscriptions, id="ps-1", person="a person", created_at=1.0, **browser)
    put(connection, tokens, id="to-1", kind="daemon", digest="d", created_at=1.0)
