"""What each mode really lets Codex do. The sandbox is the system's own, so what is forbidden must fail."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.kernel import Answer
from clew.ports.events import ApprovalAsked
from clew.programs.faults import Refused
from tests.providers.codex.kit import ASK, EDIT, FULL, READ, Lab, turn


@pytest.fixture
def outside() -> Iterator[Path]:
    """A directory that no sandbox lets anybody write to; /tmp belongs to every workspace."""
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    yield place
    shutil.rmtree(place)


@pytest.mark.case("A01", "P03")
def test_the_mode_of_an_open_session_changes_both_ways(lab: Lab, outside: Path) -> None:
    async def scene() -> None:
        session = await lab.open(lab.provider(), mode=READ)
        inside, beyond = lab.file("inside"), outside / "beyond"
        await turn(session, f"RUN: touch {inside}")
        assert not inside.exists()
        assert await session.set_mode(EDIT) is EDIT
        await turn(session, f"RUN: touch {inside}\nRUN: touch {beyond}")
        assert inside.exists()
        assert not beyond.exists()
        assert await session.set_mode(FULL) is FULL
        await turn(session, f"RUN: touch {beyond}")
        assert beyond.exists()
        beyond.unlink()
        assert await session.set_mode(READ) is READ
        await turn(session, f"RUN: touch {beyond}\nESCALATE: touch {beyond}\nWRITE: {beyond} text")
        assert not beyond.exists()

    lab.play(scene())


@pytest.mark.case("A01", "A03")
@pytest.mark.parametrize("given", Answer)
def test_edit_asks_before_it_leaves_the_workspace(lab: Lab, outside: Path, given: Answer) -> None:
    async def scene() -> None:
        session = await lab.open(lab.provider(), mode=EDIT)
        beyond = outside / "beyond"
        turned = await turn(session, f"ESCALATE: touch {beyond}", given)
        (asked,) = turned.of(ApprovalAsked)
        assert str(beyond) in (asked.command or "")
        assert asked.words == "May I?"
        assert beyond.exists() is (given is Answer.APPROVE)

    lab.play(scene())


@pytest.mark.case("A01", "A03")
@pytest.mark.parametrize("given", Answer)
def test_ask_reads_unasked_and_asks_before_a_file_changes(lab: Lab, given: Answer) -> None:
    async def scene() -> None:
        session = await lab.open(lab.provider(), mode=ASK)
        lab.file("there").write_text("what is there")
        assert "what is there" in (await turn(session, f"RUN: cat {lab.file('there')}")).reply
        written = lab.file("written")
        turned = await turn(session, f"WRITE: {written} text", given)
        (asked,) = turned.of(ApprovalAsked)
        assert asked.file == str(written)
        assert written.exists() is (given is Answer.APPROVE)
        # A yes was for that once.
        assert len((await turn(session, f"WRITE: {written}-2 text", Answer.DENY)).of(ApprovalAsked)) == 1

    lab.play(scene())


@pytest.mark.case("A01")
def test_read_is_refused_where_a_standing_rule_would_break_it(lab: Lab) -> None:
    rules = lab.root() / "rules"
    rules.mkdir()
    (rules / "default.rules").write_text('prefix_rule(pattern=["touch"], decision="allow")\n')

    async def scene() -> None:
        provider = lab.provider()
        with pytest.raises(Refused, match=r"default\.rules"):
            await lab.open(provider, mode=READ)
        session = await lab.open(provider, mode=ASK)
        # This is why: the rule lets the command out, and nobody is asked.
        await turn(session, f"RUN: touch {lab.file('ran')}")
        assert lab.file("ran").exists()
        with pytest.raises(Refused, match=r"default\.rules"):
            await session.set_mode(READ)

    lab.play(scene())


@pytest.mark.case("A01")
def test_a_rule_that_only_asks_or_forbids_stands_in_nobodys_way(lab: Lab) -> None:
    (lab.root() / "rules").mkdir()
    (lab.root() / "rules" / "default.rules").write_text('prefix_rule(pattern=["git", "push"], decision="forbidden")\n')

    async def scene() -> None:
        session = await lab.open(lab.provider(), mode=READ)
        assert session.landing.mode is READ

    lab.play(scene())


@pytest.mark.case("A01")
def test_what_the_home_adds_to_a_workspace_holds_after_a_change_of_mode(lab: Lab, outside: Path) -> None:
    lab.configure(f'\n[sandbox_workspace_write]\nwritable_roots = ["{outside}"]\n')

    async def scene() -> None:
        session = await lab.open(lab.provider(), mode=READ)
        assert await session.set_mode(EDIT) is EDIT
        await turn(session, f"RUN: touch {outside / 'beyond'}")
        assert (outside / "beyond").exists()

    lab.play(scene())
