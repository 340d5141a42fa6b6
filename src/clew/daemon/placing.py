"""The place of a run: made ready before anything is opened, and the plan settled by what the disk says of it."""

from dataclasses import dataclass, replace

from clew.daemon.calls import Calls
from clew.daemon.limits import Limits
from clew.daemon.orders import place_wanted
from clew.daemon.reporting import Reporting
from clew.kernel import Directory, FoundReason, Plan, Workspace, decide
from clew.ports.fault import Fault
from clew.ports.workspaces import Held, PlaceWanted, Workspaces
from clew.protocol.orders import Order


class NoPlace(Fault):
    code = "daemon:no-place"


class PlaceHeld(Exception):
    """It is not to be had, and no other stands for it."""

    def __init__(self, held: Held) -> None:
        super().__init__(held.words)
        self.reason: FoundReason = held.reason
        self.words, self.passing = held.words, held.passing


@dataclass(frozen=True, slots=True)
class Placed:
    """The lane's until it is released. `plan` is the order's, or what became of it by what the disk says: its links
    resolved, and that it was made again."""

    directory: Directory
    plan: Plan
    wanted: PlaceWanted
    workspaces: Workspaces

    async def release(self) -> None:
        await self.workspaces.release(self.wanted)


async def placed(order: Order, workspaces: Workspaces, calls: Calls, reporting: Reporting, limits: Limits) -> Placed:
    wanted = place_wanted(order, order.plan)
    if wanted is None:
        raise NoPlace("The plan has no workspace.", "Give the thread a project, or the agent a home.")
    reporting.step("workspace", order.plan.place.words)

    def progress(line: str) -> None:
        reporting.step("setup", line)

    async def release(ensured: object) -> None:
        if not isinstance(ensured, Held):
            await workspaces.release(wanted)

    ensuring = workspaces.ensure(wanted, progress)
    ensured = await calls.within("workspace", limits.workspace, limits.calling_off, ensuring, release)
    if isinstance(ensured, Held):
        raise PlaceHeld(ensured)
    if ensured.setup_output is not None:
        reporting.step("workspace", f"{ensured.words} What its setup wrote is in {ensured.setup_output}.")
    place = Placed(ensured.directory, _with_links_resolved(order.plan, ensured.directory), wanted, workspaces)
    if not ensured.remade:
        return place
    reporting.step("workspace", ensured.remade)
    try:
        return await _said_remade(place, ensured.remade, calls, reporting)
    except BaseException:
        await place.release()
        raise


async def _said_remade(place: Placed, words: str, calls: Calls, reporting: Reporting) -> Placed:
    """The plan with one more fact. The server keeps it before the disk forgets it: whatever ends this run, the agent is
    told in the next one."""
    known = place.plan.situation
    if known.place.remade != words:
        place = replace(place, plan=decide(replace(known, place=replace(known.place, remade=words))))
        await reporting.ask(settled=(place.plan,))
        calls.check()
    await place.workspaces.acknowledge(place.wanted)
    return place


def _with_links_resolved(plan: Plan, directory: Directory) -> Plan:
    """Who decided could not see the disk. Where the path leads elsewhere than it reads, that is one more fact."""
    known = plan.workspace
    if known is None or known.directory == directory:
        return plan
    real = Directory(known.directory.path, directory.place)

    def resolved(place: Workspace) -> Workspace:
        return replace(place, directory=real) if place.id == known.id else place

    facts = plan.situation.place
    resolved_facts = replace(
        facts,
        agent_home=resolved(facts.agent_home),
        remembered=None if facts.remembered is None else resolved(facts.remembered),
        earlier=tuple(map(resolved, facts.earlier)),
        prepared=None if facts.prepared is None else resolved(facts.prepared),
    )
    return decide(replace(plan.situation, place=resolved_facts))
