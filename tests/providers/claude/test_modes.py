"""What the real program may do: modes, those that it cannot express, and what nobody answers."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import Answer
from clew.ports.events import ApprovalAsked, Ending, Event
from clew.ports.provider import LiveSession, OpenSpec, Settings
from tests.providers.claude.kit import ASK, EDIT, FULL, READ, Place, call, hasty, run, turn


@pytest.mark.case("A01", "A02", "P03", "A04")
def test_rules_that_allow_do_not_widen_read(place: Place) -> None:
    rules = {"permissions": {"allow": ["Bash(touch:*)", "Write"], "defaultMode": "bypassPermissions"}}
    (place.config / "settings.json").write_text(json.dumps(rules))
    work = Path(place.work().path)

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), READ))
            assert session.landing.mode is READ
            for step in ("RUN: touch by-shell", f"WRITE: {work}/by-tool text", call("EnterPlanMode")):
                assert not (await turn(session, step)).of(ApprovalAsked)
            assert (await turn(session, "RUN: pwd")).reply.startswith(f"TOOL SAID: {work}")
            assert not list(work.iterdir())
            # The user's own rules are his word where he may be asked.
            assert await session.set_mode(ASK) is ASK
            assert not (await turn(session, "RUN: touch by-rule")).of(ApprovalAsked)
            turned = await turn(session, "RUN: mkdir asked", Answer.DENY, "not today")
            assert turned.of(ApprovalAsked)[0].command == "mkdir asked"
            assert "not today" in turned.reply
            assert await session.set_mode(READ) is READ
            await turn(session, "RUN: touch again")
            assert [each.name for each in work.iterdir()] == ["by-rule"]

    run(scene())


@pytest.mark.case("A01", "S13")
def test_an_agent_that_the_project_brings_along_is_allowed_no_more_than_the_session(place: Place) -> None:
    work = Path(place.work().path)
    for word in ("bypassPermissions", "acceptEdits"):
        agent = work / ".claude" / "agents" / f"{word.lower()}.md"
        agent.parent.mkdir(parents=True, exist_ok=True)
        agent.write_text(f"---\nname: {word.lower()}\ndescription: d\npermissionMode: {word}\n---\nWork.\n")

    def side(word: str, made: str) -> str:
        return call("Agent", description="d", prompt=f"RUN: touch {made}", subagent_type=word.lower())

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), READ))
            for word in ("bypassPermissions", "acceptEdits"):
                assert not (await turn(session, side(word, "read"))).of(ApprovalAsked)
            assert await session.set_mode(ASK) is ASK
            for word in ("bypassPermissions", "acceptEdits"):
                assert (await turn(session, side(word, "ask"))).of(ApprovalAsked)
            assert await session.set_mode(EDIT) is EDIT
            assert (await turn(session, side("bypassPermissions", f"{place.root}/edit"))).of(ApprovalAsked)
            assert not (await turn(session, side("acceptEdits", "edit"))).of(ApprovalAsked)
            assert sorted(each.name for each in work.iterdir()) == [".claude", "edit"]

    run(scene())


@pytest.mark.case("A01")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
def test_where_full_is_refused_the_next_stricter_is_used_and_said(place: Place) -> None:
    def bare(settings: Settings) -> Settings:
        return replace(settings, environment={k: v for k, v in settings.environment.items() if k != "IS_SANDBOX"})

    async def scene() -> None:
        async with place.provider(bare) as provider:
            assert FULL not in provider.capabilities.modes
            session = await provider.open(OpenSpec(place.work(), FULL))
            assert session.landing.mode is EDIT
            assert (await turn(session, "RUN: touch /tmp/outside")).of(ApprovalAsked)

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("IS_SANDBOX", raising=False)
        run(scene())


@pytest.mark.case("A01", "P03")
def test_where_settings_rule_full_out_the_next_stricter_is_used_and_said(place: Place) -> None:
    rules = {"permissions": {"disableBypassPermissionsMode": "disable"}}
    (place.config / "settings.json").write_text(json.dumps(rules))

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            assert session.landing.mode is EDIT
            assert (await turn(session, f"RUN: touch {place.root}/outside")).of(ApprovalAsked)
            assert await session.set_mode(READ) is READ
            assert await session.set_mode(FULL) is EDIT

    run(scene())


@pytest.mark.case("A01")
def test_full_asks_nothing_even_outside_its_directory(place: Place) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            assert session.landing.mode is FULL
            assert not (await turn(session, f"RUN: touch {place.root}/outside")).of(ApprovalAsked)
            assert (place.root / "outside").exists()

    run(scene())


@pytest.mark.case("A01")
@pytest.mark.skipif(os.geteuid() != 0, reason="all these tests run as a plain user")
@pytest.mark.usefixtures("agents")
def test_a_plain_user_has_full_without_a_sandbox(tmp_path: Path) -> None:
    # A user of another number for whom all files are as they are for us.
    another = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
    if shutil.which("unshare") is None or subprocess.run([*another, "true"], check=False).returncode != 0:
        pytest.skip("this system lets nobody be another user")
    test = f"{__file__}::{test_full_asks_nothing_even_outside_its_directory.__name__}"
    command = (
        *another,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path}/t",
        test,
    )
    environment = {name: value for name, value in os.environ.items() if name != "IS_SANDBOX"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.case("A03", "L05")
def test_what_nobody_answers_is_not_done(place: Place) -> None:
    ran = Path(place.work().path) / "ran"

    async def asked(session: LiveSession) -> tuple[ApprovalAsked, AsyncIterator[Event]]:
        events = session.turn(f"RUN: touch {ran}")
        return await anext(event async for event in events if isinstance(event, ApprovalAsked)), events

    async def scene() -> None:
        # No patience for the model, and all there is for a person.
        async with place.provider(hasty) as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            question, events = await asked(session)
            following = asyncio.create_task(ending(events))
            await asyncio.sleep(2.0)
            assert not following.done()
            await session.interrupt()
            assert await following is Ending.INTERRUPTED
            assert not await session.answer(question.id, Answer.APPROVE)
            question, events = await asked(session)
            following = asyncio.create_task(ending(events))
            await session.close()
            assert await following is Ending.INTERRUPTED
            assert not await session.answer(question.id, Answer.APPROVE)
            assert not ran.exists()

    run(scene())


async def ending(events: AsyncIterator[Event]) -> Ending | None:
    """How a turn ends that is followed from here."""
    return [getattr(event, "ending", None) async for event in events][-1]
