"""A provider that is closed has ended all that it began, what was only under way among it, and begins nothing more."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import ProbeKind
from clew.programs.faults import Refused
from tests.providers.codex.kit import Lab, turn
from tests.providers.codex.test_archive import archived, everything


def entered(state: Path) -> list[str]:
    return [file.name for file in (state / "ledger").iterdir()]


@pytest.mark.parametrize("after", [0, 0.02, 0.08, 0.15])
@pytest.mark.parametrize("how", ["new", "resumed", "forked"])
def test_an_opening_under_way_is_ended_when_the_provider_is_closed(
    lab: Lab, tmp_path: Path, after: float, how: str
) -> None:
    async def scene() -> None:
        cursor = None if how == "new" else await lab.begun(lab.provider())
        before = lab.rollouts()
        provider = lab.provider(change=lambda settings: replace(settings, state=tmp_path / "state"))
        opening = asyncio.create_task(lab.open(provider, cursor, fork=how == "forked"))
        await asyncio.sleep(after)
        await provider.close()
        assert entered(tmp_path / "state") == []
        assert not lab.rig.processes("a")
        if opening.done() and opening.exception() is None:
            # It was open before, and was closed as every session is.
            with pytest.raises(Refused, match="closed"):
                await turn(opening.result(), "hello")
        else:
            with pytest.raises(Refused, match="closed"):
                await opening
            assert lab.rollouts() == before
        if cursor is not None:
            # Nobody holds it any more.
            await lab.goes_on(lab.provider(), cursor)

    lab.play(scene())


def test_nothing_is_begun_after_the_provider_is_closed(lab: Lab) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider)
        archive = await archived(lab, provider, cursor)
        await provider.close()
        for each in (None, cursor):
            with pytest.raises(Refused, match="closed"):
                await lab.open(provider, each)
        with pytest.raises(Refused, match="closed"):
            await provider.restore(archive, lab.directory())
        assert (await provider.probe(cursor, lab.directory())).kind is ProbeKind.UNREACHABLE
        assert "closed" in (await provider.discover()).missing

    lab.play(scene())


@pytest.mark.case("T02")
def test_a_restore_under_way_is_taken_back_when_the_provider_is_closed(lab: Lab) -> None:
    async def scene() -> None:
        one, other = lab.provider("a"), lab.provider("b")
        archive = await archived(lab, one, await lab.begun(one))
        restoring = asyncio.create_task(other.restore(archive, lab.directory("there")))
        while not everything(lab.root("b")):
            await asyncio.sleep(0.005)
        await other.close()
        with pytest.raises(Refused, match="closed"):
            await restoring
        # A thread that still writes is not waited for; it takes back what it wrote.
        while everything(lab.root("b")):
            await asyncio.sleep(0.01)

    lab.play(scene())
