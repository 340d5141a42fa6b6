"""An agent that would leave the mode or the directory of its session, with the real program."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from clew.kernel import Answer, PermissionMode
from clew.ports.events import ApprovalAsked, Ending
from clew.ports.provider import OpenSpec
from clew.providers.claude import launch as command
from clew.providers.claude import modes
from tests.providers.claude.kit import ASK, EDIT, FULL, READ, Place, call, run, turn
from tests.providers.loopback.server import Model

NARROW = (READ, ASK, EDIT)


def flags(pid: int) -> list[str]:
    """None of a process that has ended: the program starts short ones of its own."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def pids(place: Place) -> list[int]:
    return [pid for pid in place.left() if "--input-format=stream-json" in flags(pid)]


def agent(place: Place, name: str, line: str) -> None:
    file = Path(place.work().path) / ".claude" / "agents" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: d\n{line}\n---\nWork.\n")


@pytest.mark.case("A01", "A04", "S13")
@pytest.mark.parametrize("mode", NARROW)
def test_no_mode_of_the_program_widens_the_session(place: Place, model: Model, mode: PermissionMode) -> None:
    agent(place, "planner", "permissionMode: plan")
    outside = place.root / "outside"
    ways = [
        f"{call('EnterPlanMode')}\nRUN: touch {outside}",
        f"RUN: touch {outside}",
        *(
            call("Agent", description="d", prompt=f"RUN: touch {outside}", **how)
            for how in (
                {"subagent_type": "planner"},
                {"subagent_type": "general-purpose", "mode": "plan"},
                {"subagent_type": "general-purpose", "mode": "bypassPermissions"},
            )
        ),
    ]

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), mode))
            for way in ways:
                turned = await turn(session, way, Answer.DENY)
                assert turned.done.ending is Ending.COMPLETED
                assert not outside.exists(), way
                # The first has no tool for it, and so tries nothing more.
                assert bool(turned.of(ApprovalAsked)) is (mode is not READ and way is not ways[0]), way
                assert not modes.NEVER & set(model.work[-1].tools)
            if mode is not READ:
                assert (await turn(session, ways[2], Answer.APPROVE)).of(ApprovalAsked)
                assert outside.exists()

    run(scene())


@pytest.mark.case("A01")
@pytest.mark.parametrize("mode", NARROW)
@pytest.mark.parametrize("told", [True, False])
def test_each_wall_holds_without_the_others(
    place: Place, mode: PermissionMode, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The program offers the tool; with `told` it is kept from it when it uses it, and else only from what comes then.
    monkeypatch.setattr(command, "NEVER", frozenset({"ExitWorktree"}))
    if not told:
        monkeypatch.setattr(modes, "NEVER", frozenset())
    outside = place.root / "outside"

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), mode))
            entered = await turn(session, call("EnterPlanMode"))
            assert ("its mode and its directory stay" in entered.reply) is told, entered.reply
            turned = await turn(session, f"RUN: touch {outside}", Answer.DENY)
            if told:
                assert bool(turned.of(ApprovalAsked)) is (mode is not READ)
            else:
                assert "has the mode plan" in turned.failed.words
            again = await provider.open(OpenSpec(place.work(), mode))
            turned = await turn(again, f"{call('EnterPlanMode')}\nRUN: touch {outside}", Answer.DENY)
            if told:
                assert bool(turned.of(ApprovalAsked)) is (mode is not READ)
            else:
                assert mode is READ or turned.of(ApprovalAsked) or turned.done.ending is Ending.FAILED
            assert not outside.exists()

    run(scene())


@pytest.mark.case("A01", "A04")
def test_only_a_process_in_full_may_ever_do_all(place: Place) -> None:
    def made(name: str) -> str:
        return f"RUN: touch {place.root}/{name}"

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            await turn(session, "first")
            for at, mode in enumerate((FULL, EDIT, ASK, FULL, READ)):
                assert await session.set_mode(mode) is mode
                (pid,) = pids(place)
                assert ("--allow-dangerously-skip-permissions" in flags(pid)) is (mode is FULL)
                turned = await turn(session, made(f"out-{at}"), Answer.DENY)
                assert bool(turned.of(ApprovalAsked)) is (mode in (ASK, EDIT))
                assert (place.root / f"out-{at}").exists() is (mode is FULL)
                assert turned.seen.users == at + 2, "the history was lost on the way"
            assert session.landing.turns == 0, "what came since the landing is counted by who opened it"

    run(scene())


@pytest.mark.case("A04")
def test_full_that_is_set_or_taken_during_a_turn_counts_from_the_next(place: Place) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), READ))
            for at, mode in enumerate((FULL, READ, FULL)):
                going = asyncio.create_task(turn(session, "SLOW: 1"))
                await asyncio.sleep(0.3)
                assert await session.set_mode(mode) is mode
                assert (await going).done.ending is Ending.COMPLETED
                turned = await turn(session, f"RUN: touch {place.root}/out-{at}")
                assert turned.done.ending is Ending.COMPLETED
                assert (place.root / f"out-{at}").exists() is (mode is FULL)

    run(scene())


@pytest.mark.case("A01", "C17")
@pytest.mark.parametrize("mode", PermissionMode)
def test_a_session_stays_in_its_directory_and_makes_no_worktree_unasked(place: Place, mode: PermissionMode) -> None:
    agent(place, "apart", "isolation: worktree")
    work = Path(place.work().path)
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(work))
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    look = {"description": "d", "prompt": "RUN: pwd"}

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), mode))
            ways = [call("EnterWorktree", name="aside")]
            if mode is not FULL:
                ways.append(call("Agent", **look, subagent_type="apart"))
                ways.append(call("Agent", **look, subagent_type="general-purpose", isolation="worktree"))
            for way in ways:
                assert not (await turn(session, way)).of(ApprovalAsked)
                assert not (work / ".claude" / "worktrees").exists()
            assert (await turn(session, "RUN: pwd")).reply.startswith(f"TOOL SAID: {work}\n")
            branches = subprocess.run([*git, "branch", "--list"], capture_output=True, text=True, check=True)
            assert len(branches.stdout.splitlines()) == 1

    run(scene())
