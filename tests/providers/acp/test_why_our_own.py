"""Why the protocol's SDK is not used to speak to agents (decision 0008); when one of these fails, look at it again."""

import logging
import sys
from typing import Any

import acp
import pytest
from acp import schema
from acp.client.connection import ClientSideConnection
from pydantic import ValidationError

from tests.providers.kit import run

# An agent that is ahead of the schema: an update of a kind, and a reason to stop, that nobody knows yet.
AHEAD = """
import json, sys
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    call = json.loads(line)
    if call["method"] == "initialize":
        say(id=call["id"], result={"protocolVersion": 1})
    else:
        for update in (
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "one"}},
            {"sessionUpdate": "of_another_day", "text": "a-secret-123"},
        ):
            say(method="session/update", params={"sessionId": "s", "update": update})
        say(id=call["id"], result={"stopReason": "of_another_day"})
"""


class Client:
    def __init__(self) -> None:
        self.told: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:  # noqa: ARG002
        self.told.append(update)

    def on_connect(self, conn: Any) -> None: ...


def test_what_it_does_not_know_is_lost_and_logged_in_full(caplog: pytest.LogCaptureFixture) -> None:
    client: Any = Client()

    async def scene() -> None:
        async with acp.spawn_agent_process(client, sys.executable, "-c", AHEAD) as (agent, _):
            await agent.initialize(protocol_version=1)
            with pytest.raises(ValidationError, match="stopReason"):
                await agent.prompt(session_id="s", prompt=[acp.text_block("hi")])

    with caplog.at_level(logging.ERROR):
        run(scene())
    assert len(client.told) == 1
    assert "a-secret-123" in caplog.text


def test_it_has_no_call_that_older_agents_need() -> None:
    answer = {"sessionId": "s", "models": {"currentModelId": "m", "availableModels": []}}
    assert "models" not in schema.NewSessionResponse.model_validate(answer).model_dump(by_alias=True, exclude_none=True)
    assert "session/set_model" not in acp.AGENT_METHODS.values()
    assert not hasattr(ClientSideConnection, "delete_session")
