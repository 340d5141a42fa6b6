"""Outside subjects, such as a pull request: every event of one goes to its own thread."""

from clew.control.faults import BadRequest
from clew.kernel import ProjectId, Subject, read_subject
from clew.protocol.requests import Poke
from clew.store.engine.database import Transaction
from clew.store.engine.dialect import storable
from clew.store.operations.threads import thread_of
from clew.store.queries.agents import AgentRecord
from clew.store.queries.names import ThreadRecord, project_named

_SUBJECT_FORM = "Write it as source:name, as in github:acme/app#12."


def subject_of(asked: Poke) -> Subject | None:
    """The outside subject that the wake is about, if any."""
    if asked.subject is None:
        if asked.project is not None:
            raise BadRequest("A project is for the thread of a subject, and none is named.", "Name the subject, too.")
        return None
    if asked.thread is not None:
        raise BadRequest("A subject has its own thread, and another thread is named.", "Name one of them.")
    if not asked.text.strip():
        raise BadRequest("The event of a subject needs a text.", "Give a text.")
    if storable(asked.subject) != asked.subject:
        raise BadRequest(f"{asked.subject!r} has a character that cannot be stored.", _SUBJECT_FORM)
    try:
        return read_subject(asked.subject)
    except ValueError as fault:
        raise BadRequest(str(fault), _SUBJECT_FORM) from fault


def thread_of_subject(tx: Transaction, subject: Subject, agent: AgentRecord, project: str | None) -> ThreadRecord:
    wanted = None if project is None else ProjectId(project_named(tx, project).id)
    thread = thread_of(tx, subject, agent.id, wanted)
    if wanted is not None and thread.project != wanted:
        raise BadRequest(f"The thread of {subject} is not in project {project!r}.", "Leave the project out.")
    return thread
