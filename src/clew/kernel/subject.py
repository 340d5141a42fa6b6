"""Outside subjects: a pull request, an outside chat, an alarm. The thread is derived from the subject's name."""

import re
from dataclasses import dataclass

from clew.kernel.ids import ThreadId, subject_thread

_SOURCE = re.compile(r"[a-z][a-z0-9.+-]{0,31}")
_NAME = re.compile(r"[^\s\x00-\x1f\x7f-\x9f](?:[^\x00-\x1f\x7f-\x9f]{0,198}[^\s\x00-\x1f\x7f-\x9f])?")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Subject:
    """The source and the name there: `github` and `acme/app#12`."""

    source: str
    name: str

    @property
    def thread(self) -> ThreadId:
        return subject_thread(self.source, self.name)

    def __str__(self) -> str:
        return f"{self.source}:{self.name}"


def read_subject(text: str) -> Subject:
    """Read `source:name`. Raises ValueError with a sentence that says what is wrong."""
    source, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"{_shown(text)} does not say where it is: a subject is source:name.")
    if not _SOURCE.fullmatch(source):
        raise ValueError(
            f"{_shown(source)} is no source: it is up to 32 small letters, digits, dots, pluses and dashes."
        )
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{_shown(name)} is no name: it has 1 to 200 characters, on one line and without space around it."
        )
    return Subject(source, name)


def _shown(text: str) -> str:
    """The text, cut to a length that is enough to recognise it."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
