"""The doctor: what is there, what works, what to do about the rest."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from clew.control.agents import change_agent
from clew.control.doctor import examine
from clew.kernel import RunId
from clew.protocol.machine import UnreadLetter
from clew.protocol.requests import AgentChange
from clew.store.engine.database import Database
from tests.control.kit import USER, office


def test_the_doctor_looks_at_everything(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await at.agent("bob", provider="wheel")
            await change_agent(at.services, USER, "bob", AgentChange(paused=True))
            checks = {check.name: check for check in await examine(at.services, USER)}
            assert {name: check.state for name, check in checks.items() if name != "git"} == {
                "database": "ok",
                "disk": "ok",
                "token": "missing",
                "machine": "ok",
                "loom": "ok",
                "wheel": "ok",
                "spindle": "missing",
                "agent ada": "ok",
                "agent bob": "warning",
            }
            assert checks["git"].state == "ok"
            assert checks["loom"].words == "loom 1.0, as me."
            assert "no program spindle" in checks["spindle"].words
            assert all(check.remedy for check in checks.values() if check.state != "ok")
            token = tmp_path / "token"
            token.write_text("secret")
            token.chmod(0o644)
            checks = {check.name: check for check in await examine(at.services, USER)}
            assert checks["token"].state == "failed"
            token.chmod(0o600)
            at.laptop.gone.add("loom")
            checks = {check.name: check for check in await examine(at.services, USER)}
            assert (checks["token"].state, checks["agent ada"].state) == ("ok", "missing")
            # How to install it is said once, by its provider.
            assert checks["agent ada"].remedy == "`clew agent edit ada -- PROGRAM` names another program."
            assert "secret" not in repr(checks)
            at.services.machines.clear()
            checks = {check.name: check for check in await examine(at.services, USER)}
            assert checks["machine"].state == "missing"

    asyncio.run(story())


def test_a_full_disk_is_found_by_writing(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def story() -> None:
        async with office(database, tmp_path) as at:
            before = sorted(tmp_path.iterdir())
            monkeypatch.setattr(os, "fsync", full)
            checks = {check.name: check for check in await examine(at.services, USER)}
            monkeypatch.undo()
            assert checks["disk"].state == "failed"
            assert checks["disk"].words == f"The disk of {tmp_path} is full."
            # What is missing may be missing for want of room: nobody is sent to install it.
            assert checks["spindle"].remedy == checks["disk"].remedy
            assert "written" not in checks["database"].words
            assert sorted(tmp_path.iterdir()) == before

    asyncio.run(story())


def test_reports_that_a_daemon_cannot_read_are_named(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            assert "outbox" not in {each.name for each in await examine(at.services, USER)}
            at.laptop.unread.append(UnreadLetter(RunId("rn_9"), 1, "finish", "it has version 2"))
            (check,) = (each for each in await examine(at.services, USER) if each.name == "outbox")
            assert (check.state, "rn_9 on machine laptop" in check.words) == ("warning", True)
            assert "it has version 2" in check.words

    asyncio.run(story())
