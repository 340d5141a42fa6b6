"""Whether an agent took a prompt: read from the history that it plays back, and told only as far as that goes."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Attestation as Told
from clew.kernel import Cursor, Evidence, Landing, NativeId, ProbeKind, PromptId, Sent, digest_of
from clew.ports.events import Ending
from clew.ports.provider import LiveSession, Provider, Settings
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.history import History, Played, told_by
from clew.programs.faults import Refused
from clew.providers.acp import make
from tests.providers.kit import QUICK, opened, place, run, spec, turn

AGENT = Path(__file__).with_name("remembering_agent.py")
ID = PromptId("0198f0aa-0000-7000-8000-000000000001")
FIRST = {"history": "first"}
RESUMES: dict[str, Any] = {"sessionCapabilities": {"resume": {}}}


def remembering(tmp_path: Path, told: dict[str, str] | None = None, **how: Any) -> Provider:
    store = tmp_path / "store"
    store.mkdir(exist_ok=True)
    program = (sys.executable, str(AGENT), json.dumps({"store": str(store), **how}))
    # The home names the runtime, whichever way the agent of a test is odd.
    home = {"HOME": str(tmp_path / "home")}
    return make(Settings(program=program, home=home, options=told or {}, deadlines=QUICK))


def sent(text: str, turns: int | None = None) -> Sent:
    return Sent(ID, digest_of(text), turns)


async def after(session: LiveSession, provider: Provider, tmp_path: Path, text: str, turns: int | None) -> Told:
    """What is heard of a prompt once its process is gone."""
    address = session.address
    assert address is not None
    await turn(session, text)
    await session.close()
    return await provider.heard(address, place(tmp_path), sent(text, turns))


# ---------------------------------------------------------------- what a history says of a prompt


@pytest.mark.proof("Be brief.\n\nAnd kind.")
@pytest.mark.case("P19", "C35")
@pytest.mark.parametrize("how", [{}, {"numbered": True}, {"blocks": True}, {"loads": "late", "pause": 0.6}])
@pytest.mark.parametrize("instructions", [None, "Be brief.\n\nAnd kind."])
@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("UNWRITTEN", Evidence.UNSENT),
        ("ASKED\n\nwith a gap", Evidence.TAKEN),
        ("WITHIN", Evidence.CUT_OFF),
        # The protocol has no mark for the end of a turn, so this is not known to be one.
        ("and to its end", Evidence.CUT_OFF),
    ],
)
def test_a_prompt_is_found_after_its_agent_has_ended(
    tmp_path: Path, how: dict[str, Any], instructions: str | None, text: str, evidence: Evidence
) -> None:
    async def scene() -> None:
        provider = remembering(tmp_path, FIRST, **how)
        async with opened(provider, spec(tmp_path, instructions=instructions)) as session:
            assert session.landing.turns == 0
            assert provider.capabilities.hears
            # The same words were said before: it is the second that is asked for.
            assert (await turn(session, text.lower())).done.ending is Ending.COMPLETED
            cursor = session.cursor
            await session.close()
            again = await provider.open(spec(tmp_path, cursor=cursor, instructions=instructions))
            assert again.landing.turns == 1
            told = await after(again, provider, tmp_path, text, 1)
            assert (told.evidence, told.able, told.reply) == (evidence, True, "")
            assert told.detail

    run(scene())


@pytest.mark.case("P19")
def test_the_same_words_said_before_are_not_the_ones_asked_for(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = remembering(tmp_path, FIRST)
        async with opened(provider, spec(tmp_path)) as session:
            await turn(session, "go on")
            cursor = session.cursor
            assert cursor is not None
            await session.close()
            where = place(tmp_path)
            assert (await provider.heard(cursor, where, sent("go on", 1))).evidence is Evidence.UNSENT
            assert (await provider.heard(cursor, where, sent("go on", 0))).evidence is Evidence.CUT_OFF

    run(scene())


@pytest.mark.case("P19")
def test_an_agent_that_may_write_late_has_not_said_that_it_took_nothing(tmp_path: Path) -> None:
    """Claude Code as an ACP agent asks its model first, and writes the prompt down with the answer."""

    async def scene() -> None:
        provider = remembering(tmp_path)
        async with opened(provider, spec(tmp_path)) as session:
            heard = await after(session, provider, tmp_path, "UNWRITTEN", 0)
            assert (heard.evidence, heard.able) == (Evidence.UNKNOWN, False)
            assert "before it acts on it" in heard.detail
            lost = await provider.heard(Cursor(1, NativeId("gone-1")), place(tmp_path), sent("x", 0))
            assert (lost.evidence, lost.able) == (Evidence.UNKNOWN, False)

    run(scene())


@pytest.mark.case("P19")
def test_what_cannot_be_told_is_unknown(tmp_path: Path) -> None:
    async def scene() -> None:
        where = place(tmp_path)
        provider = remembering(tmp_path, FIRST)
        session = await provider.open(spec(tmp_path))
        address = session.address
        assert address is not None
        busy = await provider.heard(address, where, sent("x", 0))
        assert (busy.evidence, busy.able) == (Evidence.UNKNOWN, True)
        assert "open already" in busy.detail
        await turn(session, "one")
        await session.close()
        shorter = await provider.heard(address, where, sent("two", 7))
        assert (shorter.evidence, shorter.able) == (Evidence.UNKNOWN, False)
        assert "7 prompts" in shorter.detail
        other = await provider.heard(address, where, sent("two", 0))
        assert (other.evidence, other.able) == (Evidence.UNKNOWN, False)
        assert "another prompt" in other.detail
        missing = await provider.heard(Cursor(1, NativeId("gone-1")), where, sent("x", 0))
        assert missing.evidence is Evidence.UNSENT, "a session that is not there holds nothing"
        await provider.close()
        closed = await provider.heard(address, where, sent("one", 0))
        assert (closed.evidence, closed.able) == (Evidence.UNKNOWN, True)
        for how in ({"abilities": RESUMES}, {"opens": "another-1"}):
            odd = remembering(tmp_path, FIRST, **how)
            heard = await odd.heard(address, where, sent("one", 0))
            assert (heard.evidence, heard.able) == (Evidence.UNKNOWN, False), how
        assert not remembering(tmp_path).capabilities.hears

    run(scene())


@pytest.mark.case("P19")
@pytest.mark.parametrize(
    ("prompts", "evidence", "able"),
    [
        ([], Evidence.UNSENT, True),
        (["other"], Evidence.UNSENT, True),
        (["wanted"], Evidence.TAKEN, True),
        (["wanted", "other"], Evidence.UNKNOWN, False),
        (["wanted", "wanted"], Evidence.TAKEN, True),
    ],
)
def test_without_a_position_only_the_last_prompt_can_be_the_one(
    prompts: list[str], evidence: Evidence, able: bool
) -> None:
    agent = AcpAgent("odd", ("odd",), keeps_first=True)
    told = told_by([Played(None, [text]) for text in prompts], agent, sent("wanted"))
    assert (told.evidence, told.able) == (evidence, able)


# ---------------------------------------------------------------- what a load shows of a session


async def once(provider: Provider, tmp_path: Path) -> Cursor:
    session = await provider.open(spec(tmp_path))
    for text in ("one", "two"):
        await turn(session, text)
    cursor = session.cursor
    assert cursor is not None
    await session.close()
    return cursor


async def landed(provider: Provider, tmp_path: Path, cursor: Cursor) -> Landing:
    session = await provider.open(spec(tmp_path, cursor=cursor))
    try:
        return session.landing
    finally:
        await session.close()


@pytest.mark.case("S16", "P11")
def test_what_is_played_back_is_counted(tmp_path: Path) -> None:
    """A session that is loaded as empty has no turn, whatever the agent calls it: that is for the kernel to refuse."""

    async def scene() -> None:
        cursor = await once(remembering(tmp_path), tmp_path)
        for how, turns in (
            ({}, 2),
            ({"loads": "empty"}, 0),
            ({"loads": "late", "pause": 0.6}, 2),
            ({"abilities": {"loadSession": True, **RESUMES}}, 2),
            ({"abilities": {"loadSession": True, "sessionCapabilities": {"resume": {}, "list": {}}}}, 2),
            # Nothing shows its history.
            ({"abilities": RESUMES}, None),
        ):
            assert (await landed(remembering(tmp_path, **how), tmp_path, cursor)).turns == turns, how

    run(scene())


@pytest.mark.case("S16")
def test_an_agent_that_says_it_opened_another_session_is_not_gone_on_with(tmp_path: Path) -> None:
    async def scene() -> None:
        cursor = await once(remembering(tmp_path), tmp_path)
        for abilities in ({"loadSession": True}, RESUMES):
            other = remembering(tmp_path, abilities=abilities, opens="session-9")
            with pytest.raises(Refused, match="Session session-1 was asked for, and the agent opened session-9"):
                await other.open(spec(tmp_path, cursor=cursor))
            probe = await other.probe(cursor, place(tmp_path))
            assert (probe.kind, "session-9" in probe.detail) == (ProbeKind.UNREACHABLE, True)
            await other.close()
            same = remembering(tmp_path, abilities=abilities, opens="session-1")
            assert (await landed(same, tmp_path, cursor)).native_id == "session-1"

    run(scene())


@pytest.mark.case("S16")
def test_an_agent_known_to_play_back_before_it_answers_is_not_waited_for(tmp_path: Path) -> None:
    async def scene() -> float:
        provider = remembering(tmp_path, {"agent": "codex", "mode.full": "x"}, loads="empty")
        session = "0b5d2c1e-6f0a-4a53-9b0e-3f2a7c1d8e90"
        (tmp_path / "store" / f"{session}.jsonl").touch()
        began = time.monotonic()
        heard = await provider.heard(Cursor(1, NativeId(session)), place(tmp_path), sent("x", 0))
        assert heard.evidence is Evidence.UNSENT
        return time.monotonic() - began

    assert run(scene()) < 1.9


def test_a_history_that_is_not_first_is_refused_as_an_option() -> None:
    with pytest.raises(Refused, match="last"):
        make(Settings(program=("agent",), options={"history": "last"}))


@pytest.mark.case("P19")
def test_the_address_is_there_before_the_session_is_kept(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(remembering(tmp_path), spec(tmp_path)) as session:
            assert (session.cursor, session.address) == (None, Cursor(1, NativeId("session-1")))
            await turn(session, "one")
            assert session.cursor == session.address

    run(scene())


def test_a_session_is_held_while_it_is_read(tmp_path: Path) -> None:
    async def scene() -> None:
        cursor = await once(remembering(tmp_path), tmp_path)
        late = remembering(tmp_path, FIRST, loads="late", pause=1.0)
        reading = asyncio.create_task(late.heard(cursor, place(tmp_path), sent("two", 1)))
        await asyncio.sleep(0.6)
        assert (await remembering(tmp_path, loads="late", pause=1.0).probe(cursor, place(tmp_path))).kind is (
            ProbeKind.BUSY
        )
        assert (await reading).evidence is Evidence.CUT_OFF

    run(scene())


@pytest.mark.case("P19")
@pytest.mark.parametrize(
    ("ids", "prompts"),
    [
        ((None, None), [["a"], ["b"]]),
        (("m1", "m1"), [["a", "b"]]),
        (("m1", "m2"), [["a"], ["b"]]),
    ],
)
def test_chunks_are_one_prompt_only_where_the_agent_numbers_them(
    ids: tuple[str | None, ...], prompts: list[list[str]]
) -> None:
    history = History(NativeId("one"), QUICK, late=False)
    for id_, text in zip(ids, ("a", "b"), strict=True):
        content = {"type": "text", "text": text}
        update = {"sessionUpdate": "user_message_chunk", "content": content, **({"messageId": id_} if id_ else {})}
        history.record({"sessionId": "one", "update": update})
        history.record({"sessionId": "another", "update": update})
    assert [each.parts for each in history.prompts] == prompts
    assert history.prompts[-1].is_of(digest_of("".join(prompts[-1])))
