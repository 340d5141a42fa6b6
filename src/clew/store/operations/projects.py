"""Projects: the sources of lanes' workspaces."""

from sqlalchemy import Connection, bindparam, insert, literal_column, null, select, text, update

from clew.kernel import ProjectId, RuntimeId
from clew.store.engine.dialect import insert as insert_or
from clew.store.engine.hints import hint_queue
from clew.store.engine.statement import Statement, may_be_done
from clew.store.faults import NameTaken
from clew.store.operations.ids import derived_id
from clew.store.operations.updates import PROJECT_COLUMNS, ProjectUpdate, column_values
from clew.store.schema.tables import lanes, machines, projects, runs, threads

_known = Statement(lambda _: select(projects).where(projects.c.id == bindparam("project")))

_delete = Statement(lambda _: projects.delete().where(projects.c.id == bindparam("project")))

_look_again = Statement(
    lambda _: (
        runs.update()
        .where(
            text("runs.state = 'queued' AND runs.hold <> ''"),
            runs.c.lane_id.in_(
                select(lanes.c.id)
                .join(threads, threads.c.id == lanes.c.thread_id)
                .where(lanes.c.id == runs.c.lane_id, threads.c.project_id == bindparam("project"))
            ),
        )
        .values(hold=literal_column("''"), hold_code=null(), not_before=null())
        .returning(runs.c.runtime_id)
    )
)


def add_project(
    connection: Connection, name: str, source: str, machine: str | None, mode_limit: str | None, settings: str
) -> ProjectId:
    # The id is derived from the name: two concurrent inserts of the same project meet in its primary key.
    project = ProjectId(derived_id("pj", name))
    values = {"name": name, "source": source, "machine_id": machine, "mode_limit": mode_limit, "settings": settings}
    there = _known.first(connection, project=project)
    if there is not None and may_be_done(connection) and all(there[key] == value for key, value in values.items()):
        return project
    if there is not None:
        raise NameTaken(f"There is already a project {name!r}.", "Choose another name, or change that project.")
    if machine is not None:
        # A machine that has not registered a runtime yet gets a row with its id as its name.
        known = insert_or(connection, machines).values(id=machine, name=machine)
        connection.execute(known.on_conflict_do_nothing())
    connection.execute(insert(projects).values(id=project, **values))
    return project


def remove_project(connection: Connection, project: str) -> None:
    """Delete it. The caller has made sure that no thread and no workspace belongs to it."""
    _delete.count(connection, project=project)


def change_project(connection: Connection, project: str, change: ProjectUpdate) -> None:
    """Held runs of the project are decided again."""
    values = column_values(change, PROJECT_COLUMNS)
    if values:
        connection.execute(update(projects).where(projects.c.id == project).values(**values))
    for runtime in {row["runtime_id"] for row in _look_again.rows(connection, project=project)}:
        hint_queue(connection, None if runtime is None else RuntimeId(runtime))
