"""The key pair by which push services know this server (VAPID, RFC 8292). Imports cryptography: import it late."""

import errno
import json
import os
import secrets
import stat
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from clew.control.faults import Unavailable

FILE = "push-key"
"""Below the data directory."""
_VALID = 12 * 3600
"""Seconds; services refuse more than a day."""
_LARGEST = 10_000


class BadPushKey(Unavailable):
    code = "control:push-key"


@dataclass(frozen=True, slots=True)
class PushKey:
    private: ec.EllipticCurvePrivateKey = field(repr=False)
    public: str
    """As browsers take it: the uncompressed point, base64url without padding."""

    def authorization(self, endpoint: str, contact: str) -> str:
        """The header that proves to the endpoint's service who sends. `contact` is an address for its operators."""
        claims = {"aud": f"https://{urlsplit(endpoint).netloc}", "exp": int(time.time()) + _VALID, "sub": contact}
        parts = ({"typ": "JWT", "alg": "ES256"}, claims)
        signed = ".".join(base64url(json.dumps(each).encode()) for each in parts)
        r, s = decode_dss_signature(self.private.sign(signed.encode(), ec.ECDSA(SHA256())))
        return f"vapid t={signed}.{base64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}, k={self.public}"


def base64url(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def point_of(public: ec.EllipticCurvePublicKey) -> bytes:
    """65 bytes: uncompressed."""
    return public.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def read_key(data: Path) -> PushKey | None:
    """None if nobody has asked for push yet. A file that cannot be used stays as it is: browsers that subscribed are
    bound to its key."""
    path = data / FILE
    try:
        # The mode is checked on the open descriptor, so the file cannot be swapped in between.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise _unusable(
            path, "is a link" if fault.errno == errno.ELOOP else f"cannot be read: {fault.strerror}"
        ) from fault
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise _unusable(path, "is not a regular file of yours")
        if found.st_mode & 0o077:
            raise _unusable(path, "can be read by other users", f" If nobody did, `chmod 600 {path}` is enough.")
        content = os.read(file, _LARGEST)
    finally:
        os.close(file)
    try:
        private = serialization.load_pem_private_key(content, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as fault:
        raise _unusable(path, "holds no key that can be read") from fault
    if not isinstance(private, ec.EllipticCurvePrivateKey) or not isinstance(private.curve, ec.SECP256R1):
        raise _unusable(path, "holds a key of another kind")
    return PushKey(private, base64url(point_of(private.public_key())))


def make_key(data: Path) -> PushKey:
    """The key that is there, or a new one. Two processes that make one at once get the same."""
    known = read_key(data)
    if known is not None:
        return known
    path = data / FILE
    draft = path.with_name(f".{FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    content = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # link(), unlike rename(), fails if the file exists.
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError as fault:
        raise BadPushKey(
            f"{path} cannot be written: {fault.strerror}.", "Make room in the data directory, and writable for you."
        ) from fault
    finally:
        draft.unlink(missing_ok=True)
    made = read_key(data)
    if made is None:
        raise _unusable(path, "was removed while it was made")
    return made


def _unusable(path: Path, why: str, otherwise: str = "") -> BadPushKey:
    return BadPushKey(
        f"{path} {why}, so nothing can be pushed.",
        f"Restore it from a copy, or remove it: a new key is made, and each browser turns push on again.{otherwise}",
    )
