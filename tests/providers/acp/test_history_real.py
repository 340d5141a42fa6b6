"""What the presets say of the real agents, when it counts: the model has been asked, and has not answered."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import HELD_BY_AGENT, Evidence, PromptId, Sent, digest_of
from clew.ports.events import Event
from tests.providers.agents import Agents
from tests.providers.kit import place, run, spec, turn
from tests.providers.rigs.acp import ClaudeAcpRig, CodexAcpRig, OpenCodeAcpRig, RealAcpRig

ID = PromptId("0198f0aa-0000-7000-8000-000000000001")
SLOW = pytest.mark.skipif(os.environ.get("CLEW_THOROUGH") != "1", reason="too slow for every day: CLEW_THOROUGH=1")


@pytest.mark.case("P19")
@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize(
    ("kind", "writes_first"),
    [
        (CodexAcpRig, True),
        pytest.param(OpenCodeAcpRig, True, marks=SLOW),
        pytest.param(ClaudeAcpRig, False, marks=SLOW),
    ],
)
def test_an_agent_killed_when_its_model_is_asked(
    tmp_path: Path, agents: Agents, kind: type[RealAcpRig], writes_first: bool, resumed: bool
) -> None:
    text = "  Do this,\n\nand ünïcode ☃ <b> `x`  \n"

    async def scene(rig: RealAcpRig) -> None:
        provider = rig.make(replace(rig.settings("a"), state=tmp_path / "state"))
        try:
            where = place(tmp_path / "work")
            session = await provider.open(spec(tmp_path / "work", instructions="Be brief."))
            if resumed:
                await turn(session, "first")
                address = session.address
                await session.close()
                session = await provider.open(spec(tmp_path / "work", cursor=address, instructions="Be brief."))
                assert session.landing.turns == 1
            address, turns = session.address, session.landing.turns
            assert address is not None
            before = len(rig.loopback.work)
            rig.loopback.hang(mute=True)

            async def follow() -> list[Event]:
                return [event async for event in session.turn(text, ID)]

            going = asyncio.create_task(follow())
            await asyncio.to_thread(rig.loopback.wait, before + 1)
            rig.kill("a")
            await going
            await session.close()
            heard = await provider.heard(address, where, Sent(ID, digest_of(text), turns))
            if writes_first:
                assert heard.evidence in HELD_BY_AGENT, heard
            else:
                assert (heard.evidence, heard.able) == (Evidence.UNKNOWN, False), heard
            # Of what it was never handed, nothing is said to be held.
            other = await provider.heard(
                address, where, Sent(ID, digest_of("another"), (turns or 0) + int(writes_first))
            )
            assert other.evidence is (Evidence.UNSENT if writes_first else Evidence.UNKNOWN)
        finally:
            await provider.close()

    rig = kind(tmp_path / "rig", agents)
    try:
        run(scene(rig), rig.patience)
    finally:
        rig.close()
