"""What Codex would do by itself: nothing of it happens, and nothing of it is taken for the session's own."""

import asyncio
import json

import pytest

from clew.kernel import Answer, ProbeKind
from clew.ports.events import ApprovalAsked, Ending, SessionNamed
from clew.programs.faults import SessionBusy
from tests.providers.codex.kit import ASK, Lab, turn
from tests.providers.loopback import server
from tests.providers.loopback.heard import Json
from tests.providers.loopback.openai_responses import Responses
from tests.providers.loopback.script import Spoken

TEAM = "multi_agent_v1"


class Namespaced(Responses):
    """A call of a tool in a namespace: the prompt names the namespace, and the tool among its arguments."""

    def whole(self, spoken: Spoken, model: str) -> Json:
        whole = super().whole(spoken, model)
        for item in whole["output"]:
            if item.get("name") == TEAM:
                arguments = json.loads(item["arguments"])
                item |= {"namespace": TEAM, "name": arguments.pop("tool"), "arguments": json.dumps(arguments)}
        return whole


@pytest.mark.case("P07", "L05")
def test_a_goal_does_not_drive_a_session_on(lab: Lab) -> None:
    """With goals on, Codex sends prompts of its own from the moment a thread is opened."""

    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider)
        await lab.raw("thread/goal/set", {"threadId": cursor.native_id, "objective": "go on and on"})
        requests = len(lab.model.requests)
        session = await lab.open(provider, cursor)
        await asyncio.sleep(1.0)
        assert len(lab.model.requests) == requests, "nothing is sent before the landing is verified"
        assert (await turn(session, "second")).seen.users == 2
        await asyncio.sleep(1.0)
        assert len(lab.model.requests) == requests + 1

    lab.play(scene())


@pytest.mark.case("P07", "C29")
def test_a_session_with_messages_waiting_in_codex_is_not_opened(lab: Lab) -> None:
    """Codex begins to serve them when it opens the thread, whatever was to be done there."""

    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider)
        program, peer = await lab.client("a")
        id_, words = cursor.native_id, [{"type": "text", "text": "SLOW: 20"}]
        await peer.call("thread/resume", {"threadId": id_}, 30)
        before = len(lab.model.requests)
        await peer.call("turn/start", {"threadId": id_, "input": words}, 30)
        await peer.call("thread/queue/add", {"threadId": id_, "clientUserMessageId": "1", "input": words}, 30)
        # The request of the turn that goes on is not one of the messages that wait.
        async with asyncio.timeout(30):
            while len(lab.model.requests) == before:
                await asyncio.sleep(0.01)
        await program.end(0, gently=False)
        await peer.close()
        requests = len(lab.model.requests)
        probe = await provider.probe(cursor, lab.directory())
        assert probe.kind is ProbeKind.BUSY
        assert "waiting in Codex" in probe.detail
        with pytest.raises(SessionBusy, match="waiting in Codex"):
            await lab.open(provider, cursor)
        assert len(lab.model.requests) == requests

    lab.play(scene())


@pytest.mark.case("S13", "S04", "A03")
def test_a_sub_agent_is_no_session_and_its_questions_are_asked(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(server.DIALECTS, "/responses", Namespaced())
    ran = lab.file("ran")
    spawn = f'CALL: {TEAM} {{"tool": "spawn_agent", "message": "aside\\nESCALATE: touch {ran}"}}'
    # The other must be known by its id to be waited for, so the main turn just takes its time.
    prompt = f"{spawn}\nRUN: sleep 3"

    async def scene() -> None:
        provider = lab.provider()
        session = await lab.open(provider, mode=ASK)
        await turn(session, "first")
        turned = await turn(session, prompt, Answer.APPROVE)
        assert turned.done.ending is Ending.COMPLETED
        assert {event.native_id for event in turned.of(SessionNamed)} == {session.landing.native_id}
        assert "aside" not in [event.text for event in turned.events if hasattr(event, "text")]
        (asked,) = turned.of(ApprovalAsked)
        assert str(ran) in (asked.command or "")
        assert ran.exists()
        assert (await turn(session, "after")).seen.first == "first"
        assert session.cursor is not None
        assert len(lab.rollouts()) == 2, "the sub-agent has a file of its own"
        assert [found.cursor for found in await provider.sessions()] == [session.cursor]

    lab.play(scene())
