"""Our client and our agent keep to the protocol: its own SDK says so."""

import asyncio
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema
from pydantic import BaseModel

from clew.kernel import Answer, PermissionMode
from clew.ports.provider import Settings
from clew.providers.acp import make
from tests.providers.kit import QUICK, opened, place, run, spec, turn

GUIDE = (sys.executable, "-P", "-m", "clew.providers.guide.agent")

# What each side sends, and what it must be.
CALLS: dict[str, type[BaseModel]] = {
    "initialize": schema.InitializeRequest,
    "session/new": schema.NewSessionRequest,
    "session/load": schema.LoadSessionRequest,
    "session/resume": schema.ResumeSessionRequest,
    "session/fork": schema.ForkSessionRequest,
    "session/list": schema.ListSessionsRequest,
    "session/delete": schema.DeleteSessionRequest,
    "session/set_mode": schema.SetSessionModeRequest,
    "session/prompt": schema.PromptRequest,
    "session/cancel": schema.CancelNotification,
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
}
ANSWERS: dict[str, type[BaseModel]] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/prompt": schema.PromptResponse,
    "session/request_permission": schema.RequestPermissionResponse,
}


def checked(lines: list[dict[str, Any]]) -> set[str]:
    """Every message is what the schema says, with no field that it does not know; the methods that were used."""
    used: set[str] = set()
    # Every process of the agent counts its calls from one.
    methods: dict[tuple[bool, Any], str] = {}
    for entry in lines:
        ours, message = entry["ours"], entry["message"]
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            methods[ours, message.get("id")] = message["method"]
            used.add(message["method"])
            _fits(CALLS[message["method"]], message["params"])
        elif "result" in message:
            method = methods[not ours, message["id"]]
            if method in ANSWERS:
                _fits(ANSWERS[method], message["result"])
        else:
            schema.Error.model_validate(message["error"])
    return used


def _fits(model: type[BaseModel], value: Any) -> None:
    read = model.model_validate(value).model_dump(mode="json", by_alias=True, exclude_none=True)
    assert _covers(read, value), f"{model.__name__} does not know all of {value}"


def _covers(read: Any, value: Any) -> bool:
    match value:
        case dict():
            return isinstance(read, dict) and all(key in read and _covers(read[key], value[key]) for key in value)
        case list():
            return len(read) == len(value) and all(map(_covers, read, value))
        case _:
            return bool(read == value)


TEE = """
import json, subprocess, sys, threading
log, *command = sys.argv[1:]
lock, file = threading.Lock(), open(log, "a", buffering=1)
agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def pump(source, sink, ours):
    for line in source:
        with lock:
            file.write(json.dumps({"ours": ours, "message": json.loads(line)}) + "\\n")
        sink.write(line)
        sink.flush()
    sink.close()
threading.Thread(target=pump, args=(agent.stdout, sys.stdout.buffer, False), daemon=True).start()
pump(sys.stdin.buffer, agent.stdin, True)
agent.wait(5)
"""


def test_what_our_client_and_our_agent_say_fits_the_schema(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def scene() -> None:
        modes = {f"mode.{mode}": str(mode) for mode in PermissionMode}
        program = (sys.executable, "-c", TEE, str(log), *GUIDE)
        home = {"GUIDE_HOME": str(tmp_path / "home")}
        provider = make(Settings(program=program, home=home, options=modes, deadlines=QUICK))
        async with opened(provider, spec(tmp_path, PermissionMode.ASK)) as session:
            await turn(
                session, f"THINK: hm\nPLAN: one; two\nRUN: echo hi\nWRITE: {tmp_path / 'x'} text", Answer.APPROVE
            )
            await turn(session, "RUN: echo hi", Answer.DENY)
            await turn(session, "FAIL: 500")
            going = asyncio.create_task(turn(session, "HANG"))
            await asyncio.sleep(0.5)
            await session.interrupt()
            await going
            cursor = session.cursor
            assert cursor is not None
            await session.close()
            await (await provider.open(spec(tmp_path, cursor=cursor))).close()
            await (await provider.open(spec(tmp_path, cursor=cursor, fork=True))).close()
            await provider.sessions()
            await provider.probe(cursor, place(tmp_path))

    run(scene())
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert checked(lines) >= set(CALLS) - {"session/load", "session/delete"}


class Client:
    """The least that the SDK asks of a client."""

    def __init__(self) -> None:
        self.said = ""

    async def request_permission(self, options: Any, session_id: str, tool_call: Any, **_: Any) -> Any:  # noqa: ARG002
        outcome = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:  # noqa: ARG002
        if isinstance(update, schema.AgentMessageChunk):
            self.said += update.content.text

    def on_connect(self, conn: Any) -> None: ...


def test_the_sdk_talks_to_our_agent(tmp_path: Path) -> None:
    async def scene() -> None:
        client: Any = Client()
        env = {"GUIDE_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
        async with acp.spawn_agent_process(client, *GUIDE, env=env, cwd=tmp_path) as (agent, _):
            met = await agent.initialize(protocol_version=1)
            assert met.agent_info is not None
            assert met.agent_info.name == "clew-guide"
            new = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
            await agent.set_session_mode(session_id=new.session_id, mode_id="ask")
            done = await agent.prompt(
                session_id=new.session_id, prompt=[acp.text_block(f"RUN: touch {shlex.quote(str(tmp_path / 'ran'))}")]
            )
            assert done.stop_reason == "end_turn"
            assert (tmp_path / "ran").exists()
            assert "Prompts that I remember: 1" in client.said
            listed = await agent.list_sessions(cwd=str(tmp_path))
            assert [each.session_id for each in listed.sessions] == [new.session_id]
            client.said = ""
            await agent.load_session(session_id=new.session_id, cwd=str(tmp_path), mcp_servers=[])
            assert "Prompts that I remember: 1" in client.said
            fork = await agent.fork_session(session_id=new.session_id, cwd=str(tmp_path), mcp_servers=[])
            assert fork.session_id != new.session_id
            with pytest.raises(acp.RequestError) as caught:
                await agent.load_session(session_id="guide_" + "0" * 24, cwd=str(tmp_path), mcp_servers=[])
            assert caught.value.code == -32002

    run(scene())
