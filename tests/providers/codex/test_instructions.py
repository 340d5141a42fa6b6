"""Instructions: a resumed thread ignores those it is opened with, so they go another way, and not twice."""

import json

import pytest

from tests.providers.codex.kit import Lab, turn


@pytest.mark.case("X07")
def test_instructions_are_applied_anew_on_every_opening(lab: Lab) -> None:
    def heard(text: str) -> int:
        return json.dumps(lab.model.work[-1].body).count(text)

    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider, instructions="Mind-the-first.")
        assert heard("Mind-the-first.") == 1
        await lab.goes_on(provider, cursor, instructions="Mind-the-first.")
        assert heard("Mind-the-first.") == 1, "what has not changed is not repeated"
        session = await lab.open(provider, cursor, instructions="Mind-the-second.")
        await turn(session, "on")
        assert (heard("Mind-the-first."), heard("Mind-the-second.")) == (1, 1)
        await turn(session, "and on")
        assert heard("Mind-the-second.") == 1
        await session.close()
        fork = await lab.open(provider, cursor, fork=True, instructions="Mind-the-third.")
        await turn(fork, "on a fork")
        assert heard("Mind-the-third.") == 1
        await lab.goes_on(provider, cursor)
        assert heard("no longer active") == 1, "it is told that earlier instructions are off"

    lab.play(scene())
