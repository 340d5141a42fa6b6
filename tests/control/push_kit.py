"""A push service on loopback, over real TLS, and browsers that can read what arrives there."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from clew.control.push.network import Network
from clew.protocol.requests import NewSubscription, SubscriptionKeys

HOST = "push.test"
CURVE = ec.SECP256R1()


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


@dataclass
class Received:
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float


@dataclass
class PushService:
    """Answers 201, or what is planned for a path, each answer once."""

    port: int
    tls: ssl.SSLContext
    received: list[Received] = field(default_factory=list)
    planned: dict[str, list[tuple[int, Mapping[str, str]]]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    """Paths that are not answered before `let_go`."""
    let_go: threading.Event = field(default_factory=threading.Event)

    def endpoint(self, name: str) -> str:
        return f"https://{HOST}:{self.port}/{name}"

    @property
    def network(self) -> Network:
        return Network(resolve=_here, may_reach=lambda address: address == "127.0.0.1", tls=self.tls)

    def plan(self, name: str, *answers: int, **headers: str) -> None:
        named = {header.replace("_", "-"): value for header, value in headers.items()}
        self.planned[f"/{name}"] = [(status, named) for status in answers]

    def answer(self, got: Received) -> tuple[int, Mapping[str, str]]:
        self.received.append(got)
        if got.path in self.held:
            self.let_go.wait(60)
        planned = self.planned.get(got.path)
        return planned.pop(0) if planned else (201, {})


async def _here(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@contextmanager
def push_service(place: Path) -> Iterator[PushService]:
    certificate = _certificate(place)
    tls = ssl.create_default_context(cafile=str(certificate))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more = service.answer(Received(self.path, headers, body, time.monotonic()))
            self.send_response(status)
            for name, value in {"content-length": "0", **more}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    mine = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    mine.load_cert_chain(certificate)
    server.socket = mine.wrap_socket(server.socket, server_side=True)
    service = PushService(server.server_address[1], tls)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield service
    finally:
        service.let_go.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _certificate(place: Path) -> Path:
    key, name = ec.generate_private_key(CURVE), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = place / "push.pem"
    plain = serialization.NoEncryption()
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


@dataclass
class Browser:
    """It has a key pair of its own, and alone can read what is pushed to it."""

    endpoint: str
    private: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(CURVE))
    secret: bytes = b"0123456789abcdef"

    def asks(self, *, title: bool | None = None, replaces: str | None = None) -> NewSubscription:
        keys = SubscriptionKeys(encoded(point(self.private.public_key())), encoded(self.secret))
        return NewSubscription(self.endpoint, keys, title, replaces)

    def reads(self, body: bytes) -> Any:
        """RFC 8291 and 8188, from the reader's side."""
        return json.loads(self.opened(body))

    def opened(self, body: bytes) -> bytes:
        salt, length = body[:16], body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        shared = self.private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, sender))
        about = b"WebPush: info\0" + point(self.private.public_key()) + sender
        agreed = HKDF(hashes.SHA256(), 32, self.secret, about).derive(shared)
        key = HKDF(hashes.SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(agreed)
        nonce = HKDF(hashes.SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(agreed)
        record = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")
        assert record.endswith(b"\x02")
        return record[:-1]


def claims_of(authorization: str, key: str) -> Any:
    """What the server says of itself, once its signature is checked with the key that the browser subscribed with."""
    kind, _, rest = authorization.partition(" ")
    fields = dict(each.strip().split("=", 1) for each in rest.split(","))
    assert (kind, fields["k"]) == ("vapid", key)
    signed, _, signature = fields["t"].rpartition(".")
    raw = decoded(signature)
    assert len(raw) == 64
    pair = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    public = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, decoded(key))
    public.verify(pair, signed.encode(), ec.ECDSA(hashes.SHA256()))
    head, claims = (json.loads(decoded(part)) for part in signed.split("."))
    assert head == {"typ": "JWT", "alg": "ES256"}
    return claims
