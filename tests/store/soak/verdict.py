"""The verdict: what is left is let run to its end, and then every account must balance."""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import Connection, func, select, update

from clew.kernel import RUN_ENDS, WAKE_ENDS, Patience, Served
from clew.protocol.orders import ClaimRequest
from clew.protocol.reports import Completed, StoreAsked
from clew.store.backup.snapshot import snapshot
from clew.store.engine.database import Database
from clew.store.operations.claim import claim
from clew.store.operations.leases import expire
from clew.store.schema.check import check
from clew.store.schema.tables import runs, schedules, wakes
from tests.store.soak.agents import Agents
from tests.store.soak.killer import Killed
from tests.store.soak.notes import Notes, read_notes
from tests.store.soak.scene import RETRIES, RUNTIMES
from tests.store.soak.workers import Server, answers_to, decide, delivery, end_it, prompting, tell

AT_ONCE = Patience(lease=0.0, offline_after=0.0, grace=0.0)


@dataclass
class Verdict:
    database: str
    killed: Killed
    answered: int = 0
    ledger: int = 0
    wakes: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    lives: int = 0
    prompts: int = 0
    read_back: int = 0
    drained_in: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def table(self) -> str:
        ends = ", ".join(f"{state} {number}" for state, number in sorted(self.runs.items()))
        rows = {
            "database": self.database,
            "servers killed": f"{self.killed.servers}, {self.killed.at_start} of them as they started",
            "connections killed": str(self.killed.backends),
            "servers that came up": str(self.lives),
            "wakes answered for": f"{self.answered}, every one of them there" if self.holds else str(self.answered),
            "wakes": str(sum(self.wakes.values())),
            "  served": str(self.wakes["served"]),
            "  skipped": str(self.wakes["skipped"]),
            "  cancelled": str(self.wakes["cancelled"]),
            "served, by the daemons": f"{self.ledger}, none of them twice" if self.holds else str(self.ledger),
            "  by a reply that was read back": str(self.read_back),
            "prompts, by the agents": f"{self.prompts}, nothing twice" if self.holds else str(self.prompts),
            "runs": f"{sum(self.runs.values())} ({ends})",
            "seconds": f"{self.killed.seconds:.0f}, and {self.drained_in:.0f} to drain",
            "check": "clean" if self.holds else "NOT CLEAN",
        }
        width = max(map(len, rows))
        return "\n".join([*(f"  {name:<{width}}  {value}" for name, value in rows.items()), *self.wrong])

    @property
    def holds(self) -> bool:
        return not self.wrong


def drain(database: Database, noted: Path, patience: float = 60.0) -> None:
    """A daemon that never fails serves all that is left. Nobody waits: what was put off is due."""
    server = Server(database, noted, "drain", "drain", 0, threading.Event())
    ledger = Notes(noted / "served-drain")
    deadline = time.monotonic() + patience
    server.write(_switch_off)
    while database.read(_open) and time.monotonic() < deadline:
        server.write(_make_due)
        server.write(expire, 0.0, AT_ONCE, RETRIES)
        server.write(decide, server.agents)
        for order in server.write(claim, ClaimRequest("drain", RUNTIMES, 50, AT_ONCE)):
            if order.questions:
                end_it(server, ledger, order, StoreAsked(answers_to(server, order)))
                continue
            prompt = replace(prompting(order), opens=True)
            assert prompt.prompted is not None
            if tell(server, prompt).may_prompt:
                server.agents.take(prompt.prompted.sent.id, delivery(order, prompt.prompted))
                server.agents.finish(prompt.prompted.sent.id)
            end_it(server, ledger, order, Completed("done", 2))


def _switch_off(connection: Connection) -> None:
    connection.execute(update(schedules).values(enabled=0))


def _open(connection: Connection) -> int:
    open_runs = connection.execute(select(func.count()).where(runs.c.ended_at.is_(None))).scalar_one()
    return open_runs + connection.execute(select(func.count()).where(wakes.c.ended_at.is_(None))).scalar_one()


def _make_due(connection: Connection) -> None:
    connection.execute(update(runs).where(runs.c.state == "queued").values(not_before=None, hold="", hold_code=None))
    connection.execute(update(runs).where(runs.c.lease_until.is_not(None)).values(lease_until=1.0))
    connection.execute(update(wakes).where(wakes.c.state == "pending").values(not_before=None))


def _by_agents(verdict: Verdict, agents: Agents, found: Mapping[str, tuple[str, str | None]]) -> list[str]:
    """What the agents themselves say: nothing was told twice in a conversation, nothing was called told that was not,
    and what is served was answered."""
    wrong: list[str] = []
    told: dict[tuple[str, str], set[int]] = {}
    answered: set[tuple[str, str]] = set()
    for prompt, (each, finished) in agents.deliveries().items():
        verdict.prompts += 1
        before = told.setdefault((each.native, each.thread), set())
        twice, never = before.intersection(each.entries), set(each.already_told) - before
        wrong += [f"prompt {prompt} of {each.run} tells {sorted(twice)} again in {each.native}"] if twice else []
        wrong += [f"prompt {prompt} of {each.run} calls {sorted(never)} told in {each.native}"] if never else []
        before.update(each.entries)
        answered |= {(wake, each.run) for wake in each.wakes if finished}
    served = {(wake, run or "") for wake, (state, run) in found.items() if state == "served"}
    return [*wrong, *(f"{wake} is served by {run}, which answered nothing" for wake, run in sorted(served - answered))]


def judge(database: Database, address: str, noted: Path, name: str, killed: Killed) -> Verdict:
    verdict = Verdict(name, killed)
    began = time.monotonic()
    drain(database, noted)
    verdict.drained_in = time.monotonic() - began
    with snapshot(address) as connection:
        found = {
            row.id: (row.state, row.run_id)
            for row in connection.execute(select(wakes.c.id, wakes.c.state, wakes.c.run_id))
        }
        read_back = select(func.count()).where(wakes.c.code == Served.READ_BACK.code)
        verdict.read_back = connection.execute(read_back).scalar_one()
        verdict.wakes = Counter(state for state, _ in found.values())
        verdict.runs = Counter(connection.execute(select(runs.c.state)).scalars())
        verdict.wrong += [f"{each.promise}: {each.words} {each.rows}" for each in check(connection)]
    answered = {line[0] for line in read_notes(noted, "answered")}
    verdict.answered = len(answered)
    verdict.lives = len(read_notes(noted, "ready"))
    served: dict[str, set[str]] = {}
    for line in read_notes(noted, "served"):
        served.setdefault(line[0], set()).add(line[1])
    verdict.ledger = len(served)
    verdict.wrong += [f"{wake} was answered for and is gone" for wake in sorted(answered - found.keys())]
    verdict.wrong += [f"{wake} was served twice: {by}" for wake, by in served.items() if len(by) > 1]
    for wake, by in served.items():
        if found.get(wake) != ("served", min(by)):
            verdict.wrong.append(f"{wake} was served by {min(by)}, and the database says {found.get(wake)}")
    verdict.wrong += [f"{n} wakes are still {s}" for s, n in verdict.wakes.items() if s not in WAKE_ENDS]
    verdict.wrong += [f"{n} runs are still {s}" for s, n in verdict.runs.items() if s not in RUN_ENDS]
    verdict.wrong += _by_agents(verdict, Agents(noted), found)
    verdict.wrong += [" ".join(line).replace("\\n", "\n") for line in read_notes(noted, "fault")]
    if not answered or not served:
        verdict.wrong.append("nothing was done, so nothing is proven")
    return verdict
