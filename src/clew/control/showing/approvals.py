"""Approvals as they are shown. A question is kept as JSON; one that is not is shown as the text it is."""

import orjson

from clew.protocol.views import ApprovalView
from clew.store.engine.statement import Row
from clew.store.queries.threads import thread_ref


def show_approval(row: Row) -> ApprovalView:
    asked = _asked(row["question"])
    choices = asked.get("choices")
    return ApprovalView(
        id=row["id"],
        run=row["run_id"],
        thread=thread_ref(row),
        agent=row["agent_name"],
        kind="question" if asked.get("kind") == "question" else "approval",
        words=str(asked.get("words") or ""),
        tool=_text(asked.get("tool")),
        command=_text(asked.get("command")),
        file=_text(asked.get("file")),
        choices=tuple(map(str, choices)) if isinstance(choices, list) else (),
        state=row["state"],
        asked_at=row["asked_at"],
        answered_by=row["answered_by"],
        answer=row["answer"],
        expires_at=row["expires_at"],
        ended_at=row["ended_at"],
    )


def _asked(question: str) -> dict[str, object]:
    try:
        asked = orjson.loads(question)
    except ValueError:
        asked = None
    return asked if isinstance(asked, dict) else {"words": question}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
