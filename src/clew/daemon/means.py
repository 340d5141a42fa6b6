"""What runs are served with."""

from collections.abc import Callable
from dataclasses import dataclass

from clew.daemon.limits import Limits
from clew.daemon.machine import LocalMachine
from clew.daemon.outbox import Outbox
from clew.daemon.warm import Warm
from clew.protocol.control import ControlPlane
from clew.protocol.prompts import PromptMaker


@dataclass(frozen=True, slots=True)
class Means:
    plane: ControlPlane
    machine: LocalMachine
    prompts: PromptMaker
    outbox: Outbox
    warm: Warm
    limits: Limits
    # Told when a run has ended for the server, and not yet for us.
    freed: Callable[[], None]
