"""Push is turned on and off per browser; what is no push service is refused, and a key that is damaged stays."""

import asyncio
import logging
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.control.actor import Person, Timer
from clew.control.doctor import examine
from clew.control.faults import BadRequest, NotFound, NotNow
from clew.control.push.extra import NoPush
from clew.control.push.key import FILE, BadPushKey
from clew.control.push.network import BadEndpoint, CannotResolve, Network
from clew.control.push.sender import run_pusher
from clew.control.push.subscriptions import MOST, show_push, subscribe, unsubscribe
from clew.protocol.requests import NewSubscription, SubscriptionKeys
from tests.control.kit import USER, Office
from tests.control.push_kit import Browser, encoded, point, push_service
from tests.control.test_push import Story, fails, look, play, turned_on

__all__ = ["play"]


async def _nowhere(host: str, _port: int) -> list[str]:
    raise CannotResolve(host)


OFFLINE = Network(resolve=_nowhere)
ADDRESS = "https://push.test/a"


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://push.test/a",
        "https://localhost/a",
        "https://push.localhost/a",
        "https://127.0.0.1/a",
        "https://2130706433/a",
        "https://10.1.2.3/a",
        "https://192.168.0.1/a",
        "https://172.16.0.1/a",
        "https://100.64.0.1/a",
        "https://169.254.169.254/latest",
        "https://0.0.0.0/a",
        "https://224.0.0.1/a",
        "https://[::1]/a",
        "https://[::]/a",
        "https://[fe80::1]/a",
        "https://[fd00::1]/a",
        "https://[::ffff:127.0.0.1]/a",
        "https://[64:ff9b::7f00:1]/a",
        "https://[2002:7f00:1::]/a",
        "https://me@push.test/a",
        "https://push.test/a#b",
        "https://push.test:99999/a",
        "https://[push.test/a",
        "https:///a",
        "https://push.test/\u00e4",
        "https://push.test/a b",
        "https://push.test/" + "a" * 2000,
        "",
    ],
)
def test_what_is_no_push_service_is_refused(play: Callable[[Story], None], endpoint: str) -> None:
    async def story(at: Office) -> None:
        with pytest.raises(BadEndpoint):
            await subscribe(at.services, USER, Browser(endpoint).asks())
        assert (await show_push(at.services, USER)).subscriptions == ()

    play(story)


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [
        ("", encoded(bytes(16))),
        ("!" * 88, encoded(bytes(16))),
        (None, "!" + encoded(bytes(16))),
        (encoded(b"\x04" + bytes(64)), encoded(bytes(16))),
        (None, encoded(bytes(15))),
        (None, encoded(bytes(17))),
        (None, "\u00e4"),
    ],
)
def test_keys_that_cannot_be_used_are_refused(play: Callable[[Story], None], p256dh: str | None, auth: str) -> None:
    async def story(at: Office) -> None:
        good = encoded(point(Browser(ADDRESS).private.public_key()))
        asked = NewSubscription(ADDRESS, SubscriptionKeys(good if p256dh is None else p256dh, auth))
        with pytest.raises(BadRequest, match="p256dh is a point of 65 bytes"):
            await subscribe(at.services, USER, asked, OFFLINE)

    play(story)


def test_each_browser_is_there_once_and_its_own_persons(play: Callable[[Story], None]) -> None:
    async def story(at: Office) -> None:
        browser = Browser(ADDRESS)
        for title in (True, None, False):
            kept = await subscribe(at.services, USER, browser.asks(title=title), OFFLINE)
            assert kept.title is (title is not False)
        assert (await show_push(at.services, USER)).subscriptions == (kept,)
        assert (kept.service, kept.failure) == ("push.test", None)
        with pytest.raises(NotFound):
            await unsubscribe(at.services, Person("another"), kept.id)
        assert (await unsubscribe(at.services, USER, kept.id)).subscriptions == ()
        with pytest.raises(BadRequest, match="Only a person"):
            await subscribe(at.services, Timer("server"), browser.asks(), OFFLINE)

    play(story)


def test_there_is_a_most_of_browsers(play: Callable[[Story], None]) -> None:
    async def story(at: Office) -> None:
        for number in range(MOST):
            await subscribe(at.services, USER, Browser(f"{ADDRESS}{number}").asks(), OFFLINE)
        with pytest.raises(NotNow, match="which is the most"):
            await subscribe(at.services, USER, Browser(ADDRESS).asks(), OFFLINE)
        # One that is known is no more.
        await subscribe(at.services, USER, Browser(f"{ADDRESS}0").asks(), OFFLINE)
        assert len((await show_push(at.services, USER)).subscriptions) == MOST

    play(story)


def test_an_endpoint_that_takes_the_place_of_another_has_its_choice_and_is_not_told_again(
    play: Callable[[Story], None], tmp_path: Path
) -> None:
    async def story(at: Office) -> None:
        with push_service(tmp_path) as service:
            former = await turned_on(at, service, "former", title=True)
            await fails(at)
            await look(at, service.network)
            fresh = Browser(service.endpoint("fresh"))
            kept = await subscribe(at.services, USER, fresh.asks(replaces=former.endpoint), service.network)
            assert (await show_push(at.services, USER)).subscriptions == (kept,)
            assert kept.title
            await look(at, service.network)
            assert [each.path for each in service.received] == ["/former"]

    play(story)


def test_the_key_is_made_once_for_its_owner_alone(play: Callable[[Story], None], tmp_path: Path) -> None:
    async def story(at: Office) -> None:
        keys = {each.key for each in await asyncio.gather(*(show_push(at.services, USER) for _ in range(4)))}
        assert len(keys) == 1
        assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
        assert [each.name for each in tmp_path.glob(".push-key*")] == []

    play(story)


def _other_curve() -> bytes:
    from cryptography.hazmat.primitives import serialization as said  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP384R1())
    return key.private_bytes(said.Encoding.PEM, said.PrivateFormat.PKCS8, said.NoEncryption())


@pytest.mark.parametrize(
    "content", [b"", b"no key", b"\xff" * 100, _other_curve()], ids=["empty", "text", "bytes", "another-curve"]
)
def test_a_damaged_key_is_an_error_and_stays(play: Callable[[Story], None], tmp_path: Path, content: bytes) -> None:
    async def story(at: Office) -> None:
        await subscribe(at.services, USER, Browser(ADDRESS).asks(), OFFLINE)
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(BadPushKey, match=r"push-key holds .*Restore it from a copy, or remove it"):
            await subscribe(at.services, USER, Browser(ADDRESS).asks(), OFFLINE)
        push = await show_push(at.services, USER)
        assert (push.installed, push.key, "nothing can be pushed" in push.words) == (True, None, True)
        checks = {check.name: check for check in await examine(at.services, USER)}
        assert (checks["push"].state, checks["push"].words) == ("failed", push.words)
        assert (tmp_path / FILE).read_bytes() == content
        # A new one is another: the browser has to subscribe again, and is told nothing until then.
        (tmp_path / FILE).unlink()
        (left,) = (await show_push(at.services, USER)).subscriptions
        assert "another key" in str(left.failure)

    play(story)


@pytest.mark.parametrize("spoilt", ["mode", "link"])
def test_a_key_that_others_may_have_is_not_used(play: Callable[[Story], None], tmp_path: Path, spoilt: str) -> None:
    async def story(at: Office) -> None:
        await show_push(at.services, USER)
        file = tmp_path / FILE
        if spoilt == "mode":
            file.chmod(0o644)
        else:
            file.symlink_to(file.rename(tmp_path / "elsewhere"))
        assert (await show_push(at.services, USER)).key is None

    play(story)


def test_without_the_extra_it_is_refused_with_what_to_do(
    play: Callable[[Story], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)

    async def story(at: Office) -> None:
        with pytest.raises(NoPush, match=r"pip install 'clew\[push\]'"):
            await subscribe(at.services, USER, Browser(ADDRESS).asks(), OFFLINE)
        push = await show_push(at.services, USER)
        assert (push.installed, push.key, "clew[push]" in push.remedy) == (False, None, True)
        assert "push" not in {check.name for check in await examine(at.services, USER)}
        # Nothing is left to do for a server.
        await asyncio.wait_for(run_pusher(at.services, Timer("server")), 60)
        assert not (tmp_path / FILE).exists()

    play(story)


def test_no_secret_is_logged_or_shown(
    play: Callable[[Story], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def story(at: Office) -> None:
        with push_service(tmp_path) as service:
            browser = await turned_on(at, service, "capability")
            service.plan("capability", 400)
            await fails(at)
            await look(at, service.network)
            shown = f"{await show_push(at.services, USER)} {browser.asks()}"
            assert "capability" not in shown.replace(repr(browser), "")
            assert encoded(browser.secret) not in shown
        said = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("clew"))
        assert "push.test answered 400" in said
        assert "capability" not in said

    play(story)
