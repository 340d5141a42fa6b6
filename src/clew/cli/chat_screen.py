"""The screen of a chat: a line to type in at the bottom, everything else above it.

prompt_toolkit takes longer to load than most commands take to run, so only a chat imports this.
"""

import asyncio
import io
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import StdoutProxy

from clew.cli.safe_text import one_line

PROMPT = "> "

_REFRESH = 0.2
"""Seconds between two looks at the status, which has a clock."""


class Screen:
    """`status` is shown above the typed line; nothing where it is empty."""

    def __init__(self, status: Callable[[], str]) -> None:
        self.prompt = PROMPT
        self._status = status
        self._above: _WholeLines | None = None
        # One loop for all lines: text that is printed while one ends and the next begins finds it open.
        self._loop = asyncio.new_event_loop()
        self._session: PromptSession[str] = PromptSession(
            self._message,
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation="… ",
            refresh_interval=_REFRESH,
            reserve_space_for_menu=0,
        )

    def read(self) -> str:
        """One message, of one line or more. A pasted text is inserted as it is, and sent with Enter."""
        typed = self._loop.create_task(self._session.prompt_async())
        try:
            return self._loop.run_until_complete(typed)
        except KeyboardInterrupt:
            # A signal from outside ends the loop, and not the line.
            if not typed.done():
                typed.cancel()
                with suppress(asyncio.CancelledError, KeyboardInterrupt):
                    self._loop.run_until_complete(typed)
            raise

    @contextmanager
    def printing_above(self) -> Iterator[None]:
        """What is printed within, by any thread, appears above the typed line."""
        kept = sys.stdout, sys.stderr
        with StdoutProxy(raw=True, sleep_between_writes=0.05) as proxy:
            self._above, notes = _WholeLines(proxy), _WholeLines(proxy)
            # Two of them: a note stands above what the agent is saying, and does not cut into it.
            sys.stdout, sys.stderr = cast(TextIO, self._above), cast(TextIO, notes)
            try:
                yield
            finally:
                sys.stdout, sys.stderr = kept
                notes.end()
                self._above.end()
        self._loop.close()

    def _message(self) -> StyleAndTextTuples:
        if get_app().is_done:
            # What stays on the screen is the typed line alone.
            return [("", self.prompt)]
        width = shutil.get_terminal_size().columns - 1
        unfinished = "" if self._above is None else one_line(self._above.unfinished[-width:], width)
        status = one_line(self._status(), width)
        return [
            *([("", f"{unfinished}\n")] if unfinished else []),
            *([("ansibrightblack", f"{status}\n")] if status else []),
            ("", self.prompt),
        ]


class _WholeLines(io.TextIOBase):
    """Passes on whole lines: the typed line would overwrite an unfinished one, which the screen shows itself."""

    def __init__(self, proxy: StdoutProxy) -> None:
        super().__init__()
        self._proxy = proxy
        self._lock = threading.Lock()
        self.unfinished = ""

    def write(self, text: str) -> int:
        with self._lock:
            whole, newline, self.unfinished = (self.unfinished + text).rpartition("\n")
            if newline:
                self._proxy.write(f"{whole}\n")
        return len(text)

    def end(self) -> None:
        if self.unfinished:
            self.write("\n")

    def isatty(self) -> bool:
        return True


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        """Sends the message; after a backslash it begins another line."""
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    # The second is what a terminal makes of it while something is printed.
    @keys.add("escape", "enter")
    @keys.add("escape", "c-j")
    def alt_enter(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
