"""The lines of a run's log, made by the code that makes them: the kind of each, its fields, and an example."""

import ast
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, get_args

from clew.daemon.log_lines import STEP, line_of, line_of_steer
from clew.kernel import (
    ApprovalId,
    Author,
    AuthorKind,
    EntrySeq,
    JournalEntry,
    LaneId,
    NativeId,
    PromptId,
    Wake,
    WakeId,
    WakeReason,
)
from clew.ports.events import (
    ApprovalAsked,
    Done,
    Ending,
    ErrorCode,
    Event,
    Failed,
    PlanChanged,
    QuestionAsked,
    Retrying,
    SessionNamed,
    Text,
    Thought,
    ToolFinished,
    ToolStarted,
    Used,
)
from clew.protocol.orders import Entry
from clew.protocol.reports import Steer

DAEMON = Path(__file__).resolve().parents[1] / "src" / "clew" / "daemon"

SAMPLES: tuple[tuple[Event, str], ...] = (
    (Text("The page is mended."), "Text of the agent. `final` is false for a part of a message; the whole follows."),
    (Thought("The style sheet comes from another host."), "What the agent thinks, where it says so."),
    (
        ToolStarted("tool-1", "Bash", "make test", "/srv/web/Makefile"),
        "A tool starts. `command` is what it runs and `file` what it touches, where the agent says so.",
    ),
    (ToolFinished("tool-1", True, "12 passed"), "A tool has finished; `id` is that of its `tool-started` line."),
    (
        PlanChanged((("Find the fault", "completed"), ("Mend it", "in_progress"))),
        "The agent's list of steps. Each is a pair: the step, and its state as the agent words it.",
    ),
    (
        Used(1200, 85, 1000, 0.01),
        "What this turn has used so far, in tokens and USD. A later line replaces an earlier one.",
    ),
    (
        ApprovalAsked(ApprovalId("ap_4f0c"), "Bash", "Run a command", "rm -r build", "/srv/web/build"),
        "The agent asks whether it may. `id` is that of the approval.",
    ),
    (
        QuestionAsked(ApprovalId("ap_4f0c"), "Which browser?", ("Firefox", "Safari")),
        "The agent asks a question. `id` is that of the approval.",
    ),
    (
        SessionNamed(NativeId("01998a2e-5f"), True),
        "The agent's own id of its session. `durable` once another process could find it.",
    ),
    (Retrying("The model is overloaded."), "The model failed, and the agent itself tries again."),
    (Failed(ErrorCode.USAGE_LIMIT, "The usage limit is reached.", True), "The turn failed."),
    (Done(Ending.COMPLETED, "The page is mended."), "The end of every turn. `reply` is the agent's last message."),
)
"""A filled event of every kind, and what its line says."""

VALUES = {
    ("failed", "code"): tuple(code.value for code in ErrorCode),
    ("done", "ending"): tuple(ending.value for ending in Ending),
}
"""The values of fields that have few."""


@dataclass(frozen=True)
class LogLine:
    kind: str
    words: str
    example: dict[str, Any]
    sparse: dict[str, Any]
    """The same with nothing that is optional: shows what may be null."""

    def values(self, name: str) -> tuple[str, ...]:
        return step_names() if (self.kind, name) == (STEP, "what") else VALUES.get((self.kind, name), ())


def log_lines() -> Iterator[LogLine]:
    missing = set(get_args(Event)) - {type(event) for event, _ in SAMPLES}
    assert not missing, f"tools/log_lines.py has no sample of {missing}"
    step = {"what": "open", "words": "The agent opens its session: resume. Continuing the same conversation."}
    yield LogLine(STEP, "What Clew itself does in the run. `what` is one of the values below.", step, step)
    for event, words in SAMPLES:
        kind, example = line_of(event)
        yield LogLine(kind, words, example, line_of(_sparse(event))[1])
    wake = Wake(WakeId("wk_71be"), LaneId("lane"), WakeReason.COMMENT, entries=(EntrySeq(7),))
    entry = Entry(JournalEntry(EntrySeq(7), 8, Author(AuthorKind.HUMAN, "user")), "It happens on Safari, too.", 0.0)
    steer = Steer((wake,), (entry,), EntrySeq(6), EntrySeq(7), PromptId("prompt"))
    kind, example = line_of_steer(steer, True)
    words = "A message was sent to the agent within its turn. `taken` says whether the agent received it."
    yield LogLine(kind, words, example, example)


def _sparse(event: Event) -> Event:
    needed = {
        each.name: getattr(event, each.name)
        for each in fields(event)
        if each.init and each.default is MISSING and each.default_factory is MISSING
    }
    return type(event)(**needed)


def step_names() -> tuple[str, ...]:
    """All that `log_step` is called with in the daemon, in its source."""
    found = set()
    for file in DAEMON.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(attr="log_step"), args=[ast.Constant(value=str(what)), *_]):
                    found.add(what)
                case ast.Call(func=ast.Attribute(attr="log_step")):
                    raise AssertionError(f"{file.name}:{node.lineno}: `what` of a step must be a literal")
                case _:
                    pass
    return tuple(sorted(found))
