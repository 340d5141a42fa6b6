"""The daemon: on each machine, from an order to its end."""

from clew.daemon.daemon import Daemon
from clew.daemon.limits import Limits
from clew.daemon.machine import LocalMachine

__all__ = ["Daemon", "Limits", "LocalMachine"]
