"""Claude Code's home: where it keeps sessions, how it names them, and which account it uses."""

import hashlib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from clew.kernel import AccountId, Directory
from clew.programs.cursor import CursorForm

AGENT = "Claude Code"
CURSORS = CursorForm(AGENT, r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""An id is a lower-case UUID. The program takes any other string for a title, and may open any session by it."""

HOMES = frozenset({"HOME", "CLAUDE_CONFIG_DIR"})
"""The variables that locate the home."""

_LONGEST_NAME = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Home:
    """`root` is the configuration directory; `own` is the file that holds the login."""

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
        """False for an empty directory: a home that was used is never empty, so this one is not mounted."""
        return self.root.is_dir() and any(path != self.locks for path in self.root.iterdir())

    @property
    def locks(self) -> Path:
        """Clew's own locks, shared by every provider of this home."""
        return self.root / "clew-locks"

    def project(self, directory: Directory) -> Path:
        """Where the program keeps the sessions that were begun in a directory."""
        return self.projects / project_name(real(directory))

    def tasks(self, native_id: str) -> Path:
        return self.root / "tasks" / native_id

    def copies(self, native_id: str) -> list[Path]:
        """The transcripts of that session: one, unless it was copied. Every project is searched.

        If none is found and a project cannot be read, this raises: the transcript may be there.
        """
        found, unreadable = [], None
        try:
            for project in sorted(self.projects.iterdir()):
                try:
                    if (path := project / f"{native_id}.jsonl").is_file():
                        found.append(path)
                except PermissionError as fault:
                    unreadable = fault
        except FileNotFoundError:
            return []
        if unreadable is not None and not found:
            raise unreadable
        return found

    def transcripts(self) -> Iterator[Path]:
        return self.projects.glob("*/*.jsonl")


def real(directory: Directory) -> str:
    """The directory's real path, by which the program knows it."""
    return str(Path(directory.place).resolve())


def project_name(path: str) -> str:
    """The program's name for a path: all but ASCII letters and digits become dashes; a long name is cut and hashed."""
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

SECRETS = {
    "ANTHROPIC_API_KEY": "api-key",
    "ANTHROPIC_AUTH_TOKEN": "token",
    "CLAUDE_CODE_OAUTH_TOKEN": "token",
}
"""Variables that the program authenticates with, in this order, before any login."""


def account_of(home: Home, environment: Mapping[str, str]) -> AccountId | None:
    """The login that the program will use. A secret in the environment takes precedence, and names no account."""
    if credential_in(environment) is not None:
        return None
    try:
        login = orjson.loads(home.own.read_bytes()).get("oauthAccount")
        email = login.get("emailAddress")
    except (OSError, orjson.JSONDecodeError, AttributeError):
        return None
    return AccountId(email) if isinstance(email, str) and email else None


def account_said(said: Any) -> AccountId | None:
    """The login that the program itself reports; None where it names no account, as with a key."""
    email = said.get("email") if isinstance(said, dict) else None
    return AccountId(email) if isinstance(email, str) and email else None


def credential_in(environment: Mapping[str, str]) -> str | None:
    """A short digest of the secret in the environment; None where there is none."""
    for name, kind in SECRETS.items():
        if secret := environment.get(name):
            # Enough to tell two keys apart, too short to recover one.
            return f"{kind}:{hashlib.sha256(secret.encode()).hexdigest()[:8]}"
    return None
