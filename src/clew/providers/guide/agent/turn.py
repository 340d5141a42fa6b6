"""One turn of the guide: the steps of the script in order, then the answer."""

import asyncio
import os
import secrets
from collections.abc import Callable

from clew.providers.guide.agent.rpc import INTERNAL, CallError, Json, Rpc
from clew.providers.guide.agent.script import Script, Step, answer, follow, pieces
from clew.providers.guide.agent.tools import do, verdict
from clew.providers.guide.memory import BEGUN, Session

_OPTIONS = [
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
]


class RunningTurn:
    """`said` is the answer so far. Prompts during the turn are taken after a step, before the answer begins.

    `save` writes the session; its flag says whether that must survive a power failure.
    """

    def __init__(self, rpc: Rpc, session: Session, mode: str, save: Callable[[Session, bool], None]) -> None:
        self._rpc, self._session, self._mode, self._save = rpc, session, mode, save
        self._told: list[tuple[str, list[str], asyncio.Future[bool]]] = []
        self._answering = False
        self.said = ""

    async def steer(self, words: str, ids: list[str]) -> bool:
        """Whether it became part of the turn; returns when that is known."""
        if self._answering:
            return False
        taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._told.append((words, ids, taken))
        return await taken

    def stop_steering(self) -> None:
        self._answering = True
        for _, _, taken in self._told:
            if not taken.done():
                taken.set_result(False)
        self._told.clear()

    async def run(self, prompt: str) -> None:
        self._session.turns[-1].ending = BEGUN
        self._save(self._session, False)
        script = follow(prompt)
        if script.think:
            self._update("agent_thought_chunk", content=_text(script.think))
        if script.plan:
            entries = [{"content": step, "priority": "medium", "status": "pending"} for step in script.plan]
            self._update("plan", entries=entries)
        if script.fail:
            raise CallError(INTERNAL, f"The model failed with {script.fail[0]}.", _fault(script.fail))
        steps, outputs, say = list(script.steps), [], script.say
        while steps:
            outputs.append(await self._tool(steps.pop(0)))
            for more in self._added():
                steps, say = [*steps, *more.steps], more.say or say
        if script.ends:
            await self._break_off(script.ends)
        self.stop_steering()
        prompts = [turn.prompt for turn in self._session.turns]
        await self._say(script, say or answer(prompts, self._session.directory, self._mode, outputs))

    def _added(self) -> list[Script]:
        """Prompts that came meanwhile. They are in its memory when this returns."""
        told, self._told = self._told, []
        for words, ids, taken in told:
            turn = self._session.turns[-1]
            turn.prompt, turn.ids = f"{turn.prompt}\n\n{words}", [*turn.ids, *ids]
            self._save(self._session, True)
            taken.set_result(True)
        return [follow(words) for words, _, _ in told]

    async def _say(self, script: Script, text: str) -> None:
        parts = pieces(text)
        for part in parts:
            self._chunk(part)
            await asyncio.sleep(script.seconds / len(parts))

    async def _break_off(self, how: str) -> None:
        self._chunk("Beginning")
        if how == "CUT":
            os._exit(1)
        await asyncio.Event().wait()

    async def _tool(self, step: Step) -> str:
        call = self._call(step)
        self._update("tool_call", **call, status="pending")
        id_, allowed = call["toolCallId"], verdict(self._mode, step, self._session.directory)
        if allowed is None:
            allowed = await self._asked(call)
        if allowed:
            self._update("tool_call_update", toolCallId=id_, status="in_progress")
            ok, output = await do(step, self._session.directory)
        else:
            ok, output = False, f"This was not allowed in the mode {self._mode}."
        content = [{"type": "content", "content": _text(output)}]
        self._update("tool_call_update", toolCallId=id_, status="completed" if ok else "failed", content=content)
        return output

    def _call(self, step: Step) -> Json:
        id_ = f"call_{secrets.token_hex(8)}"
        if step.file is None:
            return {"toolCallId": id_, "title": step.text, "kind": "execute", "rawInput": {"command": step.text}}
        places = [{"path": os.path.join(self._session.directory, step.file)}]  # noqa: PTH118 - as text, for the wire
        given = {"file": step.file, "text": step.text}
        return {
            "toolCallId": id_,
            "title": f"Write {step.file}",
            "kind": "edit",
            "locations": places,
            "rawInput": given,
        }

    async def _asked(self, call: Json) -> bool:
        said = {"sessionId": self._session.id, "toolCall": call, "options": _OPTIONS}
        outcome = (await self._rpc.call("session/request_permission", said)).get("outcome") or {}
        return outcome.get("outcome") == "selected" and outcome.get("optionId") == "allow"

    def _chunk(self, text: str) -> None:
        self.said += text
        self._update("agent_message_chunk", content=_text(text))

    def _update(self, kind: str, /, **said: object) -> None:
        self._rpc.notify("session/update", {"sessionId": self._session.id, "update": {"sessionUpdate": kind, **said}})


def play_back(session: Session, tell: Callable[[Json], None]) -> None:
    """Play back a session to the client that loads it."""
    for turn in session.turns:
        for kind, text in (("user_message_chunk", turn.prompt), ("agent_message_chunk", turn.reply)):
            if text:
                tell({"sessionId": session.id, "update": {"sessionUpdate": kind, "content": _text(text)}})


def _fault(numbers: tuple[int, ...]) -> Json:
    status, *when = numbers
    return {"status": status, **({"resetAt": when[0]} if when else {})}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}
