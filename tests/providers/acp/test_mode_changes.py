"""An agent that changes its mode by itself, and one that goes on to play back what was said before."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, NativeId, PermissionMode
from clew.ports.events import Ending
from clew.ports.provider import Provider, Settings
from clew.programs.faults import Refused, TooSlow
from clew.providers.acp import make
from tests.providers.kit import QUICK, opened, run, spec, turn

AGENT = Path(__file__).with_name("odd_agent.py")
READ, ASK, EDIT, FULL = PermissionMode
MODES = {"currentModeId": "strict", "availableModes": [{"id": "strict"}, {"id": "wild"}, {"id": "calm"}]}
TOLD = {"mode.read": "calm", "mode.ask": "strict", "mode.full": "wild"}


def odd(told: dict[str, str], **how: Any) -> Provider:
    program = (sys.executable, str(AGENT), json.dumps({"modes": MODES, **how}))
    return make(Settings(program=program, options=told, deadlines=QUICK))


@pytest.mark.case("A01", "A02")
@pytest.mark.parametrize("told", [TOLD, {"asks": "yes"}])
def test_a_turn_in_which_the_agent_leaves_its_mode_is_stopped(tmp_path: Path, told: dict[str, str]) -> None:
    async def scene() -> None:
        async with opened(odd(told, tells_mode="wild"), spec(tmp_path, ASK)) as session:
            turned = await turn(session, "hang")
            assert turned.done.ending is Ending.FAILED
            assert "changed its own mode" in turned.failed.words
            assert not turned.failed.retryable
            # The next one begins in the mode that it should have.
            assert "as strict" in (await turn(session, "again")).text

    run(scene())


@pytest.mark.case("A02")
def test_a_mode_that_the_agent_left_is_set_again_or_nothing_is_sent(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(odd(TOLD, tells_mode="wild", tells_mode_again="wild"), spec(tmp_path, ASK)) as session:
            await turn(session, "hang")
            with pytest.raises(Refused, match="wild instead of strict"):
                await turn(session, "again")
            with pytest.raises(Refused, match="wild instead of strict"):
                await session.set_mode(ASK)

    run(scene())


def test_a_narrower_mode_and_full_are_nothing_to_stop_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(odd(TOLD, tells_mode="calm"), spec(tmp_path, ASK)) as session:
            assert (await turn(session, "one")).done.ending is Ending.COMPLETED
            assert "as strict" in (await turn(session, "two")).text
            assert await session.set_mode(FULL) is FULL
            assert (await turn(session, "three")).done.ending is Ending.COMPLETED

    run(scene())


def test_what_is_played_back_late_is_no_answer(tmp_path: Path) -> None:
    how: dict[str, Any] = {"abilities": {"loadSession": True}, "answers_unknown": True}

    async def scene() -> None:
        known = Cursor(1, NativeId("known-1"))
        late = [f"old {number}" for number in range(20)]
        async with opened(odd({}, late=late, **how), spec(tmp_path, FULL, known)) as session:
            assert (await turn(session, "hello")).reply == "you said hello"
        endless = odd({}, late=["old"] * 500, **how)
        with pytest.raises(TooSlow, match="playing back"):
            await endless.open(spec(tmp_path, FULL, known))
        await endless.close()

    run(scene())
