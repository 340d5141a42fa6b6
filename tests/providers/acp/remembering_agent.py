"""An ACP agent that remembers, in a file for each session, and forgets in the ways that its command line tells as JSON:

    store       the directory of those files
    abilities   what it declares
    loads       "whole", "empty" or, after its answer, "late"
    pause       seconds before what it plays back late
    opens       the id that it names in its answer to a load or a resume
    numbered    whether it numbers what it plays back
    blocks      whether it plays back each block of a prompt by itself

A prompt may tell it to end on the spot: UNWRITTEN, before it has written the prompt down, ASKED, right after, and
WITHIN, after the first half of its answer.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

HOW: dict[str, Any] = {
    "abilities": {"loadSession": True},
    "loads": "whole",
    "pause": 0.0,
    "opens": None,
    "numbered": False,
    "blocks": False,
    **json.loads(sys.argv[1]),
}
STORE = Path(HOW["store"])


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(session: str, kind: str, words: str, **more: Any) -> None:
    said = {"sessionUpdate": kind, "content": {"type": "text", "text": words}, **more}
    say(method="session/update", params={"sessionId": session, "update": said})


def file_of(session: str) -> Path:
    return STORE / f"{session}.jsonl"


def remember(session: str, kind: str, words: list[str]) -> None:
    with file_of(session).open("a", encoding="utf-8") as file:
        file.write(json.dumps([kind, words]) + "\n")


def play_back(session: str, pause: float = 0.0) -> None:
    time.sleep(pause)
    for number, line in enumerate(file_of(session).read_text(encoding="utf-8").splitlines()):
        kind, words = json.loads(line)
        for part in words if HOW["blocks"] or HOW["numbered"] else ["".join(words)]:
            update(session, kind, part, **({"messageId": f"m{number}"} if HOW["numbered"] else {}))


def end() -> None:
    os.kill(os.getpid(), 9)


def prompt(number: int, said: dict[str, Any]) -> None:
    session, words = said["sessionId"], [block["text"] for block in said["prompt"]]
    if "UNWRITTEN" in words[-1]:
        end()
    remember(session, "user_message_chunk", words)
    if "ASKED" in words[-1]:
        end()
    remember(session, "agent_message_chunk", ["First"])
    update(session, "agent_message_chunk", "First")
    if "WITHIN" in words[-1]:
        end()
    remember(session, "agent_message_chunk", [" and last"])
    update(session, "agent_message_chunk", " and last")
    say(id=number, result={"stopReason": "end_turn"})


def load(number: int, session: str, plays_back: bool) -> None:
    if not file_of(session).exists():
        say(id=number, error={"code": -32002, "message": "Resource not found"})
        return
    if plays_back and HOW["loads"] == "whole":
        play_back(session)
    say(id=number, result={} if HOW["opens"] is None else {"sessionId": HOW["opens"]})
    if plays_back and HOW["loads"] == "late":
        threading.Thread(target=play_back, args=(session, HOW["pause"])).start()


def answer(number: int, method: str, said: dict[str, Any]) -> None:
    match method:
        case "initialize":
            say(id=number, result={"protocolVersion": 1, "agentCapabilities": HOW["abilities"]})
        case "session/new":
            session = f"session-{len(list(STORE.iterdir())) + 1}"
            file_of(session).touch()
            say(id=number, result={"sessionId": session})
        case "session/load" | "session/resume":
            load(number, said["sessionId"], method == "session/load")
        case "session/list":
            say(id=number, result={"sessions": [{"sessionId": each.stem} for each in STORE.iterdir()]})
        case "session/prompt":
            prompt(number, said)
        case _:
            say(id=number, error={"code": -32601, "message": "no such method"})


for each in sys.stdin:
    message = json.loads(each)
    if "id" in message and "method" in message:
        answer(message["id"], message["method"], message["params"])
