"""Messages of the server to the terminal of `clew up`."""

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
    """Installed agent programs with their versions, and the names of the configured agents."""

    installed: tuple[tuple[str, str], ...]
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stopping:
    live: int
    message: str


Notice = Ready | FoundAgents | Stopping
