"""Claude Code's home: where it keeps its sessions, under which names, and whose account it has."""

import hashlib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from clew.kernel import AccountId, Directory

ID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
"""A session's id: a lower-case UUID. Another name in its place is a title to the program, and may open anything."""

HOMES = frozenset({"HOME", "CLAUDE_CONFIG_DIR"})
"""The variables that say where it is."""

_LONGEST_NAME = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Home:
    """`root` is its configuration directory; `own` the file in which it notes who is logged in."""

    root: Path
    own: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Home":
        home = Path(environment.get("HOME") or Path.home())
        configured = environment.get("CLAUDE_CONFIG_DIR")
        if configured:
            return cls(Path(configured), Path(configured) / ".claude.json")
        return cls(home / ".claude", home / ".claude.json")

    @property
    def text(self) -> str:
        return str(self.root.resolve())

    @property
    def projects(self) -> Path:
        return self.root / "projects"

    @property
    def is_there(self) -> bool:
        """An empty directory is where a home should have been mounted: no used home is empty."""
        return self.root.is_dir() and any(path != self.locks for path in self.root.iterdir())

    @property
    def locks(self) -> Path:
        """Clew's own, where every provider of this home has them."""
        return self.root / "clew-locks"

    def project(self, directory: Directory) -> Path:
        """Where it keeps the sessions that were begun in a directory."""
        return self.projects / project_name(real(directory))

    def tasks(self, native_id: str) -> Path:
        return self.root / "tasks" / native_id

    def copies(self, native_id: str) -> list[Path]:
        """The transcripts of that session: one, unless somebody copied it. Names are not derived but looked for.

        One that is not found is not there only where all could be looked at.
        """
        found, closed = [], None
        try:
            for project in sorted(self.projects.iterdir()):
                try:
                    if (path := project / f"{native_id}.jsonl").is_file():
                        found.append(path)
                except PermissionError as fault:
                    closed = fault
        except FileNotFoundError:
            return []
        if closed is not None and not found:
            raise closed
        return found

    def transcripts(self) -> Iterator[Path]:
        return self.projects.glob("*/*.jsonl")


def real(directory: Directory) -> str:
    """The program asks the system where it is, and so knows every directory by its real path."""
    return str(Path(directory.place).resolve())


def project_name(path: str) -> str:
    """As the program names it: all but ASCII letters and digits become dashes; what is too long is cut and hashed."""
    text = unicodedata.normalize("NFC", path).encode("utf-16-le")
    units = [int.from_bytes(text[at : at + 2], "little") for at in range(0, len(text), 2)]
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    if len(name) <= _LONGEST_NAME:
        return name
    mixed = 0
    for unit in units:
        mixed = (mixed * 31 + unit) & 0xFFFFFFFF
    return f"{name[:_LONGEST_NAME]}-{_base36(min(mixed, (1 << 32) - mixed))}"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


# ---------------------------------------------------------------- accounts

_SECRETS = {
    "ANTHROPIC_API_KEY": "api-key",
    "ANTHROPIC_AUTH_TOKEN": "token",
    "CLAUDE_CODE_OAUTH_TOKEN": "token",
}
"""What it authenticates with when it is in its environment, in that order, before any login."""


def account_of(home: Home, environment: Mapping[str, str]) -> AccountId | None:
    """The login that the program will act as. A secret that it is given goes before its login, and names nobody."""
    if credential_in(environment) is not None:
        return None
    try:
        login = orjson.loads(home.own.read_bytes()).get("oauthAccount")
        email = login.get("emailAddress")
    except (OSError, orjson.JSONDecodeError, AttributeError):
        return None
    return AccountId(email) if isinstance(email, str) and email else None


def account_said(said: Any) -> AccountId | None:
    """The login that the program itself says it acts as; None where it names nobody, as with a key."""
    email = said.get("email") if isinstance(said, dict) else None
    return AccountId(email) if isinstance(email, str) and email else None


def credential_in(environment: Mapping[str, str]) -> str | None:
    """The secret that the program is given, as a short digest; None where it is given none."""
    for name, kind in _SECRETS.items():
        if secret := environment.get(name):
            # Enough to tell two keys apart, and nothing by which one could be found.
            return f"{kind}:{hashlib.sha256(secret.encode()).hexdigest()[:8]}"
    return None
