"""A connection to an agent: its process, calls in both directions, and what it said of itself when they met."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from clew.ports.provider import Deadlines
from clew.programs.acp.agent import AcpAgent
from clew.programs.faults import CannotStart, NotUnderstood, ProgramEnded
from clew.programs.ledger import Ledger
from clew.programs.program import Program, start
from clew.programs.rpc import CallRefused, Message, Peer
from clew.programs.secrets import Redactor

PROTOCOL = 1
NO_METHOD = -32601

Told = Callable[[str, Message], None]
Asked = Callable[[int | str, str, Message], None]


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the agent declared."""

    version: str = ""
    load: bool = False
    resume: bool = False
    fork: bool = False
    list: bool = False
    delete: bool = False

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        can = answer.get("agentCapabilities") or {}
        sessions = can.get("sessionCapabilities") or {}
        told = answer.get("agentInfo") or {}
        return cls(
            version=str(told.get("version") or f"protocol {answer.get('protocolVersion')}"),
            load=can.get("loadSession") is True,
            **{name: sessions.get(name) is not None for name in ("resume", "fork", "list", "delete")},
        )


@dataclass(frozen=True, slots=True)
class Launch:
    """How an agent is started. `environment` is all it gets."""

    agent: AcpAgent
    command: Sequence[str]
    environment: Mapping[str, str]
    deadlines: Deadlines
    ledger: Ledger | None

    @property
    def redactor(self) -> Redactor:
        return Redactor(self.environment)


class Connection:
    """Made by `connect`. `listen` says who hears what the agent says; before that nobody does."""

    def __init__(self, program: Program, launch: Launch) -> None:
        self.program = program
        self.abilities = Abilities()
        self._launch = launch
        self._told: Told = lambda _method, _said: None
        self._asked: Asked | None = None
        self._ended: Callable[[str], None] = lambda _words: None
        self.peer = Peer(
            program,
            lambda method, said: self._told(method, said),
            self._on_asked,
            self._on_ended,
            {"jsonrpc": "2.0"},
        )
        self._refusals: set[Any] = set()
        self.words: str | None = None

    def listen(self, told: Told, asked: Asked, ended: Callable[[str], None]) -> None:
        self._told, self._asked, self._ended = told, asked, ended
        if self.words is not None:
            ended(self.words)
