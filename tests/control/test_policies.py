"""Policies of agents and projects: checked before they are saved, tried on the past, and combined for a run."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import update

from clew.control.agents import change_agent, show_agent
from clew.control.decisions import replay_decisions
from clew.control.doctor import examine
from clew.control.faults import BadRequest
from clew.control.policies import set_agent_policy, set_project_policy, show_agent_policy, show_project_policy
from clew.control.projects import add_project, change_project
from clew.control.threads import open_chat
from clew.control.wakes import say
from clew.kernel import Outcome
from clew.protocol.requests import AgentChange, NewChat, NewProject, PolicyChange, ProjectChange, Replay, Words
from clew.store.engine.database import Database
from clew.store.schema.tables import agents
from tests.control.kit import USER, Office, office

NEW_EACH_TIME = PolicyChange({"reset": {"reasons": ["chat"]}})


async def _project(at: Office, root: Path) -> None:
    (root / "maze").mkdir()
    await add_project(at.services, USER, NewProject("maze", str(root / "maze"), plain=True))


def test_a_policy_is_shown_with_its_defaults_and_replaced_as_a_whole(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            shown = await show_agent_policy(at.services, USER, "ada")
            assert (shown.set, shown.applies["transfer"]) == ({}, True)
            limited = PolicyChange({"limits": {"turns": 50}})
            shown = await set_agent_policy(at.services, USER, "ada", limited)
            assert shown.set == {"limits": {"turns": 50}}
            assert shown == await show_agent_policy(at.services, USER, "ada")
            await change_agent(at.services, USER, "ada", AgentChange(across_accounts=True))
            shown = await show_agent_policy(at.services, USER, "ada")
            assert shown.set == {"limits": {"turns": 50}, "history_across_accounts": True}
            assert (await set_agent_policy(at.services, USER, "ada", PolicyChange({}))).set == {}

    asyncio.run(story())


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        ({"limit": {}}, "'limit' is not a field .did you mean limits"),
        ({"limits": {"turns": "many"}}, "limits.turns"),
        ({"reset": {"reasons": ["whim"]}}, "whim"),
        ({"parallel": "yes"}, "parallel"),
        ({"limits": {"turns": 0}}, "limits.turns must be 1 or more .got 0"),
        ({"limits": {"age": -1.5}}, "limits.age must be 1 or more"),
        ({"on_model_change": "ask"}, "'ask' is none of follow, reseed"),
    ],
)
def test_a_wrong_policy_is_refused_with_what_is_wrong(
    database: Database, tmp_path: Path, policy: dict[str, object], named: str
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await _project(at, tmp_path)
            for set_policy, name in ((set_agent_policy, "ada"), (set_project_policy, "maze")):
                with pytest.raises(BadRequest, match=named):
                    await set_policy(at.services, USER, name, PolicyChange(policy))
            assert (await show_agent_policy(at.services, USER, "ada")).set == {}

    asyncio.run(story())


def test_a_run_has_the_policy_of_its_project_and_then_of_its_agent(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await _project(at, tmp_path)
            await open_chat(at.services, USER, NewChat("ada", project="maze"))
            await say(at.services, USER, "chat-1", Words("one"))
            await at.serve("n-1")
            await set_project_policy(at.services, USER, "maze", NEW_EACH_TIME)
            await change_project(at.services, USER, "maze", ProjectChange(setup=("make",)))
            assert (await show_project_policy(at.services, USER, "maze")).set == NEW_EACH_TIME.policy
            await say(at.services, USER, "chat-1", Words("two"))
            order = await at.claim_one()
            assert (order.plan.outcome, order.plan.reason.code) == (Outcome.BLANK, "policy:chat")
            await at.prompt(order, "n-2")
            await at.finish(order)
            await set_agent_policy(at.services, USER, "ada", PolicyChange({"reset": {"reasons": []}}))
            await say(at.services, USER, "chat-1", Words("three"))
            assert (await at.claim_one()).plan.outcome is Outcome.RESUME
            forbidden = PolicyChange({"history_across_accounts": True})
            with pytest.raises(BadRequest, match="cannot be set for a project"):
                await set_project_policy(at.services, USER, "maze", forbidden)

    asyncio.run(story())


def test_a_policy_is_tried_on_the_decisions_it_would_be_set_for(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await at.agent("bob")
            await _project(at, tmp_path)
            await open_chat(at.services, USER, NewChat("ada", project="maze"))
            await open_chat(at.services, USER, NewChat("bob"))
            for thread in ("chat-1", "chat-2"):
                for text in ("one", "two"):
                    await say(at.services, USER, thread, Words(text))
                    await at.serve(f"n-{thread}")
            policy = dict(NEW_EACH_TIME.policy)
            everything = await replay_decisions(at.services, USER, Replay(0.0, policy))
            assert (everything.looked_at, {each.thread for each in everything.changed}) == (4, {"chat-1", "chat-2"})
            for asked in (Replay(0.0, policy, agent="ada"), Replay(0.0, policy, project="maze")):
                found = await replay_decisions(at.services, USER, asked)
                assert (found.looked_at, {each.thread for each in found.changed}) == (2, {"chat-1"})
            with pytest.raises(BadRequest, match="an agent's or a project's"):
                await replay_decisions(at.services, USER, Replay(0.0, policy, agent="ada", project="maze"))

    asyncio.run(story())


@pytest.mark.parametrize(("column", "named"), [("settings", "settings"), ("policy", "policy")])
def test_settings_that_cannot_be_read_are_not_called_fine(
    database: Database, tmp_path: Path, column: str, named: str
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            whole = await show_agent(at.services, USER, "ada")
            at.database.do(lambda tx: tx.execute(update(agents).values({column: "{not json"})))
            assert (await show_agent(at.services, USER, "ada")).state == "damaged"
            checks = {check.name: check for check in await examine(at.services, USER)}
            assert (checks["agent ada"].state, named in checks["agent ada"].words) == ("failed", True)
            if column == "policy":
                await set_agent_policy(at.services, USER, "ada", PolicyChange({}))
            else:
                await change_agent(at.services, USER, "ada", AgentChange(options={}))
            assert (await show_agent(at.services, USER, "ada")).state == whole.state

    asyncio.run(story())
