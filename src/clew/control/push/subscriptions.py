"""Subscriptions: a browser turns push on and off, and a person sees which of theirs have it and what went wrong."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from clew.control.actor import Actor, reader_of
from clew.control.faults import BadRequest, NotFound, NotNow
from clew.control.notices import needs
from clew.control.push.extra import check_installed, is_installed
from clew.control.push.network import CannotResolve, Network, check_endpoint
from clew.control.services import Services
from clew.ports.fault import Fault
from clew.protocol.push import PushView, SubscriptionView
from clew.protocol.requests import NewSubscription
from clew.store.engine.database import Transaction
from clew.store.operations import push as store

if TYPE_CHECKING:
    from clew.control.push.key import PushKey

MOST = 20
"""Browsers of one person."""

_OTHER_KEY = "It subscribed to another key of the server. Turn push off and on in that browser."


async def show_push(services: Services, actor: Actor) -> PushView:
    """Says why where nothing can be pushed, as a state and not as an error."""
    reader, public, words, remedy = _person(actor), None, "", ""
    try:
        public = (await _key(services)).public
    except Fault as fault:
        words, remedy = fault.words, fault.remedy
    kept = await services.read(lambda tx: store.list_subscriptions(tx, reader))
    return PushView(is_installed(), public, words, remedy, tuple(_view(each, public) for each in kept))


async def subscribe(
    services: Services,
    actor: Actor,
    asked: NewSubscription,
    network: Network = Network(),  # noqa: B008 - frozen
) -> SubscriptionView:
    """Safe to repeat. What needs somebody already is not pushed to a new one."""
    reader = _person(actor)
    key = await _key(services)
    await _check(asked, network)
    id_ = store.subscription_id(asked.endpoint)

    def write(tx: Transaction) -> SubscriptionView:
        former = None if asked.replaces is None else store.find_subscription(tx, store.subscription_id(asked.replaces))
        known = store.find_subscription(tx, id_) or (former if former and former.person == reader else None)
        titled = asked.title if asked.title is not None else known is not None and known.titled
        told = known.told if known else tuple(each.id for each in needs(tx))
        if former is not None and former.person == reader and former.id != id_:
            store.forget_subscription(tx, former.id)
        keys = asked.keys
        kept = store.keep_subscription(
            tx,
            store.Subscription(id_, reader, asked.endpoint, keys.p256dh, keys.auth, key.public, titled, told),
        )
        if len(store.list_subscriptions(tx, reader)) > MOST:
            raise NotNow(f"{MOST} browsers have push turned on, which is the most.", "Remove one on the settings page.")
        return _view(kept, key.public)

    return await services.write(write)


async def unsubscribe(services: Services, actor: Actor, subscription: str) -> PushView:
    reader = _person(actor)

    def write(tx: Transaction) -> None:
        found = store.find_subscription(tx, subscription)
        if found is None or found.person != reader:
            raise NotFound(f"There is no push subscription {subscription[:60]}.", "`GET /push` lists those there are.")
        store.forget_subscription(tx, found.id)

    await services.write(write)
    return await show_push(services, actor)


async def _key(services: Services) -> "PushKey":
    return await asyncio.to_thread(_made_key, services.data)


def _made_key(data: Path) -> "PushKey":
    check_installed()
    from clew.control.push.key import make_key  # noqa: PLC0415 - needs the extra, and takes a while

    return make_key(data)


async def _check(asked: NewSubscription, network: Network) -> None:
    from clew.control.push.encryption import check_browser_keys  # noqa: PLC0415 - needs the extra

    check_endpoint(asked.endpoint)
    try:
        check_browser_keys(asked.keys.p256dh, asked.keys.auth)
    except ValueError as fault:
        raise BadRequest(
            "The keys of the subscription cannot be used: p256dh is a point of 65 bytes on P-256, auth has 16 "
            "bytes, both in base64url.",
            "Send them as the browser's `pushManager.subscribe` gave them.",
        ) from fault
    try:
        await network.addresses(asked.endpoint)
    except CannotResolve:
        # This machine may be offline. It is looked at again before anything is sent.
        return


def _person(actor: Actor) -> str:
    reader = reader_of(actor)
    if not reader:
        raise BadRequest("Only a person is told by push.", "Use the token of a person.")
    return reader


def _view(kept: store.Subscription, public: str | None) -> SubscriptionView:
    failure = kept.failure if public in (None, kept.server_key) else _OTHER_KEY
    service = urlsplit(kept.endpoint).hostname or ""
    return SubscriptionView(kept.id, service, kept.titled, failure, kept.created_at)
