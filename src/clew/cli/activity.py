"""Events, approvals and runs as lines of text, and the agent's messages as they stream in."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace

from clew.cli.logins import with_keys_here
from clew.cli.safe_text import Flow, one_line, safe
from clew.cli.word_wrap import WordWrap
from clew.protocol.views import ApprovalView, EventView, RunView

_LINE = 200


def line_of(event: EventView) -> str | None:
    """One short line for a conversation; None if the event is not worth one."""
    if event.kind == "tool-finished" and event.body.get("ok"):
        return None
    file = _text(event.body, "file")
    if event.kind == "tool-started" and file and not _text(event.body, "command"):
        event = replace(event, body={**event.body, "file": "\n".join(map(_short, file.splitlines()))})
    text = text_of(event)
    return None if text is None else one_line(text, _LINE)


_DEEP = 60
_KEPT = 3
"""A path with more columns is shown by its last parts."""


def _short(file: str) -> str:
    parts = file.split("/")
    return file if len(file) <= _DEEP or len(parts) <= _KEPT + 1 else "/".join(("…", *parts[-_KEPT:]))


_NAMES = {"commandExecution": "Command", "fileChange": "Change"}
"""Tools that Codex names for programs."""


def _within_shell(command: str) -> str:
    """Codex starts a shell for each command; what that shell is told, where that is so."""
    try:
        shell, how, *rest = shlex.split(command)
    except ValueError:
        return command
    is_shell = shell.rpartition("/")[2] in ("bash", "sh", "zsh") and how in ("-c", "-lc") and len(rest) == 1
    return rest[0] if is_shell else command


def activity_of(event: EventView) -> str:
    """What the agent does after this event, in a few words; empty if the event does not tell."""
    match event.kind:
        case "tool-started":
            return line_of(event) or "working"
        case "tool-finished" | "thought" | "step":
            return "thinking"
        case "text":
            return "writing"
        case _:
            return ""


def text_of(event: EventView) -> str | None:
    """The whole event, on as many lines as needed; None for parts of a message, which `Speech` puts together."""
    body = event.body
    match event.kind:
        case "tool-started":
            name = _NAMES.get(_text(body, "name"), _text(body, "name") or "tool")
            about = _within_shell(_text(body, "command")) or _text(body, "file")
            return f"{name}: {about}" if about not in ("", name) else name
        case "tool-finished":
            return _result(_text(body, "output").strip("\n"), ok=bool(body.get("ok")))
        case "thought":
            return f"thinks: {_text(body, 'text')}"
        case "plan":
            return f"plan: {_steps(body.get('steps'))}"
        case "used":
            cost = body.get("cost")
            money = f", {cost:.4f} USD" if isinstance(cost, int | float) else ""
            return f"used: {body.get('input', 0)} tokens in, {body.get('output', 0)} out{money}"
        case "approval" | "question":
            words, about = _text(body, "words"), _text(body, "command") or _text(body, "file")
            asked = f"{words} ({about})" if about not in ("", words) else words
            return f"asks: {asked} ({_text(body, 'id')})"
        case "session":
            kept = "" if body.get("durable") else ", not durable yet"
            return f"session: {_text(body, 'native_id')}{kept}"
        case "retrying" | "failed":
            return _trouble(event)
        case "done":
            return f"done: {_text(body, 'ending')}"
        case "step" | "steer":
            return _step(body)
        case "text":
            return None
        case other:
            return other


def _trouble(event: EventView) -> str:
    words = _text(event.body, "words")
    if event.kind == "retrying":
        return f"the model does not answer, and the agent tries again: {words}"
    return f"failed: {words} [{_text(event.body, 'code')}]"


def _step(body: Mapping[str, object]) -> str:
    if "taken" in body:
        return f"{'received' if body['taken'] else 'did not receive'}: {_text(body, 'text')}"
    return f"{_text(body, 'what')}: {_text(body, 'words')}"


def _result(output: str, *, ok: bool) -> str | None:
    if ok:
        return f"printed: {output}" if output else None
    return f"failed: {output or 'no output'}"


def decision_of(run: RunView) -> str | None:
    """How it continues, in one line: briefly for a resume, which is what everybody expects; anything else says why."""
    if run.decision is None:
        return None
    if run.decision == "resume":
        return f"Continuing ({run.ref})." if not run.on_its_word else f"Continuing, on the agent's word ({run.ref})."
    return one_line(f"{run.decision}: {run.decision_words or ''}".rstrip(": ")) + f" ({run.ref})"


def failure_of(run: RunView) -> str:
    """How a run failed, in a sentence; empty if it succeeded."""
    if run.state == "succeeded":
        return ""
    return with_keys_here(ended(run) + (f": {run.words}" if run.words else ".")) + f" See `clew why {run.ref}`."


def ended(run: RunView) -> str:
    """For example: The run failed, The run was cancelled."""
    return f"The run {run.state}" if run.state in ("succeeded", "failed") else f"The run was {run.state}"


def approval_lines(approval: ApprovalView) -> list[str]:
    """What an agent asks a person: a permission, or a question with its choices."""
    words = one_line(approval.words)
    if approval.kind == "question":
        lines = [f"{approval.agent} asks: {words}"]
    elif approval.command:
        lines = [f"{approval.agent} wants to run a command:"]
        # Most agents describe a command as just that; the description is shown where it says more.
        if approval.words != approval.command and not words.lower().endswith("run a command"):
            lines.append(f"  {words}")
        lines += [f"  $ {line}" for line in safe(approval.command).splitlines()]
    else:
        lines = [f"{approval.agent} asks for permission: {words}"]
    if approval.file:
        lines.append(f"  file {one_line(approval.file)}")
    lines += [f"  {number}. {one_line(choice)}" for number, choice in enumerate(approval.choices, 1)]
    return lines


class Speech:
    """Prints the agent's messages: parts as they arrive, then whatever the final message adds to them."""

    def __init__(self) -> None:
        self._flow = Flow()
        self._wrap = WordWrap() if sys.stdout.isatty() else None
        self._parts = ""
        self._since = ""
        """The parts since the last pause."""
        self._open = False
        self.said = False

    def add(self, body: Mapping[str, object]) -> None:
        text = _text(body, "text")
        if not body.get("final", True):
            self._parts += text
            self._since += text
            self._write(self._flow.add(text))
            return
        rest = next(
            (rest for shown in (self._parts, self._since) if (rest := _unprinted(text, shown)) is not None), None
        )
        if rest is None:
            self.pause()
        self._write(self._flow.add(text if rest is None else rest))
        self.end()

    def pause(self) -> None:
        """Ends the current line, so that something else can be printed."""
        self._write(self._flow.end())
        self._print(self._wrap.end() if self._wrap else "")
        if self._open:
            self._print("\n")
        self._since = ""

    def end(self) -> None:
        """The next part starts another message."""
        self.pause()
        self._parts = ""

    def _write(self, text: str) -> None:
        self._print(self._wrap.add(text) if self._wrap else text)

    def _print(self, text: str) -> None:
        if not text:
            return
        sys.stdout.write(text)
        sys.stdout.flush()
        self._open = not text.endswith("\n")
        self.said = self.said or bool(text.strip())


def _unprinted(text: str, shown: str) -> str | None:
    """The part of `text` that was not printed yet; None if what was printed is not its start. Surrounding whitespace is
    ignored: programs end their output with a newline that the final message may lack."""
    if not shown.strip():
        return None
    if text.strip() == shown.strip():
        return ""
    text, shown = text.lstrip(), shown.lstrip()
    return text[len(shown) :] if text.startswith(shown) else None


def _steps(steps: object) -> str:
    if not isinstance(steps, list):
        return ""
    return "; ".join(" ".join(map(str, step)) if isinstance(step, list) else str(step) for step in steps)


def _text(body: Mapping[str, object], name: str) -> str:
    found = body.get(name)
    return found if isinstance(found, str) else ""
