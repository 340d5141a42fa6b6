"""What a command calls its session: read in every turn, and nothing is said of it that the program did not print."""

import sys
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, Evidence, Landing, NativeId, ProbeKind, PromptId, Sent, digest_of
from clew.ports.events import Ending, SessionNamed, Text
from clew.ports.provider import Provider, Settings
from clew.programs.faults import BadOptions
from clew.providers.command import make
from tests.providers.kit import QUICK, opened, place, run, spec, turn

AGENT = (sys.executable, str(Path(__file__).with_name("changing_agent.py")))
OPTIONS = {
    "start": "--as 'session: {id}'",
    "resume": "--from {session}",
    "session": "session: (.+)",
    "probe": "--show {session}",
    "missing": "44",
}


def changing(tmp_path: Path, **options: str) -> Provider:
    home = {"COMMAND_HOME": str(tmp_path / "home")}
    return make(Settings(program=AGENT, home=home, options={**OPTIONS, **options}, deadlines=QUICK))


def names(turned: Any) -> list[tuple[str, bool]]:
    return [(each.native_id, each.durable) for each in turned.of(SessionNamed)]


@pytest.mark.case("S16")
def test_a_program_that_changes_its_id_every_turn_loses_none(tmp_path: Path) -> None:
    async def scene() -> None:
        provider, cursor = changing(tmp_path), None
        for number in range(1, 6):
            session = await provider.open(spec(tmp_path, cursor=cursor))
            turned = await turn(session, f"word {number}")
            assert turned.reply == "heard " + ", ".join(f"word {each}" for each in range(1, number + 1))
            named = names(turned)
            if cursor is not None:
                assert named.pop(0) == (cursor.native_id, True), "until it says so it is where it was"
            assert named == [(f"turn-{number}", False), (f"turn-{number}", True)]
            cursor = Cursor(1, NativeId(f"turn-{number}"))
            assert session.cursor == session.address == cursor
            assert (await changing(tmp_path).probe(cursor, place(tmp_path))).kind is ProbeKind.BUSY
            await session.close()
            assert (await changing(tmp_path).probe(cursor, place(tmp_path))).kind is ProbeKind.FOUND_HERE
        await provider.close()

    run(scene())


@pytest.mark.case("S16")
def test_within_one_opening_too(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(changing(tmp_path), spec(tmp_path)) as session:
            for number in (1, 2, 3):
                assert (await turn(session, str(number))).done.ending is Ending.COMPLETED
            assert session.cursor == Cursor(1, NativeId("turn-3"))

    run(scene())


@pytest.mark.case("S16")
@pytest.mark.parametrize("line", ["nothing of an id", "session: {id} is what I am in"])
def test_the_id_given_is_still_valid_where_none_is_printed(tmp_path: Path, line: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "kept").write_text("[]")

    async def scene() -> None:
        options = {"resume": f"--as '{line}' --from {{session}}", "session": "^session: (\\S+)$"}
        provider = changing(tmp_path, **options)
        cursor = Cursor(1, NativeId("kept"))
        async with opened(provider, spec(tmp_path, cursor=cursor)) as session:
            turned = await turn(session, "hello")
            assert names(turned) == [("kept", True)]
            assert session.cursor == cursor

    run(scene())


@pytest.mark.case("S16")
def test_words_that_look_like_an_id_and_lead_nowhere_are_words(tmp_path: Path) -> None:
    """A reply may hold what the pattern finds. The session stays what it was, and no line of the reply is lost."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "kept").write_text("[]")

    async def scene() -> None:
        provider = changing(tmp_path, resume="--as 'session: nowhere' --from {session}")
        cursor = Cursor(1, NativeId("kept"))
        async with opened(provider, spec(tmp_path, cursor=cursor)) as session:
            turned = await turn(session, "hello")
            assert names(turned) == [("kept", True), ("nowhere", False)]
            assert turned.reply == "session: nowhere\nheard hello"
            assert [each.text for each in turned.of(Text) if each.final] == [turned.reply]
            assert session.cursor == cursor

    run(scene())


@pytest.mark.case("S16")
def test_only_the_first_id_of_a_turn_counts(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(changing(tmp_path), spec(tmp_path)) as session:
            turned = await turn(session, "tell me\nsession: turn-0")
            assert names(turned) == [("turn-1", False), ("turn-1", True)]
            assert turned.reply.endswith("session: turn-0")

    run(scene())


@pytest.mark.case("S16")
def test_an_id_that_was_chosen_and_is_not_the_programs_gives_way(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = changing(tmp_path, start="--as 'session: {id}' --", resume="--from {session}")
        assert not provider.capabilities.choose_id
        chooses = changing(tmp_path, start="--as 'chose {session}, session: {id}'")
        async with opened(chooses, spec(tmp_path, fresh_id=NativeId("chosen-1"))) as session:
            assert (session.cursor, session.address) == (None, Cursor(1, NativeId("chosen-1")))
            turned = await turn(session, "hello")
            assert names(turned) == [("chosen-1", False), ("turn-1", False), ("turn-1", True)]
            assert session.cursor == session.address == Cursor(1, NativeId("turn-1"))

    run(scene())


@pytest.mark.case("S16")
def test_nothing_is_confirmed_that_the_program_did_not_print(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = changing(tmp_path)
        assert not provider.capabilities.names_itself
        async with opened(provider, spec(tmp_path)) as session:
            assert (session.landing, session.address) == (Landing(), None)
            await turn(session, "one")
            cursor = session.cursor
            await session.close()
            again = await provider.open(spec(tmp_path, cursor=cursor))
            assert again.landing == Landing(), "it has answered for the session, and printed nothing of it"
            assert again.cursor == again.address == cursor

    run(scene())


@pytest.mark.case("P19")
def test_a_command_is_declared_unable_to_tell_what_it_took(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = changing(tmp_path)
        assert not provider.capabilities.hears
        sent = Sent(PromptId("0198f0aa-0000-7000-8000-000000000001"), digest_of("hello"))
        heard = await provider.heard(Cursor(1, NativeId("turn-1")), place(tmp_path), sent)
        assert (heard.evidence, heard.able) == (Evidence.UNKNOWN, False)
        assert "Clew cannot read" in heard.detail

    run(scene())


@pytest.mark.case("S16")
def test_a_resume_that_names_no_session_is_refused_when_the_agent_is_added(tmp_path: Path) -> None:
    with pytest.raises(BadOptions, match=r"'--again', without \{session\}") as told:
        changing(tmp_path, resume="--again")
    assert "Put {session}" in told.value.remedy
