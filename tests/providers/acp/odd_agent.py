"""An ACP agent that is odd in the ways it is told to be, as JSON on its command line."""

import json
import sys
import threading
import time
from typing import Any

ODD: dict[str, Any] = {
    "protocol": 1,
    "abilities": {},
    "sessions": [],
    "answers_unknown": False,
    "missing": {"code": -32002, "message": "Resource not found"},
    "history": [],
    "late": [],
    "new_id": "new-1",
    "next_page": None,
    "tells_mode": None,
    "tells_mode_again": None,
    "modes": None,
    "config": None,
    "stop": "end_turn",
    "options": None,
    "call": None,
    "silent": [],
    "dies": None,
    "fork_id": "forked-1",
    "side": False,
    "mute_cancel": False,
    "garbled": False,
    "usage": None,
    "tool": [],
    "login": False,
    **json.loads(sys.argv[1]),
}

MODE: list[str] = []
"""The one that was set last."""


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(session: str, kind: str = "tool_call", **said: Any) -> None:
    say(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": kind, **said}})


def text(session: str, words: str, kind: str = "agent_message_chunk") -> None:
    update(session, kind, content={"type": "text", "text": words})


def opened() -> dict[str, Any]:
    return {key: value for key, value in (("modes", ODD["modes"]), ("configOptions", ODD["config"])) if value}


def play_back(session: str) -> None:
    for words in ODD["late"]:
        time.sleep(0.02)
        text(session, words)


def beside(session: str) -> None:
    if ODD["side"]:
        text("another-session", "words of a side thread")
        text(session, "played back too late", "user_message_chunk")
    if ODD["tells_mode"]:
        update(session, "current_mode_update", currentModeId=ODD["tells_mode"])


def prompt(number: int, said: dict[str, Any]) -> None:
    session, words = said["sessionId"], said["prompt"][-1]["text"]
    if ODD["dies"]:
        print(ODD["dies"], file=sys.stderr, flush=True)
        sys.exit(9)
    beside(session)
    if ODD["garbled"]:
        for update_ in (7, {"sessionUpdate": "plan", "entries": 7}, {"sessionUpdate": "tool_call", "content": 7}):
            say(method="session/update", params={"sessionId": session, "update": update_})
        say(method="session/update", params=[1])
        asked = {"sessionId": session, "toolCall": {"toolCallId": "t", "locations": 7}, "options": 7}
        say(id=78, method="session/request_permission", params=asked)
        text(session, json.dumps("error" in json.loads(sys.stdin.readline())))
    for part in ODD["tool"]:
        update(session, toolCallId="t9", **part)
    if words == "hang":
        text(session, "Beginning")
        while True:
            line = sys.stdin.readline()
            if not line:
                sys.exit(0)
            if json.loads(line).get("method") == "session/cancel" and not ODD["mute_cancel"]:
                say(id=number, result={"stopReason": "cancelled"})
                return
    if ODD["options"] is not None:
        call = {"toolCallId": "t1", "title": "touch it", "kind": "execute", "rawInput": {"command": "touch it"}}
        if ODD["call"] is not None:
            call = {"toolCallId": "t1", "title": "write it", "kind": "edit", **ODD["call"]}
        say(
            id=77,
            method="session/request_permission",
            params={
                "sessionId": session,
                "toolCall": call,
                "options": ODD["options"],
            },
        )
        answer = json.loads(sys.stdin.readline())
        text(session, json.dumps(answer.get("result") or answer.get("error")))
    else:
        text(session, f"you said {words}{''.join(f' as {mode}' for mode in MODE)}")
    say(id=number, result={"stopReason": ODD["stop"], "usage": ODD["usage"]})


def answer(number: int, method: str, said: dict[str, Any]) -> None:
    session = said.get("sessionId", "")
    known = session in [each["sessionId"] for each in ODD["sessions"]]
    match method:
        case "initialize":
            say(id=number, result={"protocolVersion": ODD["protocol"], "agentCapabilities": ODD["abilities"]})
        case "session/new":
            login = {"error": {"code": -32000, "message": "Authentication required"}}
            say(id=number, **(login if ODD["login"] else {"result": {"sessionId": ODD["new_id"], **opened()}}))
        case "session/fork":
            say(id=number, result={"sessionId": ODD["fork_id"], **opened()})
        case "session/list":
            say(id=number, result={"sessions": ODD["sessions"], "nextCursor": ODD["next_page"]})
        case "session/load" | "session/resume" if known or ODD["answers_unknown"]:
            for words in ODD["history"] if method == "session/load" else ():
                text(session, words)
            say(id=number, result=opened())
            threading.Thread(target=play_back, args=(session,)).start()
        case "session/load" | "session/resume":
            say(id=number, error=ODD["missing"])
        case "session/set_mode":
            if ODD["tells_mode_again"]:
                update(session, "current_mode_update", currentModeId=ODD["tells_mode_again"])
            MODE[:] = [said["modeId"]]
            say(id=number, result={})
        case "session/set_config_option":
            say(id=number, result={"configOptions": ODD["config"]})
        case "session/prompt":
            prompt(number, said)
        case _:
            say(id=number, error={"code": -32601, "message": "no such method"})


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") in ODD["silent"]:
        time.sleep(600)
    if "id" in message and "method" in message:
        answer(message["id"], message["method"], message["params"])
