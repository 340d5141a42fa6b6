"""Keys: the token, tickets that are good for one entry, and the cookie that an entry is turned into.

A cookie is signed with the token: it holds across restarts, ends by itself, and with the token.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

TICKET_LASTS = 15 * 60.0
COOKIE_LASTS = 30 * 24 * 3600
_MOST_TICKETS = 64


@dataclass(slots=True)
class Keys:
    token: str = field(repr=False)
    clock: Callable[[], float] = time.time
    person: str = "user"
    """Who uses the token. There is one token, so there is one person."""
    _tickets: dict[str, float] = field(default_factory=dict, repr=False)

    def is_token(self, said: str) -> bool:
        return hmac.compare_digest(said.encode("utf-8", "replace"), self.token.encode())

    def issue_ticket(self) -> tuple[str, float]:
        """A ticket, and when it ends. So many at most are good at once; the oldest makes room."""
        now = self.clock()
        self._tickets = {kept: ends for kept, ends in self._tickets.items() if ends > now}
        while len(self._tickets) >= _MOST_TICKETS:
            del self._tickets[next(iter(self._tickets))]
        ticket, ends = secrets.token_urlsafe(32), now + TICKET_LASTS
        self._tickets[_digest(ticket)] = ends
        return ticket, ends

    def redeem(self, ticket: str) -> str | None:
        """The cookie it is good for, once."""
        ends = self._tickets.pop(_digest(ticket), None)
        if ends is None or ends <= self.clock():
            return None
        said = f"{int(self.clock()) + COOKIE_LASTS}.{secrets.token_urlsafe(12)}"
        return f"{said}.{self._sign(said)}"

    def is_cookie(self, value: str) -> bool:
        said, _, signature = value.rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign(said).encode()):
            return False
        return int(said.partition(".")[0]) > self.clock()

    def _sign(self, said: str) -> str:
        signed = f"clew-cookie:{said}".encode("utf-8", "replace")
        return hmac.new(self.token.encode(), signed, hashlib.sha256).hexdigest()


def _digest(ticket: str) -> str:
    """Looked up by its digest, so that how long it takes tells nothing of the ticket."""
    return hashlib.sha256(ticket.encode("utf-8", "replace")).hexdigest()
