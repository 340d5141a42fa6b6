"""Agents in one home with keys of their own over restarts, and what becomes of a session when its agent is changed."""

import hashlib
import json
import random
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import AccountId, Cursor, Directory, NativeId, Probe, ProbeKind
from clew.ports.provider import Discovery
from clew.protocol.machine import AgentProgram
from clew.store.schema.tables import agents, decisions, journal
from tests.daemon.kit import QUICK, World, run, world
from tests.daemon.scripted import ABLE, Session, Weaver


def started(key: str = "", login: str = "", **options: str) -> AgentProgram:
    given = {"LOOM_KEY": key, "LOOM_LOGIN": login}
    return AgentProgram("loom", options=options, environment={name: text for name, text in given.items() if text})


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:8]


@pytest.fixture(autouse=True)
def says_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent names its login, has a key, and can do what its options say, as it is started."""

    async def discover(self: Weaver) -> Discovery:
        given = self.settings.environment
        login, key = given.get("LOOM_LOGIN"), given.get("LOOM_KEY")
        account = None if login is None else AccountId(login)
        return Discovery(True, "loom", "1", account=account, credential=None if key is None else digest(key))

    def able(self: Weaver) -> Any:
        return replace(ABLE, steers="deaf" not in self.settings.options)

    monkeypatch.setattr(Weaver, "discover", discover)
    monkeypatch.setattr(Weaver, "capabilities", property(able))


async def edited(there: World, agent: str, program: AgentProgram) -> None:
    """As `clew agent edit` does it."""
    looked = await there.machine.discover(program)
    assert looked.registration is not None
    runtime = await there.plane.register(looked.registration)
    settings = json.dumps(asdict(program))
    there.put(agents, {"id": agent}, settings=settings, program=looked.registration.program, runtime_id=runtime)
    await there.machine.offer(runtime, program)


def stamped(there: World) -> list[tuple[str, str | None, str | None]]:
    return [(row.native_id, row.account, row.credential) for row in there.sessions()]


def native(there: World, row: Any) -> NativeId:
    """In which session that run was."""
    (kept,) = [each for each in there.sessions() if each.id == row.session_id]
    return NativeId(kept.native_id)


def noted(there: World, run_id: str) -> bool:
    return any('"key:drift"' in row.record for row in there.rows(decisions, "step", run_id=run_id))


@pytest.mark.case("S14")
def test_two_agents_in_one_home_over_twenty_restarts(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            chance = random.Random(3)
            own = {
                "ada": (started("one", deaf="yes"), None, digest("one"), False),
                "bob": (started("two"), None, digest("two"), True),
                "eve": (started(login="me@work"), "me@work", None, True),
            }
            for name, (program, *_) in own.items():
                await there.add_agent(name, program)
                there.add_thread(f"chat-{name}")
            ids: dict[str, NativeId] = {}
            for _ in range(20):
                chance.shuffle(there.programs)
                await there.restart()
                for name in chance.sample(list(own), 3):
                    row = await there.tell("go on", name, f"chat-{name}")
                    assert (row.state, row.claim) == ("succeeded", "resumed" if name in ids else "started")
                    assert not noted(there, row.id)
                    ids[name] = native(there, row)
            for name, (_, account, credential, _) in own.items():
                (kept,) = [row for row in there.sessions() if row.native_id == ids[name]]
                assert (kept.account, kept.credential) == (account, credential)
                assert len(there.loom.kept[kept.native_id].prompts) == 20
                wrote = {row.account for row in there.rows(journal, "seq", agent_id=name)}
                assert wrote == {account}
            assert len(there.loom.kept) == 3

    run(scene())


@pytest.mark.case("S15")
def test_a_key_that_is_changed_goes_on_in_the_same_conversation(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent("ada", started("one"))
            there.add_thread()
            await there.tell("one")
            await edited(there, "ada", started("two"))
            row = await there.tell("two")
            assert (row.claim, noted(there, row.id)) == ("resumed", True)
            assert stamped(there) == [("loom-1", None, digest("two"))]
            row = await there.tell("three")
            assert (row.claim, noted(there, row.id)) == ("resumed", False)
            (kept,) = there.loom.kept.values()
            assert len(kept.prompts) == 3

    run(scene())


@pytest.mark.case("S15")
def test_another_login_begins_anew_and_says_how_to_allow_the_rest(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent("ada", started(login="me@work"))
            there.add_thread()
            await there.tell("the word is thread")
            await edited(there, "ada", started("one"))
            row = await there.tell("two")
            assert there.outcomes(row.id)[-1] == ("blank", "account:withheld")
            assert "thread" not in there.loom.kept[native(there, row)].prompts[-1]
            there.put(agents, {"id": "ada"}, policy='{"history_across_accounts": true}')
            await edited(there, "ada", started(login="me@home"))
            row = await there.tell("three")
            assert there.outcomes(row.id)[-1] == ("reseed", "account:other")
            assert stamped(there) == [
                ("loom-1", "me@work", None),
                ("loom-2", None, digest("one")),
                ("loom-3", "me@home", None),
            ]

    run(scene())


@pytest.mark.case("S17")
@pytest.mark.parametrize(
    "program",
    [started("two"), started("one", colour="red"), AgentProgram("loom", ("loom-2",), environment={"LOOM_KEY": "one"})],
    ids=["environment", "options", "program"],
)
def test_an_agent_that_is_changed_is_not_in_its_own_way(tmp_path: Path, program: AgentProgram) -> None:
    async def scene() -> None:
        async with world(tmp_path, replace(QUICK, idle=600.0)) as there:
            await there.add_agent("ada", started("one"))
            there.add_thread()
            await there.tell("one")
            assert there.loom.open == {"loom-1"}
            await edited(there, "ada", program)
            began = time.monotonic()
            row = await there.tell("two")
            assert time.monotonic() - began < 20
            # The old one is closed before the session is asked for, so that nobody is found to have it open.
            assert (row.state, row.claim, there.loom.closed) == ("succeeded", "resumed", ["loom-1"])
            assert (there.loom.probed, len(there.loom.opened)) == (["loom-1"], 2)
            (kept,) = there.loom.kept.values()
            assert len(kept.prompts) == 2
            # And the new one is kept as ever.
            await there.tell("three")
            assert len(there.loom.opened) == 2

    run(scene())


@pytest.mark.case("S17")
def test_an_agent_that_is_changed_after_its_run_was_claimed_goes_on_as_it_was(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent("ada", started("one"))
            there.add_thread()
            await there.tell("one")
            await there.restart()

            async def is_changed_meanwhile(cursor: Cursor, directory: Directory) -> Probe:  # noqa: ARG001
                there.loom.probe_with = None
                await edited(there, "ada", started("two"))
                return Probe(ProbeKind.FOUND_HERE, directory)

            there.loom.probe_with = is_changed_meanwhile
            row = await there.tell("two")
            assert (row.state, row.claim, stamped(there)) == ("succeeded", "resumed", [("loom-1", None, digest("one"))])
            row = await there.tell("three")
            assert (row.state, row.claim, stamped(there)) == ("succeeded", "resumed", [("loom-1", None, digest("two"))])
            assert len(there.loom.kept[NativeId("loom-1")].prompts) == 3

    run(scene())


@pytest.mark.case("S17")
@pytest.mark.parametrize("sign", ["ended", "lost"])
def test_a_session_whose_process_is_dead_is_not_taken_for_open(
    tmp_path: Path, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent("ada", started("one"))
            there.add_thread()
            await there.tell("one")
            if sign == "ended":
                monkeypatch.setattr(Session, "has_ended", property(lambda self: not self.loom.closed), raising=False)
            else:
                monkeypatch.setattr(Session, "cursor", property(lambda self: _at(self) if self.loom.closed else None))
            row = await there.tell("two")
            assert (row.state, row.claim, there.loom.probed, there.loom.closed) == (
                "succeeded",
                "resumed",
                ["loom-1"],
                ["loom-1"],
            )
            assert not any("still open here" in row.record for row in _decisions(there, row.id))

    run(scene())


def _at(session: Session) -> Cursor:
    return Cursor(1, session.kept.id)


def _decisions(there: World, run_id: str) -> list[Any]:
    return there.rows(decisions, "step", run_id=run_id)
