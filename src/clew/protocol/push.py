"""Web Push: which browsers are told of what needs a person while no page is open in them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SubscriptionView:
    """One browser. Its endpoint is a secret of the browser, and is never shown."""

    id: str
    service: str
    """The host of its push service."""
    title: bool
    failure: str | None
    """Why the last message did not reach it; null after one that did."""
    created_at: float


@dataclass(frozen=True, slots=True)
class PushView:
    """`key` is what a browser subscribes with (`applicationServerKey`); null where nothing can be pushed, and then
    `words` and `remedy` say why."""

    installed: bool
    """Whether the server has the extra `push`."""
    key: str | None
    words: str
    remedy: str
    subscriptions: tuple[SubscriptionView, ...]
