"""Pushes what newly needs a person to their browsers. One loop for each server; each browser is served on its own."""

import asyncio
import hashlib
import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from clew.control.actor import Actor, Person, name_of
from clew.control.notices import needs
from clew.control.push.extra import is_installed
from clew.control.push.network import Network
from clew.control.services import Services
from clew.control.threads import show_thread
from clew.ports.fault import Fault
from clew.protocol.notices import NoticeView
from clew.store.engine.database import Transaction
from clew.store.operations import push as store

if TYPE_CHECKING:
    from clew.control.push.delivery import Postman
    from clew.control.push.key import PushKey

POLL = 5.0
"""Seconds after which it looks without a hint."""
GATHER = 0.5
"""Seconds for which it gathers changes: not every one of a running agent's is looked at."""
CONTACT = "mailto:nobody@example.com"
"""What push services are told of whom to ask, where the server has no public address. Some refuse messages without."""
_LONGEST_TITLE = 200

_log = logging.getLogger("clew.push")


async def run_pusher(services: Services, actor: Actor, public: str = "", network: Network = Network()) -> None:  # noqa: B008 - frozen
    """Until it is cancelled; ends at once without the extra. An error is logged once, and tried again."""
    if not is_installed():
        return
    post = Post(public if public.startswith("https:") else CONTACT, network)
    said = ""
    with services.hints.watch() as watch:
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    await look(services, actor, post, group)
                    said = ""
                except Exception as fault:  # noqa: BLE001 - the sender goes on after any error
                    words = str(fault) if isinstance(fault, Fault) else repr(fault)
                    if words != said:
                        _log.warning("nothing is pushed: %s", words)
                    said = words
                if await watch.wait(POLL):
                    await asyncio.sleep(GATHER)


@dataclass(frozen=True, slots=True)
class Post:
    """How messages leave, and which browsers are being served: a slow service holds up no other one."""

    contact: str
    network: Network
    busy: set[str] = field(default_factory=set)


async def look(services: Services, actor: Actor, post: Post, group: asyncio.TaskGroup) -> None:
    """Begin to tell every browser of what it was not told of."""

    def read(tx: Transaction) -> tuple[tuple[store.Subscription, ...], tuple[NoticeView, ...]]:
        browsers = store.all_subscriptions(tx)
        return browsers, needs(tx) if browsers else ()

    browsers, notices = await services.read(read)
    browsers = tuple(each for each in browsers if any(notice.id not in each.told for notice in notices))
    key = await asyncio.to_thread(_known_key, services.data) if browsers else None
    for each in browsers:
        # Another server that shares the database tells its own browsers.
        if key is not None and each.server_key == key.public and each.id not in post.busy:
            post.busy.add(each.id)
            group.create_task(_serve(services, actor, post, key, each.id, notices))


def _known_key(data: Path) -> "PushKey | None":
    # In a thread, as below: the packages take a while to load, and a server without browsers never loads them.
    from clew.control.push.key import read_key  # noqa: PLC0415 - needs the extra

    return read_key(data)


def _postman(post: Post, key: "PushKey") -> "Postman":
    from clew.control.push.delivery import Postman  # noqa: PLC0415 - needs the extra

    return Postman(post.network, key, post.contact)


async def _serve(
    services: Services, actor: Actor, post: Post, key: "PushKey", browser: str, notices: tuple[NoticeView, ...]
) -> None:
    try:
        # Again: another message may have been recorded since the look.
        known = await services.read(lambda tx: store.find_subscription(tx, browser))
        if known is not None:
            await _tell(services, actor, await asyncio.to_thread(_postman, post, key), known, notices)
    except Exception as fault:  # noqa: BLE001 - it is tried again at the next look
        _log.warning("a browser was not told: %s", fault if isinstance(fault, Fault) else repr(fault))
        await asyncio.sleep(POLL)
    finally:
        post.busy.discard(browser)


async def _tell(
    services: Services,
    actor: Actor,
    postman: "Postman",
    browser: store.Subscription,
    notices: tuple[NoticeView, ...],
) -> None:
    """What was told is recorded after each message: told twice, if the server is killed in between, a notification
    takes the place of the first. After a failure the others are not tried either: a person sees on the page why."""
    from clew.control.push.delivery import Gone, Undelivered  # noqa: PLC0415 - needs the extra

    told, current = list(browser.told), {each.id for each in notices}
    for notice in notices:
        if notice.id in told:
            continue
        failure = None
        try:
            topic = hashlib.sha256(notice.id.encode()).hexdigest()[:32]
            await postman.deliver(browser, await _message(services, browser, notice), topic)
        except Gone:
            await services.write(lambda tx: store.forget_subscription(tx, browser.id))
            _log.info("%s forgot a browser of %s that has turned push off", name_of(actor), browser.person)
            return
        except Undelivered as fault:
            failure = str(fault)
            _log.warning("a notification was not pushed: %s", failure)
        told += [notice.id] if failure is None else [each.id for each in notices if each.id not in told]
        done = (browser.id, tuple(told), current, failure)
        await services.write(lambda tx, done=done: store.record_told(tx, *done))  # type: ignore[misc]


async def _message(services: Services, browser: store.Subscription, notice: NoticeView) -> bytes:
    said = {"id": notice.id, "kind": notice.kind, "thread": notice.thread}
    if browser.titled:
        page = await show_thread(services, Person(browser.person), notice.thread, limit=1)
        said["title"] = page.thread.title[:_LONGEST_TITLE]
    return json.dumps(said, ensure_ascii=False).encode()
