"""Opening: asked for, opened as planned, looked at before anything is said, and never fresh in silence."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import Cursor, Directory, Freshness, Landing, NativeId, PermissionMode, Probe, ProbeKind
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, SessionNamed, Text, ToolFinished, ToolStarted
from clew.ports.provider import OpenSpec
from clew.programs.faults import NoProgram, Refused, TooSlow
from clew.store.operations.cancel import cancel_run
from clew.store.schema.tables import agents, landings, runs, sessions
from tests.daemon.kit import QUICK, World, run, until, world
from tests.daemon.scripted import REFUSED, Session, plain

COLD = replace(QUICK, warm=0)
"""Nothing is kept open, so that every turn opens its session anew."""


async def furnished(there: World) -> None:
    await there.add_agent()
    there.add_thread()


@pytest.mark.case("C32", "D10", "P07")
def test_a_resumed_session_is_proven_and_verified_before_it_is_told_anything(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            row = await there.tell("two")
            assert there.steps(row.id) == ["workspace", "probe", "open", "verify"]
            kinds = [kind for kind, _ in there.log(row.id)]
            assert kinds.index("step") < kinds.index("session")
            assert (row.claim, row.state) == ("resumed", "succeeded")
            assert there.loom.probed == ["loom-1"]

    run(scene())


@pytest.mark.case("P01", "P14")
def test_an_id_is_pinned_once_it_can_be_found_again_and_before_the_turn_ends(tmp_path: Path) -> None:
    pinned_while_it_went: list[tuple[int, int]] = []

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)

            async def slowly_durable(session: Session, prompt: str) -> AsyncIterator[Event]:
                yield SessionNamed(session.kept.id, durable=False)
                yield Text("thinking", final=False)
                await asyncio.sleep(0.1)
                before = len(there.sessions())
                session.take(prompt)
                yield SessionNamed(session.kept.id, durable=True)
                await until(lambda: len(there.sessions()) == 1, "the session is written down")
                pinned_while_it_went.append((before, len(there.sessions())))
                session.reply("done")
                yield Done(Ending.COMPLETED, "done")

            there.loom.turns.append(slowly_durable)
            await there.tell("one")
            (row,) = there.sessions()
            assert (row.native_id, row.turns, row.seen) == ("loom-1", 1, 2)

    run(scene())
    assert pinned_while_it_went == [(0, 1)]


@pytest.mark.case("C17", "D10")
def test_a_session_in_another_directory_than_planned_is_told_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            there.loom.lands = lambda landing: replace(landing, directory=Directory("/somewhere/else"))
            said = there.say("one")
            await until(lambda: there.runs()[0].hold == "person", "it waits for a person")
            (row,) = there.runs()
            assert row.hold_code == "landing:directory-other"
            assert str(there.place / "homes" / "ada") in row.words
            assert "/somewhere/else" in row.words
            assert there.loom.prompts == []
            assert there.loom.closed == ["loom-1"]
            assert len(there.rows(landings, "run_id")) == 1
            assert there.wake_row(said).state == "pending"
            (verified,) = [body["words"] for kind, body in there.log(row.id) if body.get("what") == "verify"]
            assert "/somewhere/else" in verified

    run(scene())


def test_a_session_that_is_refused_and_cannot_be_closed_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def cannot(_: Session) -> None:
        raise OSError("it does not let go")

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            there.loom.lands = lambda landing: replace(landing, directory=Directory("/somewhere/else"))
            there.loom.close_with = cannot
            there.say("one")
            await until(lambda: there.runs()[0].hold == "person", "it waits for a person")
            there.loom.close_with = None

    run(scene())
    assert "session loom-1 could not be closed" in caplog.text


@pytest.mark.case("P03")
def test_a_wider_mode_than_planned_closes_the_way(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await there.add_agent(mode="read")
            there.add_thread()
            there.loom.lands = lambda landing: replace(landing, mode=PermissionMode.FULL)
            there.say("one")
            await until(lambda: there.runs()[0].hold_code == "landing:mode-wider", "it is refused")
            assert there.loom.prompts == []

    run(scene())


@pytest.mark.case("C13")
def test_a_session_that_is_gone_is_lost_and_another_is_told_all(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.kept.clear()
            row = await there.tell("two")
            assert there.outcomes(row.id) == [("resume", "session:fits"), ("reseed", "session:lost")]
            (prompt,) = there.loom.prompts
            assert all(text in prompt for text in ("one", "reply 1", "two", "a person said:", "You said earlier:"))
            assert [(each.native_id, each.state) for each in there.sessions()] == [
                ("loom-1", "lost"),
                ("loom-2", "healthy"),
            ]

    run(scene())


@pytest.mark.case("C03", "C13")
def test_what_was_before_a_fresh_start_stays_there_when_the_session_after_it_is_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("first-words")
            await there.tell("second-words", freshness=Freshness.FRESH)
            del there.loom.kept[NativeId("loom-2")]
            row = await there.tell("third-words")
            assert there.outcomes(row.id)[-1] == ("reseed", "session:lost")
            first, third = there.loom.prompts
            assert first == "first-words"
            assert ("first-words" in third, "second-words" in third) == (False, True)

    run(scene())


@pytest.mark.case("C14", "C15")
@pytest.mark.parametrize(
    "probe",
    [
        Probe(ProbeKind.UNREACHABLE, detail="HTTP 500: NotFoundError"),
        Probe(ProbeKind.MISSING, detail="session not found"),
        Probe(ProbeKind.MISSING, signal="a sign nobody declared"),
    ],
)
def test_what_is_no_declared_sign_holds_and_makes_nothing(tmp_path: Path, probe: Probe) -> None:
    async def answers(cursor: Cursor, directory: Directory) -> Probe:  # noqa: ARG001
        return probe

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.probe_with = answers
            said = there.say("two")
            await until(lambda: there.runs()[1].hold == "another-try", "it is held")
            assert len(there.loom.opened) == 1
            assert there.wake_row(said).state == "pending"
            assert [each.state for each in there.sessions()] == ["healthy"]

    run(scene())


@pytest.mark.case("C14")
@pytest.mark.parametrize("breaks", [TimeoutError("no answer"), TooSlow("It hangs.", "Wait."), ValueError("odd")])
def test_a_probe_that_breaks_says_nothing_about_the_session(tmp_path: Path, breaks: Exception) -> None:
    async def raises(cursor: Cursor, directory: Directory) -> Probe:  # noqa: ARG001
        raise breaks

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.probe_with = raises
            there.say("two")
            await until(lambda: there.runs()[1].hold_code == "probe:unreachable", "it is held")

    run(scene())


@pytest.mark.case("C14", "R10")
def test_a_probe_that_hangs_has_a_deadline(tmp_path: Path) -> None:
    async def hangs(cursor: Cursor, directory: Directory) -> Probe:  # noqa: ARG001
        await asyncio.sleep(3600)
        raise AssertionError

    async def scene() -> None:
        async with world(tmp_path, replace(COLD, probe=0.2)) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.probe_with = hangs
            there.say("two")
            await until(lambda: there.runs()[1].hold_code == "probe:unreachable", "it is held")
            assert "more than 0.2 s" in there.runs()[1].words

    run(scene())


@pytest.mark.case("C12")
def test_a_cursor_that_cannot_be_read_is_not_probed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            there.put(sessions, {"native_id": "loom-1"}, cursor='{"v": 99, "id": "loom-1"}')
            row = await there.tell("two")
            assert there.loom.probed == []
            assert there.outcomes(row.id)[-1][0] == "reseed"

    run(scene())


@pytest.mark.case("C25")
def test_a_session_that_was_never_captured_is_begun_anew_and_told_in_short(tmp_path: Path) -> None:
    async def never_durable(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.kept.prompts.append(prompt)
        yield Text("fine")
        yield Done(Ending.COMPLETED, "fine")

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            there.loom.turns.append(never_durable)
            there.loom.nameless = True
            await there.tell("one")
            assert there.sessions() == []
            there.loom.nameless = False
            row = await there.tell("two")
            assert there.outcomes(row.id)[-1] == ("reseed", "session:never-captured")
            prompt = there.loom.kept["loom-2"].prompts[0]  # type: ignore[index]
            assert "one" in prompt
            assert "fine" in prompt

    run(scene())


@pytest.mark.case("C16")
def test_a_session_of_another_directory_is_forked_with_its_history(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            there.put(agents, {"id": "ada"}, home=str(there.place / "homes" / "another"))
            row = await there.tell("two")
            assert there.outcomes(row.id)[-1][0] == "fork"
            assert (row.claim, row.state) == ("forked", "succeeded")
            forked = there.loom.kept["loom-2"]  # type: ignore[index]
            assert (forked.prompts, forked.directory.path) == (["one", "two"], str(there.place / "homes" / "another"))
            assert [(each.generation, each.native_id) for each in there.sessions()] == [(1, "loom-1"), (2, "loom-2")]

    run(scene())


@pytest.mark.case("C18")
def test_two_spellings_of_one_directory_are_one(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            real, link = there.place / "real", there.place / "link"
            real.mkdir()
            link.symlink_to(real)
            await there.add_agent(home=f"{link}/../link/")
            there.add_thread()
            there.loom.lands = lambda landing: _where_it_really_is(landing, real)
            await there.tell("one")
            row = await there.tell("two")
            assert (row.claim, row.state) == ("resumed", "succeeded")
            (kept,) = there.loom.kept.values()
            assert kept.prompts == ["one", "two"]

    run(scene())


def _where_it_really_is(landing: Landing, real: Path) -> Landing:
    return replace(landing, directory=Directory(str(real), str(real)))


@pytest.mark.case("C29")
def test_a_session_that_another_program_has_open_is_waited_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.open.add(there.sessions()[0].native_id)
            there.say("two")
            await until(lambda: there.runs()[1].hold == "session-free", "it waits for the session")
            assert len(there.loom.opened) == 1

    run(scene())


@pytest.mark.case("P05", "C29")
def test_a_session_taken_between_probe_and_opening_is_waited_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")

            async def somebody_else_is_faster(spec: OpenSpec) -> None:
                assert spec.cursor is not None
                there.loom.open.add(spec.cursor.native_id)

            there.loom.before_open = somebody_else_is_faster
            there.say("two")
            await until(lambda: there.runs()[1].hold == "session-free", "it waits for the session")
            assert there.loom.prompts == ["one"]

    run(scene())


@pytest.mark.case("P08")
def test_a_resume_that_is_refused_leads_to_one_new_session_in_the_same_run(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            asked: list[int] = []

            async def found_then_refused(cursor: Cursor, directory: Directory) -> Probe:  # noqa: ARG001
                asked.append(1)
                if len(asked) == 1:
                    return Probe(ProbeKind.FOUND_HERE, directory)
                return Probe(ProbeKind.REJECTED, signal=REFUSED, detail="it is damaged")

            async def refuses(spec: OpenSpec) -> None:
                if spec.cursor is not None:
                    raise Refused("It cannot be opened.", "Start a new one.")

            there.loom.probe_with, there.loom.before_open = found_then_refused, refuses
            row = await there.tell("two")
            assert [outcome for outcome, _ in there.outcomes(row.id)] == ["resume", "resume", "reseed"]
            assert (row.state, row.reopened, row.attempt) == ("succeeded", 1, 1)
            assert "two" in there.loom.kept["loom-2"].prompts[0]  # type: ignore[index]
            assert [each.state for each in there.sessions()] == ["poisoned", "healthy"]

    run(scene())


@pytest.mark.case("P08", "P11")
def test_a_session_that_refuses_only_the_prompt_is_replaced_once(tmp_path: Path) -> None:
    async def took_nothing(session: Session, prompt: str) -> AsyncIterator[Event]:  # noqa: ARG001
        session.loom.kept.pop(session.kept.id)
        yield SessionNamed(session.kept.id, durable=True)
        yield Failed(ErrorCode.UNKNOWN, "no conversation found", retryable=False)
        yield Done(Ending.FAILED)

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.turns.append(took_nothing)
            row = await there.tell("two")
            assert (row.state, row.reopened, row.claim) == ("succeeded", 1, "started")
            assert there.outcomes(row.id)[-1] == ("reseed", "session:lost")
            (prompt,) = there.loom.prompts
            assert "one" in prompt
            assert "two" in prompt

    run(scene())


@pytest.mark.case("P08")
def test_a_prompt_that_went_out_is_not_forgotten_when_its_replacement_cannot_be_opened(tmp_path: Path) -> None:
    async def missing(spec: OpenSpec) -> None:  # noqa: ARG001
        raise NoProgram("loom is not here.", "Install it.")

    async def took_nothing(session: Session, prompt: str) -> AsyncIterator[Event]:  # noqa: ARG001
        session.loom.kept.pop(session.kept.id)
        session.loom.before_open = missing
        yield SessionNamed(session.kept.id, durable=True)
        yield Failed(ErrorCode.UNKNOWN, "no conversation found", retryable=False)
        yield Done(Ending.FAILED)

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.turns.append(took_nothing)
            there.say("two")
            await until(lambda: len(there.runs()) > 1 and there.runs()[1].state == "failed", "it fails")
            assert "loom is not here." in there.runs()[1].words

    run(scene())


@pytest.mark.case("P08", "P09")
def test_after_a_tool_ran_nothing_is_tried_anew(tmp_path: Path) -> None:
    async def worked_first(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.take(prompt)
        yield ToolStarted("t1", "shell", "rm -r build")
        yield ToolFinished("t1", ok=True)
        session.loom.kept.pop(session.kept.id)
        yield Failed(ErrorCode.UNKNOWN, "no conversation found", retryable=False)
        yield Done(Ending.FAILED)

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.turns.append(worked_first)
            row = await there.tell("two")
            assert (row.state, row.reopened, row.tool_ran) == ("failed", 0, 1)
            assert len(there.loom.opened) == 2
            assert len(there.runs()) == 2

    run(scene())


@pytest.mark.case("P09")
def test_what_was_accepted_is_never_sent_again(tmp_path: Path) -> None:
    async def dies(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.take(prompt)
        yield SessionNamed(session.kept.id, durable=True)
        yield Text("I begin", final=False)
        yield Failed(ErrorCode.PROGRAM_ENDED, "killed", retryable=True)
        yield Done(Ending.FAILED)

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            there.loom.turns.append(dies)
            said = there.say("one")
            await until(lambda: there.runs()[0].state == "failed", "it fails")
            assert there.wake_row(said).state == "pending"
            # A person goes earlier than the backoff, and takes the parked wake along.
            await there.tell("and now?")
            (kept,) = there.loom.kept.values()
            first, second = kept.prompts
            assert first == "one"
            assert "\none\n" not in second
            assert "cut off" in second
            assert "and now?" in second

    run(scene())


@pytest.mark.case("P06")
def test_an_opening_that_is_called_off_leaves_no_session(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            opening = asyncio.Event()

            async def slow_and_deaf(spec: OpenSpec) -> None:  # noqa: ARG001
                opening.set()
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    # It does not listen, and opens all the same.
                    await asyncio.sleep(0.05)

            there.loom.before_open = slow_and_deaf
            said = there.say("one")
            await asyncio.wait_for(opening.wait(), 20)
            there.write(lambda connection: cancel_run(connection, there.runs()[0].id))
            row = await there.served(said)
            assert row.state == "cancelled"
            await until(lambda: there.loom.closed == ["loom-1"], "what was opened is closed")
            assert there.loom.prompts == []

    run(scene())


@pytest.mark.case("R10")
def test_a_thread_that_hangs_while_opening_delays_no_other(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await there.add_agent("ada")
            await there.add_agent("bob")
            there.add_thread("chat-1")
            there.add_thread("chat-2")
            hanging = asyncio.Event()

            async def hangs_for_ada(spec: OpenSpec) -> None:
                if spec.directory.path.endswith("ada"):
                    hanging.set()
                    await asyncio.sleep(3600)

            there.loom.before_open = hangs_for_ada
            there.say("one", "ada", "chat-1")
            await asyncio.wait_for(hanging.wait(), 20)
            row = await there.tell("two", "bob", "chat-2")
            assert row.state == "succeeded"
            waiting = there.rows(runs, agent_id="ada")[0]
            await until(lambda: "open" in there.steps(waiting.id), "it says what it waits for")

    run(scene())


@pytest.mark.case("L06")
def test_an_opening_that_takes_too_long_is_tried_again_later(tmp_path: Path) -> None:
    async def hangs(spec: OpenSpec) -> None:  # noqa: ARG001
        await asyncio.sleep(3600)

    async def scene() -> None:
        async with world(tmp_path, replace(COLD, open=0.2)) as there:
            await furnished(there)
            there.loom.before_open = hangs
            said = there.say("one")
            await until(lambda: there.runs()[0].state == "failed", "it fails")
            assert there.runs()[0].outcome == "run:retrying"
            assert (there.wake_row(said).state, there.wake_row(said).not_before is not None) == ("pending", True)

    run(scene())


@pytest.mark.case("R13")
def test_runs_of_an_agent_that_is_not_there_wait_for_its_program(tmp_path: Path) -> None:
    async def missing(spec: OpenSpec) -> None:  # noqa: ARG001
        raise NoProgram("loom is not here.", "Install it.")

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            there.loom.before_open = missing
            there.say("one")
            await until(lambda: there.waits().code == "waits:program-gone", "it waits for its program")
            assert "loom is not here. Install it." in (there.waits().words or "")

    run(scene())


@pytest.mark.case("P10", "P02")
def test_a_session_that_changes_its_name_is_a_new_generation(tmp_path: Path) -> None:
    async def renamed(session: Session, prompt: str) -> AsyncIterator[Event]:
        async for event in plain(session, prompt):
            if isinstance(event, Text):
                session.kept = session.loom.new(session.kept.directory, session.kept)
                yield SessionNamed(session.kept.id, durable=True)
            yield event

    async def scene() -> None:
        async with world(tmp_path, COLD) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.turns.append(renamed)
            await there.tell("two")
            row = await there.tell("three")
            assert row.claim == "resumed"
            assert [(each.generation, each.native_id) for each in there.sessions()] == [(1, "loom-1"), (2, "loom-2")]
            assert there.loom.kept["loom-2"].prompts == ["one", "two", "three"]  # type: ignore[index]

    run(scene())
