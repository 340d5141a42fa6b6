"""A server and its daemon, to be killed: `python -m tests.daemon.killed <place>` serves what is there."""

import asyncio
import sys
from pathlib import Path

from clew.protocol.machine import AgentProgram
from tests.daemon.kit import QUICK, World


def scribe(place: Path) -> AgentProgram:
    """Writes down what it is told, line by line, with a moment before and after in which it can be killed."""
    script = 'sleep 0.02; IFS= read -r line || exit 1; echo "$line" >> "$0"; sleep 0.02; echo done'
    return AgentProgram("command", ("/bin/sh", "-c", script, str(place / "told.txt")))


async def serve(place: Path) -> None:
    there = World(place, QUICK)
    there.programs = [scribe(there.place)]
    await there.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.sleep(3600)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
