"""One request or more for each call of the API, as docs/api-reference.md shows them. A test sends every one of them.

A name in braces that an example does not fill, such as `{wake}`, is an id from an earlier answer.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Example:
    """`call` is the method and the path as the API declares it; `names` fill the path. A body that is a text is sent as
    it is, and everything else as JSON."""

    call: str
    body: Any = None
    query: str = ""
    names: dict[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        return self.call.partition(" ")[0]

    @property
    def path(self) -> str:
        """Filled in as far as the names go."""
        path = self.call.partition(" ")[2]
        for name, value in self.names.items():
            path = path.replace(f"{{{name}}}", value)
        return f"{path}?{self.query}" if self.query else path


ADA, WEB, ISSUE, RUN = {"name": "ada"}, {"name": "web"}, {"ref": "issue-1"}, {"run": "run-1"}
LANE = {"ref": "issue-1", "agent": "ada"}
POLICY = {"policy": {"reset": {"reasons": ["assignment"]}, "limits": {"turns": 50}}}
_KEYS = {
    "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    "auth": "BTBZMqHH6r4Tts7J_aSIgg",
}

_AGENTS = (
    Example("GET /agents", query="removed=true"),
    Example(
        "POST /agents",
        {
            "name": "ada",
            "provider": "guide",
            "mode": "full",
            "instructions": "Answer in one sentence.",
            "environment": {"EDITOR": "true"},
            "most": 2,
        },
    ),
    Example("GET /agents/{name}", names=ADA),
    Example("PATCH /agents/{name}", {"mode": "edit", "heartbeat": {"every": 3600}}, names=ADA),
    Example("DELETE /agents/{name}", names={"name": "bob"}),
    Example("GET /agents/{name}/policy", names=ADA),
    Example("POST /agents/{name}/policy", POLICY, names=ADA),
    Example("GET /agents/{name}/login", names=ADA),
    Example("POST /agents/{name}/test", names=ADA),
    Example("POST /begin", {"provider": "guide"}),
)

_PROJECTS = (
    Example("GET /projects"),
    Example("POST /projects", {"name": "web", "source": "/srv/web", "base": "main"}),
    Example("GET /projects/{name}", names=WEB),
    Example("PATCH /projects/{name}", {"mode_limit": "edit", "setup": ["true"]}, names=WEB),
    Example("DELETE /projects/{name}", names={"name": "old"}),
    Example("GET /projects/{name}/policy", names=WEB),
    Example("POST /projects/{name}/policy", {"policy": {"limits": {"turns": 100}}}, names=WEB),
)

_THREADS = (
    Example(
        "POST /issues",
        {
            "title": "The login page is blank",
            "body": "It happens on Firefox only.",
            "project": "web",
            "assignee": "ada",
        },
    ),
    Example("POST /chats", {"agent": "ada", "title": "Plans for the week"}),
    Example("GET /threads", query="kind=issue&state=open&agent=ada&limit=20"),
    Example("GET /threads/{ref}", query="limit=10", names=ISSUE),
    Example("PATCH /threads/{ref}", {"title": "The login page is blank on Firefox"}, names=ISSUE),
    Example("POST /threads/{ref}/words", {"text": "It happens on Safari, too.", "key": "comment-17"}, names=ISSUE),
    Example("POST /files", "The build log of Friday\n", query="name=build.log"),
    Example("GET /files/{file}"),
    Example("POST /threads/{ref}/words", {"text": "The log is attached.", "files": ["{file}"]}, names=ISSUE),
    Example("POST /threads/{ref}/assign", {"agent": "ada"}, names=ISSUE),
    Example("POST /threads/{ref}/close", names=ISSUE),
    Example("POST /threads/{ref}/reopen", names=ISSUE),
    Example("POST /threads/{ref}/read", {"entry": 2}, names=ISSUE),
    *(
        Example(f"POST /threads/{{ref}}/{mark}", names=ISSUE)
        for mark in ("unread", "pin", "unpin", "archive", "unarchive")
    ),
    Example("PATCH /threads/{ref}/lanes/{agent}", {"overlap": "queue"}, names=LANE),
    Example("DELETE /threads/{ref}/lanes/{agent}/allowed", names=LANE),
    Example(
        "POST /threads/{ref}/adopt",
        {"agent": "ada", "runtime": "{runtime}", "native_id": "{native_id}"},
        names={"ref": "chat-1"},
    ),
    Example("POST /threads/{ref}/release", names=ISSUE),
)

_WORK = (
    Example("GET /threads/{ref}/diff", query="agent=ada&stat=true", names=ISSUE),
    Example("POST /threads/{ref}/commit", {"message": "Mend the login page"}, names=ISSUE),
    Example("POST /threads/{ref}/merge", {"into": "main"}, names=ISSUE),
    Example("POST /threads/{ref}/propose", {"title": "Mend the login page", "body": "Tested by hand."}, names=ISSUE),
    Example("POST /threads/{ref}/checkout", {}, names=ISSUE),
    Example("POST /threads/{ref}/checkout", {"done": True}, names=ISSUE),
    Example("POST /workspaces/accept", {"name": "issue-1", "agent": "ada"}),
    Example("GET /workspaces"),
    Example("POST /workspaces/clean", {"dry": True}),
)

_RUNS = (
    Example(
        "POST /wakes",
        {"agent": "ada", "text": "The build is red.", "subject": "github:acme/app#12", "key": "delivery-93f1"},
    ),
    Example("GET /wakes/{wake}"),
    Example("PATCH /wakes/{wake}", {"text": "It happens on Firefox, too."}),
    Example("POST /wakes/{wake}/steer"),
    Example("DELETE /wakes/{wake}"),
    Example("GET /threads/{ref}/preview", query="agent=ada&overlap=steer", names=ISSUE),
    Example("GET /threads/{ref}/queue", names=ISSUE),
    Example("POST /threads/{ref}/queue", {"wakes": ["{later}", "{wake}"]}, names=ISSUE),
    Example("GET /runs", query="thread=issue-1&agent=ada&limit=20"),
    Example("GET /runs/{run}", names=RUN),
    Example("GET /runs/{run}/events", query="after=0&limit=100", names=RUN),
    Example("POST /runs/{run}/cancel", names={"run": "issue-1"}),
    Example("POST /runs/{run}/interrupt", names={"run": "issue-1"}),
    Example("POST /runs/{run}/retry", {}, names={"run": "issue-1"}),
    Example("POST /runs/{run}/rerun", names=RUN),
    Example("GET /why/{subject}", names={"subject": "run-1"}),
    Example("GET /overview"),
    Example("GET /notices"),
    Example("GET /push"),
    Example(
        "POST /push/subscriptions", {"endpoint": "https://push.invalid/wpush/v2/93f1", "keys": _KEYS, "title": False}
    ),
    Example("DELETE /push/subscriptions/{subscription}"),
    Example("GET /search", query="q=login+page&kind=entry&limit=20"),
    Example("GET /usage", query="since=1760000000&by=agent"),
    Example("POST /replay", {"since": 1760000000, "policy": {"limits": {"turns": 5}}, "agent": "ada"}),
    Example("GET /approvals", query="state=pending"),
    Example("POST /approvals/{approval}", {"allow": True, "always": True}),
)

_SERVER = (
    Example("GET /sessions", query="thread=issue-1"),
    Example("GET /sessions/found", query="agent=ada"),
    Example(
        "POST /sessions/adopt",
        {"agent": "ada", "runtime": "{runtime}", "native_id": "{native_id}", "thread": "chat-1"},
    ),
    Example("GET /runtimes"),
    Example("GET /doctor"),
    Example("GET /live", query="thread=issue-1"),
    Example("POST /tickets"),
    Example("GET /health"),
)

EXAMPLES = (*_AGENTS, *_PROJECTS, *_THREADS, *_WORK, *_RUNS, *_SERVER)
