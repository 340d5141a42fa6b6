"""Who asked is recorded with what was done; a use case names the machine that it needs."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from clew.control.actor import Actor, MachineDaemon, Outside, Person, RunAgent, Timer, author_of, name_of, origin_of
from clew.control.agents import change_agent
from clew.control.approvals import answer_approval, list_approvals
from clew.control.decisions import explain
from clew.control.doctor import examine
from clew.control.faults import BadRequest, NoMachine
from clew.control.issues import open_issue
from clew.control.projects import add_project
from clew.control.runs import cancel_run, list_runs
from clew.control.services import Services
from clew.control.threads import close_thread, open_chat, show_thread
from clew.control.wakes import cancel_wake, poke, say
from clew.kernel import AgentId, ApprovalId, Author, AuthorKind, MachineId, Origin, OriginKind, RunId
from clew.protocol.machine import AgentProgram
from clew.protocol.reports import Asked
from clew.protocol.requests import AgentChange, AnswerTo, NewChat, NewIssue, NewProject, Poke, Words
from clew.store.engine.database import Database
from tests.control.kit import LAPTOP, USER, Laptop, office

ANN = Person("ann")
BOB = RunAgent(RunId("rn_1"), AgentId("ag_1"), "bob", depth=2)
PULL = Outside("github", "acme/app#12")


@pytest.mark.parametrize(
    ("actor", "name", "author", "origin"),
    [
        (ANN, "ann", Author(AuthorKind.HUMAN, "ann"), Origin(OriginKind.HUMAN)),
        (
            BOB,
            "bob in run rn_1",
            Author(AuthorKind.AGENT, "bob", AgentId("ag_1")),
            Origin(OriginKind.AGENT, AgentId("ag_1"), 3),
        ),
        (
            PULL,
            "github:acme/app#12",
            Author(AuthorKind.OUTSIDE, "github:acme/app#12"),
            Origin(OriginKind.OUTSIDE),
        ),
        (Timer("sc_1"), "timer sc_1", Author(AuthorKind.CLEW, "timer sc_1"), Origin(OriginKind.TIMER)),
        (
            MachineDaemon(LAPTOP),
            "machine laptop",
            Author(AuthorKind.CLEW, "machine laptop"),
            Origin(OriginKind.CLEW),
        ),
    ],
)
def test_an_actor_is_a_name_an_author_and_an_origin(actor: Actor, name: str, author: Author, origin: Origin) -> None:
    assert (name_of(actor), author_of(actor), origin_of(actor)) == (name, author, origin)


def test_who_said_cancelled_and_closed_is_recorded(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, ANN, NewIssue("Mend it"))
            await open_chat(at.services, ANN, NewChat("ada"))
            spoken = await say(at.services, PULL, "chat-1", Words("hello"))
            assert spoken.wake is not None
            assert spoken.wake.origin == "outside"
            entries = [(await show_thread(at.services, USER, ref)).entries[0] for ref in ("issue-1", "chat-1")]
            assert [(each.author_kind, each.author) for each in entries] == [
                ("human", "ann"),
                ("outside", name_of(PULL)),
            ]
            cancelled = await cancel_wake(at.services, BOB, spoken.wake.id)
            assert cancelled.taken
            (receipt,) = (await explain(at.services, USER, spoken.wake.id)).wakes
            assert receipt.words == "The message was taken back (by bob in run rn_1)."
            await say(at.services, ANN, "chat-1", Words("again"))
            (run, _) = await list_runs(at.services, USER)
            await cancel_run(at.services, ANN, run.id)
            (run, _) = await list_runs(at.services, USER)
            assert run.words is not None
            assert run.words.endswith("(by ann).")
            waiting = await poke(at.services, Timer("sc_1"), Poke("ada", thread="issue-1", text="now"))
            assert waiting.origin == "timer"
            await close_thread(at.services, ANN, "issue-1")
            assert (await explain(at.services, USER, waiting.id)).wakes[0].words == "The thread was closed (by ann)."

    asyncio.run(story())


def test_who_answered_and_who_changed_an_agent_is_recorded(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("hello"))
            order = await at.claim_one()
            await at.prompt(order)
            await at.report(order, asks=(Asked(ApprovalId("ap-1"), '{"words": "May I?"}'),))
            await answer_approval(at.services, ANN, "ap-1", AnswerTo())
            (answered,) = await list_approvals(at.services, USER, "all")
            assert answered.answered_by == "ann"
            await change_agent(at.services, ANN, "ada", AgentChange(model="m-1", environment={"KEY": "secret"}))

    with caplog.at_level(logging.INFO, "clew.actions"):
        asyncio.run(story())
    assert "ann changed agent ada: model, environment" in caplog.messages
    assert "secret" not in caplog.text


def test_a_program_that_goes_and_returns_is_recorded_once_each(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            at.laptop.gone.add("loom")
            await examine(at.services, ANN)
            await examine(at.services, ANN)
            at.laptop.gone.remove("loom")
            await examine(at.services, ANN)
            await examine(at.services, ANN)

    with caplog.at_level(logging.INFO, "clew.actions"):
        asyncio.run(story())
    assert [each for each in caplog.messages if "program" in each] == [
        "ann missed the program of ada: no program loom on the path.",
        "ann found the program of ada again",
    ]


def test_a_use_case_names_its_machine(database: Database, tmp_path: Path) -> None:
    class Desktop(Laptop):
        @property
        def id(self) -> MachineId:
            return MachineId("desktop")

    async def story() -> None:
        async with office(database, tmp_path) as at:
            with pytest.raises(NoMachine, match=r"Machine 'moon' is not connected\. Start Clew on it with `clew up`"):
                await at.agent("ada", machine="moon")
            at.services.connect(Desktop(tmp_path))
            with pytest.raises(BadRequest, match="Several machines are connected: desktop, laptop"):
                await at.agent("ada")
            await at.agent("ada", machine="laptop")
            assert [program.provider for _, program in at.laptop.offered] == ["loom"]
            (tmp_path / "maze").mkdir()
            plain = NewProject("maze", str(tmp_path / "maze"), plain=True)
            with pytest.raises(BadRequest, match="Several machines"):
                await add_project(at.services, USER, plain)
            assert (await add_project(at.services, USER, replace(plain, machine="desktop"))).machine == "desktop"
            # The agent's runtime says where its program is changed.
            await change_agent(at.services, USER, "ada", AgentChange(options={"a": "b"}))
            assert len(at.laptop.offered) == 2
            del at.services.machines[LAPTOP]
            at.services.connect(Elsewhere(tmp_path))
            with pytest.raises(NoMachine, match="'laptop' is not connected"):
                await change_agent(at.services, USER, "ada", AgentChange(options={"a": "c"}))

    class Elsewhere(Laptop):
        @property
        def id(self) -> MachineId:
            return MachineId("elsewhere")

    asyncio.run(story())


def test_a_daemon_registers_runtimes_of_its_own_machine_alone(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            found = (await at.laptop.discover(AgentProgram("loom"))).registration
            assert found is not None
            await at.plane.register(found)
            with pytest.raises(BadRequest, match="'laptop' cannot register runtimes of 'moon'"):
                await at.plane.register(replace(found, machine=MachineId("moon")))

    asyncio.run(story())


def test_without_a_machine_the_error_says_what_to_do(database: Database, tmp_path: Path) -> None:
    with pytest.raises(NoMachine, match=r"No machine is connected\. Start one with `clew up`"):
        Services(database, tmp_path).chosen_machine(None)
