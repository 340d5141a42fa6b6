"""Views as the API answers with them."""

from dataclasses import replace

from clew.protocol.views import (
    AgentView,
    ApprovalView,
    EntryView,
    LaneView,
    LogView,
    ProjectView,
    Rhythm,
    RunView,
    SessionView,
    ThreadPage,
    ThreadView,
    WakeView,
)
from clew.protocol.why_views import ConsideredView, DecisionView, StepView, WhyView

AT = 1_750_000_000.0

AGENT = AgentView(
    id="agent-1",
    name="ada",
    state="active",
    provider="guide",
    model=None,
    mode="edit",
    instructions="Be brief.",
    program=(),
    options={},
    home_variables={},
    environment_names=("KEY",),
    most=1,
    home="/data/homes/ada",
    runtime="rt-1",
    live=0,
    waiting=2,
    heartbeat=Rhythm(every=1800.0, next_at=AT),
    place="/data/guide (guide on m1)",
)

PROJECT = ProjectView("project-1", "web", "/src/web", "repository", "main", ("npm ci",), None, "m-1")

THREAD = ThreadView(
    id="thread-1",
    ref="chat-1",
    kind="chat",
    title="Hello",
    state="open",
    status="idle",
    words="",
    project=None,
    assignee="ada",
    entries=2,
    created_at=AT,
    updated_at=AT + 60,
)

ISSUE = replace(THREAD, id="thread-2", ref="issue-3", kind="issue", title="The page is blank", project="web")

RUN = RunView(
    id="run-1",
    ref="run-1",
    thread="chat-1",
    agent="ada",
    state="succeeded",
    attempt=1,
    queued_at=AT,
    started_at=AT + 1,
    ended_at=AT + 3.5,
    runtime="rt-1",
    session="session-1",
    decision="resume",
    decision_words="Continuing the same conversation (session 1).",
    claim="resumed",
    code=None,
    words=None,
)

HELD = replace(
    RUN,
    state="queued",
    ended_at=None,
    code="workspace:branch-gone",
    words="The branch is gone. Once that is fixed, run `clew retry run-1`.",
    held="person",
)

GOING = replace(RUN, state="running", ended_at=None)

WAKE = WakeView(
    id="wake-1",
    thread="chat-1",
    agent="ada",
    reason="chat",
    origin="human",
    state="pending",
    code="accepted:lane-free",
    words="",
    accepted_at=AT,
    run="run-1",
    entry=3,
)

SERVED = replace(WAKE, state="served", code="wake:served", ended_at=AT + 4)

APPROVAL = ApprovalView(
    id="ap_1",
    run="run-1",
    thread="chat-1",
    agent="ada",
    kind="approval",
    words="Run a command",
    tool="Bash",
    command="rm -r build",
    file=None,
    choices=(),
    state="pending",
    asked_at=AT,
)

QUESTION = replace(
    APPROVAL, id="ap_2", kind="question", words="Which one?", tool=None, command=None, choices=("red", "blue")
)

PAGE = ThreadPage(
    thread=ISSUE,
    lanes=(LaneView("lane-1", "ada", "/srv/web/issue-3", "clew/issue-3-ada", "rt-1"),),
    entries=(
        EntryView(1, "human", "me", "It is blank.\n\x1b[31mred\x1b[0m", AT),
        EntryView(2, "agent", "ada", "I look at it.", AT + 5, "run-1"),
    ),
    runs=(RUN,),
    approvals=(APPROVAL,),
    earlier=True,
)

SESSION = SessionView(
    id="session-1",
    thread="chat-1",
    agent="ada",
    generation=2,
    provider="guide",
    runtime="rt-1",
    native_id="native-1",
    directory="/data/homes/ada",
    state="active",
    turns=4,
    seen=7,
    born_at=AT,
    proven_at=None,
    resumability="unproven",
    scope="",
    superseded=False,
)

DECISION = DecisionView(
    attempt=1,
    step=1,
    at=AT,
    outcome="reseed",
    code="session:lost",
    words="Its session is lost, so a new one is handed a brief.",
    directory="/srv/web",
    place_words="The lane works there.",
    mode="edit",
    mode_words="The mode is edit, as asked.",
    catch_up="entries 1 to 3",
    notices=("The model is another.",),
    considered=(
        ConsideredView(
            "session-1",
            1,
            "out",
            "cannot be used",
            (
                StepView("session-1", "lane", "fit", "fit", "It belongs to this lane."),
                StepView("session-1", "state", "out", "state:lost", "It is lost."),
            ),
        ),
    ),
    probes=(StepView("session-1", "probe", "missing", "probe:missing", "The agent does not have it."),),
)

WHY = WhyView(
    subject="run-1",
    headline="reseed: Its session is lost, so a new one is handed a brief. [session:lost]",
    run=RUN,
    wakes=(SERVED,),
    decisions=(DECISION,),
    landing={"native_id": "native-2", "directory": "/srv/web", "mode": "edit"},
    refused=(),
)


def log(seq: int, kind: str, run: str = "run-1", /, **body: object) -> LogView:
    return LogView(run, seq, kind, AT + seq, body)
