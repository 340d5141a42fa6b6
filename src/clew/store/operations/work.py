"""The work of a worktree as it was last counted by its machine, and whether it was merged. Stored as JSON."""

import json
from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection, bindparam, select

from clew.kernel import Instant, WorkspaceId
from clew.ports.work import Work
from clew.protocol.views import WorkView
from clew.store.engine.dialect import storable
from clew.store.engine.statement import Statement
from clew.store.operations.rows import read_object
from clew.store.schema.tables import workspaces

_read = Statement(lambda _: select(workspaces.c.work).where(workspaces.c.id == bindparam("workspace")))
_keep = Statement(
    lambda _: workspaces.update().where(workspaces.c.id == bindparam("workspace")).values(work=bindparam("work"))
)


@dataclass(frozen=True, slots=True)
class _Stored:
    at: Instant
    base: str = ""
    files: int = 0
    uncommitted: int = 0
    commits: int | None = None
    merged_into: str | None = None
    merged_at: Instant | None = None


def keep_work(connection: Connection, work: Work, now: Instant) -> None:
    """Store what was counted. Work that was merged stays so until there is more."""
    row = _read.first(connection, workspace=work.workspace)
    if row is None:
        return
    before = read_work(row["work"])
    stored = _Stored(now, storable(work.base), work.files, work.uncommitted, work.commits)
    if before is not None and not work.files and not work.commits:
        stored = replace(stored, merged_into=before.merged_into, merged_at=before.merged_at)
    _write(connection, work.workspace, stored)


def _write(connection: Connection, workspace: WorkspaceId, stored: _Stored) -> None:
    _keep.count(connection, workspace=workspace, work=json.dumps(asdict(stored)))


def read_work(text: str) -> WorkView | None:
    """None before it was first counted, and where it cannot be read: `clew db check` names such a row."""
    said = read_object(text)
    if not said:
        return None
    try:
        stored = _Stored(**said)
    except TypeError:
        return None
    words = work_words(stored.files, stored.uncommitted)
    return WorkView(
        stored.base,
        stored.files,
        stored.uncommitted,
        stored.commits,
        stored.at,
        words,
        stored.merged_into,
        stored.merged_at,
    )


def view_of(work: Work, now: Instant) -> WorkView:
    words = work_words(work.files, work.uncommitted)
    return WorkView(work.base, work.files, work.uncommitted, work.commits, now, words)


def work_words(files: int, uncommitted: int) -> str:
    if not files:
        return ""
    changed = "1 file changed" if files == 1 else f"{files} files changed"
    return f"{changed}, {uncommitted} uncommitted" if uncommitted else changed
