"""Outside subjects over HTTP, as a script that hears of events calls it."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from clew.kernel import read_subject
from clew.store.schema.tables import agents
from tests.server.kit import House, inside

PULL = "github:acme/app#12"


@pytest.mark.case("W14")
def test_the_same_subject_is_the_same_thread(tmp_path: Path) -> None:
    async def work(at: House) -> None:
        row = {"id": "ada", "name": "ada", "provider": "loom", "home": "/srv"}
        await at.services.write(lambda connection: connection.execute(insert(agents).values(row)))
        said = [await asked(at, text=text, key=text) for text in ("one", "two", "two")]
        assert {each["thread"] for each in said} == {read_subject(PULL).thread}
        assert [each["repeated"] for each in said] == [False, False, True]
        page = (await at.http.get(f"/api/v1/threads/{said[0]['thread']}")).json()
        assert (page["thread"]["title"], len(page["entries"])) == (PULL, 2)
        assert (await at.http.get("/api/v1/threads/github:acme%2Fapp%2312")).json() == page
        missing = (await at.http.get("/api/v1/threads/github:acme%2fother")).json()
        assert missing["detail"] == "There is no thread for github:acme/other yet."
        # What is encoded twice is another name.
        assert (await at.http.get("/api/v1/threads/github:acme%252Fapp%2312")).status_code == 404
        refused = await at.http.post("/api/v1/wakes", json={"agent": "ada", "text": "x", "subject": "acme"})
        assert (refused.status_code, "source:name" in refused.json()["remedy"]) == (422, True)

    inside(tmp_path, work)


async def asked(at: House, **how: Any) -> dict[str, Any]:
    answer = await at.http.post("/api/v1/wakes", json={"agent": "ada", "subject": PULL, **how})
    assert answer.status_code == 201, answer.text
    said: dict[str, Any] = answer.json()
    return said
