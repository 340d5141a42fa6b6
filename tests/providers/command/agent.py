"""A program as somebody may have written it for themselves: takes a prompt, says something, and remembers.

    agent.py turn [--mode read|full] [--model NAME] [--session ID] [--new ID] [PROMPT]
    agent.py show ID        ends with 0 when the session is there, with 44 when it is not
    agent.py --version

It obeys the same lines in a prompt as the loopback model, and FAIL: <status>.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path

LINE = re.compile(r"^(RUN|WRITE|SAY|SLOW|FAIL):[ \t]*(.*?)[ \t]*$", re.MULTILINE)


def file_of(session: str) -> Path:
    return Path(os.environ["COMMAND_HOME"]) / f"{session}.json"


def tell(text: str) -> None:
    print(text, flush=True)


def do(word: str, rest: str, mode: str) -> str:
    if mode != "full":
        return "not allowed"
    if word == "WRITE":
        path, _, text = rest.partition(" ")
        Path(path).write_text(text, encoding="utf-8")
        return "written"
    done = subprocess.run(["/bin/sh", "-c", rest], capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}"


def turn(told: argparse.Namespace) -> int:
    session = told.session or told.new or str(uuid.uuid4())
    file, prompt = file_of(session), told.prompt if told.prompt is not None else sys.stdin.read().rstrip("\n")
    past = json.loads(file.read_text(encoding="utf-8")) if told.session else {"prompts": []}
    past["prompts"].append(prompt)
    past["model"] = told.model
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps(past), encoding="utf-8")
    beside.replace(file)
    if not told.session and not told.new:
        tell(f"session: {session}")
    asked = prompt.rpartition("\n\n")[2]
    lines = LINE.findall(asked)
    outputs = [do(word, rest, told.mode) for word, rest in lines if word in ("RUN", "WRITE")]
    known = dict(lines)
    if re.search("^HANG$", asked, re.MULTILINE):
        tell("Beginning")
        time.sleep(600)
    if "FAIL" in known:
        print("It did not work out.", file=sys.stderr)
        return int(known["FAIL"])
    if "SLOW" in known:
        for _ in range(10):
            tell("slowly")
            time.sleep(float(known["SLOW"]) / 10)
    if "SAY" in known:
        tell(known["SAY"])
        return 0
    for output in outputs:
        tell(f"TOOL SAID: {output.strip()}")
    prompts = [each.rpartition("\n\n")[2][:60] for each in past["prompts"]]
    tell(f"SAW users={len(prompts)} first={json.dumps(prompts[0])} last={json.dumps(prompts[-1])}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action="version", version="agent 1.2.3")
    commands = parser.add_subparsers(dest="command", required=True)
    turning = commands.add_parser("turn")
    for name in ("--session", "--new", "--model"):
        turning.add_argument(name)
    turning.add_argument("--mode", default="full")
    turning.add_argument("prompt", nargs="?")
    commands.add_parser("show").add_argument("session")
    told = parser.parse_args()
    if told.command == "show":
        return 0 if file_of(told.session).exists() else 44
    return turn(told)


if __name__ == "__main__":
    sys.exit(main())
