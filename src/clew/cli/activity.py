"""What an agent does besides speaking, each event as one line; and what it says, as it says it."""

import sys
from collections.abc import Mapping

from clew.cli.harmless import Flow, harmless, one_line
from clew.protocol.views import ApprovalView, EventView, RunView

_LINE = 200


def line_of(event: EventView) -> str | None:
    """In a conversation: one short line, and nothing for an event that says nothing by itself."""
    if event.kind == "tool-finished" and event.body.get("ok"):
        return None
    text = text_of(event)
    return None if text is None else one_line(text, _LINE)


def text_of(event: EventView) -> str | None:
    """All that it says, on as many lines as that takes; nothing for a message, whose parts belong together."""
    body = event.body
    match event.kind:
        case "tool-started":
            name, about = _text(body, "name") or "tool", _text(body, "command") or _text(body, "file")
            return f"{name}: {about}" if about not in ("", name) else name
        case "tool-finished":
            return _came_of(_text(body, "output").strip("\n"), ok=bool(body.get("ok")))
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
            kept = "" if body.get("durable") else ", not yet kept"
            return f"session: {_text(body, 'native_id')}{kept}"
        case "failed":
            return f"failed: {_text(body, 'words')} [{_text(body, 'code')}]"
        case "done":
            return f"done: {_text(body, 'ending')}"
        case "step" | "steer":
            return _on_the_way(body)
        case "text":
            return None
        case other:
            return other


def _on_the_way(body: Mapping[str, object]) -> str:
    if "taken" in body:
        return f"{'is told' if body['taken'] else 'did not take'}: {_text(body, 'text')}"
    return f"{_text(body, 'what')}: {_text(body, 'words')}"


def _came_of(output: str, *, ok: bool) -> str | None:
    if ok:
        return f"printed: {output}" if output else None
    return f"failed: {output or 'no output'}"


def decision_of(run: RunView) -> str | None:
    return None if run.decision is None else one_line(f"{run.decision}: {run.decision_words or ''}".rstrip(": "))


def ending_of_run(run: RunView) -> str:
    """How it ended, for people: nothing to say when it went well."""
    if run.state == "succeeded":
        return ""
    return f"The run ended {run.state}" + (f": {run.words}" if run.words else ".") + f" See `clew why {run.id}`."


def asking(approval: ApprovalView) -> list[str]:
    """What an agent asks of a person."""
    what = "asks" if approval.kind == "question" else "asks whether it may"
    said = "" if approval.words in (approval.command, approval.file) else f": {one_line(approval.words)}"
    lines = [f"{approval.agent} {what}{said}"]
    if approval.command:
        lines += [f"  $ {line}" for line in harmless(approval.command).splitlines()]
    if approval.file:
        lines.append(f"  file {one_line(approval.file)}")
    lines += [f"  {number}. {one_line(choice)}" for number, choice in enumerate(approval.choices, 1)]
    return lines


class Speech:
    """The agent's messages to stdout: parts as they come, then only what the whole message adds to them."""

    def __init__(self) -> None:
        self._flow = Flow()
        self._parts = ""
        self._since = ""
        """Those of the parts that came after the last pause."""
        self._open = False
        self.said = False

    def hear(self, body: Mapping[str, object]) -> None:
        text = _text(body, "text")
        if not body.get("final", True):
            self._parts += text
            self._since += text
            self._write(self._flow.add(text))
            return
        rest = next((rest for shown in (self._parts, self._since) if (rest := _rest(text, shown)) is not None), None)
        if rest is None:
            self.pause()
        self._write(self._flow.add(text if rest is None else rest))
        self.end()

    def pause(self) -> None:
        """Something else is to be shown: begin it on a line of its own."""
        self._write(self._flow.end())
        if self._open:
            self._write("\n")
        self._since = ""

    def end(self) -> None:
        """What comes next is another message."""
        self.pause()
        self._parts = ""

    def _write(self, text: str) -> None:
        if not text:
            return
        sys.stdout.write(text)
        sys.stdout.flush()
        self._open = not text.endswith("\n")
        self.said = self.said or bool(text.strip())


def _rest(text: str, shown: str) -> str | None:
    """What of a message was not shown yet; nothing where what was shown is not its beginning. Programs end their
    output with a line's end that the message need not have."""
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
