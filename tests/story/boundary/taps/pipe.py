"""Stands before an agent that is talked to over its standard input, and says when a word of a person passes.

    python -I pipe.py PROGRAM [ARGUMENTS...]

`BOUNDARY_EAR` is a port of loopback that hears of each word, as "out <token> <monotonic seconds>". `BOUNDARY_RULES` is
a directory: where `hold/<token>` is there, the next line with that word is not passed on; once `drop/<token>` is there,
it never is. Only the standard library is used, and no file of the project: this starts with every session.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

TOKEN = re.compile(rb"word-[0-9a-f]{10}")
HOLDS = 10.0
"""Seconds. A line is not kept for longer, whatever became of whoever wanted it kept."""


def main() -> int:
    program = sys.argv[1:]
    if "--version" in program or "BOUNDARY_EAR" not in os.environ:
        os.execv(program[0], program)
    agent = subprocess.Popen(program, stdin=subprocess.PIPE)
    # A signal is the agent's; its end is this process's own.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda number, _: agent.send_signal(number))
    threading.Thread(target=pump, args=(agent,), daemon=True).start()
    code = agent.wait()
    if code < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(code)


def pump(agent: "subprocess.Popen[bytes]") -> None:
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    where = ("127.0.0.1", int(os.environ["BOUNDARY_EAR"]))
    rules = Path(os.environ["BOUNDARY_RULES"])
    assert agent.stdin is not None
    rest = b""
    while piece := os.read(0, 1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            passes = True
            for token in dict.fromkeys(TOKEN.findall(line)):
                # The rule is taken before anybody hears of the word, and is good once.
                held = taken(rules / "hold" / token.decode())
                ear.sendto(b"out %s %f" % (token, time.monotonic()), where)
                passes = passes and not (held and dropped(rules / "drop" / token.decode()))
            if passes:
                try:
                    agent.stdin.write(line + b"\n")
                    agent.stdin.flush()
                except OSError:
                    return
    agent.stdin.close()


def taken(rule: Path) -> bool:
    try:
        rule.unlink()
    except OSError:
        return False
    return True


def dropped(rule: Path) -> bool:
    """Whether the line is dropped, once that is known."""
    end = time.monotonic() + HOLDS
    while not rule.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


if __name__ == "__main__":
    sys.exit(main())
