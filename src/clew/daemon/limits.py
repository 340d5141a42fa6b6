"""The daemon's limits: how long it waits for what, and how much it does at once. Times are in seconds."""

from dataclasses import dataclass, field

from clew.kernel import Budget, Patience, SilenceLimits

BUDGET = Budget(total=48_000, brief=4_000, entry_cap=16_000)


@dataclass(frozen=True, slots=True)
class Limits:
    # Runs at once, whatever their runtimes allow.
    capacity: int = 64
    # The longest wait of one claim.
    poll: float = 20.0
    # Between two claims for places that became free while work waits for them.
    gather: float = 0.01
    # A workspace may be cloned and set up; probing and opening are answered soon, or never.
    workspace: float = 1800.0
    probe: float = 120.0
    open: float = 180.0
    # For one question to an agent's store about a prompt, and how long it is repeated while the store cannot tell.
    ask_store: float = 20.0
    ask_store_again: float = 1.5
    # From the interrupt of a turn to ending its process, and for that process to end.
    interrupt: float = 20.0
    close: float = 20.0
    # A cancelled step has this long to clean up.
    cancel: float = 15.0
    silence: SilenceLimits = field(default_factory=SilenceLimits)
    # Events are sent in batches: at most so many, and after so long.
    batch: int = 64
    pace: float = 0.1
    # Between tries to reach the server, growing from the first to the second.
    retry: float = 0.05
    retry_most: float = 2.0
    # Warm sessions: how many, how long they may be idle, and how often that is checked.
    warm: int = 8
    idle: float = 600.0
    sweep: float = 30.0
    # How often it is checked whether a person has opened a warm session.
    visitors: float = 3.0
    # At a stop: for running turns to finish where they are let, and for the outbox to be delivered.
    finish_turns: float = 3600.0
    last_delivery: float = 5.0
    # At a start: for the outbox of an earlier daemon to be delivered before the server ends its other runs.
    backlog: float = 30.0
    patience: Patience = Patience()
    # For the prompt, in tokens.
    budget: Budget = BUDGET
