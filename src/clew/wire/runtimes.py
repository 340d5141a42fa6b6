"""What a machine says of itself and of the runs it holds, and what it is answered."""

from dataclasses import dataclass

from clew.kernel import AccountId, MachineId, ProviderName, RunId, RunState


@dataclass(frozen=True, slots=True)
class Registration:
    """What a machine says of one provider in one home. `capabilities` is what the provider declared, as JSON."""

    machine: MachineId
    machine_name: str
    provider: ProviderName
    home: str
    account: AccountId | None = None
    capabilities: str = "{}"
    max_live: int = 4
    # Below which directory the machine makes workspaces.
    root: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A run that a daemon believes to hold."""

    run: RunId
    attempt: int


@dataclass(frozen=True, slots=True)
class Renewed:
    """What a daemon is told of its runs: which it still holds, and which it must stop."""

    held: frozenset[RunId]
    stop: frozenset[RunId]


@dataclass(frozen=True, slots=True)
class Expired:
    run: RunId
    state: RunState
    why: str
