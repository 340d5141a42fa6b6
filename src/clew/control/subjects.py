"""Outside subjects: which one a wake is about, and the thread that is its own."""

from sqlalchemy import Connection

from clew.control.faults import BadRequest
from clew.kernel import AgentId, ProjectId, Subject, read_subject
from clew.protocol.requests import Poke
from clew.store.engine.statement import Row
from clew.store.operations.texts import keepable
from clew.store.operations.threads import thread_of
from clew.store.queries.names import project_named

_WRITE_IT = "Write it as source:name, as in github:acme/app#12."


def subject_named(asked: Poke) -> Subject | None:
    """None for a wake that is about none."""
    if asked.subject is None:
        if asked.project is not None:
            raise BadRequest("A project is for the thread of a subject, and none is named.", "Name the subject, too.")
        return None
    if asked.thread is not None:
        raise BadRequest("A subject has its own thread, and another one is named.", "Name one of them.")
    if not asked.text.strip():
        raise BadRequest("An event says something, and this one says nothing.", "Give a text.")
    if keepable(asked.subject) != asked.subject:
        raise BadRequest(f"{asked.subject!r} holds a character that cannot be kept.", _WRITE_IT)
    try:
        return read_subject(asked.subject)
    except ValueError as fault:
        raise BadRequest(str(fault), _WRITE_IT) from fault


def its_thread(connection: Connection, subject: Subject, agent: Row, project: str | None) -> Row:
    wanted = None if project is None else ProjectId(project_named(connection, project)["id"])
    row = thread_of(connection, subject, AgentId(agent["id"]), wanted)
    if wanted is not None and row["project_id"] != wanted:
        raise BadRequest(f"{subject} is not worked on in {project}.", "Leave the project out: the thread has its own.")
    return row
