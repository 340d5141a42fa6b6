"""Which addresses may be pushed to: an endpoint comes from a browser, and must not lead into a private network."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from clew.control.faults import BadRequest

LONGEST = 2000
"""Characters of an endpoint."""
_PATIENCE = 5.0
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""Stand for IPv4 addresses, any of them."""


class BadEndpoint(BadRequest):
    code = "ask:bad-endpoint"


class CannotResolve(Exception):
    """The name has no address, or the answer does not come."""


async def _resolve(host: str, port: int) -> Sequence[str]:
    """All addresses of the host."""
    try:
        async with asyncio.timeout(_PATIENCE):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as fault:
        raise CannotResolve(host) from fault
    return [str(address[0]) for *_, address in found]


def is_public(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and (
        found.ipv4_mapped or found.sixtofour or found.teredo or found in _TRANSLATED
    ):
        return False
    return found.is_global and not found.is_multicast


@dataclass(frozen=True, slots=True)
class Network:
    """How push services are found. Only tests have one that leads elsewhere."""

    resolve: Callable[[str, int], Awaitable[Sequence[str]]] = _resolve
    may_reach: Callable[[str], bool] = is_public
    tls: ssl.SSLContext | None = None

    async def addresses(self, endpoint: str) -> Sequence[str]:
        """The addresses of its host, all of which may be reached. They are connected to as they are: a second look
        could find others."""
        parts = check_endpoint(endpoint)
        host = str(parts.hostname)
        found = await self.resolve(host, parts.port or 443)
        if not found:
            raise CannotResolve(host)
        if not all(self.may_reach(each) for each in found):
            raise _refused(f"{host} is an address of this machine or of a private network")
        return found


def check_endpoint(endpoint: str) -> SplitResult:
    """An address of a push service, as far as it can be told without a network."""
    if len(endpoint) > LONGEST or not (endpoint.isascii() and endpoint.isprintable()) or " " in endpoint:
        raise _refused(f"it is longer than {LONGEST} characters or has some that no address has")
    try:
        parts = urlsplit(endpoint)
        _ = parts.port
    except ValueError as fault:
        raise _refused("it cannot be read") from fault
    if parts.scheme != "https":
        raise _refused("it does not begin with https://")
    if not parts.hostname or "@" in parts.netloc or parts.fragment:
        raise _refused("it names no host, or has a user or a fragment")
    if parts.hostname == "localhost" or parts.hostname.endswith(".localhost"):
        raise _refused(f"{parts.hostname} is this machine")
    return parts


def _refused(why: str) -> BadEndpoint:
    return BadEndpoint(
        f"The endpoint is none of a push service: {why}.",
        "Send the one that the browser's `pushManager.subscribe` gave.",
    )
