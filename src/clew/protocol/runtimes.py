"""What a machine says of itself and of the runs it holds, and what it is answered."""

from dataclasses import dataclass

from clew.kernel import AccountId, MachineId, ProviderName, RunId, RunState


@dataclass(frozen=True, slots=True)
class Registration:
    """What a machine says of one program as it is started in one home.

    `program` is its key there: a digest of its command line, home, environment and options. `account` is the login that
    it names, and `credential` a digest of the key that it is given. `capabilities` is what the provider declared of it,
    as JSON. All three are the program's own, and not of every program in that home.
    """

    machine: MachineId
    machine_name: str
    provider: ProviderName
    home: str
    account: AccountId | None = None
    capabilities: str = "{}"
    max_live: int = 4
    # Below which directory the machine makes workspaces.
    root: str | None = None
    program: str = ""
    credential: str | None = None


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
