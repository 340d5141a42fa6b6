"""Usage: what agents report, summed, and nothing where they report nothing."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from clew.control.faults import BadRequest
from clew.control.issues import open_issue
from clew.control.projects import add_project
from clew.control.runs import show_run
from clew.control.threads import open_chat, show_thread
from clew.control.usage import show_usage
from clew.control.wakes import say
from clew.protocol.reports import RunEventRecord
from clew.protocol.requests import NewChat, NewIssue, NewProject, Words
from clew.protocol.usage import UsageRow, UsedView
from clew.store.engine.database import Database
from tests.control.kit import USER, office


def used(seq: int, **body: object) -> RunEventRecord:
    return RunEventRecord(seq, "used", json.dumps({"input": 0, "output": 0, "cached": 0, "cost": None, **body}))


def test_usage_is_the_sum_of_each_runs_last_report(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            (tmp_path / "web" / ".git").mkdir(parents=True)
            await add_project(at.services, USER, NewProject("web", str(tmp_path / "web")))
            await at.agent("ada")
            await at.agent("bob")
            await open_issue(at.services, USER, NewIssue("Blank", project="web"))
            await open_chat(at.services, USER, NewChat("bob"))
            made = []
            for thread, agent, lines in (
                # Each report counts from the start of the turn: the last one is the turn's.
                ("1", "ada", [used(1, input=5, output=1, cost=0.1), used(2, input=50, output=10, cached=7, cost=0.25)]),
                ("1", "ada", [used(1, input=100, output=20)]),
                ("chat-1", "bob", [RunEventRecord(1, "text", '{"text": "no report"}'), used(2)]),
            ):
                await say(at.services, USER, thread, Words("go", agent=agent))
                order = await at.claim_one()
                await at.prompt(order)
                await at.report(order, events=lines)
                await at.finish(order)
                made.append(order.run)
            first = await show_run(at.services, USER, made[0])
            assert first.used == UsedView(50, 10, 7, 0.25)
            assert (await show_run(at.services, USER, made[2])).used is None, "nothing is invented"
            assert (await show_thread(at.services, USER, "1")).used == UsedView(150, 30, 7, 0.25)
            assert (await show_thread(at.services, USER, "chat-1")).used is None
            day = time.strftime("%Y-%m-%d", time.localtime(first.started_at))
            both = UsedView(150, 30, 7, 0.25)
            for by, rows in (
                ("agent", [UsageRow("ada", 2, 2, both), UsageRow("bob", 1, 0, None)]),
                ("project", [UsageRow("(no project)", 1, 0, None), UsageRow("web", 2, 2, both)]),
                ("day", [UsageRow(day, 3, 2, both)]),
            ):
                found = await show_usage(at.services, USER, by, time.time() - 3_600)
                assert (list(found.rows), found.total) == (rows, UsageRow("total", 3, 2, both))
            assert (await show_usage(at.services, USER, "agent", time.time() + 3_600)).rows == ()
            with pytest.raises(BadRequest, match="cannot be shown by 'moon'"):
                await show_usage(at.services, USER, "moon", 0)

    asyncio.run(story())
