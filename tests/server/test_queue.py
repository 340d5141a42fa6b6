"""The queue over HTTP: its calls, and the answer to a change that came too late."""

from pathlib import Path

import pytest
from sqlalchemy import Connection, insert

from clew.control.actor import Person
from clew.control.threads import open_chat
from clew.control.wakes import say
from clew.kernel import RuntimeId
from clew.protocol.orders import ClaimRequest
from clew.protocol.requests import NewChat, Words
from clew.store.operations.claim import claim
from clew.store.schema.tables import agents, machines, runtimes
from tests.server.kit import House, inside

RUNTIME = RuntimeId("rt-1")
USER = Person("user")


async def furnished(at: House) -> list[str]:
    """A chat in which two messages wait; their wakes."""

    def furnish(connection: Connection) -> None:
        connection.execute(insert(machines).values(id="laptop", name="laptop"))
        connection.execute(insert(runtimes).values(id=RUNTIME, machine_id="laptop", provider="loom", home="/srv"))
        row = {"id": "ada", "name": "ada", "provider": "loom", "home": "/srv", "runtime_id": RUNTIME}
        connection.execute(insert(agents).values(row))

    await at.services.write(furnish)
    await open_chat(at.services, USER, NewChat("ada"))
    spoken = [await say(at.services, USER, "chat-1", Words(text)) for text in ("one", "two")]
    return [each.wake.id for each in spoken if each.wake is not None]


@pytest.mark.case("W16")
def test_a_preview_is_asked_for_with_the_fields_of_the_message(tmp_path: Path) -> None:
    async def work(at: House) -> None:
        await furnished(at)
        path = "/api/v1/threads/chat-1/preview"
        found = (await at.http.get(path, params={"fresh": "true", "agent": "ada"})).json()
        assert (found["outcome"], found["machine"], found["entry"]) == ("blank", "laptop", 3)
        assert (found["first"], found["last"], found["token"]) == (1, 2, f"blank//{found['code']}")
        sent = await at.http.post(
            "/api/v1/threads/chat-1/words", json={"text": "now", "fresh": True, "preview": found["token"]}
        )
        assert (sent.status_code, sent.json()["entry"]) == (201, 3)
        assert (await at.http.get(path, params={"overlap": "whenever"})).status_code == 422
        assert (await at.http.get("/api/v1/threads/chat-9/preview")).status_code == 404

    inside(tmp_path, work)


@pytest.mark.case("W17")
def test_messages_that_wait_are_changed_and_a_change_that_is_too_late_is_a_conflict(tmp_path: Path) -> None:
    async def work(at: House) -> None:
        one, two = await furnished(at)
        queue = "/api/v1/threads/chat-1/queue"
        assert [each["text"] for each in (await at.http.get(queue)).json()] == ["one", "two"]
        edited = await at.http.patch(f"/api/v1/wakes/{one}", json={"text": "one!", "entry": 1})
        assert [each["text"] for each in edited.json()] == ["one!", "two"]
        moved = await at.http.post(queue, json={"wakes": [two, one]})
        assert [(each["text"], each["can"]) for each in moved.json()] == [
            ("two", ["edit", "move", "take back"]),
            ("one!", ["edit", "move", "take back"]),
        ]
        refused = await at.http.post(f"/api/v1/wakes/{one}/steer")
        assert (refused.status_code, refused.json()["code"]) == (409, "store:not-within-turn")
        stale = await at.http.patch(f"/api/v1/wakes/{one}", json={"text": "1", "entry": 1})
        assert (stale.status_code, stale.json()["code"]) == (409, "store:message-taken")
        back = await at.http.delete(f"/api/v1/wakes/{two}")
        assert back.json() == {"taken": True, "state": "cancelled", "words": "Taken back: ada is not told."}
        await at.services.write(lambda connection: claim(connection, ClaimRequest("d", (RUNTIME,))))
        for answer in (
            await at.http.patch(f"/api/v1/wakes/{one}", json={"text": "x"}),
            await at.http.post(queue, json={"wakes": [one]}),
            await at.http.post(f"/api/v1/wakes/{one}/steer"),
            await at.http.delete(f"/api/v1/wakes/{one}"),
        ):
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (409, "store:message-taken")
            assert problem["detail"].startswith("ada has it: run-1, which started ")
        assert (await at.http.get(queue)).json() == []
        unknown = await at.http.patch(f"/api/v1/wakes/{one}", json={"text": "x", "words": "y"})
        assert unknown.status_code == 422

    inside(tmp_path, work)
