"""Encrypts a message for one browser (RFC 8291, aes128gcm). Imports cryptography: import it late."""

import os
from base64 import b64decode

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from clew.control.push.key import point_of

CURVE = ec.SECP256R1()
_POINT, _SECRET = 65, 16
_RECORD = 4096
_LAST = b"\x02"
"""Ends the last record; zeros may follow."""


def from_base64url(text: str) -> bytes:
    """Raises a ValueError for anything else."""
    return b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)


def check_browser_keys(p256dh: str, auth: str) -> None:
    """Raises a ValueError if they are none."""
    browser, secret = from_base64url(p256dh), from_base64url(auth)
    ec.EllipticCurvePublicKey.from_encoded_point(CURVE, browser)
    if len(browser) != _POINT or len(secret) != _SECRET:
        raise ValueError("they have other lengths")


def encrypt(
    message: bytes,
    browser: bytes,
    secret: bytes,
    *,
    padded: int = 0,
    sender: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """`browser` is its public key (p256dh), `secret` what it shares with who may write to it (auth). Padded to that
    many bytes, so that the length tells nothing. The sender's key and the salt are new each time, unless given."""
    sender, salt = sender or ec.generate_private_key(CURVE), salt or os.urandom(16)
    own = point_of(sender.public_key())
    shared = sender.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, browser))
    agreed = _derived(shared, secret, b"WebPush: info\x00" + browser + own, 32)
    key = _derived(agreed, salt, b"Content-Encoding: aes128gcm\x00", 16)
    nonce = _derived(agreed, salt, b"Content-Encoding: nonce\x00", 12)
    record = (message + _LAST).ljust(padded, b"\x00")
    head = salt + _RECORD.to_bytes(4, "big") + bytes([len(own)]) + own
    return head + AESGCM(key).encrypt(nonce, record, None)


def _derived(material: bytes, salt: bytes, about: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, about).derive(material)
