"""A process that makes others ensure a workspace, and kills them at some moment. Run by the tests of crashes.

    python -m tests.workspaces.makers PLACE LANES MODE SEED

Each lane's maker is forked, let go on for a moment, and killed. MODE says whether its git is killed with it.
"""

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path

from clew.ports.workspaces import ProjectSource
from tests.workspaces.kit import Scene


def source_of(scene: Scene, number: int) -> ProjectSource:
    """Every third has a setup."""
    return scene.with_setup("echo set up > set-up.txt") if number % 3 == 0 else scene.source


def main(place: str, lanes: str, mode: str, seed: str) -> None:
    scene = Scene(Path(place), str(Path(place) / "project"))
    dice = random.Random(seed)
    for number in range(int(lanes)):
        maker = os.fork()
        if maker == 0:
            asyncio.run(scene.workspaces.ensure(scene.wanted(f"ln_{number}", source_of(scene, number))))
            os._exit(0)
        time.sleep(0.02 + dice.random() * 0.2)
        family = _below(maker) if mode == "all" else []
        for pid in (maker, *family):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.waitpid(maker, 0)


def _below(pid: int) -> list[int]:
    try:
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [*children, *(each for child in children for each in _below(child))]


if __name__ == "__main__":
    main(*sys.argv[1:])
