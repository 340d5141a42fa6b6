"""A live session with the real program: what it does by itself, where it goes, and who has it."""

import asyncio
import json
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from clew.kernel import Answer, NativeId, ProbeKind
from clew.ports.events import ApprovalAsked, Ending, PlanChanged, QuestionAsked, Text, ToolFinished, ToolStarted
from clew.ports.provider import OpenSpec, Settings
from clew.programs.faults import CannotStart, Refused, SessionBusy, SessionMissing
from clew.programs.locks import is_locked, lock_session
from clew.programs.process_tag import Owner
from clew.programs.program import environment_for, start
from clew.providers.claude import launch as command
from clew.providers.claude import make, modes
from tests.providers.acp.locks import preset_locks
from tests.providers.claude.kit import ASK, FULL, READ, Place, begun, call, run, turn
from tests.providers.loopback.server import Model


@pytest.mark.case("S13")
def test_what_the_agent_begins_by_itself_waits_for_a_turn_and_is_not_taken_for_it(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            in_background = call("Bash", command="sleep 0.2; echo over", description="wait", run_in_background=True)
            assert (await turn(session, in_background)).done.ending is Ending.COMPLETED
            count = len(model.work)
            await asyncio.sleep(1.5)
            assert len(model.work) == count, "it spent tokens while nobody had asked anything"
            turned = await turn(session, "/mine: what now?")
            assert "<task-notification>" in json.dumps(model.work[-1].body), "it was never told of its own work"
            # The slash is the user's text, and no command of the program.
            assert turned.seen.last == "/mine: what now?"
            assert len([event for event in turned.of(Text) if event.final]) == 1

            # What it wanted to begin when it was allowed more is not begun when it is allowed less.
            await turn(session, in_background)
            await asyncio.sleep(1.0)
            assert await session.set_mode(READ) is READ
            turned = await turn(session, "RUN: touch later")
            assert (turned.done.ending, turned.seen.last) == (Ending.COMPLETED, "RUN: touch later")
            assert not list(Path(place.work().path).iterdir())

    run(scene())


@pytest.mark.case("S13", "L13")
def test_what_the_agent_begins_as_a_turn_ends_holds_up_no_other(place: Place) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            for _ in range(6):
                over_at_once = call("Bash", command="true", description="d", run_in_background=True)
                assert (await turn(session, over_at_once)).done.ending is Ending.COMPLETED

    run(scene(), 30.0)


@pytest.mark.case("P06")
def test_an_opening_that_is_called_off_as_it_ends_leaves_nothing(place: Place) -> None:
    def under_way() -> bool:
        return any(getattr(task.get_coro(), "__name__", "") == "_opened" for task in asyncio.all_tasks())

    async def scene() -> None:
        provider = make(place.settings)
        opening = asyncio.create_task(provider.open(OpenSpec(place.work(), ASK)))
        while not under_way():
            await asyncio.sleep(0)
        while under_way():
            await asyncio.sleep(0)
        assert not opening.done()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert not place.left()

    run(scene(), 30.0)


def test_side_threads_lists_and_questions_are_told_as_what_they_are(place: Place) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            side = call("Agent", description="d", prompt="RUN: pwd", subagent_type="general-purpose")
            turned = await turn(session, f"{side}\nSAY: from the agent itself")
            assert turned.reply == "from the agent itself"
            assert [event.text for event in turned.of(Text) if event.final] == ["from the agent itself"]
            assert [event.name for event in turned.of(ToolStarted)] == ["Agent", "Bash"]
            # Two requests of its own and two of the side thread, each of 100 and 7.
            assert turned.used is not None
            assert (turned.used.input, turned.used.output) == (400, 28)

            turned = await turn(session, call("TaskCreate", subject="one step", description="d"))
            assert turned.of(PlanChanged)[-1].steps == (("one step", "pending"),)

            options = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
            asked = {"question": "Which?", "header": "Pick", "options": options, "multiSelect": False}
            reply = ""
            async for event in session.turn(call("AskUserQuestion", questions=[asked])):
                if isinstance(event, QuestionAsked):
                    assert (event.words, event.choices) == ("Which?", ("Red", "Blue"))
                    assert await session.answer(event.id, Answer.APPROVE, "Blue, by far")
                reply = getattr(event, "reply", reply)
            assert "Blue, by far" in reply

    run(scene())


def test_a_secret_is_in_no_event_however_it_comes(place: Place) -> None:
    secret = "loopback-0c1d-must-not-be-seen"

    def with_secret(settings: Settings) -> Settings:
        return replace(settings, environment={**settings.environment, "ITS_TOKEN": secret})

    async def scene() -> None:
        async with place.provider(with_secret) as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            said = await turn(session, f"THINK: of {secret}\nSAY: it is {secret}, no less")
            parts = [event.text for event in said.of(Text) if not event.final]
            assert len(parts) > 1, "it came in one part, and nothing was cut"
            assert "".join(parts) == said.reply == "it is [hidden], no less"
            ran = await turn(session, f"RUN: echo $ITS_TOKEN {secret} > file; cat file", Answer.APPROVE)
            assert ran.of(ApprovalAsked)
            assert "[hidden] [hidden]" in ran.of(ToolFinished)[-1].output
            told = [*said.events, *ran.events]
            assert secret not in json.dumps([asdict(event) for event in told])
            assert secret not in repr(told)

    run(scene())


@pytest.mark.case("D10", "C17")
def test_a_prompt_is_held_back_when_the_agent_has_gone_elsewhere(
    place: Place, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if it had a tool for it of which nothing is known here.
    monkeypatch.setattr(command, "NEVER", frozenset({"ExitWorktree"}))
    monkeypatch.setattr(modes, "NEVER", frozenset())
    work = place.work()
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", work.path)
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(work, FULL))
            moved = await turn(session, call("EnterWorktree", name="aside"))
            assert "worktree" in moved.reply, moved.reply
            count = len(model.work)
            turned = await turn(session, "this belongs into the first directory")
            assert turned.done.ending is Ending.FAILED
            assert work.path in turned.failed.words
            assert "aside" in turned.failed.words
            assert len(model.work) == count, "the prompt reached the model"
            assert session.cursor is not None
            await session.close()
            # Its queue is noted down; in what the model gets there is nothing of it.
            lines = map(json.loads, place.transcript(session.cursor).read_text().splitlines())
            assert "belongs into" not in json.dumps([line["message"] for line in lines if "message" in line])

    run(scene())


@pytest.mark.case("L05")
def test_an_interrupt_that_comes_at_once_keeps_the_prompt_from_the_model(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            events = session.turn("never to be heard")
            first = await anext(events)
            await session.interrupt()
            rest = [event async for event in events]
            assert getattr(rest[-1], "ending", None) is Ending.INTERRUPTED, (first, rest)
            assert not model.work
            # Who goes away in the middle of a turn ends it.
            events = session.turn("HANG")
            async for event in events:
                if isinstance(event, Text):
                    break
            await events.aclose()  # type: ignore[attr-defined]
            assert (await turn(session, "after")).seen.last == "after"

    run(scene())


@pytest.mark.case("P05", "C13", "C14", "C29", "C32", "P03", "A01")
def test_a_session_is_opened_by_one_and_is_as_told_each_time(place: Place, other: Place) -> None:
    work, made = place.work(), Path(place.work().path) / "made"

    async def scene() -> None:
        async with place.provider() as one, place.provider() as two, other.provider() as abroad:
            cursor = await begun(one, work, "first", mode=FULL)
            # Of another home it is unknown there, and no new one.
            await begun(abroad, other.work(), "another")
            assert (await abroad.probe(cursor, work)).kind is ProbeKind.MISSING
            with pytest.raises(SessionMissing):
                await abroad.open(OpenSpec(other.work(), ASK, cursor))
            # Without its program it is neither missing nor held.
            gone = make(replace(place.settings, program=("/nowhere/claude",)))
            with pytest.raises(CannotStart):
                await gone.open(OpenSpec(work, ASK, cursor))
            assert (await gone.probe(cursor, work)).kind is ProbeKind.FOUND_HERE

            racing = [provider.open(OpenSpec(work, READ, cursor)) for provider in (one, two)]
            opened = await asyncio.gather(*racing, return_exceptions=True)
            assert [type(each) for each in opened if isinstance(each, BaseException)] == [SessionBusy]
            (narrow,) = (each for each in opened if not isinstance(each, BaseException))
            assert (await two.probe(cursor, work)).kind is ProbeKind.BUSY
            await turn(narrow, f"RUN: touch {made}")
            assert not made.exists()
            await narrow.close()
            wide = await two.open(OpenSpec(work, FULL, cursor))
            seen = (await turn(wide, f"RUN: touch {made}")).seen
            assert (made.exists(), seen.users, seen.first) == (True, 3, "first")

    run(scene())


@pytest.mark.case("C29")
def test_a_session_that_somebody_else_has_open_is_left_alone(place: Place) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            cursor = await begun(provider, place.work(), "first")
            # Somebody's own `claude`, of which Clew knows nothing.
            speaking = ("-p", "--verbose", "--input-format=stream-json", "--output-format=stream-json")
            command = [*place.settings.program, *speaking, f"--resume={place.transcript(cursor)}"]
            environment = environment_for(place.settings.home, place.settings.environment)
            other = await start(command, Path(place.work().path), environment)
            try:
                await other.send(b'{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}')
                await anext(other.lines())
                busy = await provider.probe(cursor, place.work())
                assert busy.kind is ProbeKind.BUSY
                assert "claude, process" in str(busy.holder)
                with pytest.raises(SessionBusy):
                    await provider.open(OpenSpec(place.work(), ASK, cursor))
                fork = await provider.open(OpenSpec(place.work(), ASK, cursor, fork=True))
                assert (await turn(fork, "beside it")).seen.users == 2
            finally:
                await other.end(5.0)

    run(scene())


@pytest.mark.case("P05", "C29")
def test_a_session_that_another_provider_of_the_home_has_is_busy(place: Place) -> None:
    locks = preset_locks("claude", place.settings.home)

    async def scene() -> None:
        async with place.provider() as provider:
            cursor = await begun(provider, place.work(), "first")
            archived = await provider.archive(cursor, place.work(), place.root / "copy")
            hold = lock_session(locks, cursor.native_id)
            assert (await provider.probe(cursor, place.work())).kind is ProbeKind.BUSY
            with pytest.raises(SessionBusy):
                await provider.open(OpenSpec(place.work(), READ, cursor))
            with pytest.raises(Refused, match="restored over"):
                await provider.restore(archived.path, place.work())
            hold.release()
            # And the other way round, from the beginning on.
            for of in (cursor, None):
                session = await provider.open(OpenSpec(place.work(), READ, of))
                assert session.landing.native_id is not None
                assert is_locked(locks, session.landing.native_id)
                await session.close()
                assert not is_locked(locks, session.landing.native_id)

    run(scene())


@pytest.mark.parametrize("wait", [0.0, 0.2, 0.6])
def test_a_provider_that_is_closed_opens_nothing_more(place: Place, wait: float) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            opening = asyncio.create_task(provider.open(OpenSpec(place.work(), READ)))
            await asyncio.sleep(wait)
            await provider.close()
            assert not place.left()
            try:
                session = await opening
            except Refused:
                session = None
            if session is not None:
                # It was there in time, and is closed with its provider.
                with pytest.raises(Refused):
                    await turn(session, "hello?")
            with pytest.raises(Refused):
                await provider.open(OpenSpec(place.work(), READ))
            assert not place.left()

    run(scene())


@pytest.mark.case("P07")
@pytest.mark.parametrize("switches", [True, False])
def test_the_note_of_a_program_that_is_still_reading_its_session_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switches: bool
) -> None:
    """A program that resumes writes a note of a new session first."""
    monkeypatch.setattr(command, "SWITCH", 30.0 if switches else 0.0)
    note, ours = tmp_path / "1.json", Owner.ourselves()

    def write(session: str) -> None:
        said = {"pid": ours.pid, "procStart": str(ours.started), "sessionId": session, "cwd": "/srv"}
        note.write_text(json.dumps(said))

    write("new")

    async def scene() -> object:
        waiting = asyncio.create_task(command.wait_for_note(note, NativeId("wanted"), 30.0))
        if switches:
            await asyncio.sleep(0.05)
            assert not waiting.done()
            write("wanted")
        return (await waiting)["sessionId"]

    assert asyncio.run(asyncio.wait_for(scene(), 60.0)) == ("wanted" if switches else "new")
