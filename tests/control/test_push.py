"""Push: what needs a person reaches each of their browsers once, encrypted, and bounded whatever a service does."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from clew.control.actor import Timer
from clew.control.doctor import examine
from clew.control.push import delivery
from clew.control.push.network import Network
from clew.control.push.sender import CONTACT, Post, run_pusher
from clew.control.push.sender import look as look_once
from clew.control.push.subscriptions import show_push, subscribe
from clew.control.threads import open_chat
from clew.control.wakes import say
from clew.kernel import FailureKind
from clew.protocol.reports import Failed
from clew.protocol.requests import NewChat, Words
from clew.store.engine.database import Database
from tests.control.kit import USER, Office, office
from tests.control.push_kit import HOST, Browser, PushService, claims_of, push_service

Story = Callable[[Office], Awaitable[None]]
SERVER = Timer("server")
SECRET_PLAN = "A secret plan"


@pytest.fixture(name="service")
def _service(tmp_path: Path) -> Iterator[PushService]:
    with push_service(tmp_path) as started:
        yield started


@pytest.fixture
def play(database: Database, tmp_path: Path) -> Callable[[Story], None]:
    """A story in an office with an agent."""

    def played(story: Story) -> None:
        async def within() -> None:
            async with office(database, tmp_path) as at:
                await at.agent()
                await asyncio.wait_for(story(at), 120)

        asyncio.run(within())

    return played


async def fails(at: Office, title: str = SECRET_PLAN) -> tuple[str, str]:
    """Something needs a person: the thread and the id of its notice."""
    ref = (await open_chat(at.services, USER, NewChat("ada", title=title))).ref
    await say(at.services, USER, ref, Words("Do it."))
    order = await at.serve(end=Failed(FailureKind.PERMANENT, "no"))
    return ref, order.run


async def turned_on(at: Office, service: PushService, name: str = "a", *, title: bool | None = None) -> Browser:
    browser = Browser(service.endpoint(name))
    await subscribe(at.services, USER, browser.asks(title=title), service.network)
    return browser


async def look(at: Office, network: Network) -> None:
    """One look of a server that was just started, until everything it began is done."""
    async with asyncio.TaskGroup() as group:
        await look_once(at.services, SERVER, Post(CONTACT, network), group)


async def failures(at: Office) -> list[str | None]:
    return [each.failure for each in (await show_push(at.services, USER)).subscriptions]


@pytest.mark.case("U13")
def test_it_is_told_once_without_content_and_not_again_by_a_restarted_server(
    play: Callable[[Story], None], service: PushService
) -> None:
    async def story(at: Office) -> None:
        await fails(at)
        browser = await turned_on(at, service)
        # What needed a person before is not pushed.
        await look(at, service.network)
        assert service.received == []
        ref, notice = await fails(at)
        for _ in range(2):
            await look(at, service.network)
        (got,) = service.received
        assert browser.reads(got.body) == {"id": notice, "kind": "needs", "thread": ref}
        assert SECRET_PLAN.encode() not in got.body
        asked = {name: got.headers[name] for name in ("content-encoding", "ttl", "host")}
        assert asked == {"content-encoding": "aes128gcm", "ttl": "86400", "host": f"{HOST}:{service.port}"}
        assert len(got.headers["topic"]) == 32
        key = (await show_push(at.services, USER)).key
        assert key is not None
        claims = claims_of(got.headers["authorization"], key)
        assert (claims["aud"], claims["sub"]) == (f"https://{HOST}:{service.port}", CONTACT)
        later, _ = await fails(at)
        await look(at, service.network)
        assert [browser.reads(each.body)["thread"] for each in service.received] == [ref, later]
        assert service.received[0].headers["topic"] != service.received[1].headers["topic"]

    play(story)


def test_the_loop_of_a_server_pushes_and_ends_with_it(play: Callable[[Story], None], service: PushService) -> None:
    async def story(at: Office) -> None:
        browser = await turned_on(at, service)
        loop = asyncio.create_task(run_pusher(at.services, SERVER, "https://clew.example/", service.network))
        ref, _ = await fails(at)
        while not service.received:
            await asyncio.sleep(0.02)
        loop.cancel()
        await asyncio.wait({loop})
        assert loop.cancelled()
        assert browser.reads(service.received[0].body)["thread"] == ref
        key = (await show_push(at.services, USER)).key or ""
        # Where it has a public address, the services are told of it.
        assert claims_of(service.received[0].headers["authorization"], key)["sub"] == "https://clew.example/"

    play(story)


def test_the_title_is_sent_to_who_wants_it(play: Callable[[Story], None], service: PushService) -> None:
    async def story(at: Office) -> None:
        titled, plain = await turned_on(at, service, "titled", title=True), await turned_on(at, service, "plain")
        await fails(at, "\N{CYCLONE}" * 190)
        await look(at, service.network)
        got = {each.path: each.body for each in service.received}
        assert titled.reads(got["/titled"])["title"] == "\N{CYCLONE}" * 190
        assert "title" not in plain.reads(got["/plain"])
        assert len(got["/titled"]) < 4096

    play(story)


@pytest.mark.parametrize("status", [404, 410])
def test_a_browser_that_has_turned_it_off_is_forgotten(
    play: Callable[[Story], None], service: PushService, status: int
) -> None:
    async def story(at: Office) -> None:
        await turned_on(at, service)
        service.plan("a", status)
        await fails(at)
        await fails(at)
        await look(at, service.network)
        assert len(service.received) == 1
        assert await failures(at) == []

    play(story)


def test_a_service_that_fails_is_asked_a_few_times_and_what_went_wrong_is_shown(
    play: Callable[[Story], None], service: PushService
) -> None:
    async def story(at: Office) -> None:
        await turned_on(at, service)
        service.plan("a", 503, 429, 500, retry_after="0")
        await fails(at)
        await fails(at)
        for _ in range(2):
            await look(at, service.network)
        assert len(service.received) == delivery.ATTEMPTS
        assert await failures(at) == [f"{HOST} answered 500, so it was given up."]
        checks = {check.name: check for check in await examine(at.services, USER)}
        assert (checks["push"].state, f"{HOST} answered 500" in checks["push"].words) == ("warning", True)
        await fails(at)
        await look(at, service.network)
        assert await failures(at) == [None]
        checks = {check.name: check for check in await examine(at.services, USER)}
        assert (checks["push"].state, checks["push"].words) == ("ok", "1 browser is told by push.")

    play(story)


def test_a_service_is_given_the_time_that_it_asks_for_up_to_a_minute(
    play: Callable[[Story], None], service: PushService
) -> None:
    async def story(at: Office) -> None:
        await turned_on(at, service)
        service.plan("a", 429, retry_after="1")
        await fails(at)
        await look(at, service.network)
        first, second = service.received
        assert second.at - first.at >= 1
        service.plan("a", 429, retry_after="61")
        await fails(at)
        await look(at, service.network)
        assert len(service.received) == 3
        assert await failures(at) == [f"{HOST} answered 429, so it was given up."]

    play(story)


@pytest.mark.parametrize("status", [302, 400, 401, 413])
def test_a_refusal_is_not_repeated_and_no_other_address_is_followed(
    play: Callable[[Story], None], service: PushService, status: int
) -> None:
    async def story(at: Office) -> None:
        await turned_on(at, service)
        service.plan("a", status, location=service.endpoint("b"))
        await fails(at)
        await look(at, service.network)
        assert [each.path for each in service.received] == ["/a"]
        assert await failures(at) == [f"{HOST} answered {status}."]

    play(story)


def test_a_service_that_does_not_answer_holds_up_no_other_and_is_given_up(
    play: Callable[[Story], None], service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "TIMEOUT", 2.0)
    monkeypatch.setattr(delivery, "ATTEMPTS", 1)

    async def story(at: Office) -> None:
        await turned_on(at, service, "slow")
        await turned_on(at, service, "quick")
        service.held.add("/slow")
        await fails(at)
        await look(at, service.network)
        assert sorted(each.path for each in service.received) == ["/quick", "/slow"]
        assert await failures(at) == [f"{HOST} did not answer within 2 s, so it was given up.", None]

    play(story)


def test_a_certificate_of_another_name_is_not_trusted(
    play: Callable[[Story], None], service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "ATTEMPTS", 1)

    async def story(at: Office) -> None:
        browser = Browser(f"https://other.test:{service.port}/a")
        await subscribe(at.services, USER, browser.asks(), service.network)
        await fails(at)
        await look(at, service.network)
        assert service.received == []
        assert await failures(at) == ["other.test could not be reached, so it was given up."]

    play(story)


@pytest.mark.parametrize("found", ["127.0.0.1", "10.0.0.9", "169.254.169.254", "::1", "fe80::1", "64:ff9b::a00:9"])
def test_a_name_that_leads_into_a_private_network_later_gets_nothing(
    play: Callable[[Story], None], service: PushService, found: str
) -> None:
    async def there(_host: str, _port: int) -> list[str]:
        return ["203.0.114.1", found]

    async def story(at: Office) -> None:
        await turned_on(at, service)
        await fails(at)
        await look(at, Network(resolve=there, tls=service.tls))
        assert service.received == []
        (failure,) = await failures(at)
        assert f"{HOST} is an address of this machine or of a private network" in str(failure)

    play(story)
