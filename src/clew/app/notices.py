"""What `clew up` has to say to whoever started it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ready:
    address: str
    link: str
    data: Path
    database: str


@dataclass(frozen=True, slots=True)
class FoundAgents:
    """Programs that are here, with their versions, and why others are not."""

    here: tuple[tuple[str, str], ...]
    missing: tuple[tuple[str, str], ...]
    agents: tuple[str, ...]
    """Those that can be woken."""


@dataclass(frozen=True, slots=True)
class Stopping:
    live: int
    words: str


Notice = Ready | FoundAgents | Stopping
