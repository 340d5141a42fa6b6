"""The threads of outside subjects: made by their first event, whoever of several it is."""

from sqlalchemy import Connection, bindparam, literal_column

from clew.kernel import AgentId, ProjectId, Subject
from clew.store.clock import now
from clew.store.dialect import insert_in
from clew.store.reading.names import thread_called
from clew.store.statement import Row, Statement
from clew.store.tables import threads

KIND = "subject"

_make = Statement(
    lambda dialect: (
        insert_in(dialect, threads)
        .values(
            id=bindparam("id"),
            kind=literal_column(f"'{KIND}'"),
            title=bindparam("title"),
            project_id=bindparam("project"),
            assignee=bindparam("agent"),
            created_at=now(),
        )
        .on_conflict_do_nothing(index_elements=[threads.c.id])
    )
)


def thread_of(connection: Connection, subject: Subject, agent: AgentId, project: ProjectId | None) -> Row:
    """The subject's thread, held; where it is the first to be heard of it, it is that agent's, and in that project."""
    _make.leave(connection, id=subject.thread, title=str(subject), project=project, agent=agent)
    return thread_called(connection, subject.thread, held=True)
