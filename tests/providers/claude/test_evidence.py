"""Whether the real program took a prompt, read from its transcript after it was killed, failed or was interrupted."""

import asyncio
import json
import os
import signal
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest

from clew import kernel
from clew.kernel import Cursor, Directory, Evidence, PromptId, Sent, digest_of
from clew.ports.events import Ending, ErrorCode, Event, Text, ToolStarted
from clew.ports.provider import LiveSession, OpenSpec, Provider, Settings
from clew.providers.claude.turn import Steer, TurnFollower
from tests.providers.claude.kit import FULL, Place, begun, run, turn
from tests.providers.contract.stage import Turned, eventually
from tests.providers.loopback.server import Model


def new_id() -> PromptId:
    return PromptId(str(uuid.uuid4()))


async def ask(session: LiveSession, prompt: str, id_: PromptId) -> Turned:
    return Turned(tuple([event async for event in session.turn(prompt, id_)]))


async def going(session: LiveSession, prompt: str, id_: PromptId, kind: type[Event]) -> "asyncio.Task[Turned]":
    """A turn that goes on, once it has come to such an event."""
    there = asyncio.Event()

    async def follow() -> Turned:
        events: list[Event] = []
        async for event in session.turn(prompt, id_):
            events.append(event)
            if isinstance(event, kind):
                there.set()
        return Turned(tuple(events))

    task = asyncio.create_task(follow())
    await there.wait()
    return task


async def heard(provider: Provider, session: LiveSession, directory: Directory, id_: PromptId) -> kernel.Attestation:
    """What is said within a second, and before and after the session is closed alike."""
    assert session.address is not None
    sent = Sent(id_, digest_of("the text does not count"))
    began = time.monotonic()
    told = await provider.heard(session.address, directory, sent)
    assert time.monotonic() - began < 1.0
    await session.close()
    assert await provider.heard(session.address, directory, sent) == told
    return told


def stop(place: Place, session: LiveSession, number: int) -> None:
    """That signal to the program that has the session, by its own note."""
    assert session.address is not None
    notes = [json.loads(path.read_text()) for path in place.config.glob("sessions/*.json")]
    ours = [note for note in notes if note["sessionId"] == session.address.native_id]
    os.kill(max(ours, key=lambda note: note["startedAt"])["pid"], number)


def kill(place: Place, session: LiveSession) -> None:
    stop(place, session, signal.SIGKILL)


async def written(place: Place, session: LiveSession, sign: str, times: int = 1) -> bool:
    """Whether that comes to stand in the transcript so often: the program writes a tenth of a second late."""
    assert session.address is not None
    transcript = place.transcript(session.address)
    return await eventually(lambda: transcript.read_text().count(sign) >= times)


def with_hook(place: Place, event: str, command: str) -> None:
    """A hook of the user's own."""
    hooks = {event: [{"hooks": [{"type": "command", "command": command}]}]}
    (place.config / "settings.json").write_text(json.dumps({"hooks": hooks}))


async def seen_again(provider: Provider, directory: Directory, cursor: Cursor, model: Model, *words: str) -> list[int]:
    """How often the model is told each of these when the session goes on."""
    session = await provider.open(OpenSpec(directory, FULL, cursor))
    assert (await turn(session, "and now?")).done.ending is Ending.COMPLETED
    await session.close()
    told = json.dumps(model.work[-1].body)
    return [told.count(word) for word in words]


# ---------------------------------------------------------------- not taken


@pytest.mark.case("P19")
def test_killed_before_it_read_the_prompt_it_has_not_taken_it(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            await begun(provider, place.work("other"), "so that the home is not empty")
            for earlier in ((), ("first",)):
                session = await provider.open(OpenSpec(place.work(), FULL))
                for prompt in earlier:
                    await turn(session, prompt)
                # Known before the session is kept anywhere.
                assert session.address is not None
                assert (session.cursor is None) is (not earlier)
                stop(place, session, signal.SIGSTOP)
                id_, before = new_id(), len(model.work)
                asked = asyncio.create_task(ask(session, "lost-in-the-pipe", id_))
                await asyncio.sleep(0.3)
                kill(place, session)
                assert (await asked).failed.code is ErrorCode.PROGRAM_ENDED
                told = await heard(provider, session, place.work(), id_)
                assert (told.evidence, told.able) == (Evidence.UNSENT, True)
                assert len(model.work) == before
                if not earlier:
                    continue
                # Sent in full, under the id that it has, it is taken once.
                again = await provider.open(OpenSpec(place.work(), FULL, session.address))
                assert (await ask(again, "lost-in-the-pipe", id_)).done.ending is Ending.COMPLETED
                assert json.dumps(model.work[-1].body).count("lost-in-the-pipe") == 1
                assert (await heard(provider, again, place.work(), id_)).evidence is Evidence.FINISHED

    run(scene())


@pytest.mark.case("P19")
def test_killed_at_the_gate_it_has_not_taken_the_prompt(place: Place, model: Model) -> None:
    at_the_gate = place.root / "at-the-gate"

    async def scene() -> None:
        async with place.provider() as provider:
            cursor = await begun(provider, place.work(), "first")
            with_hook(place, "UserPromptSubmit", f"touch {at_the_gate}; sleep 30")
            session = await provider.open(OpenSpec(place.work(), FULL, cursor))
            id_, before = new_id(), len(model.work)
            asked = asyncio.create_task(ask(session, "held-back", id_))
            assert await eventually(at_the_gate.exists)
            # While somebody may still take it, nothing is certain.
            assert session.address is not None
            sent = Sent(id_, digest_of("held-back"))
            assert (await provider.heard(session.address, place.work(), sent)).evidence is Evidence.UNKNOWN
            # Its text is in the transcript: it stood in the queue. It is not taken.
            assert await written(place, session, "held-back")
            kill(place, session)
            await asked
            assert (await heard(provider, session, place.work(), id_)).evidence is Evidence.UNSENT
            assert len(model.work) == before
            (place.config / "settings.json").unlink()
            assert await seen_again(provider, place.work(), cursor, model, "held-back") == [0]

    run(scene())


@pytest.mark.case("P19")
def test_a_program_that_ended_between_turns_has_not_taken_the_next_prompt(place: Place) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            await turn(session, "first")
            kill(place, session)
            assert await eventually(lambda: not place.left())
            id_ = new_id()
            failed = (await ask(session, "to nobody", id_)).failed
            assert (failed.code, failed.retryable) == (ErrorCode.PROGRAM_ENDED, True)
            assert (await heard(provider, session, place.work(), id_)).evidence is Evidence.UNSENT

    run(scene())


# ---------------------------------------------------------------- taken


@pytest.mark.case("P19")
def test_killed_as_the_model_is_asked_it_has_taken_the_prompt(place: Place, model: Model) -> None:
    """It writes the prompt before it asks: a kill at the very arrival of the request finds it written."""

    async def scene() -> None:
        async with place.provider() as provider:
            for number, earlier in enumerate(((), ("first",), ("first", "second"))):
                directory, word = place.work(str(number)), f"taken-{number}"
                session = await provider.open(OpenSpec(directory, FULL))
                for prompt in earlier:
                    await turn(session, prompt)
                id_, before = new_id(), len(model.work)
                model.hang(mute=True)
                asked = asyncio.create_task(ask(session, word, id_))
                await asyncio.to_thread(model.wait, before + 1)
                kill(place, session)
                await asked
                model.ok()
                assert (await heard(provider, session, directory, id_)).evidence is Evidence.TAKEN
                assert session.address is not None
                assert await seen_again(provider, directory, session.address, model, word) == [1]
                # It stays so whatever the session goes on with; the program puts words of its own in between.
                assert (await heard(provider, session, directory, id_)).evidence is Evidence.TAKEN

    run(scene())


@pytest.mark.case("P19")
def test_killed_within_its_turn_it_is_cut_off(place: Place, model: Model) -> None:
    began = place.root / "began"

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            id_ = new_id()
            asked = asyncio.create_task(ask(session, f"RUN: touch {began}; sleep 60\nin-a-tool", id_))
            assert await eventually(began.exists)
            assert await written(place, session, '"type":"tool_use"')
            kill(place, session)
            await asked
            assert (await heard(provider, session, place.work(), id_)).evidence is Evidence.CUT_OFF

            # In the middle of its answer: what it said so far is not written, what it did before is.
            for prompt, evidence in (("SLOW: 30", Evidence.TAKEN), ("RUN: true\nSLOW: 30", Evidence.CUT_OFF)):
                session = await provider.open(OpenSpec(place.work(), FULL, session.address))
                id_ = new_id()
                asked = await going(session, prompt, id_, Text)
                if evidence is Evidence.CUT_OFF:
                    assert await written(place, session, '"type":"tool_result"')
                kill(place, session)
                await asked
                assert (await heard(provider, session, place.work(), id_)).evidence is evidence
            assert session.address is not None
            assert await seen_again(provider, place.work(), session.address, model, "in-a-tool") == [1]

    run(scene())


@pytest.mark.case("P19")
def test_a_model_that_failed_leaves_the_prompt_taken_and_a_stopped_turn_is_cut_off(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            failed, mute, stopped, in_tool, well = (new_id() for _ in range(5))
            model.fail(500)
            assert (await ask(session, "fails", failed)).failed.code is ErrorCode.MODEL_FAILED
            # The program runs on and is asked nothing: what it has not written now, it never will.
            assert session.address is not None
            told = await provider.heard(session.address, place.work(), Sent(failed, digest_of("fails")))
            assert told.evidence is Evidence.TAKEN

            async def interrupted(prompt: str, id_: PromptId, until: Callable[[], bool]) -> None:
                asked = asyncio.create_task(ask(session, prompt, id_))
                assert await eventually(until)
                await session.interrupt()
                assert (await asked).done.ending is Ending.INTERRUPTED

            model.hang(mute=True)
            before = len(model.work)
            await interrupted("nothing is said", mute, lambda: len(model.work) > before)
            model.ok()
            asked = await going(session, "HANG", stopped, Text)
            await session.interrupt()
            assert (await asked).done.ending is Ending.INTERRUPTED
            began = place.root / "began"
            await interrupted(f"RUN: touch {began}; sleep 60", in_tool, began.exists)
            assert (await ask(session, "SAY: at last", well)).reply == "at last"
            found = [
                (await heard(provider, session, place.work(), id_)) for id_ in (failed, mute, stopped, in_tool, well)
            ]
            assert [told.evidence for told in found] == [
                Evidence.TAKEN,
                Evidence.CUT_OFF,
                Evidence.CUT_OFF,
                Evidence.CUT_OFF,
                Evidence.FINISHED,
            ]
            assert [told.reply for told in found] == ["", "", "", "", "at last"]

    run(scene())


# ---------------------------------------------------------------- finished


@pytest.mark.case("P19", "C35")
def test_a_finished_reply_is_read_back_as_it_would_have_been_told(place: Place) -> None:
    secret = "loopback-7d2e-must-not-be-seen"

    def with_secret(settings: Settings) -> Settings:
        return replace(settings, environment={**settings.environment, "ITS_TOKEN": secret})

    async def scene() -> None:
        async with place.provider(with_secret) as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            prompts = (
                "/slash",
                "THINK: hard\nSAY: thought",
                "RUN: echo hi\nRUN: true",
                f"SAY: it is {secret}, no less",
            )
            # Two are the same: each has its own id.
            told = [(id_ := new_id(), await ask(session, prompt, id_)) for prompt in (*prompts, prompts[0])]
            for id_, turned in told:
                found = await heard(provider, session, place.work(), id_)
                assert (found.evidence, found.reply) == (Evidence.FINISHED, turned.reply)
                assert found.reply
                assert secret not in found.reply
            assert told[0][1].reply != told[-1][1].reply

    run(scene())


@pytest.mark.case("P19", "C35")
def test_killed_when_its_answer_is_written_and_not_yet_told_the_turn_is_finished(place: Place) -> None:
    ending = place.root / "ending"

    async def scene() -> None:
        async with place.provider() as provider:
            # The user's own hook holds the turn's end up: the answer is written, and the turn's end is not told.
            with_hook(place, "Stop", f"touch {ending}; sleep 30")
            session = await provider.open(OpenSpec(place.work(), FULL))
            id_ = new_id()
            asked = asyncio.create_task(ask(session, "RUN: true\nSAY: the whole answer", id_))
            assert await eventually(ending.exists)
            assert await written(place, session, '"stop_reason":"end_turn"')
            kill(place, session)
            assert (await asked).failed.code is ErrorCode.PROGRAM_ENDED
            found = await heard(provider, session, place.work(), id_)
            assert (found.evidence, found.reply) == (Evidence.FINISHED, "the whole answer")

    run(scene())


# ---------------------------------------------------------------- words within a turn


@pytest.mark.case("P19", "W13")
def test_words_within_a_turn_are_found_by_their_id_when_they_were_taken(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            id_, first, second, late = (new_id() for _ in range(4))
            asked = await going(session, "RUN: sleep 1\nRUN: sleep 1\nSAY: done", id_, ToolStarted)
            assert await session.steer("the same words", first)
            assert await session.steer("the same words", second)
            assert (await asked).reply == "done"
            # No tool comes any more: it is kept from these.
            asked = await going(session, "SLOW: 0.3\nSAY: a long answer", new_id(), Text)
            assert not await session.steer("the same words", late)
            await asked
            found = [await heard(provider, session, place.work(), each) for each in (id_, first, second, late)]
            evidence = [told.evidence for told in found]
            assert evidence == [Evidence.FINISHED, Evidence.FINISHED, Evidence.FINISHED, Evidence.UNSENT]
            assert [told.reply for told in found] == ["done", "done", "done", ""]
            assert session.address is not None
            assert await seen_again(provider, place.work(), session.address, model, "the same words") == [2]

    run(scene())


@pytest.mark.case("P19", "W13")
def test_of_a_program_that_dies_words_within_its_turn_are_taken_that_it_wrote_and_no_others(
    place: Place, model: Model
) -> None:
    began = place.root / "began"

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            id_, taken, waiting = (new_id() for _ in range(3))
            prompt = f"RUN: sleep 1\nRUN: touch {began}; sleep 60"
            asked = await going(session, prompt, id_, ToolStarted)
            assert await session.steer("taken-words", taken)
            assert await eventually(began.exists)
            telling = asyncio.create_task(session.steer("waiting-words", waiting))
            assert await written(place, session, '"type":"tool_use"', 2)
            assert await written(place, session, '"operation":"enqueue"', 3)
            kill(place, session)
            assert not await telling
            await asked
            assert (await heard(provider, session, place.work(), id_)).evidence is Evidence.CUT_OFF
            assert (await heard(provider, session, place.work(), taken)).evidence is Evidence.CUT_OFF
            assert (await heard(provider, session, place.work(), waiting)).evidence is Evidence.UNSENT
            assert session.address is not None
            words = ("taken-words", "waiting-words")
            assert await seen_again(provider, place.work(), session.address, model, *words) == [1, 0]

    run(scene())


@pytest.mark.case("P19", "W13")
def test_words_that_were_told_back_and_never_written_are_not_taken(
    place: Place, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told back, they are on their way to the model and not yet in the transcript. A kill at that moment loses them."""

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            taken = TurnFollower._steer_taken  # noqa: SLF001 - the moment at which they are told back

            def kill_then(self: TurnFollower, told: Steer) -> None:
                kill(place, session)
                taken(self, told)

            monkeypatch.setattr(TurnFollower, "_steer_taken", kill_then)
            id_ = new_id()
            asked = await going(session, "RUN: sleep 0.5\nSAY: done", new_id(), ToolStarted)
            answered = await session.steer("echoed-words", id_)
            await asked
            assert session.address is not None
            evidence = (await heard(provider, session, place.work(), id_)).evidence
            assert answered is (evidence is not Evidence.UNSENT)
            times = await seen_again(provider, place.work(), session.address, model, "echoed-words")
            assert times == [int(answered)]

    run(scene())
