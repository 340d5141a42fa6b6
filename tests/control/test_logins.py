"""Logins: which one an agent has is looked up and said, and a first prompt is tried in no thread."""

import asyncio
from dataclasses import replace
from pathlib import Path

from clew.control.doctor import examine
from clew.control.logins import show_login, try_agent
from clew.control.threads import list_threads
from clew.kernel import PermissionMode
from clew.ports.logins import Logins
from clew.protocol.machine import Tried
from clew.store.engine.database import Database
from tests.control.kit import USER, office

NONE = Logins(keys=("LOOM_API_KEY", "LOOM_TOKEN"), command="loom login", there=("LOOM_TOKEN",))


def test_an_agent_without_a_login_is_told_how_to_get_one(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            assert (await show_login(at.services, USER, "ada")).words == ""
            at.laptop.known = NONE
            login = await show_login(at.services, USER, "ada")
            assert login.used == ""
            assert login.words == (
                "No login is known for ada. Log in with `loom login` or pass a key on with "
                "`clew agent edit ada --add-env NAME` (LOOM_API_KEY or LOOM_TOKEN). LOOM_TOKEN is set for the server, "
                "which passes on only what an agent is given."
            )
            at.laptop.known = replace(NONE, used="LOOM_API_KEY")
            login = await show_login(at.services, USER, "ada")
            assert (login.used, login.words) == ("LOOM_API_KEY", "It asks its model with LOOM_API_KEY.")

    asyncio.run(story())


def test_the_doctor_does_not_call_an_agent_without_a_login_ok(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            at.laptop.account = None
            await at.agent()
            at.laptop.known = NONE
            checks = {check.name: check for check in await examine(at.services, USER)}
            ada = checks["agent ada"]
            assert (ada.state, ada.words) == ("warning", "loom 1.0, no login known.")
            assert "`clew agent edit ada --add-env NAME` (LOOM_API_KEY or LOOM_TOKEN)" in ada.remedy
            assert "`clew agent add AGENT --provider loom --env NAME` (LOOM_API_KEY" in checks["loom"].remedy
            at.laptop.known = replace(NONE, used="the login in /srv/home/auth.json")
            checks = {check.name: check for check in await examine(at.services, USER)}
            assert checks["agent ada"].words == "loom 1.0, with the login in /srv/home/auth.json."
            assert checks["agent ada"].state == "ok"

    asyncio.run(story())


def test_a_first_prompt_is_tried_in_no_thread(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(model="m-1", mode="ask")
            before = await list_threads(at.services, USER)
            tried = await try_agent(at.services, USER, "ada")
            assert (tried.ok, tried.words, tried.mode) == (True, "ready", "read")
            ((program, model, mode),) = at.laptop.tried
            assert (program.provider, model, mode) == ("loom", "m-1", PermissionMode.ASK)
            assert await list_threads(at.services, USER) == before
            assert await at.claim() == []
            at.laptop.answers = Tried(failed="Not logged in", seconds=0.5, mode="read", login=True)
            at.laptop.known = NONE
            tried = await try_agent(at.services, USER, "ada")
            assert not tried.ok
            assert tried.words.startswith("Not logged in. No login is known for ada. Log in with `loom login`")
            at.laptop.answers = Tried(failed="There is no program loom.")
            assert (await try_agent(at.services, USER, "ada")).words == "There is no program loom."

    asyncio.run(story())
