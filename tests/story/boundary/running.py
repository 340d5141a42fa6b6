"""Running the matrix: grounds side by side, each in a process of its own with its own model and server."""

import multiprocessing
import random
import resource
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.story.boundary.ground import ground
from tests.story.boundary.matrix import LANES, Round, rounds
from tests.story.boundary.rounds import Outcome, play

MOST = 20
"""Rounds on one ground: its model remembers every request."""


@dataclass(frozen=True)
class Leg:
    """Rounds that are played on one ground, one after the other."""

    agent: str
    traced: bool
    rounds: tuple[Round, ...]
    seed: str
    retries: bool = True

    def __len__(self) -> int:
        return sum(map(len, self.rounds))

    def narrowed(self, name: str) -> "Leg | None":
        """With those rounds alone whose combination is called so."""
        kept = tuple(each for each in self.rounds if name in str(each.combination))
        return replace(self, rounds=kept) if kept else None

    def __str__(self) -> str:
        return f"{self.agent}{' traced' if self.traced else ''}, {len(self)} tries"


def legs(agents: Sequence[str], tries: int, seed: str, *, brief: bool = False, retries: bool = True) -> list[Leg]:
    """So many tries in all, the same number for each agent."""
    made: list[Leg] = []
    for number, agent in enumerate(agents):
        share = tries // len(agents) + (number < tries % len(agents))
        chosen = rounds(agent, share, seed, brief=brief)
        for traced in (False, True):
            mine = [each for each in chosen if each.combination.traced is traced]
            parts = ((at, tuple(mine[at : at + MOST])) for at in range(0, len(mine), MOST))
            made += [Leg(agent, traced, part, f"{seed} {at}", retries) for at, part in parts]
    return made


def walk(leg: Leg, root: Path, outcomes: list[Outcome]) -> None:
    drawn = random.Random(f"{leg.seed} {leg.agent} {leg.traced}")
    with ground(root, leg.agent, leg.traced, LANES, leg.seed) as made:
        for each in leg.rounds:
            outcomes += play(made, each, drawn, leg.retries)


@dataclass(frozen=True)
class Walked:
    """`fault` is what went wrong with the trial itself. `cpu` are seconds of a core, as far as they can be told."""

    leg: Leg
    outcomes: tuple[Outcome, ...]
    seconds: float
    cpu: float
    fault: str = ""

    def __str__(self) -> str:
        tries = len(self.outcomes)
        wrong = sum(not each.good for each in self.outcomes)
        each = f"{self.seconds / (tries or 1):.2f} s and {self.cpu / (tries or 1):.2f} s of a core each"
        return f"{self.leg}: {tries} played in {self.seconds:.0f} s ({each}), {wrong} wrong"


def walk_apart(leg: Leg) -> Walked:
    """In a process of its own. What goes wrong with the trial itself is told as words, and ends no other."""
    began, outcomes, fault = time.monotonic(), list[Outcome](), ""
    with _place() as root:
        try:
            walk(leg, root, outcomes)
        except Exception:  # noqa: BLE001 - whatever it is, the others go on, and it is shown
            fault = f"{leg}: {traceback.format_exc()}\n{_last_words(root)}"
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in used)
    return Walked(leg, tuple(outcomes), time.monotonic() - began, cpu, fault)


def run(chosen: Sequence[Leg], jobs: int, tell: Callable[[str], None]) -> tuple[list[Outcome], list[str]]:
    """All outcomes, and what went wrong with the trial itself."""
    outcomes: list[Outcome] = []
    faults: list[str] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, max_tasks_per_child=1) as pool:
        for done in as_completed([pool.submit(walk_apart, leg) for leg in chosen]):
            walked = done.result()
            outcomes += walked.outcomes
            tell(str(walked))
            if walked.fault:
                faults.append(walked.fault)
    return outcomes, faults


def _last_words(root: Path) -> str:
    """Of the server: what it printed, and its own log."""
    files = [root / "up.log", *sorted((root / "data" / "logs").glob("*"))]
    return "\n".join(file.read_text(encoding="utf-8", errors="replace")[-4000:] for file in files if file.is_file())


@contextmanager
def _place() -> Iterator[Path]:
    # A short path: some programs make sockets below it.
    root = Path(tempfile.mkdtemp(prefix="clew-b-")).resolve()
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
