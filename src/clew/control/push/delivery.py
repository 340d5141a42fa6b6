"""Gives a message to a browser's push service, trying a few times. Imports httpx2 and cryptography: import it late."""

import asyncio
import math
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx2

from clew.control.push.encryption import encrypt, from_base64url
from clew.control.push.key import PushKey
from clew.control.push.network import BadEndpoint, CannotResolve, Network
from clew.store.operations.push import Subscription

ATTEMPTS = 3
TIMEOUT = 10.0
"""Seconds of one attempt."""
LONGEST_PAUSE = 60.0
"""Seconds between two attempts. A service that asks for more gets no further one."""
_TTL = 24 * 3600
"""Seconds for which the service keeps it for a browser that is off."""
_PADDED = 1024


class Gone(Exception):
    """The browser has no such subscription any more."""


class Undelivered(Exception):
    """It was given up. The text says why, for people; it names the service, and not the endpoint, which is secret."""


@dataclass(frozen=True, slots=True)
class Postman:
    """`contact` is whom the operators of a service may ask about what is sent."""

    network: Network
    key: PushKey
    contact: str

    async def deliver(self, to: Subscription, message: bytes, topic: str) -> None:
        """Of two messages of one topic that wait for the same browser, it gets the later one."""
        host, why = str(urlsplit(to.endpoint).hostname), ""
        verify = self.network.tls
        if verify is None:
            verify = await asyncio.to_thread(httpx2.create_ssl_context)
        # No proxy and no login of the environment: the address that was checked is the one that is connected to.
        async with httpx2.AsyncClient(verify=verify, trust_env=False, timeout=TIMEOUT) as client:
            for attempt in range(ATTEMPTS):
                pause = float(2**attempt)
                try:
                    async with asyncio.timeout(TIMEOUT):
                        addresses = await self.network.addresses(to.endpoint)
                        address = addresses[attempt % len(addresses)]
                        status, headers = await self._post(client, to, message, topic, address)
                except BadEndpoint as fault:
                    raise Undelivered(fault.words) from fault
                except CannotResolve:
                    why = f"{host} was not found"
                except TimeoutError:
                    why = f"{host} did not answer within {TIMEOUT:g} s"
                except (httpx2.HTTPError, OSError):
                    why = f"{host} could not be reached"
                else:
                    if _is_taken(host, status):
                        return
                    why, pause = f"{host} answered {status}", _asked_pause(headers.get("retry-after", ""), pause)
                if attempt + 1 == ATTEMPTS or pause > LONGEST_PAUSE:
                    break
                await asyncio.sleep(pause)
        raise Undelivered(f"{why}, so it was given up.")

    async def _post(
        self, client: httpx2.AsyncClient, to: Subscription, message: bytes, topic: str, address: str
    ) -> tuple[int, httpx2.Headers]:
        parts = urlsplit(to.endpoint)
        body = encrypt(message, from_base64url(to.p256dh), from_base64url(to.auth), padded=_PADDED)
        headers = {
            "host": parts.netloc,
            "authorization": self.key.authorization(to.endpoint, self.contact),
            "content-type": "application/octet-stream",
            "content-encoding": "aes128gcm",
            "ttl": str(_TTL),
            "urgency": "high",
            "topic": topic,
        }
        there = f"[{address}]" if ":" in address else address
        url = parts._replace(netloc=f"{there}:{parts.port or 443}").geturl()
        # The certificate is checked for the name. What the service says beyond its status is not read.
        sent = client.stream("POST", url, content=body, headers=headers, extensions={"sni_hostname": parts.hostname})
        async with sent as answer:
            return answer.status_code, answer.headers


def _is_taken(host: str, status: int) -> bool:
    """False if another attempt may help."""
    if status in (404, 410):
        raise Gone
    if status != 429 and 300 <= status < 500:
        raise Undelivered(f"{host} answered {status}.")
    return 200 <= status < 300


def _asked_pause(asked: str, otherwise: float) -> float:
    """Retry-After: seconds, or a date."""
    try:
        pause = float(asked) if asked.strip().isdigit() else parsedate_to_datetime(asked).timestamp() - time.time()
    except (ValueError, OverflowError, TypeError):
        return otherwise
    return max(pause, 0.0) if math.isfinite(pause) else otherwise
