"""The agents' own store: a directory that outlives every server. What became of a prompt stands there, whichever
server was killed before it could report it.

The first to come decides: a prompt that was asked for before the agent had it never reaches the agent, and a turn that
was asked for before its end has none.
"""

import json
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clew.kernel import Attestation, Evidence, PromptId

UNSENT, TAKEN = "unsent", "taken"
FINISHED, CUT_OFF = "finished", "cut-off"


@dataclass(frozen=True)
class Delivery:
    """A prompt as its agent got it: for which run and wakes, in which conversation, with which entries of which thread,
    and which of them it was said to have been told before."""

    run: str
    wakes: tuple[str, ...]
    native: str
    thread: str
    entries: tuple[int, ...]
    already_told: tuple[int, ...]


class Agents:
    def __init__(self, noted: Path) -> None:
        self._place = noted / "agents"
        self._place.mkdir(parents=True, exist_ok=True)

    def take(self, prompt: PromptId, delivery: Delivery) -> bool:
        """Whether the agent has it now."""
        return self._decide(prompt, json.dumps([TAKEN, asdict(delivery)]))

    def finish(self, prompt: PromptId) -> bool:
        """Whether the agent came to the end of its turn."""
        return self._decide(f"{prompt}.end", FINISHED)

    def heard(self, prompt: PromptId, reply: str = "read back") -> Attestation:
        """What the store says of it, from now on the same."""
        if self._decide(prompt, json.dumps([UNSENT, None])) or self._read(prompt)[0] == UNSENT:
            return Attestation(Evidence.UNSENT, "no such prompt")
        if self._decide(f"{prompt}.end", CUT_OFF) or self._ended(prompt) == CUT_OFF:
            return Attestation(Evidence.CUT_OFF, "half a turn")
        return Attestation(Evidence.FINISHED, "a whole turn", reply)

    def deliveries(self) -> dict[str, tuple[Delivery, bool]]:
        """Every prompt that an agent got, in the order in which they were made, and whether its turn came to an end."""
        found: dict[str, tuple[Delivery, bool]] = {}
        for path in sorted(self._place.iterdir()):
            if path.suffix in (".end", ".new"):
                continue
            said, given = self._read(path.name)
            if said == TAKEN:
                lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
                found[path.name] = Delivery(**lists), self._ended(path.name) == FINISHED
        return found

    def _decide(self, name: str, text: str) -> bool:
        """Whole or not at all, and only if nobody did before."""
        made = self._place / f"{uuid.uuid4().hex}.new"
        made.write_text(text, encoding="utf-8")
        try:
            os.link(made, self._place / name)
        except FileExistsError:
            return False
        finally:
            made.unlink()
        return True

    def _read(self, name: str) -> tuple[str, dict[str, Any]]:
        said, given = json.loads((self._place / name).read_text(encoding="utf-8"))
        return said, given or {}

    def _ended(self, name: str) -> str:
        path = self._place / f"{name}.end"
        return path.read_text(encoding="utf-8") if path.exists() else ""
