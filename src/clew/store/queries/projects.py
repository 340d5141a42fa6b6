"""Projects as views, and their settings as they are stored."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

from sqlalchemy import Connection, bindparam, literal_column, select, text

from clew.kernel import FoundReason
from clew.ports.workspaces import SourceKind
from clew.protocol.views import Mode, ProjectView
from clew.store.engine.statement import Row, Statement
from clew.store.operations.policies import POLICY, policy_in
from clew.store.operations.rows import read_object
from clew.store.schema.tables import lanes, projects, runs, threads

MOST = 1000

_settings = Statement(lambda _: select(projects.c.settings).where(projects.c.id == bindparam("project")))
_all = Statement(lambda _: select(projects).order_by(projects.c.name).limit(MOST))

# ix_runs_held holds the held runs alone; SQLite searches it only with a condition on its column.
moved = Statement(
    lambda _: (
        select(projects)
        .where(
            projects.c.id.in_(
                select(threads.c.project_id)
                .select_from(
                    runs.join(lanes, lanes.c.id == runs.c.lane_id).join(threads, threads.c.id == lanes.c.thread_id)
                )
                .where(
                    text("runs.state = 'queued' AND runs.hold <> '' AND runs.queued_at > 0"),
                    runs.c.hold_code == literal_column(f"'{FoundReason.PROJECT_MOVED.code}'"),
                )
            )
        )
        .order_by(projects.c.name)
    )
)


def list_moved(connection: Connection) -> tuple[ProjectView, ...]:
    """The projects with runs that are held because their directory was not there."""
    return tuple(map(project_view, moved.rows(connection)))


def list_projects(connection: Connection) -> tuple[ProjectView, ...]:
    return tuple(map(project_view, _all.rows(connection)))


def project_view(row: Row) -> ProjectView:
    """Settings that cannot be read are left out: a project can always be shown, and changed."""
    kept = read_object(row["settings"]) or {}
    return ProjectView(
        id=row["id"],
        name=row["name"],
        source=row["source"],
        kind=kept.get("kind", SourceKind.REPOSITORY.value),
        base=kept.get("base"),
        setup=tuple(kept.get("setup", ())),
        mode_limit=cast(Mode | None, row["mode_limit"]),
        machine=row["machine_id"],
    )


def project_settings(
    kind: SourceKind, base: str | None, setup: Sequence[str], policy: Mapping[str, object] | None = None
) -> str:
    kept = {POLICY: dict(policy)} if policy else {}
    return json.dumps({"kind": kind.value, "base": base, "setup": list(setup), **kept})


def read_settings(connection: Connection, project: str) -> str:
    row = _settings.first(connection, project=project)
    return "{}" if row is None else str(row["settings"])


def project_policies(connection: Connection) -> dict[str, Mapping[str, object]]:
    """The policy of each project, by the project's id."""
    return {row["id"]: policy_in(row["settings"]) for row in _all.rows(connection)}
