"""Starting: what is there, what the agent says it opened, and when its session can be found again."""

import json
import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from clew.kernel import LandingField, NativeId, ProbeKind, choose_mode
from clew.ports.events import Done, Ending, Event, SessionNamed, ToolFinished, ToolStarted
from clew.programs.faults import ProgramFault
from tests.providers.contract.stage import Stage, core
from tests.providers.rig import SECRET

_FIELDS = {field: field.value.replace("-", "_") for field in LandingField}


@pytest.mark.case("P13")
async def test_it_says_what_is_there(stage: Stage) -> None:
    found = await stage.provider.discover()
    assert found.installed, found.missing
    assert found.version
    assert found.program
    assert (await stage.anew().discover()).home == found.home
    assert (await stage.other.discover()).home != found.home


@pytest.mark.case("P13")
async def test_a_program_that_is_not_there_is_said_and_nothing_starts(stage: Stage) -> None:
    gone = stage.anew(change=lambda settings: replace(settings, program=("/nowhere/agent",)))
    found = await gone.discover()
    assert not found.installed
    assert found.missing
    with pytest.raises(ProgramFault):
        await stage.open(provider=gone)


@core
@pytest.mark.case("P07", "D10", "C32", "A01")
async def test_the_agent_says_what_it_opened_before_any_prompt(stage: Stage) -> None:
    can = stage.provider.capabilities
    session = await stage.open()
    silent = [field for field in can.reports if getattr(session.landing, _FIELDS[field]) is None]
    assert not silent, f"it declares that it reports {silent}, and does not"
    assert stage.landed(session, LandingField.DIRECTORY, stage.directory())
    assert stage.landed(session, LandingField.MODE, choose_mode(stage.widest, (), can.modes).mode)
    assert stage.landed(session, LandingField.TURNS, 0)


@core
@pytest.mark.case("P01", "P02", "P14")
async def test_the_first_turn_yields_a_cursor_before_it_ends(stage: Stage) -> None:
    can = stage.provider.capabilities
    session = await stage.open()
    durable = session.cursor
    async for event in session.turn("first"):
        if isinstance(event, SessionNamed) and event.durable:
            durable = session.cursor
            assert durable is not None
            assert durable.native_id == event.native_id
        if isinstance(event, Done):
            assert event.ending is Ending.COMPLETED
            assert durable is not None or not can.resume, "the turn ended before the session could be found again"
    if durable is None:
        stage.unable("sessions cannot be resumed")
        return
    assert session.cursor == durable
    assert durable.version in can.cursor_versions
    assert re.fullmatch(can.id_shape or ".+", durable.native_id)
    assert stage.landed(session, LandingField.NATIVE_ID, durable.native_id)


@pytest.mark.case("P14")
async def test_no_id_is_given_out_that_leads_nowhere(stage: Stage) -> None:
    session = await stage.open()
    early, later = session.cursor, session.address
    await session.close()
    if early is not None:
        assert (await stage.anew().probe(early, stage.directory())).kind is ProbeKind.FOUND_HERE
    elif later is not None:
        assert (await stage.anew().probe(later, stage.directory())).kind is not ProbeKind.FOUND_HERE
    else:
        stage.unable("the program names a session only in its first turn")


@pytest.mark.case("S01")
async def test_a_chosen_id_is_confirmed_by_the_agent(stage: Stage) -> None:
    chosen = NativeId(str(uuid.uuid4()))
    if not stage.provider.capabilities.choose_id:
        await stage.refused(stage.open(fresh_id=chosen), "the id of a new session cannot be chosen")
        return
    session = await stage.open(fresh_id=chosen)
    await stage.turn(session, "first")
    assert stage.landed(session, LandingField.NATIVE_ID, chosen)
    assert session.cursor is not None
    assert session.cursor.native_id == chosen


async def test_a_turn_is_told_in_parts_and_ends_once(stage: Stage) -> None:
    session = await stage.open()
    turned = await stage.turn(session, stage.rig.say("the quick brown fox"))
    assert turned.done.ending is Ending.COMPLETED
    assert turned.reply == "the quick brown fox"
    assert "the quick brown fox" in turned.text
    json.dumps([asdict(event) for event in turned.events])


async def test_a_live_session_takes_one_turn_after_another(stage: Stage) -> None:
    session = await stage.open()
    for count in (1, 2, 3):
        seen = (await stage.turn(session, f"prompt {count}")).seen
        assert (seen.users, seen.first, seen.last) == (count, "prompt 1", f"prompt {count}")


async def test_what_a_turn_used_is_told_for_that_turn_alone(stage: Stage) -> None:
    session = await stage.open()
    used = [(await stage.turn(session, "the same prompt")).used for _ in range(3)]
    if None in used:
        assert set(used) == {None}
        stage.unable("the program does not say what a turn used")
        return
    counts = [each.input + each.cached + each.output for each in used if each is not None]
    assert min(counts) > 0
    assert max(counts) < 2 * min(counts), f"the counts are sums over turns: {counts}"


async def test_a_tool_is_told_with_its_command_and_output(stage: Stage) -> None:
    session = await stage.open()
    turned = await stage.turn(session, stage.rig.run("echo 6*7=$((6*7))"))
    started, finished = turned.of(ToolStarted), turned.of(ToolFinished)
    if not stage.rig.tells_tools:
        assert not started
        stage.unable("the program does not say which tools it uses")
        return
    assert [each.id for each in started] == [each.id for each in finished]
    assert "echo 6*7" in (started[-1].command or "")
    assert finished[-1].ok
    assert "6*7=42" in finished[-1].output


async def test_instructions_reach_the_agent(stage: Stage) -> None:
    session = await stage.open(instructions="Always mind the gap-7781.")
    await stage.turn(session, "first")
    assert "Always mind the gap-7781." in stage.rig.heard()


async def test_secrets_stay_out_of_events_and_command_lines(stage: Stage) -> None:
    (name, value), *_ = SECRET.items()
    session = await stage.open()
    assert not any(value.encode() in line for line in stage.rig.command_lines("a"))
    for prompt in (stage.rig.run(f"echo begin ${name} end; echo ${name} >&2"), stage.rig.say(f"it is {value} indeed")):
        turned = await stage.turn(session, prompt)
        assert value not in json.dumps([asdict(event) for event in turned.events])
        assert value not in repr(turned.events)
        for text in joined(turned.events):
            assert value not in text, "a secret that the parts of a message cut is seen when they are joined"


def joined(events: Iterable[Event]) -> list[str]:
    """All texts of one kind one after the other, as somebody reads them who puts the parts together again."""
    texts: defaultdict[tuple[str, ...], str] = defaultdict(str)
    for event in events:
        for path, text in _texts(asdict(event), (type(event).__name__,)):
            texts[path] += text
    return [*texts.values()]


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    match value:
        case str():
            yield path, value
        case dict():
            for key, each in value.items():
                yield from _texts(each, (*path, str(key)))
        case list() | tuple():
            for each in value:
                yield from _texts(each, path)
        case _:
            return
