"""Search as a use case: what was just written is found, names are looked up, and a wrong query is explained."""

import asyncio
import json
from pathlib import Path

import pytest

from clew.control import search_index
from clew.control.faults import BadRequest
from clew.control.issues import edit_thread, open_issue
from clew.control.projects import add_project
from clew.control.runs import show_run
from clew.control.search import MOST_WORDS, search
from clew.control.search_index import index_all, run_indexer
from clew.control.wakes import say
from clew.protocol.reports import RunEventRecord
from clew.protocol.requests import NewIssue, NewProject, ThreadChange, Words
from clew.store.engine.database import Database
from clew.store.faults import NoSuchAgent, NoSuchProject, NoSuchThread
from clew.store.operations.search_index import anything_to_index
from tests.control.kit import USER, office

pytestmark = pytest.mark.case("U08")


def test_what_was_just_written_is_found(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            (tmp_path / "web" / ".git").mkdir(parents=True)
            await add_project(at.services, USER, NewProject("web", str(tmp_path / "web")))
            await at.agent("ada")
            page = await open_issue(at.services, USER, NewIssue("The login page", "It is blank.", project="web"))
            ref = page.thread.ref
            (title,) = (await search(at.services, USER, "login")).found
            assert (title.kind, title.thread, title.title) == ("title", ref, "The login page")
            await say(at.services, USER, ref, Words("Please look at src/login.py", agent="ada"))
            order = await at.claim_one()
            await at.prompt(order)
            output = json.dumps({"id": "1", "ok": False, "output": "login.py: no such file"})
            await at.report(order, events=[RunEventRecord(1, "tool-finished", output)])
            (log,) = (await search(at.services, USER, "login.py", kind="log")).found
            run = await show_run(at.services, USER, order.run)
            assert (log.author, log.run, log.seq) == ("ada", run.ref, 1)
            await at.finish(order)
            found = (await search(at.services, USER, "login", project="web")).found
            assert [each.kind for each in found] == ["log", "entry", "title"]
            assert [each.kind for each in (await search(at.services, USER, "login", agent="ada")).found] == ["log"]
            assert len((await search(at.services, USER, "login", thread=ref, limit=2)).found) == 2
            await edit_thread(at.services, USER, ref, ThreadChange(title="The sign-in page"))
            assert [each.kind for each in (await search(at.services, USER, "login")).found] == ["log", "entry"]
            assert [each.kind for each in (await search(at.services, USER, "sign-in")).found] == ["title"]

    asyncio.run(story())


def test_a_page_leads_to_the_next(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            ref = (await open_issue(at.services, USER, NewIssue("Counting"))).thread.ref
            for number in range(5):
                await say(at.services, USER, ref, Words(f"needle {number}", wakes=False))
            first = await search(at.services, USER, "needle", limit=3)
            rest = await search(at.services, USER, "needle", limit=3, before=first.older)
            texts = [each.snippet for each in (*first.found, *rest.found)]
            assert texts == [f"needle {number}" for number in (4, 3, 2, 1, 0)]
            assert rest.older is None

    asyncio.run(story())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"q": ""}, "The search is empty. Type one or more words to search for."),
        ({"q": "  \n"}, "The search is empty."),
        ({"q": '"" && *'}, "'\"\" && *' has no word or number in it. Type one or more words"),
        ({"q": "-draft"}, "'-draft' only says what to leave out. Add a word to search for."),
        ({"q": "word " * 5 + " ".join(map(str, range(MOST_WORDS)))}, "The search has 65 words; the limit is 64."),
        ({"q": "needle", "kind": "titel"}, "Unknown kind of result 'titel'. Use one of: entry, title, log."),
        ({"q": "needle", "before": "x"}, "There is no result 'x'. Give the `older` of a page"),
        ({"q": "needle", "before": "9" * 30}, "There is no result '9999"),
        ({"q": "needle", "limit": 0}, "A page cannot have 0 rows."),
    ],
)
def test_a_search_that_cannot_be_is_refused_with_a_reason(
    database: Database, tmp_path: Path, asked: dict[str, str], words: str
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            with pytest.raises(BadRequest) as refused:
                await search(at.services, USER, **asked)  # type: ignore[arg-type]
            assert str(refused.value).startswith(words)

    asyncio.run(story())


def test_unknown_names_are_refused(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            for name, kind in (("thread", NoSuchThread), ("agent", NoSuchAgent), ("project", NoSuchProject)):
                with pytest.raises(kind):
                    await search(at.services, USER, "needle", **{name: "nobody"})  # type: ignore[arg-type]

    asyncio.run(story())


def test_a_search_says_how_much_is_not_indexed_yet(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("A needle"))
            monkeypatch.setattr(search_index, "CATCH_UP", 0.0)
            late = await search(at.services, USER, "needle")
            assert (late.found, late.unindexed) == ((), 2), "the title and the entry"
            assert await index_all(at.services, USER) > 0
            found = await search(at.services, USER, "needle")
            assert (len(found.found), found.unindexed) == (2, 0)

    asyncio.run(story())


def test_the_indexer_works_on_its_own_and_goes_on_after_an_error(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(search_index, "GATHER", 0.0)
    monkeypatch.setattr(search_index, "POLL", 0.02)

    def rename(old: str, new: str) -> None:
        database.do(lambda tx: tx.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}").rowcount)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            rename("search_documents", "away")
            task = asyncio.create_task(run_indexer(at.services, USER))
            await open_issue(at.services, USER, NewIssue("A needle"))
            async with asyncio.timeout(30):
                while "what is written is not indexed" not in caplog.text:
                    await asyncio.sleep(0.01)
                rename("away", "search_documents")
                while await at.services.read(anything_to_index):
                    await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait({task})
            assert caplog.text.count("what is written is not indexed") == 1, "it is said once"
            assert len((await search(at.services, USER, "needle")).found) == 2

    asyncio.run(story())
