"""Being asked to stop: once, and it is done in order; twice, and it is done now."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


class OnStop(StrEnum):
    FINISH = "finish"
    INTERRUPT = "interrupt"


class Stop:
    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.now = asyncio.Event()

    def ask(self) -> None:
        (self.now if self.asked.is_set() else self.asked).set()

    @contextmanager
    def heard(self) -> Iterator[None]:
        """While this lasts, signals ask and end nothing by themselves."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        for each in signals:
            loop.add_signal_handler(each, self.ask)
        try:
            yield
        finally:
            for each in signals:
                loop.remove_signal_handler(each)
