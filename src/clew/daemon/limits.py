"""How long is waited for what. Seconds, unless something else is said."""

from dataclasses import dataclass, field

from clew.kernel import Patience, SilenceLimits


@dataclass(frozen=True, slots=True)
class Limits:
    # How many runs go at once, whatever their runtimes allow.
    capacity: int = 64
    # How long one question for work may wait.
    poll: float = 20.0
    # Between two claims for places that became free while work waits for them.
    gather: float = 0.01
    # A workspace may be cloned and set up; the others are asked things that they answer soon, or not.
    workspace: float = 1800.0
    probe: float = 120.0
    open: float = 180.0
    # For one question to an agent's store about a prompt, and how long it is asked again while it cannot tell.
    hear: float = 20.0
    hear_again: float = 1.5
    # Between asking a turn to end and ending its process, and for that process to end.
    interrupt: float = 20.0
    close: float = 20.0
    # What is called off has this long to clean up behind itself.
    calling_off: float = 15.0
    silence: SilenceLimits = field(default_factory=SilenceLimits)
    # Events are sent together: so many, or those of so long.
    batch: int = 64
    pace: float = 0.1
    # Between tries to reach the server, growing from the first to the second.
    again: float = 0.05
    again_most: float = 2.0
    # Warm sessions: how many, how long idle, and how often that is looked at.
    warm: int = 8
    idle: float = 600.0
    sweep: float = 30.0
    # For running turns to finish when the daemon is to stop and lets them, and for what is left to be delivered.
    finishing: float = 3600.0
    parting: float = 5.0
    # For what an earlier daemon left to be delivered, before its other runs are settled.
    backlog: float = 30.0
    patience: Patience = Patience()
